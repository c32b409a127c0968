"""Volumes: which claims keep a pod from ever being placed, and from where a bound one can be reached."""

from typing import Any

import pytest
from kubernetes_objects import node, only_demand, only_node, pod, view

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


def asking(phase: str, storage_class: str, *modes: str, size: str = "10Gi") -> dict[str, Any]:
    """The pod's claim, with its access modes and size."""
    made = claim(phase, storage_class)
    made["spec"] |= {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    return made


def volume(name: str, host: str = "", *, size: str = "10Gi", phase: str = "Available", **more: Any) -> dict[str, Any]:
    """A volume of class local, on one node where it names one."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}
    spec = {"storageClassName": "local", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **more}
    spec |= {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if host else {}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


LOCAL = {**LATE, "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
WANTED = asking("Pending", "local", "ReadWriteOnce")

NO_VOLUME = {
    "there is none": [],
    "it is another claim's": [volume("pv", "n1", claimRef={"name": "other", "namespace": "team-a"})],
    "it was another's and is not cleared": [volume("pv", "n1", phase="Released", claimRef={"name": "gone"})],
    "it is of another class": [volume("pv", "n1", storageClassName="slow")],
    "it is too small": [volume("pv", "n1", size="9Gi")],
    "it cannot be had in that way": [volume("pv", "n1", accessModes=["ReadOnlyMany"])],
    "it is a raw device": [volume("pv", "n1", volumeMode="Block")],
}


@pytest.mark.parametrize("volumes", NO_VOLUME.values(), ids=NO_VOLUME.keys())
def test_a_class_that_makes_no_volumes_needs_one_that_is_there(volumes: list[dict[str, Any]]) -> None:
    """Of local storage no node to come has any: without a volume that would do nothing is bought."""
    seen = view([POD], objects=[LOCAL, WANTED, *volumes])
    assert (seen.pending, [f.code for f in seen.findings]) == ((), ["pvc-no-volume"])


def test_local_volumes_say_on_which_nodes() -> None:
    """A pod for a local volume may run where one that would do is free; many are one alternative."""
    volumes = [volume(f"pv-{n}", f"n{n}") for n in (2, 1)]
    seen = view([POD], objects=[LOCAL, WANTED, volume("small", "n3", size="1Gi"), *volumes])
    here = Requirement(key="kubernetes.io/hostname", operator="In", values=("n1", "n2"))
    assert only_demand(seen).shape.terms == ((here,),)


def made_in(*zones: str) -> dict[str, Any]:
    """The class whose volumes are made in certain zones once their pod has a node."""
    labels = [{"key": "topology.gke.io/zone", "values": list(zones)}]
    return {**LATE, "provisioner": "pd.csi.storage.gke.io", "allowedTopologies": [{"matchLabelExpressions": labels}]}


def test_a_class_says_in_which_zones_its_volumes_are_made() -> None:
    """A claim of such a class keeps its pod to those zones, beside what the pod itself asks for."""
    own = pod(nodeSelector={"kubernetes.io/os": "linux"}, volumes=POD["spec"]["volumes"])
    shape = only_demand(view([own], objects=[made_in("b", "a"), claim("Pending", "late")])).shape
    zone = Requirement(key="topology.kubernetes.io/zone", operator="In", values=("a", "b"))
    linux = Requirement(key="kubernetes.io/os", operator="In", values=("linux",))
    assert (shape.terms, shape.reach) == (((linux, zone),), (((zone,),),))


def test_a_volume_that_is_there_does_too() -> None:
    """A free volume of the class in another zone is one more place; one that is anywhere lifts the limit."""
    objects = [made_in("a"), asking("Pending", "late", "ReadWriteOnce")]
    there = volume("pv", "n1", storageClassName="late")
    assert len(only_demand(view([POD], objects=[*objects, there])).shape.terms) == 2
    assert only_demand(view([POD], objects=[*objects, volume("pv", storageClassName="late")])).shape.terms == ()


def test_a_claim_that_names_its_volume_goes_where_that_is() -> None:
    """A claim not bound yet to the volume that it names is where that volume is."""
    named = claim("Pending", "late", "pv")
    here = Requirement(key="kubernetes.io/hostname", operator="In", values=("n1",))
    assert only_demand(view([POD], objects=[LATE, named, volume("pv", "n1")])).shape.terms == ((here,),)


def test_a_volume_says_its_zones_by_labels_too() -> None:
    """As drivers of old wrote it: several zones in one label."""
    labelled = volume("pv")
    labelled["metadata"]["labels"] = {"failure-domain.beta.kubernetes.io/zone": "b__a"}
    zone = Requirement(key="topology.kubernetes.io/zone", operator="In", values=("a", "b"))
    seen = view([POD], objects=[claim("Bound", "local", "pv"), labelled])
    assert only_demand(seen).shape.terms == ((zone,),)


def using(name: str, **more: Any) -> dict[str, Any]:
    """A pod of the same claim."""
    return pod(name, volumes=POD["spec"]["volumes"], **more)


IN_USE = {
    "a pod on a node has it": ([using("a", nodeName="cpu-1"), using("b")], ["team-a/b"]),
    "two wait for it": ([using("b"), using("a")], ["team-a/b"]),
    "whoever had it has ended": ([using("a", nodeName="n", status={"phase": "Succeeded"}), using("b")], []),
    "another claim of another pod": ([pod("a", nodeName="n"), using("b")], []),
}


@pytest.mark.parametrize(("pods", "found"), IN_USE.values(), ids=IN_USE.keys())
def test_a_claim_of_one_pod_is_had_by_one(pods: list[dict[str, Any]], found: list[str]) -> None:
    """While one pod has a ReadWriteOncePod claim no node helps another; of two that wait the first gets it."""
    seen = view(pods, objects=[asking("Bound", "fast", "ReadWriteOncePod")])
    assert [f.subject for f in seen.findings if f.code == "pvc-in-use"] == found
    many = view(pods, objects=[asking("Bound", "fast", "ReadWriteMany")])
    assert many.findings == ()


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


def limited(name: str, count: int | None) -> dict[str, Any]:
    """What a node says of the driver of class late."""
    driver = {"name": "ebs", **({} if count is None else {"allocatable": {"count": count}})}
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}


EBS = {**LATE, "provisioner": "ebs"}


@pytest.mark.parametrize(("count", "left"), [(3, 2), (1, 0), (None, None)])
def test_a_node_takes_so_many_volumes_of_a_driver(count: int | None, left: int | None) -> None:
    """What pods on a node have attached is off its limit; where no limit is said there is none."""
    on = pod("on", nodeName="n1", status={"phase": "Running"}, volumes=POD["spec"]["volumes"])
    seen = view([on, POD], [node()], objects=[EBS, claim("Pending", "late"), limited("n1", count)])
    assert dict(only_node(seen).free.other).get("attachable-volumes-csi-ebs") == left
    assert only_demand(seen).shape.other == (("attachable-volumes-csi-ebs", 1),)
