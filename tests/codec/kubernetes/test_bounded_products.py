"""What multiplies is counted before it is made: claims, counts of queued work, rules on pods near by, matchings."""

from collections import Counter
from typing import Any

import pytest
from kubernetes_objects import node, pod, view

from pilotlight.codec.kubernetes.pods import near
from pilotlight.facts.capacity import ClusterView

KUEUE = "kueue.x-k8s.io/v1beta2"


def _workload(name: str, *counts: int, **spec: object) -> dict[str, Any]:
    """A Workload that has its quota and waits for our check, of pods with a GPU each."""
    true = [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-11-21T00:00:00Z"}]
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}], **spec}}
    sets = [{"name": f"s{n}", "count": count, "template": template} for n, count in enumerate(counts)]
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team-a", "uid": f"uid-{name}"},
        "spec": {"podSets": sets},
        "status": {"conditions": true, "admissionChecks": [{"name": "pilotlight", "state": "Pending"}]},
    }


@pytest.mark.parametrize("counts", [(2**31 - 1,), (2**31 - 1,) * 8, (10_001,), (-1, 3)], ids=str)
def test_queued_work_of_more_pods_than_can_be_planned_is_refused(counts: tuple[int, ...]) -> None:
    """Not one of its pods is made; the Workload beside it is planned whole, and is answered."""
    found = view([], [node()], [_workload("rude", *counts), _workload("plain", 3)])
    assert [demand.name for demand in found.pending] == ["plain-s0-0", "plain-s0-1", "plain-s0-2"]
    assert [queued.name for queued in found.queued] == ["plain"]
    (finding,) = found.findings
    assert (finding.subject, finding.code) == ("team-a/rude", "out-of-bounds")


def test_many_workloads_together_are_no_more_than_one_may_be() -> None:
    """Of twelve Workloads of a thousand pods, ten are planned in a look; the others are told and come later."""
    found = view([], [node()], [_workload(f"w{n:02}", 1000) for n in range(12)])
    assert len(found.queued) == 10
    assert len(found.pending) == 10_000
    assert [finding.subject for finding in found.findings] == ["team-a/w10", "team-a/w11"]


def _apart(name: str, space: str, own: int) -> dict[str, Any]:
    """A pod that keeps pods of its own labels away, by so many terms that no other pod has."""
    terms = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"{space}-{name}-{n}"}}} for n in range(own)
    ]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, meta={"namespace": space, "uid": f"{space}-{name}"}, affinity=affinity)


def test_a_namespace_with_too_many_rules_waits_and_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred pods with 32 rules each are refused; the rules compared are those of the namespace that has few."""
    asked: Counter[str] = Counter()
    has = near._Whom.has

    def counted(self: Any, *args: Any) -> bool:
        asked["has"] += 1
        return bool(has(self, *args))

    monkeypatch.setattr(near._Whom, "has", counted)
    rude = [_apart(f"r{n}", "rude", 32) for n in range(100)]
    found = view([*rude, _apart("one", "plain", 2), _apart("two", "plain", 2)], [node()])
    assert sorted(demand.name for demand in found.pending) == ["one", "two"]
    assert Counter(finding.code for finding in found.findings) == {"out-of-bounds": 100}
    assert asked["has"] < 1000


def _local(claims: int, volumes: int) -> ClusterView:
    """Pods with a claim each of a class that makes no volumes, of which there are so many on one node."""
    kind = {
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    there = [
        {
            "kind": "PersistentVolume",
            "metadata": {"name": f"v{n:04}"},
            "spec": {"storageClassName": "local", "capacity": {"storage": f"{n + 1}Gi"}},
            "status": {"phase": "Available"},
        }
        for n in range(volumes)
    ]
    asked = [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"c{n}", "namespace": "team-a"},
            "spec": {"storageClassName": "local", "resources": {"requests": {"storage": f"{volumes - n}Gi"}}},
        }
        for n in range(claims)
    ]
    pods = [
        pod(f"p{n:04}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"c{n}"}}]) for n in range(claims)
    ]
    return view(pods, [node()], [kind, *there, *asked])


def test_a_long_chain_of_claims_that_give_way_is_followed_to_its_end() -> None:
    """Twelve hundred claims of which each needs what the one before it took: all get a volume, without recursion."""
    assert len(_local(1200, 1200).pending) == 1200


def test_of_more_claims_than_volumes_as_many_get_one_as_there_are() -> None:
    """The oldest have theirs; the others are told that none is left."""
    found = _local(30, 20)
    assert len(found.pending) == 20
    assert {finding.code for finding in found.findings} == {"pvc-no-volume"}


@pytest.mark.parametrize(
    ("claims", "requests", "selectors", "named"),
    [(65, 1, 1, "claims for devices"), (1, 300, 1, "requests and selectors"), (1, 1, 40, "characters of selectors")],
)
def test_claims_for_devices_beyond_their_bound_are_refused(
    claims: int, requests: int, selectors: int, named: str
) -> None:
    """Too many claims, requests or characters: the pod is told and the one beside it is planned."""
    cel = [{"cel": {"expression": "true || " * 30 + "true"}}] * selectors
    one = {"exactly": {"deviceClassName": "gpu", "selectors": cel}}
    template = {"spec": {"devices": {"requests": [{"name": f"r{n}", **one} for n in range(requests)]}}}
    objects = [
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}},
        {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "team-a"}, "spec": template},
    ]
    wants = [{"name": f"c{n}", "resourceClaimTemplateName": "t"} for n in range(claims)]
    found = view([pod("rude", gpus=0, resourceClaims=wants), pod("plain")], [node()], objects)
    assert [demand.name for demand in found.pending] == ["plain"]
    (finding,) = found.findings
    assert finding.code == "out-of-bounds"
    assert named in finding.message
