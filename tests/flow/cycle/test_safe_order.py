"""A node is given back in the safe order through a real API server's HTTP, whatever binds between two of its steps."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from api_server import api_server
from api_store import Json
from stage import MINUTE, Stage
from world_as_kubernetes import WorldApi

from pilotlight.facts.policy import PoolPolicy

ONE = {"one": PoolPolicy(instance_type="one", max=20)}


class Real:
    """A stage whose cluster is the real adapter over the world's API server, with one node that has idled too long."""

    def __init__(self, api: WorldApi, stage: Stage) -> None:
        self.api, self.stage = api, stage
        stage.deps = replace(stage.deps, cluster=api.cluster(stage.deps.policy))
        stage.event(stage.submit("first", run_s=MINUTE))
        stage.minutes(8)
        stage.wait(3 * MINUTE)
        (self.node,) = stage.world.nodes
        api.requests.clear()

    @property
    def kept(self) -> bool:
        """Whether the node is there and takes pods."""
        nodes = self.stage.world.nodes
        if self.node not in nodes:
            return False
        assert not nodes[self.node].cordoned, "a node that is kept must not stay cordoned"
        assert "pilotlight.dev/draining" not in str(self.api.store.get("nodes", self.node)["spec"])
        return True

    def bind(self, name: str, **pod: Any) -> None:
        """A scheduler that has not seen a cordon yet binds a pod to the node."""
        self.api.add(bound_pod(name, self.node, **pod))


def bound_pod(name: str, node: str, *, gpus: int = 0, app: str = "", owner: str = "ReplicaSet") -> Json:
    """A pod on a node."""
    devices = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "labels": {"app": app or name},
            "ownerReferences": [{"kind": owner, "name": name, "controller": True}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": devices}}]},
        "status": {"phase": "Running"},
    }


def budget(app: str, allowed: int) -> Json:
    """A disruption budget over the pods of an app."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.fixture
def real() -> Iterator[Real]:
    """An idle node behind the real adapter."""
    stage = Stage(pools=ONE)
    with api_server(WorldApi(world=stage.world)) as api:
        assert isinstance(api, WorldApi)
        yield Real(api, stage)


STEPS = (
    ("GET", "pods"),
    ("GET", "nodes"),
    ("GET", "pods"),
    ("GET", "namespaces"),
    ("GET", "poddisruptionbudgets"),
    ("GET", "namespaces/kube-system/configmaps/cluster-autoscaler-status"),
    ("GET", "namespaces/kube-system/leases/cluster-autoscaler"),
    ("GET", "nodes/n1"),
    ("PATCH", "nodes/n1"),
    ("GET", "nodes/n1"),
    ("GET", "pods"),
    ("GET", "nodes/n1"),
    ("GET", "pods"),
)
"""The look, which asks who else scales these nodes; our taint over the version read; who is bound; the drain."""
CLOSED = STEPS.index(("PATCH", "nodes/n1")) + 1
"""Where the node is closed; two requests of the last look come after those named here."""


def test_the_order(real: Real) -> None:
    """Look, cordon, list again, drain: and only then does the cloud take that one instance."""
    real.stage.tick()
    assert not real.kept
    made = [(asked.method, asked.path.partition("/v1/")[2]) for asked in real.api.requests]
    assert tuple(made[: len(STEPS)]) == STEPS
    (cordon,) = [asked.json() for asked in real.api.requests if asked.method == "PATCH"]
    assert cordon["spec"] == {
        "taints": [{"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}],
    }
    lists = [asked.query for asked in real.api.requests if asked.path.endswith("/pods")]
    assert lists[-1]["fieldSelector"] == "spec.nodeName=n1"
    assert all("resourceVersion" not in query for query in lists), "a cached list is not the quorum's"


@pytest.mark.parametrize("step", range(len(STEPS)), ids=[f"before {n + 1}. {m} {p}" for n, (m, p) in enumerate(STEPS)])
def test_a_gpu_pod_that_binds_between_any_two_steps_keeps_its_node(real: Real, step: int) -> None:
    """Whenever it binds before the last look at the node, the node stays, takes pods again, and nothing was evicted."""
    count = iter(range(99))
    real.api.before(".", lambda: real.bind("late", gpus=1) if next(count) == step else None, times=99)
    real.stage.tick()
    assert real.kept
    assert real.api.lines("eviction") == []
    assert real.stage.world.terminations == 0


@pytest.mark.parametrize("step", range(CLOSED, CLOSED + 5))
def test_a_node_that_a_person_opens_between_any_two_steps_stays(real: Real, step: int) -> None:
    """They take our taint off before the last look at the node: its release is off for an hour."""
    count = iter(range(99))
    nodes = real.api.store.resource("nodes")

    def opened() -> None:
        if next(count) == step:
            real.api.store.patch(nodes, ("", real.node), {"spec": {"taints": None}})
            real.stage.world.open_by_hand(real.node)

    real.api.before(".", opened, times=99)
    real.stage.tick()
    assert real.kept
    real.stage.minutes(50)
    assert real.kept
    assert [alert.kind for alert in real.stage.alerts].count("finding-opened-by-hand") == 1


def test_a_pod_that_wants_to_bind_after_the_cordon_waits(real: Real) -> None:
    """From the cordon on the scheduler places nothing there: the node goes, and the pod gets another."""
    patched = iter((False, True))
    real.api.before(
        "GET /api/v1/nodes/n1",
        lambda: real.stage.submit("late", run_s=600) if next(patched) else None,
        times=2,
    )
    real.stage.tick()
    assert not real.kept
    real.stage.minutes(6)
    assert "uid-late" in real.stage.world.running


def test_the_rest_is_evicted_and_waited_for(real: Real) -> None:
    """Pods without GPUs are evicted, each by its uid; those of a DaemonSet stay with their node."""
    real.bind("web")
    real.bind("agent", owner="DaemonSet")
    real.stage.tick()
    assert not real.kept
    evictions = [asked for asked in real.api.requests if asked.path.endswith("eviction")]
    assert {asked.path for asked in evictions} == {"/api/v1/namespaces/ml/pods/web/eviction"}
    assert [asked.json()["deleteOptions"].get("dryRun") for asked in evictions] == [["All"], None]
    assert all(asked.json()["deleteOptions"]["preconditions"]["uid"] for asked in evictions)


def test_a_pod_that_does_not_stop_keeps_its_node(real: Real) -> None:
    """An evicted pod that is still there when patience ends: uncordoned, kept, looked at again."""
    web = bound_pod("web", real.node)
    web["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    real.api.add(web)
    answer = real.stage.tick()
    assert real.kept
    assert "ml/web still on it" in answer.did[0]
    real.api.store.remove("pods", "web", "ml")
    real.stage.tick()
    assert not real.kept


def test_what_keeps_a_node_at_every_tick_is_told_once(real: Real) -> None:
    """Each tick tries to drain it anew and is kept from it by the same pod: one alert, which names pod and node."""
    web = bound_pod("web", real.node)
    web["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    real.api.add(web)
    answers = [real.stage.tick() for _ in range(4)]
    assert all("ml/web still on it" in answer.did[0] for answer in answers)
    told = [alert for alert in real.stage.alerts if alert.kind == "capacity-kept"]
    assert [(alert.severity, real.node in alert.what, "ml/web" in alert.why) for alert in told] == [
        ("warning", True, True)
    ]


def test_a_budget_that_turns_against_us_keeps_the_node(real: Real) -> None:
    """The budget allowed it when the plan was made and not when the eviction came: uncordoned, kept, nothing forced."""
    real.bind("web")
    real.api.add(budget("web", 1))
    real.api.before("PATCH", lambda: real.api.add(budget("web", 0)))
    real.stage.tick()
    assert real.kept
    assert len(real.api.lines("eviction")) == 1
    assert real.api.store.get("pods", "web", "ml")


def test_every_budget_is_asked_before_the_first_pod_goes(real: Real) -> None:
    """One pod may go and another may not: neither does, for the node stays."""
    real.bind("api")
    real.bind("web")
    real.api.add(budget("web", 1))
    real.api.before("PATCH", lambda: real.api.add(budget("web", 0)))
    real.stage.tick()
    assert real.kept
    assert all(real.api.store.get("pods", name, "ml") for name in ("api", "web"))


def test_somebody_else_changes_the_node_at_the_same_moment(real: Real) -> None:
    """The taints are written over the version read: another's taint, added in between, is never lost."""
    theirs = {"key": "node.example.com/maintenance", "effect": "NoSchedule", "timeAdded": "2026-11-20T12:00:00Z"}
    resource = real.api.store.resource("nodes")
    real.api.before("PATCH", lambda: real.api.store.patch(resource, ("", real.node), {"spec": {"taints": [theirs]}}))
    real.stage.deps.cluster.cordon(real.node)
    taints = real.api.store.get("nodes", real.node)["spec"]["taints"]
    assert theirs in taints
    assert len(taints) == 2
    real.stage.deps.cluster.uncordon(real.node)
    assert real.api.store.get("nodes", real.node)["spec"]["taints"] == [theirs]


def test_who_closed_a_node_is_noted_in_the_same_write_and_left_where_a_person_opens_it(real: Real) -> None:
    """One PATCH each: on with the decision, off with our taint; a person's own change of taints leaves the note."""
    cluster, note = real.stage.deps.cluster, "pilotlight.dev/closed-by"

    def shown() -> tuple[str, bool, bool]:
        (node,) = cluster.observe().nodes
        notes = real.api.store.get("nodes", real.node)["metadata"].get("annotations") or {}
        return notes.get(note, ""), node.marked, bool(node.opened_by)

    cluster.cordon(real.node, "17-a")
    assert shown() == ("17-a", True, False)
    cluster.uncordon(real.node)
    assert shown() == ("", False, False)
    cluster.cordon(real.node, "17-b")
    real.api.store.patch(real.api.store.resource("nodes"), ("", real.node), {"spec": {"taints": None}})
    cluster.uncordon(real.node)
    assert shown() == ("17-b", False, True)
    cluster.forget_opened(real.node)
    cluster.forget_opened(real.node)
    assert shown() == ("", False, False)
    assert sum(asked.method == "PATCH" for asked in real.api.requests) == 4


@pytest.mark.parametrize("when", ["before our taint", "under our taint", "after it"])
def test_a_cordon_of_somebody_elses_stays(real: Real, when: str) -> None:
    """Whenever an administrator cordons a node, it is cordoned after our taint came off: that is never ours."""
    node, cluster = real.node, real.stage.deps.cluster
    for moment in ("before our taint", "under our taint", "after it"):
        if moment == "under our taint":
            cluster.cordon(node)
        if moment == "after it":
            cluster.uncordon(node)
        if moment == when:
            real.stage.world.cordon(node)
            real.api.store.patch(real.api.store.resource("nodes"), ("", node), {"spec": {"unschedulable": True}})
    cluster.uncordon(node)
    spec = real.api.store.get("nodes", node)["spec"]
    assert (spec.get("unschedulable"), spec.get("taints") or []) == (True, [])
    assert all("unschedulable" not in asked.json()["spec"] for asked in real.api.requests if asked.method == "PATCH")
