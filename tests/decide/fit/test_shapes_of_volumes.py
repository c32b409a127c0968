"""Volumes that no node to come could have, as a real scheduler of 1.36 refuses them: nothing is bought for them."""

from typing import Any

from test_neighbours import outcome, planned, pods

Object = dict[str, Any]
DATA: Object = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def claim(size: str = "10Gi", **annotations: str) -> Object:
    """A claim that waits for its first consumer."""
    spec = {"storageClassName": "late", "resources": {"requests": {"storage": size}}}
    meta = {"name": "data", "namespace": "ml", "annotations": annotations}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


LATE: Object = {
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "disk.example.test",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def test_a_claim_whose_node_was_selected_goes_nowhere_else() -> None:
    """The scheduler tries no node but the selected one: where that is gone, a finding says what to take off."""
    chosen = {"volume.kubernetes.io/selected-node": "gone"}
    plan = planned(pods(1, **DATA), objects=[LATE, claim(**chosen)])
    assert (outcome(plan), [f.code for f in plan.findings]) == (({}, 1), ["volume"])
    assert "take the annotation volume.kubernetes.io/selected-node off" in plan.findings[0].message
    assert outcome(planned(pods(1, **DATA), objects=[LATE, claim()])) == ({"a": 1}, 0)
