"""Volumes that no node to come could have, as a real scheduler of 1.36 refuses them: nothing is bought for them."""

from typing import Any

import pytest
from test_neighbours import outcome, planned, pods

from pilotlight.facts.labels import ZONE

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


DRIVER: Object = {"kind": "CSIDriver", "metadata": {"name": "disk.example.test"}, "spec": {"storageCapacity": True}}


def room(zone: str = "", size: str = "100Gi", of: str = "late", **more: Any) -> Object:
    """Room for volumes of a class, in a zone, or wherever nodes are."""
    where = {"matchLabels": {ZONE: zone}} if zone else {}
    meta = {"name": f"room-{zone}-{of}", "namespace": "storage"}
    one = {"kind": "CSIStorageCapacity", "metadata": meta, "storageClassName": of, "nodeTopology": where}
    return {**one, "capacity": size, **more}


IN_A: Object = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]}
FREE: Object = {
    "kind": "PersistentVolume",
    "metadata": {"name": "pv"},
    "spec": {"storageClassName": "late", "capacity": {"storage": "10Gi"}},
}
ROOMS: dict[str, tuple[list[Object], dict[str, int]]] = {
    "room in the dearer zone": ([LATE, room("b")], {"b": 1}),
    "room in both": ([LATE, room("a"), room("b")], {"a": 1}),
    "room wherever nodes are": ([LATE, room()], {"a": 1}),
    "room that is too small": ([LATE, room("a", "9Gi")], {}),
    "room for smaller volumes alone": ([LATE, room("a", maximumVolumeSize="9Gi")], {}),
    "room that says no size": ([LATE, room("a", capacity=None)], {}),
    "room that cannot be read": ([LATE, room("a", "much")], {}),
    "room of another class": ([LATE, room("a", of="slow")], {}),
    "room that no node reaches": ([LATE, room(nodeTopology=None)], {}),
    "no room told": ([LATE], {}),
    "room where the class makes no volumes": ([{**LATE, **IN_A}, room("b")], {}),
    "room where the class makes volumes": ([{**LATE, **IN_A}, room("a"), room("b")], {"a": 1}),
    "no room, and a volume that is free": ([LATE, FREE], {"a": 1}),
}


@pytest.mark.parametrize(("objects", "bought"), ROOMS.values(), ids=ROOMS.keys())
def test_room_that_drivers_tell_decides_where_volumes_can_be(objects: list[Object], bought: dict[str, int]) -> None:
    """Where a driver tells its room, a node outside it is bought for nothing."""
    assert outcome(planned(pods(1, **DATA), objects=[DRIVER, claim(), *objects]))[0] == bought


def test_a_driver_that_tells_no_room_or_a_claim_of_no_size_is_not_held_to_it() -> None:
    """The scheduler looks at room only where the driver says so and the claim names a size."""
    silent = {**DRIVER, "spec": {}}
    assert outcome(planned(pods(1, **DATA), objects=[silent, claim(), LATE])) == ({"a": 1}, 0)
    sizeless = claim()
    sizeless["spec"].pop("resources")
    assert outcome(planned(pods(1, **DATA), objects=[DRIVER, sizeless, LATE])) == ({"a": 1}, 0)


def test_want_of_room_is_told_before_money_is_spent() -> None:
    """A finding names the claim and its class."""
    (found,) = planned(pods(1, **DATA), objects=[DRIVER, claim(), LATE]).findings
    assert (found.code, "data is of class late" in found.message) == ("pvc-no-capacity", True)
