"""Interruptions end to end: replaced first, saved, drained, given back, accounted for; once, by one owner."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.records import lease, ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.instance_records import RESCUE
from pilotlight.world.world_pools import WorldPools

SPOT = PoolPolicy(instance_type="one", capacity_type="spot", max=5)
EIGHT = PoolPolicy(instance_type="eight", capacity_type="spot", max=5)


class Doomed(Stage):
    """A spot pool with a node that runs one pod, about to be interrupted."""

    def __init__(
        self, pool: PoolPolicy = SPOT, *, pods: Sequence[dict[str, Any]] = ({},), relaunches: bool = False, **rules: Any
    ) -> None:
        either = ClassPolicy(gpu_models="any", capacity_types=(pool.capacity_type,), idle_timeout=300)
        classes = dict.fromkeys(("batch", "training"), either) | {
            "serving": ClassPolicy(gpu_models="any", capacity_types=(pool.capacity_type,))
        }
        super().__init__(
            pools={"p": msgspec.structs.replace(pool, relaunches=relaunches)},
            on_cloud={"relaunches": relaunches},
            classes=classes,
            **rules,
        )
        self.pods = [self.start(f"j{n}", **traits) for n, traits in enumerate(pods)]
        self.minutes(5)
        assert len(self.world.running) == len(pods)
        self.outbox.sent.clear()

    def start(self, name: str, **traits: Any) -> PodDemand:
        """A pod with what it says of its stopping, created and bought for."""
        own = {key: traits.pop(key) for key in ("grace_s", "checkpoint_takes_s") if key in traits}
        made = shape(**{"gpu": GpuRequest(count=1), "checkpoint_s": 7200.0, **traits})
        now = self.world.clock.now()
        pod = PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=made, created_at=now, **own)
        self.world.submit(pod, 40_000)
        self.event(pod)
        return pod

    def notice(self, kind: NoticeKind = "spot-interruption", notice_s: float = 120, node: str = "n1") -> Answer:
        """The cloud says so, and means it."""
        deadline = None
        if kind != "rebalance":
            self.world.interrupt(node, notice_s)
            deadline = self.world.clock.now() + timedelta(seconds=notice_s) if notice_s else None
        else:
            self.world.recommend(node)
        return self.deliver(kind, node, deadline)

    def deliver(self, kind: NoticeKind, node: str = "n1", deadline: Any = None, **options: Any) -> Answer:
        """One delivery of a notice."""
        fields = {"cloud": "world", "at": self.world.clock.now(), **options.pop("fields", {})}
        message = InterruptionNotice(cluster="c", instance=node, kind=kind, deadline=deadline, **fields)
        return interrupt(self.deps, message, **options)

    def until(self, seconds: float, every: float = 5) -> None:
        """So long passes, and rescues go on every few seconds."""
        end = self.world.now_s + seconds
        while self.world.now_s < end:
            self.wait(every)
            go_on(self.deps)

    def of(self, *what: str) -> list[tuple[float, str]]:
        """When things happened in the world, since the notice."""
        return [(r["t"], r["event"]) for r in self.log if r["event"] in what]

    @property
    def outcome(self) -> str:
        """How the node's interruption ended so far."""
        kept = interruption_records.find(self.deps, "n1")
        return kept.found.outcome if kept else "none"


SAVES = {"checkpoint_takes_s": 30.0}


@pytest.mark.parametrize("relaunches", [True, False], ids=["its group relaunches", "its group does not"])
def test_a_node_is_replaced_saved_drained_and_given_back(relaunches: bool) -> None:
    """Asked for at the notice, saved after 30 s, evicted and given back: half a minute is lost, one node bought."""
    stage = Doomed(pods=[SAVES], relaunches=relaunches)
    begin = stage.world.now_s
    answer = stage.notice()
    assert answer.did == (
        "cordoned n1",
        "asked ml/j0 for a checkpoint",
        "asked pool p for 1 x p/one/spot",
    )
    stage.until(110)
    assert stage.outcome == "released"
    assert stage.of("terminate") == [(begin + 30, "terminate")]
    assert [t for t, _ in stage.of("launch")][1:] == [begin]
    (job,) = [*stage.world.pending.values(), *stage.world.running.values()]
    assert job.saved_s == pytest.approx(begin - 180, abs=1)
    stage.minutes(10)
    assert (stage.world.launches, len(stage.world.nodes), len(stage.world.running)) == (2, 1, 1)


def test_an_interruption_names_the_decision_that_bought_its_replacement() -> None:
    """So that `why` of either finds the other."""
    stage = Doomed(pods=[SAVES])
    answer = stage.notice()
    kept = interruption_records.find(stage.deps, "n1")
    assert kept is not None
    assert (kept.found.replaced, kept.found.decision) == (True, answer.decision)
    assert ledger.filed_decision(stage.deps.state, "c", answer.decision) is not None
    (told,) = [a for a in stage.alerts if a.kind == "interruption"]
    assert told.why.endswith(") on it are not saved")


def test_the_alert_tells_what_was_lost_and_is_resolved() -> None:
    """One warning at the notice with the deadline, one resolution with dollars and GPU-hours, under one fingerprint."""
    stage = Doomed(pods=[SAVES])
    stage.notice()
    stage.until(110)
    first, last = (a for a in stage.alerts if a.kind == "interruption")
    assert first.fingerprint == last.fingerprint
    assert (first.severity, first.resolved, last.resolved) == ("warning", False, True)
    assert first.what == "spot-interruption of n1 of pool p: it goes at 12:07:00 UTC, with 1 GPU pod on it"
    assert last.what == "spot-interruption of n1 of pool p is over: 0.01 GPU-hours of work ($0.00) lost"
    assert first.usd_per_hour == "0.25"


def test_a_pod_that_cannot_save_stays_as_long_as_its_grace_allows() -> None:
    """Without a checkpoint it leaves its grace and the margin before the deadline: it might have ended by itself."""
    stage = Doomed()
    begin = stage.world.now_s
    stage.notice()
    stage.until(75)
    assert stage.world.running
    stage.until(10)
    assert stage.of("terminate") == [(begin + 80, "terminate")]
    kept = interruption_records.find(stage.deps, "n1")
    assert kept is not None
    (lost,) = kept.found.lost.values()
    assert lost.gpu_hours == pytest.approx((begin + 80 - 180) / 3600, abs=0.01)


def test_a_second_notice_decides_nothing_anew() -> None:
    """However often it comes there is one replacement, and one checkpoint is asked for."""
    stage = Doomed(pods=[SAVES])
    stage.notice()
    for _ in range(3):
        stage.deliver("spot-interruption", deadline=stage.world.clock.now() + timedelta(seconds=90))
        stage.wait(2)
    stage.until(110)
    stage.deliver("spot-interruption")
    assert stage.world.launches == 2
    asked = [e for e in stage.deps.cluster.told if e[2] == CHECKPOINT_NOW]  # type: ignore[attr-defined]
    assert len(asked) == 1


def test_an_idle_node_is_given_back_at_once_and_not_replaced() -> None:
    """With no demand nothing is bought, and a group that relaunches does not."""
    stage = Doomed(pods=[SAVES], relaunches=True)
    stage.world.finish(next(iter(stage.world.running)))
    stage.notice()
    stage.until(300)
    assert (stage.outcome, stage.world.launches, len(stage.world.nodes)) == ("released", 1, 0)


def test_a_gang_moves_whole() -> None:
    """Three pods on three nodes, of which one goes: all are asked to save and leave together, one node is bought."""
    gang = [{"gpu": GpuRequest(count=8), "checkpoint_takes_s": 20.0}]
    stage = Doomed(EIGHT, pods=gang)
    pods = [
        msgspec.structs.replace(
            stage.pods[0],
            uid=f"g{n}",
            name=f"g{n}",
            shape=shape(gpu=GpuRequest(count=8), checkpoint_s=7200.0, gang=Gang(key="g", size=3)),
        )
        for n in range(3)
    ]
    stage.world.submit(pods, 40_000, job="g")
    stage.event(pods[0])
    stage.minutes(5)
    assert len(stage.world.nodes) == 4
    stage.notice(node="n2")
    stage.until(40)
    asked = {e[1] for e in stage.deps.cluster.told if e[2] == CHECKPOINT_NOW}  # type: ignore[attr-defined]
    assert asked == {"ml/g0", "ml/g1", "ml/g2"}
    stage.minutes(6)
    assert (stage.world.launches, len(stage.world.running)) == (5, 2)


def test_a_disruption_budget_holds_until_the_margin() -> None:
    """With no disruption allowed the pod stays until ten seconds before the deadline; then it goes with the node."""
    stage = Doomed(pods=[SAVES])
    stage.world.evictions.disruptions["ml"] = 0
    begin = stage.world.now_s
    stage.notice()
    stage.until(105)
    assert stage.world.running
    stage.until(10)
    assert (stage.outcome, stage.of("terminate")) == ("released", [(begin + 110, "terminate")])


def test_a_notice_is_carried_on_by_the_schedule_alone() -> None:
    """With nothing but a tick a minute the work is saved and the node given back in time."""
    stage = Doomed(pods=[SAVES])
    stage.notice()
    stage.minutes(1)
    assert stage.outcome == "released"


@pytest.mark.parametrize(
    ("pool", "mark", "why"),
    [
        pytest.param({"handled_by": "nth"}, {}, "handled_by is nth", id="the policy names NTH"),
        pytest.param({"handled_by": "cloud"}, {}, "handled_by is cloud", id="the policy names the cloud"),
        pytest.param({}, {"labels": {"karpenter.sh/nodepool": "gpu"}}, "Karpenter owns it", id="Karpenter's label"),
        pytest.param(
            {},
            {"taints": (Taint(key="aws-node-termination-handler/spot-itn", effect="NoSchedule"),)},
            "termination handler is at work",
            id="NTH's taint",
        ),
    ],
)
def test_anothers_interruption_is_priced_and_told(pool: dict[str, Any], mark: dict[str, Any], why: str) -> None:
    """Nothing is bought, cordoned or drained, and people are told whose it is."""
    stage = Doomed(msgspec.structs.replace(SPOT, **pool), pods=[SAVES])
    machine = stage.world.nodes["n1"].machine
    stage.world.nodes["n1"].machine = msgspec.structs.replace(
        machine,
        labels={**machine.labels, **mark.get("labels", {})},
        pool=msgspec.structs.replace(machine.pool, taints=mark.get("taints", ())),
    )
    stage.world.nodes["n1"].value = None
    answer = stage.notice()
    stage.until(60)
    assert (stage.outcome, answer.did, stage.world.launches) == ("not ours", (), 1)
    assert not stage.world.nodes["n1"].cordoned
    (alert,) = [a for a in stage.alerts if a.kind == "interruption"]
    assert why in alert.why


class _Late:
    """A store of a worker that stands still before it begins a rescue: another delivery ends it meanwhile."""

    def __init__(self, inner: State, meanwhile: Callable[[], object]) -> None:
        self._inner, self._meanwhile = inner, [meanwhile]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, key: str, value: bytes, **how: Any) -> int:
        """Write; once, after all that happens meanwhile."""
        if key.startswith("rescue/") and self._meanwhile:
            self._meanwhile.pop()()
        return self._inner.put(key, value, **how)


def test_a_worker_that_stood_still_begins_no_interruption_that_is_over() -> None:
    """The same notice, delivered twice: while one stands still before its write the other begins and ends it."""
    on = Doomed()
    notice = InterruptionNotice(
        cluster="c", cloud="aws", instance="i-nobody", kind="spot-interruption", at=on.deps.now()
    )
    late = replace(on.deps, state=_Late(on.deps.state, lambda: interrupt(on.deps, notice)))
    interrupt(late, notice)
    told = [message.id for message in on.outbox.sent]
    assert sorted(told) == sorted(set(told))
    assert not list(RESCUE.scan(on.deps.state, "c/"))


def test_an_unknown_instance_is_reported_and_never_guessed() -> None:
    """No node and no memory of it: an alert, and nothing else."""
    stage = Doomed()
    stage.deliver("spot-interruption", "i-stranger")
    (alert,) = [a for a in stage.alerts if a.kind == "interruption"]
    assert "of no known pool" in alert.what
    assert stage.world.launches == 1


@pytest.mark.parametrize("relaunches", [True, False], ids=["its group relaunches", "its group does not"])
def test_a_preemption_is_told_after_the_fact_and_replaced_once(relaunches: bool) -> None:
    """The node is gone when the log says so: the map knows it, nothing is drained, one node comes in its place."""
    stage = Doomed(relaunches=relaunches)
    stage.world.interrupt("n1", 0)
    answer = stage.deliver("preempted")
    assert not any("evicted" in line or "cordoned" in line for line in answer.did)
    stage.minutes(6)
    assert (stage.outcome, stage.world.launches, len(stage.world.running)) == ("after the fact", 2, 1)
    alerts = [a for a in stage.alerts if a.kind == "interruption"]
    assert "of pool p" in alerts[0].what
    assert "nothing could be drained" in alerts[-1].why


def test_a_rebalance_is_acted_on_only_where_the_risk_is_dearer() -> None:
    """Hours of unsaved work are moved; a pod that saved just now, and an idle node, stay, uncordoned."""
    risky, safe = Doomed(pods=[SAVES]), Doomed(pods=[{**SAVES, "checkpoint_s": 60.0}])
    for stage in (risky, safe):
        stage.minutes(110)
        stage.notice("rebalance")
    assert (risky.outcome, safe.outcome) == ("", "stayed")
    assert "staying risks" in next(a for a in safe.alerts if a.kind == "interruption").why
    assert not safe.world.nodes["n1"].cordoned
    risky.until(200)
    assert (risky.outcome, risky.world.launches) == ("released", 2)


def test_a_rebalance_that_cannot_be_carried_through_ends_with_its_cordon() -> None:
    """A disruption budget keeps the pod for half an hour: then the node takes pods again and nobody is forced."""
    stage = Doomed(pods=[SAVES])
    stage.minutes(110)
    stage.world.evictions.disruptions["ml"] = 0
    stage.notice("rebalance")
    assert stage.world.nodes["n1"].cordoned
    stage.minutes(31)
    assert (stage.outcome, stage.world.nodes["n1"].cordoned, bool(stage.world.running)) == ("uncordoned", False, True)
    last = [alert for alert in stage.alerts if alert.kind == "interruption"][-1]
    assert (last.resolved, "0.00 GPU-hours of work ($0.00) lost" in last.what) == (True, True)


def test_an_order_after_a_rebalance_is_news() -> None:
    """What stayed as a probability is rescued when it becomes an order."""
    stage = Doomed(pods=[{**SAVES, "checkpoint_s": 60.0}])
    stage.notice("rebalance")
    stage.notice()
    stage.until(110)
    assert (stage.outcome, stage.world.launches) == ("released", 2)


def test_an_earlier_end_than_one_that_nobody_confirms_is_news() -> None:
    """Half an hour was said, then two minutes, and the cloud says nothing: its rescue counts to the earlier one."""
    stage = Doomed(pods=[SAVES])
    stage.deps = replace(stage.deps, pools=Unsaying(stage.world))
    for seconds in (1800, 120):
        ends = stage.world.clock.now() + timedelta(seconds=seconds)
        stage.deliver("spot-interruption", deadline=ends)
        kept = interruption_records.find(stage.deps, "n1")
        assert kept is not None
        assert (kept.found.truth, kept.found.deadline) == ("unverified", ends)


class Unsaying(WorldPools):
    """A cloud that says nothing of an instance."""

    def instance(self, pool: str, instance: str) -> None:
        """Nothing."""


def test_a_name_that_a_group_gives_again_is_another_interruption() -> None:
    """A machine preempted, made anew under its name, and preempted an hour later is replaced and told a second time."""
    stage = Doomed()
    stage.deliver("preempted", "gke-p-x1")
    stage.deliver("preempted", "gke-p-x1")
    assert len(stage.deps.state.scan("interruption/c/").items) == 1
    stage.minutes(60)
    stage.deliver("preempted", "gke-p-x1")
    assert len(stage.deps.state.scan("interruption/c/").items) == 2
    assert len([a for a in stage.alerts if a.kind == "interruption"]) == 2


def test_what_is_told_of_the_end_of_a_rescued_node_is_no_news() -> None:
    """The cloud says that it terminates and has terminated what was given back: once told is enough."""
    stage = Doomed(pods=[SAVES])
    stage.notice()
    stage.until(110)
    told = len(stage.alerts)
    stage.minutes(2)
    stage.deliver("state-change")
    stage.deliver("lifecycle")
    assert (len(stage.deps.state.scan("interruption/c/").items), stage.outcome) == (1, "released")
    assert len([a for a in stage.alerts[told:] if a.kind == "interruption"]) == 0


def test_with_the_store_down_the_work_is_saved() -> None:
    """Nothing is bought or given back; the node is cordoned, the pod asked, and evicted before the deadline."""
    stage = Doomed(pods=[SAVES])
    deps, begin = stage.deps, stage.world.clock.now()

    class Down:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("the store does not answer")

    stage.deps = replace(deps, state=Down())
    stage.world.interrupt("n1", 120)
    notice = InterruptionNotice(
        cluster="c", instance="n1", kind="spot-interruption", cloud="world", at=begin,
        deadline=begin + timedelta(seconds=120),
    )  # fmt: skip
    for _ in range(11):
        with pytest.raises(Unavailable):
            interrupt(stage.deps, notice)
        stage.wait(10)
    assert stage.world.launches == 1
    assert stage.world.nodes["n1"].cordoned
    (job,) = stage.world.pending.values()
    assert job.saved_s > 0
    stage.deps = deps
    interrupt(deps, notice)
    stage.minutes(6)
    assert (stage.world.launches, len(stage.world.running)) == (2, 1)


@pytest.mark.parametrize(
    ("node", "kind", "mode", "action", "saved"),
    [
        pytest.param("n1", "spot-interruption", "act", "terminate", True, id="an order for a node"),
        pytest.param("n9", "spot-interruption", "act", "", False, id="an instance that nobody knows"),
        pytest.param("n1", "rebalance", "act", "", False, id="it may not go"),
        pytest.param("n1", "spot-interruption", "scale-up", "", False, id="nothing is to be taken"),
        pytest.param("n1", "scheduled-change", "act", "reboot", False, id="it comes back"),
    ],
)
def test_with_the_store_down_only_what_is_ordered_is_saved(
    node: str, kind: NoticeKind, mode: Any, action: Any, saved: bool
) -> None:
    """Whatever else comes is answered by the same error, and touches no node."""
    stage = Doomed(pods=[SAVES])

    class Down:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("the store does not answer")

    stage.deps = replace(stage.deps, state=Down(), mode=mode)
    stage.world.interrupt("n1", 120)
    deadline = None if kind == "rebalance" else stage.world.clock.now() + timedelta(seconds=120)
    with pytest.raises(Unavailable):
        stage.deliver(kind, node, deadline, fields={"action": action})
    assert stage.world.nodes["n1"].cordoned is saved


def test_a_cap_is_not_passed_for_a_replacement() -> None:
    """With a cap of one node the replacement comes only after the doomed one has gone."""
    stage = Doomed(pods=[SAVES], caps=Caps(nodes=1))
    stage.notice()
    assert stage.world.launches == 1
    stage.minutes(8)
    assert (stage.world.launches, len(stage.world.running)) == (2, 1)


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_mode_that_does_not_act_tells_and_leaves(mode: Any) -> None:
    """What would be bought is told; nothing is touched."""
    stage = Doomed(pods=[SAVES])
    stage.deps = replace(stage.deps, mode=mode)
    stage.notice()
    stage.until(60)
    assert (stage.outcome, stage.world.launches) == ("advised", 1)
    assert not stage.world.nodes["n1"].cordoned


def test_a_dry_run_tells_the_steps_and_changes_nothing() -> None:
    """The steps come in their order, with their times."""
    stage = Doomed(pods=[SAVES])
    stage.world.interrupt("n1", 120)
    answer = stage.deliver("spot-interruption", dry_run=True)
    steps = [part.split(" ")[1] for part in answer.why.split("; ")[1:] if part[:1].isdigit()]
    assert steps[:3] == ["cordon", "checkpoint", "replace"]
    assert steps.index("evict") < steps.index("release")
    assert interruption_records.find(stage.deps, "n1") is None


def test_maintenance_that_is_days_off_waits() -> None:
    """Half an hour before it the rescue begins, not before."""
    stage = Doomed(pods=[SAVES])
    answer = stage.notice("scheduled-change", 7200)
    assert (answer.did, stage.world.launches) == ((), 1)
    stage.minutes(85)
    assert not stage.world.nodes["n1"].cordoned
    stage.minutes(10)
    assert (stage.outcome, stage.world.launches) == ("released", 2)


@pytest.mark.parametrize("action", ["freeze", "reboot", "unknown"])
def test_what_comes_back_is_not_given_back(action: str) -> None:
    """Maintenance that is no termination buys nothing, evicts nobody and releases nothing: it is told."""
    stage = Doomed(pods=[SAVES])
    deadline = stage.world.clock.now() + timedelta(minutes=20)
    stage.deliver("scheduled-change", deadline=deadline, fields={"action": action})
    stage.minutes(40)
    assert (stage.world.launches, stage.of("terminate"), len(stage.world.running)) == (1, [], 1)
    assert not stage.world.nodes["n1"].cordoned
    assert [a.kind for a in stage.alerts if a.kind == "interruption"]


def test_many_at_once_are_replaced_by_one_decision() -> None:
    """Thirty nodes go together while another worker holds the lease: room for all is asked for once, in one walk."""
    many = 30
    stage = Doomed(msgspec.structs.replace(SPOT, max=200), pods=[SAVES] * many)
    held = lease.acquire(stage.deps.state, "c", "another")
    assert held is not None
    for node in list(stage.world.nodes):
        stage.notice(node=node)
    assert stage.world.launches == many
    held.release()
    before = len(stage.deps.state.scan("decision/").items)
    stage.wait(1)
    go_on(stage.deps)
    assert stage.world.launches == 2 * many
    assert len(stage.deps.state.scan("decision/").items) == before + 1
    stage.until(110)
    assert stage.world.terminations == many
    assert all(
        kept.found.outcome == "released"
        for kept in [interruption_records.find(stage.deps, f"n{n + 1}") for n in range(many)]
        if kept
    )


def test_a_node_that_was_given_back_because_its_cloud_takes_it_counts_as_taken() -> None:
    """What is learnt of its zone has its loss, though we gave it back before the cloud did."""
    stage = Doomed(msgspec.structs.replace(SPOT, zones=("a", "b")), pods=[SAVES])
    stage.minutes(30)
    stage.notice()
    stage.until(100)
    stage.minutes(20)
    assert stage.outcome == "released"
    assert sum(ledger.recall(stage.deps.state, "c").memory.lives["one/a"].lost) == pytest.approx(1, rel=0.01)


def test_each_of_many_notices_has_room_asked_for_at_once() -> None:
    """What was bought a moment ago for the pods of one node that goes is no room for those of the next."""
    stage = Doomed(msgspec.structs.replace(SPOT, max=20), pods=[SAVES] * 4)
    asked = []
    for node in list(stage.world.nodes):
        stage.notice(node=node)
        asked.append(stage.world.launches)
    assert asked == [5, 6, 7, 8]
    stage.until(110)
    stage.minutes(6)
    assert (stage.world.launches, len(stage.world.running)) == (8, 4)
