"""The check-up: each fault it knows, with its fix, and silence where all is well."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from pilotlight.facts.capacity import Offering, Taint
from pilotlight.facts.limits.checks import Check, Token
from pilotlight.facts.modes import Mode
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import DEFAULT_CLASSES, Policy, PoolPolicy
from pilotlight.facts.workload import Finding
from pilotlight.tools.checkup.autoscalers import read_priorities
from pilotlight.tools.checkup.deployment import checkup, strongest
from pilotlight.tools.checkup.rights import (
    EVICT,
    EVIDENCE,
    GANGS,
    HEARTBEAT,
    LOOK,
    PULLS,
    QUEUES,
    SURVEY,
    TAKE,
    TELL,
    TOO_MUCH,
    Right,
)
from pilotlight.tools.checkup.survey_facts import SeenNode, SeenNodePool, SeenScaledObject, SeenSet, Survey

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")
POOL = PoolPolicy(instance_type="g4dn.xlarge", labels={"gpu": "on-demand"}, taints=(GPU,), max=3)
POLICY = Policy(version=1, pools={"t4": POOL})
OFFERED = (
    Offering(
        pool="t4",
        instance_type="g4dn.xlarge",
        capacity_type="on-demand",
        gpu_model="T4",
        gpus=1,
        usd_per_hour=Decimal("0.159812"),
    ),
)
TEAM = Budget(name="nlp", scope=BudgetScope(team="nlp"), usd=Decimal(20), period="day")
STOPPED = {name: msgspec.structs.replace(rules, may_move=("hard-cap",)) for name, rules in DEFAULT_CLASSES.items()}
MIG = "nvidia.com/mig-1g.10gb"
NODE = SeenNode(
    name="n1",
    pool="t4",
    gpus=1,
    created_at=NOW - timedelta(hours=2),
    ready=True,
    instance_type="g4dn.xlarge",
    capacity_type="on-demand",
    labels={"gpu": "on-demand"},
    taints=(GPU,),
)
PLUGIN = SeenSet(namespace="gpu-operator", name="nvidia-device-plugin-daemonset", replicas=1, ready=1)
ALL = dict.fromkeys((*LOOK, *TELL, *TAKE, *EVIDENCE, *HEARTBEAT, *PULLS, *SURVEY), True)
WELL = Survey(server="https://api", version="v1.36.0", at=NOW, allowed=ALL, nodes=(NODE,), daemonsets=(PLUGIN,))


def checks(
    survey: Survey = WELL,
    policy: Policy = POLICY,
    *,
    mode: Mode = "act",
    clouds: Mapping[str, PoolState] | None = None,
    prices: Sequence[Finding] = (),
) -> tuple[Check, ...]:
    """The check-up of a survey."""
    return checkup(survey, policy, OFFERED, mode=mode, clouds=clouds, prices=prices)


def bad(found: Sequence[Check]) -> list[tuple[str, str, str]]:
    """Code, verdict and words of what is not well."""
    return [(check.code, check.verdict, check.what) for check in found if check.verdict != "ok"]


def pool(**changes: Any) -> Policy:
    """The policy with its pool changed."""
    return msgspec.structs.replace(POLICY, pools={"t4": msgspec.structs.replace(POOL, **changes)})


def seen(**changes: Any) -> Survey:
    """The survey with something changed."""
    return msgspec.structs.replace(WELL, **changes)


def node(**changes: Any) -> Survey:
    """The survey with its node changed."""
    return seen(nodes=(msgspec.structs.replace(NODE, **changes),))


def deployed(name: str, **more: Any) -> SeenSet:
    """A Deployment in kube-system."""
    return SeenSet(namespace="kube-system", name=name, **more)


CUT_UP = {
    "all of its GPUs": (0, {"nvidia.com/mig-1g.10gb": 7}, {"nvidia.com/mig-1g.10gb": 7}),
    "some of its GPUs": (1, {"nvidia.com/mig-1g.10gb": 7}, {"nvidia.com/mig-1g.10gb": 7, "nvidia.com/gpu": 1}),
    "its GPU among four": (0, {"nvidia.com/gpu.shared": 4}, {"nvidia.com/gpu.shared": 4}),
    "its GPU among four by the name of a whole one": (4, {}, {"nvidia.com/gpu": 4}),
}


@pytest.mark.parametrize(("gpus", "parts", "slices"), CUT_UP.values(), ids=CUT_UP.keys())
def test_a_node_that_shares_as_its_pool_says_is_well(gpus: int, parts: dict[str, int], slices: dict[str, int]) -> None:
    """A node that offers what its pool's slices say is in order, and its device plugin works."""
    survey = seen(nodes=(msgspec.structs.replace(NODE, gpus=gpus, slices=parts),))
    assert bad(checks(survey, pool(slices=slices), clouds={"t4": PoolState(name="t4", desired=1)})) == []


def test_gpus_that_a_cloud_makes_allocatable_need_no_daemonset() -> None:
    """Without a device plugin in sight, nodes with allocatable GPUs say that one works."""
    [check] = [each for each in checks(seen(daemonsets=())) if each.code == "device-plugin"]
    assert (check.verdict, check.what) == ("ok", "GPUs are allocatable on 1 node")


def test_a_sound_deployment_is_all_well() -> None:
    """Nothing is at fault, and every subject has its line."""
    found = checks(clouds={"t4": PoolState(name="t4", desired=1)})
    assert bad(found) == []
    assert {check.code for check in found} == {"reach", "right", "pool", "device-plugin", "rival", "price"}


def within(namespace: str) -> Right:
    """The right to evict in one namespace."""
    return msgspec.structs.replace(EVICT, namespace=namespace)


def test_evictions_where_all_gpu_pods_are_are_enough() -> None:
    """Granted in those namespaces alone they are told, and are no fault."""
    found = checks(
        seen(allowed={**ALL, EVICT: False, within("ml"): True}), clouds={"t4": PoolState(name="t4", desired=1)}
    )
    assert bad(found) == []
    assert "evicts pods in ml alone" in [check.what for check in found]


CASES = [
    pytest.param(
        seen(allowed={r: r.resource != "pods/eviction" for r in ALL}), POLICY, "right", "fault",
        "may not create pods/eviction, which mode act needs", id="a right that the mode needs is missing",
    ),
    pytest.param(
        seen(allowed={**ALL, EVICT: False, within("ml"): True, within("web"): False}), POLICY, "right-evictions",
        "warning", "evicts pods in ml alone, and GPU pods of web keep their nodes",
        id="evictions are granted in some namespaces, and GPU pods are in others too",
    ),
    pytest.param(
        seen(allowed={**ALL, EVICT: False, within("ml"): False}), POLICY, "right", "fault",
        "may not create pods/eviction, which mode act needs", id="evictions are granted nowhere",
    ),
    pytest.param(
        seen(allowed={**ALL, EVIDENCE[1]: False}), POLICY, "right-evidence", "warning",
        "may not get coordination.k8s.io/leases cluster-autoscaler: an autoscaler at work is not seen",
        id="what tells of an autoscaler cannot be read",
    ),
    pytest.param(
        WELL, msgspec.structs.replace(POLICY, budgets=(TEAM,)), "bind", "warning",
        "the scheduler asks no budget: pods bind to idle nodes, their team pays from the next look, and training, "
        "serving, notebook, batch run to their end beyond a hard budget",
        id="a team has a hard budget, and its pods bind by themselves",
    ),
    pytest.param(
        WELL, msgspec.structs.replace(POLICY, budgets=(TEAM,), classes=STOPPED), "bind", "warning",
        "the scheduler asks no budget: pods bind to idle nodes, their team pays from the next look, and pods without "
        "money are evicted after they bind, and may go first or keep a gang out",
        id="a team has a hard budget, and all that run may be stopped for it",
    ),
    pytest.param(
        seen(allowed={**ALL, QUEUES[0]: True, QUEUES[1]: False}), POLICY, "right-queues", "warning",
        "may answer Kueue's check, and not patch kueue.x-k8s.io/workloads: work without money is evicted again",
        id="queued work can be refused, and not be taken out of its queue",
    ),
    pytest.param(
        seen(allowed={**ALL, PULLS[0]: False}), POLICY, "right-pulls", "warning",
        "may not list events: image pulls are not learned nor priced", id="the Events of pulls cannot be read",
    ),
    pytest.param(
        seen(allowed={**ALL, HEARTBEAT[0]: False}), POLICY, "right-heartbeat", "warning",
        "may not get coordination.k8s.io/leases kube-scheduler: that the scheduler lives is seen by its binds alone",
        id="what tells of the scheduler cannot be read",
    ),
    pytest.param(
        seen(allowed={**ALL, TOO_MUCH[0]: True}), POLICY, "right-too-many", "warning",
        "may also get secrets, which Pilotlight never needs", id="a right that nothing needs is there",
    ),
    pytest.param(
        seen(token=Token(made=NOW - timedelta(days=27), ends=NOW + timedelta(days=3))), POLICY, "token", "warning",
        "its token ends 2026-11-23 12:00 UTC, in 3.0 days", id="a token ends within seven days",
    ),
    pytest.param(
        seen(token=Token(ends=NOW - timedelta(days=1))), POLICY, "token", "fault",
        "its token ended 2026-11-19 12:00 UTC", id="a token has ended",
    ),
    pytest.param(seen(token=Token()), POLICY, "token", "warning", "a token that never ends", id="a token never ends"),
    pytest.param(
        WELL, pool(min=1), "pool-min", "warning",
        "min 1 keeps 1 node lit around the clock: $116.66 a month of 730 h", id="a minimum of one is paid for",
    ),
    pytest.param(
        node(labels={}), POLICY, "pool-differs", "fault",
        "node n1 has no label gpu, the policy says on-demand", id="a label that the policy promises is missing",
    ),
    pytest.param(
        node(labels={"gpu": "true"}), POLICY, "pool-differs", "fault",
        "node n1 has label gpu=true, the policy says on-demand", id="a label has another value",
    ),
    pytest.param(
        node(taints=(GPU, Taint(key="team", value="x", effect="NoSchedule"))), POLICY, "pool-differs", "fault",
        "node n1 has taint team=x:NoSchedule, which the policy does not know", id="a taint nobody knows of",
    ),
    pytest.param(
        node(taints=()), POLICY, "pool-differs", "fault",
        "node n1 lacks taint nvidia.com/gpu=present:NoSchedule", id="the pool's taint is missing",
    ),
    pytest.param(
        node(instance_type="g4dn.2xlarge"), POLICY, "pool-differs", "fault",
        "node n1 is a g4dn.2xlarge, the policy says g4dn.xlarge", id="another instance type",
    ),
    pytest.param(
        node(capacity_type="spot"), POLICY, "pool-differs", "fault",
        "node n1 is spot, the policy says on-demand", id="spot where on-demand is priced",
    ),
    pytest.param(
        node(gpus=4), POLICY, "pool-gpus", "fault",
        "node n1 offers 4 nvidia.com/gpu, the policy says 1 nvidia.com/gpu", id="GPUs that are shared",
    ),
    pytest.param(
        node(slices={MIG: 14}), pool(slices={MIG: 7}), "pool-gpus", "fault",
        "node n1 offers 14 nvidia.com/mig-1g.10gb and 1 nvidia.com/gpu, the policy says 7 nvidia.com/mig-1g.10gb",
        id="a node cut up in another way",
    ),
    pytest.param(
        node(gpus=0, slices={MIG: 7}), POLICY, "pool-gpus", "fault",
        "node n1 offers 7 nvidia.com/mig-1g.10gb, the policy says 1 nvidia.com/gpu",
        id="a node cut up that the policy takes for whole",
    ),
    pytest.param(
        node(gpus=0), POLICY, "device-plugin", "fault",
        "of pool t4 is ready, and has no allocatable GPU since 2026-11-20 10:00 UTC", id="a node without its GPU",
    ),
    pytest.param(
        seen(daemonsets=(), nodes=()), POLICY, "device-plugin", "fault",
        "no DaemonSet of a device plugin or GPU operator, and no node with allocatable GPUs", id="no device plugin",
    ),
    pytest.param(
        seen(daemonsets=(msgspec.structs.replace(PLUGIN, replicas=2),)), POLICY, "device-plugin", "warning",
        "1 of 2 pods ready", id="a device plugin that is not everywhere",
    ),
    pytest.param(
        seen(nodes=tuple(msgspec.structs.replace(NODE, name=f"n{n}") for n in range(4))), POLICY, "pool-max", "warning",
        "has 4 nodes, over max 3", id="more nodes than the pool may have",
    ),
    pytest.param(
        seen(nodes=(NODE, msgspec.structs.replace(NODE, name="x", pool="other"))), POLICY, "pool-unlisted", "warning",
        "has GPU nodes and is no pool of the policy", id="GPU nodes of a pool that is not listed",
    ),
    pytest.param(
        seen(deployments=(deployed("cluster-autoscaler", command=("./ca", "--nodes=0:10:t4")),)), POLICY,
        "rival", "fault",
        "is scaled by cluster-autoscaler (kube-system/cluster-autoscaler) too: two owners undo each other's work",
        id="cluster-autoscaler was told of the pool",
    ),
    pytest.param(
        seen(autoscaler_status="nodeGroups:\n- name: gke-c1-t4-0f3a9c1d-grp\n"), POLICY, "rival", "fault",
        "is scaled by cluster-autoscaler (cluster-autoscaler) too: two owners undo each other's work",
        id="its status names the pool, as on GKE",
    ),
    pytest.param(
        seen(deployments=(deployed("ca", images=("registry.k8s.io/autoscaling/cluster-autoscaler:v1.36",)),)), POLICY,
        "rival", "warning", "cluster-autoscaler runs", id="it runs, over what is not said",
    ),
    pytest.param(
        seen(autoscaler_priorities="10:\n  - .*on-demand.*\n50:\n  - .*spot.*\n1:\n  - .*\n"), POLICY,
        "priority-expander", "fault",
        "the highest number wins: spot (50) comes before on-demand (10), for serving too", id="priorities upside down",
    ),
    pytest.param(
        seen(autoscaler_priorities="50:\n  - .*on-demand.*\n10:\n  - .*spot.*\n"), POLICY, "priority-expander",
        "warning", "a group that no expression matches is never expanded", id="priorities without a last resort",
    ),
    pytest.param(
        seen(nodepools=(SeenNodePool(name="t4", gpu=True, limited=True),)), POLICY, "rival", "fault",
        "Karpenter scales it by itself, and it is a pool of the policy: two owners undo each other's work",
        id="Karpenter scales the pool",
    ),
    pytest.param(
        seen(nodepools=(SeenNodePool(name="gpus", gpu=True, limited=False),)), POLICY, "gpu-limit", "fault",
        "may buy GPU nodes without a limit", id="a NodePool without a GPU limit",
    ),
    pytest.param(
        seen(
            deployments=(SeenSet(namespace="ml", name="speech", gpus=1),),
            scaled_objects=(SeenScaledObject(namespace="ml", name="speech", target="ml/speech", most=5),),
        ),
        POLICY, "replicas", "fault", "maxReplicaCount 5 wants 5 GPUs; the pools hold 3 at most", id="too many replicas",
    ),
    pytest.param(
        seen(
            deployments=(SeenSet(namespace="ml", name="speech", gpus=1),),
            scaled_objects=(SeenScaledObject(namespace="ml", name="speech", target="ml/speech", least=1, most=3),),
        ),
        POLICY, "replicas-min", "warning", "minReplicaCount 1 keeps 1 GPU lit around the clock", id="never at zero",
    ),
    pytest.param(
        seen(deployments=(SeenSet(namespace="ml", name="api", gpus=2, replicas=2),)), POLICY, "replicas", "fault",
        "spec.replicas 2 wants 4 GPUs; the pools hold 3 at most", id="replicas that cannot all run",
    ),
    pytest.param(
        seen(hidden={"apps/daemonsets": "cannot be read: 403"}), POLICY, "hidden", "unknown", "cannot be read: 403",
        id="what could not be read is said",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("survey", "policy", "code", "verdict", "what"), CASES)
def test_a_fault_is_named_with_its_fix(survey: Survey, policy: Policy, code: str, verdict: str, what: str) -> None:
    """Each fault is one line that says what and how to mend it."""
    found = checks(survey, policy, clouds={"t4": PoolState(name="t4", desired=1)})
    assert (code, verdict, what) in bad(found)
    assert all(check.fix for check in found if check.verdict in ("fault", "warning"))


@pytest.mark.parametrize(
    ("group", "ours"),
    [
        ("t4", True),
        ("https://www.googleapis.com/compute/v1/x/instanceGroups/gke-prod-t4-0f3a9c1d-grp", True),
        ("eks-t4-8ac2b1d0-1111-2222-3333-444455556666", True),
        ("t4-spot", False),
        ("gke-prod-cpu-0f3a9c1d-grp", False),
    ],
)
def test_a_group_of_the_autoscaler_is_a_pool_by_its_whole_name(group: str, ours: bool) -> None:
    """As clouds name the groups they make of a pool; a name that only begins alike is another's."""
    found = bad(checks(seen(autoscaler_status=f"nodeGroups:\n- name: {group}\n")))
    assert [verdict for code, verdict, _ in found if code == "rival"] == ["fault" if ours else "warning"]


def test_a_pool_that_its_cloud_does_not_have() -> None:
    """A pool is looked for by what the cloud calls it."""
    found = bad(checks(policy=pool(cluster_pool="gpu-t4"), clouds={}))
    assert ("pool", "fault", "the cloud has no pool gpu-t4") in found


def test_a_pool_at_zero_without_a_cloud_is_unseen() -> None:
    """With no node and no cloud to ask, nothing is claimed."""
    found = bad(checks(seen(nodes=())))
    assert ("pool", "unknown", "no node of it is registered, and no cloud tells of it") in found


@pytest.mark.parametrize("verb", ["patch", "create"])
def test_a_mode_that_only_looks_needs_no_writes(verb: str) -> None:
    """An account that may only read is enough to observe and advise."""
    readable = {right: right.verb != verb for right in ALL}
    assert bad(checks(seen(allowed=readable), mode="advise", clouds={"t4": PoolState(name="t4", desired=1)})) == []


def test_the_mode_that_needs_most_counts() -> None:
    """A pool in act in a deployment that advises wants the rights of act."""
    assert strongest(pool(mode="act"), "advise") == "act"


def test_our_own_taint_and_those_that_pass_are_no_difference() -> None:
    """A node that drains, or is not ready for a moment, is no fault of the policy."""
    passing = ("pilotlight.dev/draining", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")
    taints = (GPU, *(Taint(key=key, effect="NoSchedule") for key in passing))
    assert bad(checks(node(taints=taints), clouds={"t4": PoolState(name="t4", desired=1)})) == []


def test_a_short_lived_token_renews_itself() -> None:
    """A mounted account's token of an hour is no reason to warn."""
    token = Token(made=NOW - timedelta(minutes=50), ends=NOW + timedelta(minutes=10))
    assert bad(checks(seen(token=token), clouds={"t4": PoolState(name="t4", desired=1)})) == []


@pytest.mark.parametrize(
    ("code", "verdict"), [("stale-price", "warning"), ("unknown-price", "fault"), ("unknown-instance-type", "fault")]
)
def test_prices_that_are_not_known_are_at_fault(code: str, verdict: str) -> None:
    """An unknown price stops every purchase of a pool; an old one is told of."""
    found = checks(prices=[Finding(subject="pool t4", code=code, message="no price for x: set prices.overrides")])
    [price] = [check for check in found if check.code == code]
    assert (price.verdict, price.what, price.fix) == (verdict, "no price for x", "set prices.overrides")


def test_priorities_are_read_as_the_expander_writes_them() -> None:
    """Numbers with lists below them, quoted or not."""
    text = '10:\n  - .*t4-.*\n  - ".*a100.*"\n 50: \n- .*\n'
    assert read_priorities(text) == {10: [".*t4-.*", ".*a100.*"], 50: [".*"]}


def test_no_right_is_asked_twice() -> None:
    """The rights by purpose do not overlap."""
    rights: list[Right] = [*LOOK, *TELL, *TAKE, *GANGS, *EVIDENCE, *HEARTBEAT, *PULLS, *SURVEY, *TOO_MUCH]
    assert len(set(rights)) == len(rights)
