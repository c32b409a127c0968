"""Volumes: which claims keep a pod from ever being placed, and from where a bound one can be reached."""

from typing import Any

import pytest
from kubernetes_objects import only_demand, pod, view

from pilotlight.facts.workload import Requirement

POD = pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
FAST = {"kind": "StorageClass", "metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"}
LATE = {"kind": "StorageClass", "metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(phase: str, storage_class: str | None = None, volume: str = "", **meta: object) -> dict[str, Any]:
    """The pod's claim."""
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "team-a", **meta},
        "spec": {"volumeName": volume, **({} if storage_class is None else {"storageClassName": storage_class})},
        "status": {"phase": phase},
    }


FINDINGS = {
    "there is no such claim": ([FAST], [claim("Bound", name="other")], "pvc-missing"),
    "no claim exists at all": ([], [], "pvc-missing"),
    "it is being deleted": ([FAST], [claim("Bound", deletionTimestamp="2026-11-21T00:00:00Z")], "pvc-missing"),
    "it lost its volume": ([FAST], [claim("Lost")], "pvc-lost"),
    "unbound though bound at once": ([FAST], [claim("Pending", "fast")], "pvc-unbound"),
    "unbound and of no class": ([FAST], [claim("Pending", "")], "pvc-unbound"),
    "unbound with no default class": ([FAST], [claim("Pending")], "pvc-unbound"),
    "unbound and of a class that is not there": ([FAST], [claim("Pending", "gone")], "pvc-unbound"),
}


@pytest.mark.parametrize(("classes", "claims", "code"), FINDINGS.values(), ids=FINDINGS.keys())
def test_claims_no_node_would_help(classes: list[dict[str, Any]], claims: list[dict[str, Any]], code: str) -> None:
    """A claim that cannot be bound is a finding, and nothing is bought for its pod."""
    seen = view([POD], objects=[*classes, *claims])
    assert seen.pending == ()
    assert [f.code for f in seen.findings] == [code]


ORDINARY = {
    "bound": [FAST, claim("Bound", "fast", "pv-1")],
    "unbound until its first consumer": [LATE, claim("Pending", "late")],
    "of a default class that waits for its consumer": [
        {**LATE, "metadata": {"name": "late", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        claim("Pending"),
    ],
    "unbound, with no class listed to judge by": [claim("Pending", "fast")],
}


@pytest.mark.parametrize("objects", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_claims(objects: list[dict[str, Any]]) -> None:
    """A claim that is bound, or will be once its pod has a node, changes nothing."""
    assert only_demand(view([POD], objects=objects)).shape.terms == ()


def test_claims_are_not_judged_when_none_were_listed() -> None:
    """Without lists of claims a pod's volumes are taken to be well."""
    assert view([POD]).findings == ()
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}}
    assert view([POD], objects=[group]).findings == ()


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"])
def test_a_bound_volume_says_where(key: str) -> None:
    """The pod may run only where its volume can be reached, whatever the driver calls a zone."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["us-east-1b"]}]}]
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }
    seen = view([POD], objects=[claim("Bound", "fast", "pv-1"), volume])
    zone = Requirement(key="topology.kubernetes.io/zone", operator="In", values=("us-east-1b",))
    assert only_demand(seen).shape.terms == ((zone,),)
