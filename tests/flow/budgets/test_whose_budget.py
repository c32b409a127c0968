"""Claims of pods: whose budget pays is the policy's to say, whatever a tenant writes.

The adapter is the real one over a stand-in API server, the flows are real, dollars and machines are the world's. Who
paid is worked out from the records of the books and from the world's log by this file's own arithmetic.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from api_server import ApiServer, api_server
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Caps
from pilotlight.facts.policy import Claims, ClassPolicy, PoolPolicy
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.reconcile import reconcile
from pilotlight.flow.records.ledger import filed_records

RICH, POOR = Decimal(40), Decimal(6)
Labels = dict[str, str]


def team_budget(name: str, usd: Decimal) -> Budget:
    """A hard budget of so much a day."""
    return Budget(name=name, scope=BudgetScope(team=name), usd=usd, period="day")


class Site:
    """A pool at $1 an hour; team rich has $40 a day, team poor $6; namespace ml is of team poor, lab of nobody."""

    def __init__(self, server: ApiServer, **rules: Any) -> None:
        self.server = server
        rules = {"default_team": "poor", "budgets": (team_budget("rich", RICH), team_budget("poor", POOR)), **rules}
        an_hour = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=3600)
        classes = {**dict.fromkeys(CLASSES, an_hour), **rules.pop("classes", {})}
        self.stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=50)}, classes=classes, **rules)
        api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        self.deps = replace(
            self.stage.deps, cluster=KubernetesCluster(api, self.stage.deps.policy, self.stage.deps.clock)
        )
        for name, labels in (("ml", {"team": "poor"}), ("lab", {}), ("treasury", {"pilotlight.dev/team": "rich"})):
            server.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def pod(self, name: str, namespace: str = "ml", node: str = "", priority: int = 0, **meta: Any) -> None:
        """A tenant's pod, that the scheduler could not place or has put on a node."""
        limits = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
        at = f"{self.deps.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "busybox", "resources": limits}]}
        status: dict[str, Any] = {"phase": "Running", "startTime": at}
        if node:
            spec["nodeName"] = node
        else:
            said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [said]}
        made = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": at, **meta}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": {**spec, "priority": priority}}
        self.server.add({**body, "status": status})

    def relabel(self, name: str, labels: Labels) -> None:
        """The tenant writes other labels on its pod."""
        store = self.server.store
        store.patch(store.resource("pods"), ("ml", name), {"metadata": {"labels": labels}})

    def tick(self, after_s: float = 0) -> Record:
        """A look, so much later; what it decided."""
        self.stage.wait(after_s)
        reconcile(self.deps, Tick(cluster="c"))
        return filed_records(self.deps.state, "c")[-1]

    @property
    def held(self) -> dict[str, Decimal]:
        """Dollars held by team: of every hold, its price for as long as it holds."""
        out: defaultdict[str, Decimal] = defaultdict(Decimal)
        for entry in budget_accounts.every_hold(self.deps):
            hold = entry.value
            seconds = Decimal((hold.until - hold.since).total_seconds())
            out[hold.terms.team] += hold.terms.usd_per_hour * seconds / 3600
        return dict(out)

    @property
    def bought(self) -> int:
        """Nodes that the cloud was asked for, by the world's log."""
        return len(self.stage.events("launch"))

    def refused(self) -> list[str]:
        """The pods whose claims the last decision tells as refused."""
        last = filed_records(self.deps.state, "c")[-1]
        return [one.subject for one in last.plan.findings if one.code == "claim-refused"]


SHARES: tuple[tuple[Any, Decimal], ...] = (("serving", RICH), ("batch", POOR))
CLASSES: tuple[Any, ...] = ("training", "serving", "notebook", "batch")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An empty cluster."""
    with api_server() as made:
        yield made


WAYS: dict[str, Labels] = {
    "our label": {"pilotlight.dev/team": "rich"},
    "the short label": {"team": "rich"},
    "both, its own hidden behind": {"pilotlight.dev/team": "rich", "team": "poor"},
    "an empty one of ours before it": {"pilotlight.dev/team": "", "team": "rich"},
    "in capitals": {"team": "RICH"},
    "with a space": {"team": " rich"},
    "a team of nobody": {"team": "nobody"},
    "a pattern": {"team": "*"},
    "an empty team": {"team": ""},
}


@pytest.mark.parametrize("namespace", ["ml", "lab"])
@pytest.mark.parametrize("labels", WAYS.values(), ids=WAYS.keys())
def test_a_label_spends_no_other_teams_money(server: ApiServer, labels: Labels, namespace: str) -> None:
    """Twenty pods of a tenant buy what its own team's budget, or the default one, holds, and nothing of another's."""
    site = Site(server)
    for n in range(20):
        site.pod(f"grab-{n}", namespace, labels=labels)
    site.tick()
    assert 0 < site.bought <= 5
    assert set(site.held) == {"poor"}
    assert sum(site.held.values()) <= POOR
    assert bool(site.refused()) == any(labels.values())


def test_members_of_a_gang_name_teams_of_their_own(server: ApiServer) -> None:
    """A gang whose members name two teams is its namespace's, whole."""
    site = Site(server)
    for n in range(4):
        notes = {"pilotlight.dev/gang": "g", "pilotlight.dev/gang-size": "4"}
        site.pod(f"g-{n}", labels={"team": ("rich", "poor")[n % 2]}, annotations=notes)
    site.tick()
    assert site.bought == 4
    assert set(site.held) == {"poor"}


OWNERS: dict[str, dict[str, Any]] = {
    "a JobSet": {"labels": {"jobset.sigs.k8s.io/jobset-name": "js", "team": "rich"}},
    "a LeaderWorkerSet": {
        "labels": {
            "leaderworkerset.sigs.k8s.io/name": "lws",
            "leaderworkerset.sigs.k8s.io/group-index": "0",
            "pilotlight.dev/team": "rich",
        }
    },
    "a pod group of another namespace": {
        "annotations": {"pilotlight.dev/gang": "treasury/big"},
        "labels": {"team": "rich"},
    },
    "a ReplicaSet": {
        "labels": {"team": "rich"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "rich", "uid": "r", "controller": True}],
    },
}


@pytest.mark.parametrize("meta", OWNERS.values(), ids=OWNERS.keys())
def test_pods_that_others_make_are_their_namespaces_too(server: ApiServer, meta: dict[str, Any]) -> None:
    """Whoever makes a pod, and whatever group it is of, its namespace's team pays."""
    site = Site(server)
    site.pod("own", **meta)
    site.pod("big", "treasury", annotations={"pilotlight.dev/gang": "big"})
    site.tick()
    by_team = sorted(entry.value.terms.team for entry in budget_accounts.every_hold(site.deps))
    assert by_team == ["poor", "rich"]


def test_a_queued_workload_is_its_namespaces(server: ApiServer) -> None:
    """A Workload of Kueue whose pod sets name another team holds its namespace's dollars."""
    for name in ("kueue", "kueue-flavors"):
        server.store.serve(name)
    site = Site(server)
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    template = {"metadata": {"labels": {"team": "rich"}}, "spec": {"containers": [{"name": "c", "resources": limits}]}}
    at = "2026-11-20T11:59:00Z"
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "Q", "lastTransitionTime": at}
    check = {"name": "pilotlight", "state": "Pending", "message": "", "lastTransitionTime": at}
    server.add(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": "w",
                "namespace": "ml",
                "uid": "w",
                "creationTimestamp": at,
                "labels": {"team": "rich", "pilotlight.dev/team": "rich"},
            },
            "spec": {"podSets": [{"name": "main", "count": 2, "template": template}], "queueName": "q"},
            "status": {"conditions": [reserved], "admissionChecks": [check]},
        }
    )
    site.tick()
    assert site.bought == 2
    assert set(site.held) == {"poor"}


def by_hand(server: ApiServer) -> None:
    """A node that nobody bought."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T12:00:00Z"}
    meta = {
        "name": "by-hand",
        "creationTimestamp": "2026-11-20T12:00:00Z",
        "labels": {"pilotlight.dev/pool": "one", "node.kubernetes.io/instance-type": "one"},
    }
    status = {"allocatable": room, "capacity": room, "conditions": [ready]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"providerID": "x://by-hand"}}
    server.add({**node, "status": status})


@pytest.mark.parametrize("labels", [{"team": "rich"}, {}], ids=["labelled", "without a label"])
def test_a_pod_by_hand_on_a_node_is_adopted_for_its_namespace(server: ApiServer, labels: Labels) -> None:
    """A node that nobody bought, with a tenant's pod on it, is held for by the team of the pod's namespace."""
    site = Site(server)
    by_hand(server)
    site.pod("sits", node="by-hand", labels=labels)
    site.tick(60)
    assert set(site.held) == {"poor"}


def test_a_label_that_changes_on_a_node_moves_no_bill(server: ApiServer) -> None:
    """Hours of a pod that was its own team's as it bound stay that team's, though it names another that it may name."""
    site = Site(server, claims={"ml": Claims(teams=("rich",))})
    by_hand(server)
    site.pod("sits", node="by-hand", labels={})
    for minute in range(120):
        if minute == 10:
            site.relabel("sits", {"team": "rich"})
        site.tick(60)
        meter_nodes.count(site.deps)
    today = site.deps.state.now().date()
    lines = [line for day in meter_nodes.days(site.deps.state, "c", today, today) for line in day.lines]
    usd = {team: sum(line.usd for line in lines if line.team == team) for team in ("poor", "rich")}
    assert usd["rich"] == 0
    assert Decimal("1.9") < usd["poor"] <= Decimal(2)
    assert set(site.held) == {"poor"}


def test_a_class_that_changes_on_a_node_escapes_no_stop(server: ApiServer) -> None:
    """A pod of a class that a hard cap stops is stopped in time, though it names another once it runs."""
    kept = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=30 * 86_400)
    stops = ClassPolicy(gpu_models="any", idle_timeout=300, may_move=("hard-cap",), hold=3600)
    site = Site(server, classes={"batch": stops, "serving": kept})
    by_hand(server)
    site.pod("sits", node="by-hand", labels={"workload-type": "batch"})
    site.tick(60)
    site.relabel("sits", {"workload-type": "serving"})
    most, minutes = Decimal(0), 0
    while site.held and minutes < 8 * 60:
        site.tick(60)
        most, minutes = max(most, sum(site.held.values(), Decimal(0))), minutes + 1
    assert most <= POOR
    assert 5 * 60 < minutes < POOR * 60


def test_a_permitted_label_counts(server: ApiServer) -> None:
    """A label names another team where the policy lists it for the namespace, and only that."""
    site = Site(server, claims={"ml": Claims(teams=("rich",)), "*": Claims(teams=())})
    site.pod("asked", labels={"team": "rich"})
    site.pod("other", "lab", labels={"team": "rich"})
    site.tick()
    assert sorted(entry.value.terms.team for entry in budget_accounts.every_hold(site.deps)) == ["poor", "rich"]
    assert site.refused() == ["lab/other"]


def test_the_policys_team_is_before_the_namespaces_label(server: ApiServer) -> None:
    """A namespace that labels itself with another's team pays by the policy's entry for it."""
    site = Site(server, claims={"treas*": Claims(team="poor")})
    site.pod("own", "treasury")
    site.tick()
    assert set(site.held) == {"poor"}


def test_nothing_is_bought_for_whom_nobody_pays(server: ApiServer) -> None:
    """Where teams have hard budgets and no default pays, a team without one gets no node, and is told what to write."""
    site = Site(server, default_team="")
    site.pod("own", "lab")
    record = site.tick()
    assert site.bought == 0
    [group] = record.plan.pods
    assert (group.verdict, group.code) == ("refused", "unpaid")
    assert "default_team" in group.why


def test_a_budget_for_all_asks_for_no_team(server: ApiServer) -> None:
    """Under one hard budget for everybody a namespace without a team buys as before."""
    site = Site(server, default_team="", budgets=(Budget(name="all", usd=Decimal(9), period="day"),))
    site.pod("own", "lab", labels={"team": "nobody"})
    site.tick()
    assert site.bought == 1


@pytest.mark.parametrize(
    ("claims", "served"),
    [({}, "treasury/elder"), ({"lab": Claims(priority=1000)}, "lab/younger")],
    ids=["not permitted", "permitted"],
)
def test_a_priority_that_is_not_permitted_jumps_no_queue(
    server: ApiServer, claims: dict[str, Claims], served: str
) -> None:
    """With room for one node the elder pod gets it, unless the policy lets the other's priority count."""
    site = Site(server, claims=claims, caps=Caps(nodes=1))
    site.pod("elder", "treasury")
    site.stage.wait(60)
    site.pod("younger", "lab", priority=1_000_000)
    record = site.tick()
    assert [group.pods for group in record.plan.pods if group.verdict == "bought"] == [(served,)]


HOSTILE = st.sampled_from(
    ["rich", "poor", "nobody", "RICH", "", " rich", "*", "serving", "training", "batch", "x" * 63]
)
KEYS = st.sampled_from(["team", "pilotlight.dev/team", "workload-type", "workload-class", "notebook-name", "app"])
NOTES = st.sampled_from(
    ["pilotlight.dev/team", "team", "pilotlight.dev/value-of-wait", "pilotlight.dev/workload-class"]
)


@settings(max_examples=25, deadline=None)
@given(
    pods=st.lists(
        st.tuples(
            st.sampled_from(["ml", "lab"]),
            st.dictionaries(KEYS, HOSTILE, max_size=4),
            st.dictionaries(NOTES, HOSTILE | st.just("1e9"), max_size=3),
            st.sampled_from([0, 1000, 2_000_000_000]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_claim_passes_what_the_policy_permits(pods: list[tuple[str, Labels, Labels, int]]) -> None:
    """Whatever tenants write, nothing is held for a team that they may not name, and no class or priority is theirs
    beyond their namespace's entry."""
    with api_server() as server:
        site = Site(server, claims={"ml": Claims(classes=("batch", "training"), priority=5)})
        for n, (namespace, labels, notes, priority) in enumerate(pods):
            site.pod(f"p-{n}", namespace, priority=priority, labels=labels, annotations=notes)
        site.tick()
        assert set(site.held) <= {"poor"}
        assert sum(site.held.values()) <= POOR
        for demand in site.deps.cluster.observe().pending:
            most = 5 if demand.namespace == "ml" else 0
            assert demand.shape.team == "poor"
            assert demand.shape.priority <= most
            assert demand.namespace == "lab" or demand.shape.workload_class in ("batch", "training")


@pytest.mark.parametrize(
    ("claims", "paid"),
    [
        ({}, "batch"),
        ({"ml": Claims(classes=("batch", "serving"))}, "serving"),
        ({"ml": Claims(classes=("batch",))}, "batch"),
    ],
    ids=["no entry: a class has a budget", "listed", "not listed"],
)
def test_a_class_with_a_budget_is_spent_by_whom_the_policy_lets(
    server: ApiServer, claims: dict[str, Claims], paid: str
) -> None:
    """A label names the class whose budget pays only where the namespace's entry lists that class."""
    by_class = [
        Budget(name=name, scope=BudgetScope(workload_class=name), usd=usd, period="day") for name, usd in SHARES
    ]
    site = Site(server, claims=claims, default_team="", budgets=tuple(by_class))
    for n in range(12):
        site.pod(f"p-{n}", labels={"workload-type": "serving"})
    site.tick()
    assert {entry.value.terms.workload_class for entry in budget_accounts.every_hold(site.deps)} == {paid}
    assert (site.bought <= 5) == (paid == "batch")
    assert bool(site.refused()) == (paid == "batch")
