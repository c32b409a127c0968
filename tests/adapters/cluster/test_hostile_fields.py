"""Extreme values in every field of a pod, a node, a Workload and a claim: each costs its own object alone.

Every run tries one value of each field that is read and of some of the others; another number in ``PILOTLIGHT_FUZZ``
tries other values, ``PILOTLIGHT_FUZZ=all`` every value of every field.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import islice

import pytest
from api_fields import HERE, extracted
from api_store import Json
from hostile_site import HostileSite, stranger
from hostile_values import Case, cases, written

from pilotlight.codec.kubernetes.device_objects import ResourceClaim, ResourceClaimTemplate
from pilotlight.codec.kubernetes.kueue_objects import Workload
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod
from pilotlight.facts import labels
from pilotlight.facts.fit import matching
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.state_schema.cluster_records import ISOLATED
from pilotlight.units import HOUR

FUZZ = os.environ.get("PILOTLIGHT_FUZZ", "1")
OTHERS = 40
"""So many fields that are not read are tried in a run, of each kind."""
ANOTHERS = (labels.KARPENTER_NODE_POOL, labels.AUTO_MODE[0])
"""By these a node says that another autoscaler scales its pool, which is left alone then."""
TOGETHER = 150
"""So many rude objects are in one cluster at a time."""
BEGAN = "2026-07-01T00:00:00Z"
PLACE = "requiredDuringSchedulingIgnoredDuringExecution"


def _rich(name: str) -> Json:
    """A pod that waits and says something in every part that is read, all of which can be met."""
    made = stranger(name)
    own = {"matchLabels": {"app": name}}
    away = {"matchExpressions": [{"key": "away", "operator": "NotIn", "values": ["yes"]}]}
    made["metadata"]["labels"]["app"] = name
    made["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Job", "name": name, "uid": f"uid-{name}"}]
    made["spec"] |= {
        "affinity": {
            "nodeAffinity": {PLACE: {"nodeSelectorTerms": [away]}},
            "podAffinity": {PLACE: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": own}]},
            "podAntiAffinity": {PLACE: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {**away}}]},
        },
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 9,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": own,
            }
        ],
        "volumes": [{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "disks"}}}}],
        "terminationGracePeriodSeconds": 45,
        "activeDeadlineSeconds": 3600,
    }
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    made["metadata"]["annotations"] |= {
        "pilotlight.dev/checkpoint-seconds": "600",
        "pilotlight.dev/checkpoint-takes-seconds": "20",
        "pilotlight.dev/deadline": "2026-07-03T00:00:00Z",
        "pilotlight.dev/work": "2h",
    }
    return made


def _bound(name: str, node: str) -> Json:
    """The same, running on a node."""
    made = _rich(name)
    made["spec"]["nodeName"] = node
    made["status"] = {
        "phase": "Running",
        "startTime": BEGAN,
        "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": BEGAN}}}],
    }
    return made


def _queued(name: str) -> Json:
    """A Workload that has its quota and waits for our check, of two pods."""
    template = {"metadata": {"labels": {}, "annotations": {}}, "spec": stranger(name)["spec"]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": BEGAN},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 2, "template": template}]},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": BEGAN}],
            "admissionChecks": [{"name": "pilotlight", "state": "Pending"}],
            "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": 2}]},
        },
    }


def _some(spec: Json, n: int) -> None:
    """One in ten may be bought for. No node that is sold has two GPUs: what the others say is read, and told."""
    if n % 10:
        spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2"


def _devices() -> Json:
    exactly = {"deviceClassName": "gpus", "count": 1, "selectors": [{"cel": {"expression": "true"}}]}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def _claim(name: str) -> Json:
    return {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": _devices()}


def _template(name: str) -> Json:
    spec = {"spec": _devices()}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _claiming(name: str, by: str) -> Json:
    """A pod that asks for its GPU by a claim, or by a template of that name."""
    made = stranger(name)
    made["spec"]["containers"][0]["resources"] = {}
    made["spec"]["resourceClaims"] = [{"name": "gpu", by: name}]
    return made


def _chosen(kind: str, model: type) -> list[Case]:
    """The cases of a run."""
    every = list(cases(kind, model))
    if FUZZ == "all":
        return every
    rng = random.Random(f"{kind} {FUZZ}")
    of_field: dict[tuple[object, ...], list[Case]] = {}
    for case in every:
        of_field.setdefault((case.read, case.path, _named(case.value)), []).append(case)
    read = [rng.choice(found) for (ours, *_), found in of_field.items() if ours]
    others = [rng.choice(found) for (ours, *_), found in of_field.items() if not ours]
    return read + rng.sample(others, min(OTHERS, len(others)))


def _named(value: object) -> str:
    """The one name that a map's value is about."""
    return next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""


def _batches(found: Sequence[Case]) -> Iterator[list[Case]]:
    rest = iter(found)
    while batch := list(islice(rest, TOGETHER)):
        yield batch


def _all_go_on(site: HostileSite) -> None:
    """Looks, a rescue and a meter pass; work that is there goes on, and the pod that waits has its node."""
    site.world.launch("one")
    site.world.launch("spot")
    site.api.seen = -1.0
    site.submit("stays", run_s=20 * HOUR)
    site.submit("moves", run_s=20 * HOUR)
    site.world.advance(site.world.now_s + 200)
    site.submit("plain", run_s=20 * HOUR)
    site.look(dry_run=True)
    site.look()
    site.notice("n2")
    for _ in range(3):
        site.world.advance(site.world.now_s + 60)
        site.look()
        go_on(site.deps)
    site.meter()
    assert not site.world.pending, "a pod of others waits"
    running = {job.demands[0].name.partition("-")[0] for job in site.world.running.values()}
    assert running == {"stays", "moves", "plain"}
    assert "n1" in site.world.nodes
    assert "n2" not in site.world.nodes


def _tried(batch: list[Case], add: Callable[[HostileSite, Case, int], None]) -> None:
    site = HostileSite("10000", most=1000)
    for n, case in enumerate(batch):
        add(site, case, n)
    held = matching.holds
    count = 0

    def counted(*args: object) -> bool:
        nonlocal count
        count += 1
        return held(*args)  # type: ignore[arg-type]

    matching.holds = counted  # type: ignore[assignment]
    try:
        _all_go_on(site)
    finally:
        matching.holds = held
    assert count < 3_000_000
    apart = ISOLATED.get(site.deps.state, site.deps.name)
    assert not apart or not apart.value.counts, apart.value.counts  # Bounds are the first net, and whole by themselves.
    view = site.deps.cluster.observe()
    assert all(len(pod.shape.terms) <= 256 for pod in view.pending)
    for found in view.findings:
        assert len(found.message) <= 1000
        assert found.message.isprintable()
    for alert in site.alerts:
        assert len(alert.what) + len(alert.why) < 20_000


def _only(batch: list[Case], add: Callable[[HostileSite, Case, int], None]) -> None:
    """All of a batch in one cluster; where that fails, each alone, so that the field is named."""
    try:
        _tried(batch, add)
    except Exception as error:
        for case in batch:
            try:
                _tried([case], add)
            except Exception as alone:
                pytest.fail(f"{case}: {type(alone).__name__}: {str(alone)[:300]}")
        raise error


def _of(kind: str, model: type) -> list[list[Case]]:
    told = (case for case in _chosen(kind, model) if not (kind == "Node" and _named(case.value) in ANOTHERS))
    return list(_batches(list(told)))


def _ids(batches: list[list[Case]]) -> list[str]:
    return [f"from {'.'.join(batch[0].path)}" for batch in batches]


PODS, NODES, WORKLOADS = _of("Pod", Pod), _of("Node", KubeNode), _of("Workload", Workload)
CLAIMS, TEMPLATES = _of("ResourceClaim", ResourceClaim), _of("ResourceClaimTemplate", ResourceClaimTemplate)
CLASS = {"kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}}


@pytest.mark.parametrize("batch", PODS, ids=_ids(PODS))
def test_a_field_of_a_pod_costs_that_pod_alone(batch: list[Case]) -> None:
    """Waiting, or on a node: looks, rescues and meters pass and all other pods are served."""

    def add(site: HostileSite, case: Case, n: int) -> None:
        base = _rich(f"rude-{n}") if n % 2 else stranger(f"rude-{n}")
        _some(base["spec"], n)
        site.add({**written("Pod", base, case), "kind": "Pod"})
        if n % 2 or case.read:
            site.add({**written("Pod", _bound(f"bound-{n}", f"n{1 + n % 2}"), case), "kind": "Pod"})

    _only(batch, add)


@pytest.mark.parametrize("batch", NODES, ids=_ids(NODES))
def test_a_field_of_a_node_costs_that_node_alone(batch: list[Case]) -> None:
    """The nodes beside it are used, rescued and metered as before."""

    def add(site: HostileSite, case: Case, n: int) -> None:
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEGAN}
        base = {
            "metadata": {"name": f"rude-{n}", "labels": {"pilotlight.dev/pool": "one"}, "creationTimestamp": BEGAN},
            "spec": {"providerID": f"world:///rude-{n}", "unschedulable": True},
            "status": {"allocatable": room, "capacity": room, "conditions": [ready]},
        }
        site.add({**written("Node", base, case), "kind": "Node"})

    _only(batch, add)


@pytest.mark.parametrize("batch", WORKLOADS, ids=_ids(WORKLOADS))
def test_a_field_of_a_workload_costs_that_workload_alone(batch: list[Case]) -> None:
    """Queued work beside it, and pods that are not queued, are served."""

    def add(site: HostileSite, case: Case, n: int) -> None:
        base = _queued(f"rude-{n}")
        _some(base["spec"]["podSets"][0]["template"]["spec"], n)
        made = written("Workload", base, case)
        site.add({**made, "kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta2"})

    _only(batch, add)


@pytest.mark.parametrize("batch", CLAIMS, ids=_ids(CLAIMS))
def test_a_field_of_a_claim_costs_its_pod_alone(batch: list[Case]) -> None:
    """The pod that has the claim is told; all others are served."""

    def add(site: HostileSite, case: Case, n: int) -> None:
        made = written("ResourceClaim", _claim(f"rude-{n}"), case)
        site.add(CLASS, {**made, "kind": "ResourceClaim"}, _claiming(f"rude-{n}", "resourceClaimName"))

    _only(batch, add)


@pytest.mark.parametrize("batch", TEMPLATES, ids=_ids(TEMPLATES))
def test_a_field_of_a_claims_template_costs_its_pods_alone(batch: list[Case]) -> None:
    """The pod that names the template is told; all others are served."""

    def add(site: HostileSite, case: Case, n: int) -> None:
        made = written("ResourceClaimTemplate", _template(f"rude-{n}"), case)
        site.add(CLASS, {**made, "kind": "ResourceClaimTemplate"}, _claiming(f"rude-{n}", "resourceClaimTemplateName"))

    _only(batch, add)


STOPS = [
    case
    for case in cases("Pod", Pod)
    if case.read
    and case.path[-1] in ("annotations", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "startTime")
]


@pytest.mark.parametrize("seed", range(2))
def test_no_field_of_a_running_pod_makes_a_hard_cap_pass(seed: int) -> None:
    """Three quarters of a dollar a day stay so, whatever the pods on the node come to say of how long they stop."""
    site = HostileSite("0.75")
    site.submit("works", run_s=20 * HOUR)
    site.minutes(5)
    for n, case in enumerate(random.Random(seed).sample(STOPS, 40)):
        site.add({**written("Pod", _bound(f"rude-{n}", "n1"), case), "kind": "Pod"})
    site.minutes(55)
    assert Decimal("0.3") < site.usd <= Decimal("0.75")


def test_the_fields_are_those_of_the_api_server() -> None:
    """The file beside this test is what the package's schemas say now: else write it anew by its script."""
    assert HERE.read_text().splitlines() == extracted()
