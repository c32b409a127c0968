"""Gangs of 16 and 64 GPUs from each kind of object that makes them, read from lists and planned for as a whole."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from kubernetes_objects import NOW, pod, unscheduled, view

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Claims, ClassPolicy, Policy, PoolPolicy
from pilotlight.units import EPOCH

OFFERING = Offering(
    pool="p4d", instance_type="p4d.24xlarge", capacity_type="on-demand", gpu_model="A100", gpus=8,
    usd_per_hour=Decimal("32.77"), boot_s=300,
)  # fmt: skip
EIGHT = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
NO_GPU = {"containers": [{"name": "c", "image": "i", "resources": {}}]}


def _meta(
    name: str, kind: str, owner: str, labels: dict[str, Any] | None = None, annotations: dict[str, Any] | None = None
) -> dict[str, Any]:
    owners = [{"kind": kind, "name": owner, "controller": True}]
    meta = {"labels": labels or {}, "annotations": annotations or {}, "ownerReferences": owners}
    return {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "creationTimestamp": NOW, **meta}


def mpi_job(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A launcher without GPUs, made by a Job of its own, and the workers."""
    label = {"training.kubeflow.org/job-name": "mpi"}
    launcher = pod("mpi-launcher", gpus=0, meta=_meta("mpi-launcher", "Job", "mpi-launcher", label))
    return [launcher, *(_worker(f"mpi-worker-{n}", "MPIJob", "mpi", label) for n in range(nodes))], []


def pytorch_job(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One master and the workers, all with GPUs."""
    label = {"training.kubeflow.org/job-name": "ddp"}
    names = ["ddp-master-0", *(f"ddp-worker-{n}" for n in range(nodes - 1))]
    return [_worker(name, "PyTorchJob", "ddp", label) for name in names], []


def job_set(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two replicated jobs of one JobSet, each pod made by a child Job."""
    label = {"jobset.sigs.k8s.io/jobset-name": "js"}
    return [_worker(f"js-{n % 2}-{n}", "Job", f"js-{n % 2}", label) for n in range(nodes)], []


def pod_group_of_kueue(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Plain pods that name their group and its size."""
    label = {"kueue.x-k8s.io/pod-group-name": "g"}
    total = {"kueue.x-k8s.io/pod-group-total-count": str(nodes)}
    return [pod(f"g-{n}", gpus=8, meta=_meta(f"g-{n}", "Pod", "", label, total)) for n in range(nodes)], []


def volcano(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Pods of a Volcano job; its PodGroup says how many start together."""
    group = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "spec": {"minMember": nodes}}
    group["metadata"] = {"name": "vj", "namespace": "team-a"}
    mine = {"scheduling.k8s.io/group-name": "vj"}
    pods = [pod(f"vj-{n}", gpus=8, meta=_meta(f"vj-{n}", "Job", "vj", annotations=mine)) for n in range(nodes)]
    return pods, [group]


def kai(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Pods that KAI's pod grouper has put into a PodGroup."""
    group = {"kind": "PodGroup", "apiVersion": "scheduling.run.ai/v2alpha2", "spec": {"minMember": nodes}}
    group["metadata"] = {"name": "pg-train", "namespace": "team-a"}
    mine = {"pod-group-name": "pg-train"}
    return [pod(f"k-{n}", gpus=8, meta=_meta(f"k-{n}", "Job", "k", annotations=mine)) for n in range(nodes)], [group]


def leader_worker_set(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A replica of a LeaderWorkerSet: a leader and its workers."""
    return [_replica(n, nodes) for n in range(nodes)], [_set("LeaderCreated")]


def _set(startup: str) -> dict[str, Any]:
    meta = {"name": "serve", "namespace": "team-a"}
    version = "leaderworkerset.x-k8s.io/v1"
    return {"kind": "LeaderWorkerSet", "apiVersion": version, "metadata": meta, "spec": {"startupPolicy": startup}}


def _replica(n: int, size: int, of: int = 0) -> dict[str, Any]:
    prefix = "leaderworkerset.sigs.k8s.io"
    labels = {f"{prefix}/name": "serve", f"{prefix}/group-index": str(of), f"{prefix}/worker-index": str(n)}
    name = f"serve-{of}-{n}" if n else f"serve-{of}"
    return pod(name, gpus=8, meta=_meta(name, "StatefulSet", "serve", labels, {f"{prefix}/size": str(size)}))


def kubernetes(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Pods of a PodGroup of Kubernetes' own."""
    group: dict[str, Any] = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2"}
    group |= {"spec": {"schedulingPolicy": {"gang": {"minCount": nodes}}}}
    group["metadata"] = {"name": "own", "namespace": "team-a"}
    mine = {"podGroupName": "own"}
    pods = [pod(f"o-{n}", gpus=8, meta=_meta(f"o-{n}", "Job", "o"), schedulingGroup=mine) for n in range(nodes)]
    return pods, [group]


def ray_cluster(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A RayCluster, as a RayJob makes one too: a head without GPUs, and two groups of workers."""
    workers = [_of_ray(f"ray-{n % 2}-{n}", f"workers-{n % 2}", "worker") for n in range(nodes)]
    return [_of_ray("ray-head", "headgroup", "head"), *workers], []


def _of_ray(name: str, group: str, type_: str, *others: str) -> dict[str, Any]:
    """A pod of a RayCluster, with ``others`` beside Ray's own container."""
    labels = {"ray.io/cluster": "ray", "ray.io/group": group, "ray.io/node-type": type_, "ray.io/is-ray-node": "yes"}
    limits = {"nvidia.com/gpu": 8} if type_ == "worker" else {}
    ray = {"name": f"ray-{type_}", "image": "i", "resources": {"limits": limits}}
    beside = [{"name": other, "image": "i", "resources": {}} for other in others]
    return pod(name, gpus=0, meta=_meta(name, "RayCluster", "ray", labels), containers=[ray, *beside])


def kueue_v1beta1(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A suspended MPIJob: no pods, a Workload that has its quota and waits for its check."""
    return [], [workload(nodes, "v1beta1")]


def kueue_v1beta2(nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same under the API's newer version."""
    return [], [workload(nodes, "v1beta2")]


def workload(
    nodes: int, version: str = "v1beta2", *, status: dict[str, Any] | None = None, **spec: object
) -> dict[str, Any]:
    """A Workload of one launcher without GPUs and so many workers; with its quota and a check pending."""
    return {
        "kind": "Workload",
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "metadata": _meta("mpijob-train-1a2b3", "MPIJob", "train"),
        "spec": {
            "queueName": "research",
            "podSets": [
                {"name": "launcher", "count": 1, "template": {"metadata": {}, "spec": NO_GPU}},
                {"name": "worker", "count": nodes, "template": {"metadata": {"labels": {"a": "b"}}, "spec": EIGHT}},
            ],
            **spec,
        },
        "status": {**_status(QuotaReserved="True"), **(status or {})},
    }


def _status(**conditions: str) -> dict[str, Any]:
    return {
        "conditions": [{"type": name, "status": status, "reason": name} for name, status in conditions.items()],
        "admissionChecks": [{"name": "pilotlight", "state": "Pending", "message": "", "lastTransitionTime": NOW}],
    }


def _worker(name: str, kind: str, owner: str, labels: dict[str, Any]) -> dict[str, Any]:
    return pod(name, gpus=8, meta=_meta(name, kind, owner, labels), status={"conditions": [unscheduled()]})


def plan(seen: ClusterView, most: int) -> Plan:
    """The plan for a view, with a pool of at most so many nodes of 8 GPUs."""
    either = ClassPolicy(gpu_models="any")
    pools = {"p4d": PoolPolicy(instance_type="p4d.24xlarge", max=most)}
    policy = Policy(version=1, pools=pools, classes={"training": either, "batch": either})
    speeds = {name: {"A100": 1.0} for name in ("training", "batch", "serving", "notebook")}
    lit = (PoolState(name="p4d", desired=0),)
    return plan_cluster(Look(seen, lit, (OFFERING,), policy, Memory(), EPOCH, throughput=speeds))


Source = Callable[[int], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
SOURCES: tuple[Source, ...] = (
    mpi_job, pytorch_job, job_set, pod_group_of_kueue, volcano, kai, leader_worker_set, kubernetes, ray_cluster,
    kueue_v1beta1, kueue_v1beta2,
)  # fmt: skip


@pytest.mark.parametrize("nodes", [2, 8], ids=["16 GPUs", "64 GPUs"])
@pytest.mark.parametrize("source", SOURCES, ids=[s.__name__.replace("_", " ") for s in SOURCES])
def test_a_gang_is_bought_for_whole_or_not_at_all(source: Source, nodes: int) -> None:
    """Whatever made it: one purchase of all its nodes, and none where the pool has room for one less."""
    pods, objects = source(nodes)
    seen = view(pods, objects=objects)
    assert {d.shape.gang.size for d in seen.pending if d.shape.gang} == {nodes}
    (buy,) = plan(seen, most=nodes).buys
    assert (buy.count, len(buy.demands), len(buy.gangs)) == (nodes, nodes, 1)
    assert plan(seen, most=nodes - 1).buys == ()


@pytest.mark.parametrize("nodes", [2, 8], ids=["16 GPUs", "64 GPUs"])
def test_a_volcano_gang_waits_for_its_members(nodes: int) -> None:
    """As long as a pod of minMember is missing nothing is bought."""
    pods, objects = volcano(nodes)
    assert plan(view(pods[:-1], objects=objects), most=nodes).buys == ()


NO_DEMAND = {
    "it waits for quota": workload(2, status=_status(QuotaReserved="False")),
    "it is admitted: its pods speak for it": workload(2, status=_status(QuotaReserved="True", Admitted="True")),
    "it has finished": workload(2, status=_status(QuotaReserved="True", Finished="True")),
    "it was evicted": workload(2, status=_status(QuotaReserved="True", Evicted="True")),
    "it is not active": workload(2, active=False),
    "no check is pending": workload(2, status={"admissionChecks": [{"name": "pilotlight", "state": "Ready"}]}),
    "a check failed": workload(
        2, status={"admissionChecks": [{"name": "pilotlight"}, {"name": "b", "state": "Retry"}]}
    ),
    "another's check is pending": workload(
        2, status={"admissionChecks": [{"name": "pilotlight"}, {"name": "b", "state": "Pending"}]}
    ),
    "it is another API's": {**workload(2), "apiVersion": "scheduling.k8s.io/v1alpha1"},
}


@pytest.mark.parametrize("queued", NO_DEMAND.values(), ids=NO_DEMAND.keys())
def test_queued_work_that_no_node_helps_is_no_demand(queued: dict[str, Any]) -> None:
    """A node is bought for a Workload only while its admission check is all it waits for."""
    assert view([], objects=[queued]).pending == ()


def test_a_workload_is_read_as_its_pods_will_be() -> None:
    """Its own count where less was admitted, its flavor's nodes, its owner, its priority and its longest run."""
    flavor = {"kind": "ResourceFlavor", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "a100"}}
    flavor["spec"] = {
        "nodeLabels": {"gpu": "a100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    given = {"name": "worker", "count": 3, "flavors": {"nvidia.com/gpu": "a100"}}
    status = {"admission": {"podSetAssignments": [{"name": "launcher", "count": 1}, given]}}
    queued = workload(4, status=status, priority=7, maximumExecutionTimeSeconds=3600)
    queued["status"]["accumulatedPastExecutionTimeSeconds"] = 600
    demands = view([], objects=[queued, flavor], claims={"*": Claims(priority=7)}).pending
    assert [d.name for d in demands] == [f"mpijob-train-1a2b3-worker-{n}" for n in range(3)]
    made = demands[0].shape
    assert [(r.key, r.values) for term in made.terms for r in term] == [("gpu", ("a100",))]
    assert [t.key for t in made.tolerations] == ["nvidia.com/gpu"]
    assert (made.priority, made.max_run_s, demands[0].owner) == (7, 3000, "MPIJob/train")


@pytest.mark.parametrize("given", [1, 2, 4])
def test_a_gang_that_was_let_in_in_part_is_as_large_as_that(given: int) -> None:
    """Its pods say that they are four; Kueue's partial admission gave quota for less: one alone waits for no others."""
    says = {"annotations": {"pilotlight.dev/gang": "four", "pilotlight.dev/gang-size": "4"}}
    sets = [{"name": "worker", "count": 4, "minCount": 1, "template": {"metadata": says, "spec": EIGHT}}]
    status = {"admission": {"podSetAssignments": [{"name": "worker", "count": given}]}}
    seen = view([], objects=[workload(4, status=status, podSets=sets)])
    assert [demand.shape.gang.size for demand in seen.pending if demand.shape.gang] == [given] * given
    (buy,) = plan(seen, 4).buys
    assert (buy.count, len(buy.demands)) == (given, given)


@pytest.mark.parametrize("given", [1, 2])
def test_pods_of_a_gang_that_was_let_in_in_part_wait_for_no_more(given: int) -> None:
    """Its job made so many pods as it has quota for; each says that they are four, and none would ever be bound."""
    says = {"pilotlight.dev/gang": "four", "pilotlight.dev/gang-size": "4"}
    sets = [{"name": "worker", "count": 4, "template": {"metadata": {"annotations": says}, "spec": EIGHT}}]
    status = {**_status(QuotaReserved="True", Admitted="True")}
    status["admission"] = {"podSetAssignments": [{"name": "worker", "count": given}]}
    names = [f"train-{n}" for n in range(given)]
    pods = [pod(name, gpus=8, meta=_meta(name, "MPIJob", "train", {}, says)) for name in names]
    other = pod("other", gpus=8, meta=_meta("other", "Job", "other", {}, {**says, "pilotlight.dev/gang": "o"}))
    seen = view([*pods, other], objects=[workload(4, status=status, podSets=sets)])
    sizes = {demand.name: demand.shape.gang.size for demand in seen.pending if demand.shape.gang}
    assert sizes == {**dict.fromkeys(names, given), "other": 4}


LIMITS = {
    "nothing": ({}, {}, [], 0),
    "its deadline": ({"activeDeadlineSeconds": 600}, {}, [], 600),
    "its label": ({}, {"kueue.x-k8s.io/max-exec-time-seconds": "900"}, [], 900),
    "the Workload of its job": ({}, {}, [workload(1, maximumExecutionTimeSeconds=1200)], 1200),
    "the least of them": (
        {"activeDeadlineSeconds": 600},
        {"kueue.x-k8s.io/max-exec-time-seconds": "300"},
        [workload(1, maximumExecutionTimeSeconds=1200)],
        300,
    ),
    "a label that is no number is none": ({}, {"kueue.x-k8s.io/max-exec-time-seconds": "an hour"}, [], 0),
}


@pytest.mark.parametrize(("spec", "labels", "objects", "limit_s"), LIMITS.values(), ids=LIMITS.keys())
def test_the_longest_run_is_the_least_of_its_limits(
    spec: dict[str, Any], labels: dict[str, Any], objects: list[dict[str, Any]], limit_s: float
) -> None:
    """A pod of an admitted job: what its spec, its label and its job's Workload allow."""
    admitted = [{**o, "status": _status(QuotaReserved="True", Admitted="True")} for o in objects]
    mine = _meta("train-worker-0", "MPIJob", "train", {"training.kubeflow.org/job-name": "train", **labels})
    (demand,) = view([pod("train-worker-0", gpus=8, meta=mine, **spec)], objects=admitted).pending
    assert demand.shape.max_run_s == limit_s


def test_replicas_of_a_set_are_gangs_of_their_own() -> None:
    """Each replica of a LeaderWorkerSet starts by itself."""
    seen = view([_replica(n, 2, of) for of in (0, 1) for n in (0, 1)], objects=[_set("LeaderCreated")])
    assert {(d.name, d.shape.gang.key) for d in seen.pending if d.shape.gang} == {
        ("serve-0", "team-a/serve-0"),
        ("serve-0-1", "team-a/serve-0"),
        ("serve-1", "team-a/serve-1"),
        ("serve-1-1", "team-a/serve-1"),
    }


def test_a_leader_whose_workers_wait_for_it_is_bought_for_alone() -> None:
    """With startupPolicy LeaderReady the workers come when their leader runs: nobody is waited for before."""
    alone = view([_replica(0, 4)], objects=[_set("LeaderReady")])
    assert [d.shape.gang for d in alone.pending] == [None]
    assert view([_replica(0, 4)], objects=[_set("LeaderCreated")]).pending[0].shape.gang is not None
    later = view([_replica(n, 4) for n in range(4)], objects=[_set("LeaderReady")])
    assert {d.shape.gang.size for d in later.pending if d.shape.gang} == {4}


def test_a_ray_cluster_that_scales_itself_is_no_gang() -> None:
    """Its head has the autoscaler beside it: each worker that it adds is bought for as it comes."""
    workers = [_of_ray(f"ray-{n}", "workers", "worker") for n in range(3)]
    seen = view([_of_ray("ray-head", "headgroup", "head", "autoscaler"), *workers])
    assert [d.shape.gang for d in seen.pending] == [None] * 3
    assert [buy.count for buy in plan(seen, most=2).buys] == [2]


def test_a_group_of_its_own_goes_before_the_ray_cluster() -> None:
    """Where KubeRay leaves the gang to Volcano, its PodGroup says who starts together."""
    pods, _ = ray_cluster(2)
    for one in pods:
        one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "ray-ray-pg"}
    assert {d.shape.gang.key for d in view(pods).pending if d.shape.gang} == {"team-a/ray-ray-pg"}


def test_a_pod_group_of_one_is_no_gang() -> None:
    """KAI groups every pod, Kubernetes may group without a gang: such pods are bought for one by one."""
    meta = {"name": "g", "namespace": "team-a"}
    for group, asks in (
        ({"apiVersion": "scheduling.run.ai/v2alpha2", "spec": {"minMember": 1}}, {}),
        (
            {"apiVersion": "scheduling.k8s.io/v1alpha2", "spec": {"schedulingPolicy": {"basic": {}}}},
            {"podGroupName": "g"},
        ),
    ):
        labels = {} if asks else {"pod-group-name": "g"}
        rest = {"schedulingGroup": asks} if asks else {}
        pods = [pod(f"p{n}", meta=_meta(f"p{n}", "Job", "p", annotations=labels), **rest) for n in range(3)]
        seen = view(pods, objects=[{"kind": "PodGroup", "metadata": meta, **group}])
        assert [d.shape.gang for d in seen.pending] == [None] * 3
