"""At the end of a hard cap an empty node goes too: its blockers are asked, evicted, deleted, and named.

Money is counted here from the world's log: launches and terminations times the price.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from cap_stage import CAP, KEEP, STOP, capped, days, pod
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.policy import ClassPolicy
from pilotlight.ports.state import Stored
from pilotlight.units import HOUR
from pilotlight.world.residents import Resident
from pilotlight.world.world_cluster import WorldCluster

ENDLESS = ClassPolicy(gpu_models="any", idle_timeout=600)

Who = Callable[[], Resident]

BLOCKERS: dict[str, Who] = {
    "emptyDir": lambda: Resident("cache", "local storage (emptyDir or hostPath)"),
    "safe-to-evict=false": lambda: Resident("agent", "annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false"),
    "an exhausted PDB": lambda: Resident("db", "PodDisruptionBudget db allows no disruption", guarded=True),
    "a bare pod": lambda: Resident("shell"),
    "a pod that takes its hour to stop": lambda: Resident("slow", takes_s=HOUR, grace_s=HOUR),
    "a pod that takes a day to stop": lambda: Resident("slower", "local storage", takes_s=86400.0, grace_s=86400.0),
    "a guarded pod of a day's grace": lambda: Resident("worst", "PDB", guarded=True, takes_s=None, grace_s=86400.0),
    "a pod stuck in Terminating": lambda: Resident("stuck", "local storage", takes_s=None),
    "a pod that comes back at once": lambda: Resident("again", "local storage", returns=True),
    "a DaemonSet's pod": lambda: Resident("daemon", stays=True),
    "a mirror pod": lambda: Resident("kube-proxy-n1", stays=True),
}


def idle_node_with(on: Stage, *who: Resident) -> None:
    """A node whose work has ended, with others' pods on it that hold no GPU."""
    on.event(on.submit("a", run_s=600))
    on.minutes(5)
    for one in who:
        on.world.residents.put("n1", one)
    on.minutes(10)


@pytest.mark.parametrize("who", BLOCKERS.values(), ids=BLOCKERS.keys())
@pytest.mark.parametrize("rules", [STOP, KEEP], ids=["may be stopped", "held whole"])
def test_no_cpu_pod_keeps_an_idle_node_past_a_hard_cap(rules: ClassPolicy, who: Who) -> None:
    """Whatever keeps a node from being emptied, no day costs more than its six dollars."""
    on = capped(rules=rules)
    idle_node_with(on, who())
    on.minutes(14 * 60)
    assert max(days(on)) <= CAP
    assert not on.world.nodes


@pytest.mark.parametrize("name", ["emptyDir", "safe-to-evict=false", "an exhausted PDB"])
def test_the_alert_of_a_stop_names_who_was_in_the_way(name: str) -> None:
    """Whose pod it was, and by what it kept the node, stands in the alert of the stop."""
    on = capped()
    who = BLOCKERS[name]()
    idle_node_with(on, who)
    on.minutes(7 * 60)
    begun, over = (a for a in on.alerts if a.kind == "interruption")
    assert begun.what.startswith("hard-cap of n1")
    assert f"in the way, and made to leave: web/{who.name} ({who.blocks})" in begun.why
    assert over.resolved


def test_nobody_is_evicted_before_the_end_of_the_cap() -> None:
    """While its budget has room the idle node stays, and so does the pod on it."""
    on = capped()
    who = BLOCKERS["emptyDir"]()
    idle_node_with(on, who)
    on.minutes(4 * 60)
    assert len(on.world.nodes) == 1
    assert not on.world.residents.gone


def test_a_disruption_budget_is_asked_until_the_last_step() -> None:
    """A guarded pod is let be while there is time, and deleted within its grace before the node goes."""
    on = capped()
    who = Resident("db", "PodDisruptionBudget db allows no disruption", guarded=True, takes_s=30.0)
    idle_node_with(on, who)
    ended: list[tuple[float, int]] = []
    on.minutes(
        7 * 60, lambda: ended.append((on.world.now_s, len(on.world.residents.residents_on("n1", on.world.now_s))))
    )
    (gone_s,) = [r["t"] for r in on.events("terminate")]
    alone_s = next(at for at, left in ended if not left)
    assert alone_s <= gone_s
    assert gone_s - alone_s <= 120


def test_gpu_work_that_may_not_be_stopped_is_kept_at_the_end_of_a_cap() -> None:
    """A class that ends nowhere runs on past the cap with its neighbours, and people are told."""
    on = capped(Decimal(30), ENDLESS)
    on.event(on.submit("a", run_s=30 * HOUR))
    on.minutes(5)
    on.world.residents.put("n1", BLOCKERS["emptyDir"]())
    on.minutes(40 * 60)
    assert [job.id for job in on.world.finished] == ["uid-a"]
    assert not on.world.interruptions


def test_a_working_node_is_stopped_with_the_others_on_it() -> None:
    """Work that may be stopped and a guarded pod beside it: both leave in order before six dollars are spent."""
    on = capped()
    on.event(on.submit("a", run_s=40 * HOUR))
    on.minutes(5)
    on.world.residents.put("n1", BLOCKERS["an exhausted PDB"]())
    on.minutes(20 * 60)
    assert max(days(on)) <= CAP
    assert max(days(on)) > Decimal("5.7")


@pytest.mark.parametrize("who", BLOCKERS.values(), ids=BLOCKERS.keys())
@pytest.mark.parametrize("says", [{"grace_s": 2 * HOUR}, {"takes_s": 2 * HOUR}], ids=["grace", "checkpoint"])
def test_a_node_that_is_stopped_early_is_held_for_until_it_is_gone(says: dict[str, float], who: Who) -> None:
    """A stop begins hours ahead and its GPU pod leaves at once: what a CPU pod may keep the node for buys no other."""
    on = capped()
    on.event(pod(on, "a", 90 * HOUR, **says))
    on.minutes(5)
    on.world.residents.put("n1", who())
    on.minutes(60)
    on.event(pod(on, "b", 90 * HOUR))
    on.minutes(12 * 60 - 66)
    assert len(on.events("launch")) >= 2
    (day,) = days(on)
    assert Decimal("5.5") < day <= CAP


@pytest.mark.parametrize("name", ["an exhausted PDB", "a pod stuck in Terminating", "a pod that comes back at once"])
def test_a_stop_of_a_long_grace_ends_with_its_gpu_work(name: str) -> None:
    """Its GPU pod leaves at once: what is left on the node has minutes, not the two hours that were the other's."""
    on = capped()
    on.event(pod(on, "a", 90 * HOUR, grace_s=2 * HOUR))
    on.minutes(5)
    on.world.residents.put("n1", BLOCKERS[name]())
    on.minutes(11 * 60)
    left_s, gone_s = on.events("stop")[0]["t"], on.events("terminate")[0]["t"]
    assert gone_s - left_s <= 600


class LateBind(WorldCluster):
    """A cluster in which a pod binds to the node between the look that found it empty and the call that ends it."""

    on: Stage
    bound_at_s: float | None = None

    def drain(self, node: str) -> None:
        """The pod is there once it was drained."""
        super().drain(node)
        self._world.cordon(node, on=False)
        self.on.submit("late", run_s=HOUR)
        self._world.cordon(node)
        self.bound_at_s = self._world.now_s


def test_a_gpu_pod_that_binds_at_the_last_moment_does_not_die_of_a_stop_of_an_empty_node() -> None:
    """The look before the call finds the pod: the node stays for as long as its stop would have given it."""
    on = capped()
    idle_node_with(on, BLOCKERS["emptyDir"]())
    cluster = LateBind(on.world)
    cluster.on = on
    on.deps = replace(on.deps, cluster=cluster)
    while cluster.bound_at_s is None:
        on.minutes(1)
    assert len(on.world.nodes) == 1
    assert len(on.world.running) == 1


class SlowStore(MemoryState):
    """A store that takes half a second for each read and write."""

    on: Stage

    def get(self, key: str) -> Stored | None:
        """Read, after a while."""
        self.on.wait(0.5)
        return super().get(key)


def test_two_workers_and_a_slow_store_keep_the_cap_all_the_same() -> None:
    """Two that tick in turn over a store that takes its time: the node goes once, in time."""
    on = capped()
    store = SlowStore(on.world.clock)
    store.on = on
    on.deps = replace(on.deps, state=store)
    idle_node_with(on, BLOCKERS["an exhausted PDB"](), BLOCKERS["a pod that comes back at once"]())
    other = replace(on.deps, cluster=WorldCluster(on.world))
    first = on.deps
    for n in range(8 * 60):
        on.deps = other if n % 2 else first
        on.minutes(1)
    assert max(days(on)) <= CAP
    assert not on.world.nodes


def test_the_view_shows_who_is_on_a_node() -> None:
    """What the world shows of a node has its pods without GPUs, and none that has stopped."""
    on = capped()
    idle_node_with(on, BLOCKERS["emptyDir"]())
    view: ClusterView = on.deps.cluster.observe()
    assert [p.name for p in view.nodes[0].others] == ["cache"]


def test_who_keeps_an_idle_node_lit_is_told_once_with_dollars_a_day_and_never_evicted() -> None:
    """One alert while its budget has room; another when others are in the way, and an end when they have gone."""
    on = capped(Decimal(500))
    idle_node_with(on, BLOCKERS["emptyDir"]())
    on.minutes(60)
    told = [a for a in on.alerts if a.kind == "finding-idle-blocked"]
    assert [a.what for a in told] == ["node n1 idles, and cannot be emptied"]
    assert "web/cache: local storage (emptyDir or hostPath) keeps it lit without GPU work, $24.00 a day" in told[0].why
    (verdict,) = on.tick(dry_run=True).plan.nodes  # type: ignore[union-attr]
    assert "web/cache: local storage" in verdict.why
    on.world.residents.put("n1", BLOCKERS["an exhausted PDB"]())
    on.minutes(10)
    told = [a for a in on.alerts if a.kind == "finding-idle-blocked"]
    assert [a.resolved for a in told] == [False, False, True] or [a.resolved for a in told] == [False, True, False]
    assert not on.world.residents.gone
    on.world.residents.by_node["n1"].clear()
    on.minutes(10)
    assert not on.world.nodes
    told = [a for a in on.alerts if a.kind == "finding-idle-blocked"]
    assert sum(a.resolved for a in told) == 2
