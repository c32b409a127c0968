"""Which pods are demand, which are findings, and what is read of them."""

from typing import Any

import pytest
from kubernetes_objects import node, only_demand, only_node, pod, unscheduled, view

from pilotlight.facts.policy import Claims
from pilotlight.facts.workload import Gang, PodShape, Requirement, Toleration

NOT_DEMAND = {
    "a pod being deleted": pod(meta={"deletionTimestamp": "2026-11-21T00:00:00Z"}),
    "a mirror of a static pod": pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
    "a DaemonSet's pod": pod(meta={"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}),
    "a pod for which preemption makes room": pod(
        status={"phase": "Pending", "nominatedNodeName": "n1", "conditions": [unscheduled()]}
    ),
    "a finished pod": pod(status={"phase": "Succeeded"}),
    "a failed pod": pod(status={"phase": "Failed"}),
    "a bound pod": pod(nodeName="n1"),
    "a pod without a GPU": pod(gpus=0),
}


@pytest.mark.parametrize("one", NOT_DEMAND.values(), ids=NOT_DEMAND.keys())
def test_not_demand(one: dict[str, Any]) -> None:
    """A pod that no new node would serve is neither demand nor a finding."""
    seen = view([one])
    assert (seen.pending, seen.findings) == ((), ())


def test_a_pod_the_scheduler_has_not_seen_yet_is_demand() -> None:
    """A pod with no condition at all waits like any other."""
    assert only_demand(view([pod(status={"phase": "Pending"})])).full_name == "team-a/p"


FINDINGS = {
    "a scheduling gate": (
        pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        "scheduling-gated",
        "kueue.x-k8s.io/admission",
    ),
    "a gate known by its reason": (
        pod(status={"phase": "Pending", "conditions": [unscheduled("SchedulingGated")]}),
        "scheduling-gated",
        "scheduling gate",
    ),
    "a ProvisioningRequest of its own": (
        pod(meta={"annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "job-1-dws-1"}}),
        "own-request",
        "ProvisioningRequest job-1-dws-1: nothing is bought for it",
    ),
    "a fault of the scheduler": (
        pod(status={"phase": "Pending", "conditions": [unscheduled("SchedulerError")]}),
        "scheduler-error",
        "SchedulerError",
    ),
    "a claim for a device (DRA)": (
        pod(gpus=0, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]),
        "dra-claim",
        "ResourceClaim",
    ),
    "NaN GPUs": (pod(gpus="NaN"), "bad-quantity", "spec.containers[0].resources.limits[nvidia.com/gpu]"),
    "a negative number of GPUs": (pod(gpus="-1"), "bad-quantity", "negative"),
    "an unreadable annotation": (
        pod(meta={"annotations": {"pilotlight.dev/min-gpu-memory": "big"}}),
        "bad-annotation",
        "40Gi",
    ),
}


@pytest.mark.parametrize(("one", "code", "words"), FINDINGS.values(), ids=FINDINGS.keys())
def test_findings(one: dict[str, Any], code: str, words: str) -> None:
    """What a person must mend is a finding that names the pod, and no demand."""
    seen = view([one])
    (finding,) = seen.findings
    assert (seen.pending, finding.subject, finding.uid, finding.code) == ((), "team-a/p", "uid-p", code)
    assert words in finding.message


def test_opting_in() -> None:
    """With require_label only pods labelled gpu=on-demand are bought for; the others are listed."""
    pods = [pod("in", meta={"labels": {"gpu": "on-demand"}}), pod("out")]
    seen = view(pods, require_label=True)
    assert [p.name for p in seen.pending] == ["in"]
    assert [(f.subject, f.code) for f in seen.findings] == [("team-a/out", "not-opted-in")]
    assert len(view(pods).pending) == 2


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity of terms."""
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}},
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """One requirement as written."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
def test_every_operator_of_node_affinity(operator: str) -> None:
    """Each operator of node affinity is kept."""
    values = () if "Exist" in operator else ("1",)
    one = pod(affinity=affinity({"matchExpressions": [expression("k", operator, *values)]}))
    assert only_demand(view([one])).shape.terms == ((Requirement(key="k", operator=operator, values=values),),)  # type: ignore[arg-type]


def test_selector_and_affinity_together() -> None:
    """nodeSelector holds in every alternative of the affinity."""
    terms = [{"matchExpressions": [expression("zone", "In", z)]} for z in ("a", "b")]
    one = pod(nodeSelector={"gpu": "yes"}, affinity=affinity(*terms))
    selector = Requirement(key="gpu", operator="In", values=("yes",))
    assert only_demand(view([one])).shape.terms == tuple(
        (selector, Requirement(key="zone", operator="In", values=(z,))) for z in ("a", "b")
    )


def test_a_node_by_name() -> None:
    """matchFields on metadata.name is a requirement that only that node's name meets."""
    one = pod(affinity=affinity({"matchFields": [expression("metadata.name", "In", "n9")]}))
    assert only_demand(view([one])).shape.terms == ((Requirement(key="metadata.name", operator="In", values=("n9",)),),)


def test_an_empty_term_matches_nothing() -> None:
    """A selector whose terms are all empty matches no node, as in Kubernetes."""
    ((impossible,),) = only_demand(view([pod(affinity=affinity({}))])).shape.terms
    assert impossible.operator == "In"
    assert impossible.values == ()


TOLERATIONS = {
    "Exists": ({"key": "k", "operator": "Exists"}, Toleration(key="k", operator="Exists")),
    "Equal by default": ({"key": "k", "value": "v"}, Toleration(key="k", value="v")),
    "every key": ({"operator": "Exists"}, Toleration(operator="Exists")),
    "one effect": (
        {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
        Toleration(key="k", operator="Exists", effect="NoSchedule"),
    ),
}


@pytest.mark.parametrize(("wire", "fact"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_tolerations(wire: dict[str, Any], fact: Toleration) -> None:
    """A toleration keeps its key, operator, value and effect; absent ones mean any."""
    assert only_demand(view([pod(tolerations=[wire])])).shape.tolerations == (fact,)


def at_home(value: str = "", **more: str) -> dict[str, str]:
    """A toleration of a home."""
    return {"key": "pilotlight.dev/home", "operator": "Equal", "value": value, "effect": "NoSchedule", **more}


HOMES = {
    "one": ([at_home("17-a-0-3")], ("17-a-0-3",)),
    "in its own order, once each": ([at_home("b"), at_home("a"), at_home("b")], ("b", "a")),
    "Equal by default, any effect": ([{"key": "pilotlight.dev/home", "value": "a"}], ("a",)),
    "of another effect": ([at_home("a", effect="NoExecute")], ()),
    "every home": ([at_home("a"), {"key": "pilotlight.dev/home", "operator": "Exists"}], ("*",)),
    "every home, of another effect": ([at_home(operator="Exists", effect="NoExecute")], ()),
    "every taint there is": ([{"operator": "Exists"}], ()),
    "no value": ([at_home()], ()),
    "what no taint can have as its value": ([at_home("a" * 64), at_home("a b"), at_home("\u0663"), at_home("*")], ()),
    "more than are read": ([at_home(f"h{n}") for n in range(100)], tuple(f"h{n}" for n in range(36, 100))),
}


@pytest.mark.parametrize(("wire", "homes"), HOMES.values(), ids=HOMES.keys())
def test_homes_of_a_pod(wire: list[dict[str, str]], homes: tuple[str, ...]) -> None:
    """Homes that a pod tolerates are the pod's, the last 64 of them, and its shape is what it would be without."""
    bare = only_demand(view([pod(tolerations=[{"key": "k", "value": "v"}])]))
    seen = only_demand(view([pod(tolerations=[{"key": "k", "value": "v"}, *(t for t in wire if "key" in t)])]))
    assert seen.shape == bare.shape
    assert only_demand(view([pod(tolerations=wire)])).homes == homes


def test_a_bound_pod_has_the_shape_that_it_had() -> None:
    """A pod on spot has elsewhere the same needs, whatever home it was given."""
    spot = node(labels={"pilotlight.dev/pool": "spotty"})
    shapes = [
        only_node(view([pod(status={"phase": "Running"}, nodeName="n1", tolerations=wire)], [spot])).pods[0].shape
        for wire in ([], [at_home("17-a-0-3")])
    ]
    assert shapes[0] is not None
    assert shapes[0] == shapes[1]


def shape_of(**meta: object) -> PodShape:
    """The shape of a pod with such metadata."""
    return only_demand(view([pod(meta=meta)])).shape


def test_annotations() -> None:
    """Models, memory of a GPU and checkpoint interval come from annotations."""
    shape = shape_of(
        annotations={
            "pilotlight.dev/gpu-models": "T4, A10G",
            "pilotlight.dev/min-gpu-memory": "20G",
            "pilotlight.dev/checkpoint-seconds": "600",
        }
    )
    assert (shape.gpu_models, shape.min_gpu_memory_gib, shape.checkpoint_s) == (("A10G", "T4"), 19, 600)


def test_any_model() -> None:
    """The annotation "any" says that every model will do: the pod has named its GPU."""
    shape = shape_of(annotations={"pilotlight.dev/gpu-models": "any"})
    assert shape.gpu_models == ()
    assert shape.terms == ((Requirement(key="pilotlight.dev/gpu-model", operator="Exists"),),)


def test_priority_owner_and_deadline() -> None:
    """Priority, owner and the deadline of a run are read."""
    owner = {"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]}
    demand = only_demand(
        view([pod(meta=owner, priority=1000, activeDeadlineSeconds=3600)], claims={"*": Claims(priority=5000)})
    )
    assert (demand.owner, demand.shape.priority, demand.shape.max_run_s) == ("Job/train", 1000, 3600)


@pytest.mark.parametrize(
    ("labels", "objects", "team"),
    [
        ({"team": "vision"}, None, "vision"),
        ({"team": "old", "pilotlight.dev/team": "new"}, None, "new"),
        ({"team": "rich"}, None, "team-a"),
        ({}, [{"kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "research"}}}], "research"),
        ({}, None, "team-a"),
    ],
    ids=["its label", "our label goes first", "one it may not name", "its namespace's label", "its namespace's name"],
)
def test_team(labels: dict[str, Any], objects: list[dict[str, Any]] | None, team: str) -> None:
    """A pod's team is its namespace's, or its label's where the policy lets the namespace name that."""
    claims = {"*": Claims(teams=("vision", "new"))}
    assert only_demand(view([pod(meta={"labels": labels})], objects=objects, claims=claims)).shape.team == team


def test_class_and_reason() -> None:
    """The class comes with its reason."""
    shape = shape_of(labels={"workload-type": "inference"})
    assert (shape.workload_class, shape.class_reason) == ("serving", "label workload-type=inference")


def test_equal_pods_have_equal_shapes() -> None:
    """Pods that differ only in name share a shape, so that they are planned as one group."""
    first, second = view([pod("a"), pod("b")]).pending
    assert first.shape.key == second.shape.key


def labelled(name: str, **labels: str) -> dict[str, Any]:
    """A pod with such labels."""
    return pod(name, meta={"labels": {k.replace("__", "/"): v for k, v in labels.items()}})


KUEUE = {
    "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
    "annotations": {"kueue.x-k8s.io/pod-group-total-count": "4"},
}
VOLCANO = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
POD_GROUP = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "team-a"}, "spec": {"minMember": 8}}
TRAINING = {"labels": {"training.kubeflow.org/job-name": "g"}}

GANGS = {
    "Kueue declares the size": ([pod(meta=KUEUE)], None, 4),
    "Volcano's PodGroup declares the size": ([pod(meta=VOLCANO)], [POD_GROUP], 8),
    "without its PodGroup, the pods there are": ([pod("a", meta=VOLCANO), pod("b", meta=VOLCANO)], None, 2),
    "a JobSet's pods": ([pod(n, meta={"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}}) for n in "abc"], None, 3),
    "a PyTorchJob's master and workers": ([pod(n, meta=TRAINING) for n in ("master", "w0", "w1")], None, 3),
    "an MPI launcher without GPU does not count": (
        [pod("w0", meta=TRAINING), pod("w1", meta=TRAINING), pod("launcher", gpus=0, meta=TRAINING)],
        None,
        2,
    ),
    "our annotation": (
        [pod(meta={"annotations": {"pilotlight.dev/gang": "g", "pilotlight.dev/gang-size": "16"}})],
        None,
        16,
    ),
}


@pytest.mark.parametrize(("pods", "objects", "size"), GANGS.values(), ids=GANGS.keys())
def test_gangs(pods: list[dict[str, Any]], objects: list[dict[str, Any]] | None, size: int) -> None:
    """A gang is told by its maker's labels, and its size counts the pods that hold GPUs."""
    gangs = {demand.shape.gang for demand in view(pods, objects=objects).pending}
    assert gangs == {Gang(key="team-a/g", size=size)}


def test_a_parallel_job_is_no_gang() -> None:
    """A plain Job's pods start one by one."""
    job = {"labels": {"job-name": "sweep"}, "ownerReferences": [{"kind": "Job", "name": "sweep", "controller": True}]}
    assert {p.shape.gang for p in view([pod("a", meta=job), pod("b", meta=job)]).pending} == {None}
