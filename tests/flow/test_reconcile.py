"""A schedule tick: catches lost demand, puts out what idles, keeps what works, settles what came and did not help."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from stage import MINUTE, START, Stage

from pilotlight.errors import Retry, Unavailable
from pilotlight.facts.capacity import BoundPod, Taint
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWhen
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.facts.workload import GpuRequest, WorkloadClass
from pilotlight.world.faults import Faults
from pilotlight.world.world_cluster import WorldCluster

ONE = {"one": PoolPolicy(instance_type="one", max=20)}


def test_demand_whose_event_was_lost_is_caught() -> None:
    """No event ever comes: the next tick buys, the ticks after it do not."""
    stage = Stage(boot_s=10 * MINUTE)
    stage.submit("p")
    stage.minutes(15)
    assert (stage.world.launches, list(stage.world.running)) == (1, ["uid-p"])


def test_nothing_to_do_leaves_no_trace() -> None:
    """A tick over a quiet cluster writes no decision and sends nothing."""
    stage = Stage()
    answer = stage.tick()
    assert (answer.decision, answer.did, answer.why) == ("", (), "nothing to do")
    assert stage.outbox.sent == []
    assert not stage.deps.state.scan("decision/").items


def test_a_running_job_keeps_its_node() -> None:
    """Nothing is pending for ten hours, and the node stays: the job that got it is running, not pending (E25)."""
    stage = Stage()
    stage.event(stage.submit("p", run_s=10 * 60 * MINUTE))
    stage.minutes(10 * 60)
    assert (stage.world.launches, stage.world.terminations) == (1, 0)
    assert len(stage.events("start")) == 1
    stage.minutes(15)
    assert stage.world.terminations == 1


WINDOWS: dict[str, tuple[WorkloadClass, float]] = {
    "training: 5 minutes": ("training", 5 * MINUTE),
    "inference: 10 minutes": ("serving", 10 * MINUTE),
    "a notebook lab: 2 minutes": ("notebook", 2 * MINUTE),
}


@pytest.mark.parametrize(("name", "window_s"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows_on_the_clock(name: WorkloadClass, window_s: float) -> None:
    """After its job ends a node idles for its class's window, and goes with the first tick after it (U3)."""
    stage = Stage(pools=ONE, classes={name: ClassPolicy(gpu_models="any", idle_timeout=window_s)})
    stage.event(stage.submit("p", run_s=10 * MINUTE, workload_class=name))
    stage.minutes(60)
    (stop,), (end,) = stage.events("stop"), stage.events("terminate")
    assert window_s <= end["t"] - stop["t"] < window_s + MINUTE


def test_work_that_comes_within_the_window_starts_at_once() -> None:
    """A job that ends and another that comes 4 minutes later share one node, and the second waits for nothing."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=10 * MINUTE))
    stage.minutes(17)
    stage.submit("b", run_s=10 * MINUTE)
    assert list(stage.world.running) == ["uid-b"]
    stage.minutes(60)
    assert (stage.world.launches, stage.world.terminations) == (1, 1)


class LateBinding:
    """A cluster in which a pod binds between the decision and the cordon."""

    def __init__(self, cluster: WorldCluster) -> None:
        self.cluster = cluster
        self.binds = True

    def bound_pods(self, node: str) -> tuple[BoundPod, ...]:
        """The pod that bound just now, and what was there."""
        late = BoundPod(uid="u", namespace="ml", name="late", gpu=GpuRequest(count=1))
        return (*((late,) if self.binds else ()), *self.cluster.bound_pods(node))

    def __getattr__(self, name: str) -> object:
        return getattr(self.cluster, name)


def test_a_pod_that_binds_at_the_last_moment_keeps_its_node() -> None:
    """What is bound is read again after the cordon: the node is uncordoned and stays."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p", run_s=MINUTE))
    stage.minutes(8)
    late = LateBinding(stage.deps.cluster)  # type: ignore[arg-type]
    stage.deps = replace(stage.deps, cluster=late)  # type: ignore[arg-type]
    stage.wait(3 * MINUTE)
    answer = stage.tick()
    assert "ml/late bound to it meanwhile" in answer.did[0]
    assert stage.world.terminations == 0
    assert not any(n.cordoned for n in stage.world.nodes.values())
    late.binds = False
    stage.minutes(2)
    assert stage.world.terminations == 1


IN_DOUBT = {
    "the API server is away": "observe",
    "the cloud does not answer": "describe",
    "the node cannot be cordoned": "cordon",
    "what is bound cannot be read": "bound_pods",
}


@pytest.mark.parametrize("call", IN_DOUBT.values(), ids=IN_DOUBT.keys())
def test_when_in_doubt_nothing_is_taken_away(call: str) -> None:
    """A node due for release stays while a call fails, is not left cordoned, and goes once all answer."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p", run_s=MINUTE))
    stage.minutes(6)
    stage.wait(30 * MINUTE)
    stage.fail(call, Unavailable("gone"))
    with suppress(Retry):
        stage.tick()
    assert stage.world.terminations == 0
    stage.minutes(2)
    assert stage.world.terminations == 1


SURPRISE = {"taints": (Taint(key="surprise", effect="NoSchedule"),)}


def test_a_node_that_did_not_help_is_never_bought_again() -> None:
    """A Ready node its pod cannot use quarantines that shape and pool: one launch in five hours, and it goes out."""
    stage = Stage(pools=ONE, on_cloud=SURPRISE)
    pod = stage.submit("p")
    stage.event(pod)
    stage.minutes(5 * 60, lambda: stage.event(pod))
    assert (stage.world.launches, stage.world.terminations) == (1, 1)
    assert list(stage.world.pending) == ["uid-p"]


def test_another_pool_is_tried_after_a_quarantine() -> None:
    """Where the policy has another pool, the pod that was not helped gets that, once."""
    stage = Stage(on_cloud=SURPRISE)
    pod = stage.submit("p")
    stage.minutes(5 * 60, lambda: stage.event(pod))
    assert [r["type"] for r in stage.events("launch")] == ["one", "eight"]


def test_a_reclaimed_spot_node_is_bought_anew() -> None:
    """A spot node is taken from its job: the job's new pod is demand like any other."""
    pools = {"spot": PoolPolicy(instance_type="one", capacity_type="spot")}
    rules = ClassPolicy(capacity_types=("spot",), gpu_models="any", idle_timeout=300)
    stage = Stage(pools=pools, classes={"batch": rules}, faults=Faults(reclaim=False))
    stage.event(stage.submit("p", run_s=60 * MINUTE))
    stage.minutes(30)
    (node,) = stage.world.nodes
    stage.world.terminate(node, "reclaimed", evict=True)
    stage.minutes(90)
    assert stage.world.launches == 2
    assert len(stage.world.finished) == 1


def test_a_warm_node_by_day() -> None:
    """A rule keeps one node lit from 13:00 to 15:00: lit once, and out with the window's last minute."""
    when = RuleWhen(time=RuleTime(start="13:00", end="15:00"))
    day = Rule(name="day", when=when, does=RuleSet(warm={"one": 1}))
    stage = Stage(pools=ONE, rules=(day,))
    lit = []
    for _ in range(5 * 60):
        stage.minutes(1)
        if stage.nodes("one"):
            lit.append(stage.world.clock.now())
    assert stage.world.launches == 1
    assert lit[0] == START + timedelta(hours=1)
    assert lit[-1] == START + timedelta(hours=2, minutes=59)


def test_a_warm_node_spares_the_wait() -> None:
    """A pod that comes while a node is kept warm starts at once, and the warm node is replaced."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", spares=SparePolicy(warm=1))})
    stage.minutes(5)
    stage.submit("p")
    assert list(stage.world.running) == ["uid-p"]
    stage.minutes(1)
    assert stage.nodes("one") == 2


KEPT_LIT = {
    "warm": PoolPolicy(instance_type="one", spares=SparePolicy(warm=1)),
    "least": PoolPolicy(instance_type="one", min=1),
}


@pytest.mark.parametrize("pool", KEPT_LIT.values(), ids=KEPT_LIT.keys())
def test_nodes_whose_gpus_never_come_are_not_bought_again_at_once(pool: PoolPolicy) -> None:
    """What is kept lit rests after a failure as what is bought for a pod does: an hour, not a minute."""
    stage = Stage(pools={"one": pool}, faults=Faults(gpu_lag_s=1e7))
    stage.minutes(4 * 60)
    assert 1 <= stage.world.launches <= 5


@pytest.mark.parametrize("pool", KEPT_LIT.values(), ids=KEPT_LIT.keys())
def test_nothing_is_kept_lit_at_a_price_that_is_far_too_old(pool: PoolPolicy) -> None:
    """What no pod may be bought is not bought for nobody either."""
    stage = Stage(pools={"one": pool})
    old = START - timedelta(days=700)
    stage.deps = replace(
        stage.deps, offerings=tuple(msgspec.structs.replace(o, priced_at=old) for o in stage.deps.offerings)
    )
    stage.minutes(5)
    assert stage.world.launches == 0


def test_advice_changes_nothing() -> None:
    """A pool in mode advise is told of once, and neither grown nor shrunk."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", mode="advise")})
    stage.submit("p")
    stage.minutes(30)
    assert stage.world.launches == 0
    assert [a.kind for a in stage.alerts] == ["capacity-advised"]


def test_a_pool_that_may_only_grow_is_not_shrunk() -> None:
    """Mode scale-up buys and never releases."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", mode="scale-up")})
    stage.submit("p", run_s=MINUTE)
    stage.minutes(60)
    assert (stage.world.launches, stage.world.terminations) == (1, 0)


def test_a_dry_run_tells_what_would_go_out() -> None:
    """It answers with every node's verdict and releases nothing."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p", run_s=MINUTE))
    stage.minutes(6)
    stage.wait(30 * MINUTE)
    answer = stage.tick(dry_run=True)
    assert answer.plan is not None
    assert [n.verdict for n in answer.plan.nodes] == ["release"]
    assert "idle for" in answer.why
    assert stage.world.terminations == 0


def test_the_next_look_is_named() -> None:
    """An idle node's answer says when it falls due, so that no tick before it is needed."""
    stage = Stage(pools=ONE)
    stage.event(stage.submit("p", run_s=MINUTE))
    stage.minutes(4)
    stage.wait(MINUTE)
    answer = stage.tick()
    assert answer.look_again_at == START + timedelta(seconds=180 + 60 + 300)


@pytest.mark.parametrize(("warm", "said"), [(1, "as a spare"), (2, "as spares")])
def test_nodes_that_no_pod_asked_for_are_told_as_spares(warm: int, said: str) -> None:
    """Beside what a pod gets, so that whoever sent one pod knows why more is bought."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20, spares=SparePolicy(warm=warm))})
    answer = stage.event(stage.submit("p"))
    bought, spare = answer.why.split("; ")[:2]
    assert bought == "buys 1 x one/one/on-demand"
    assert spare == f"buys {warm} x one/one/on-demand {said}"
