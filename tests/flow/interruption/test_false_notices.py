"""Notices that are forged, replayed, early, doubled or about another machine: each does what it must, and no more."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_interrupt import SAVES, SPOT, Doomed

from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import Taint
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption import verify_notice
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.records import node_marks
from pilotlight.units import HOUR
from pilotlight.world.world_pools import WorldPools

BOUGHT = PoolPolicy(instance_type="one", max=5)


class Silent(WorldPools):
    """A cloud that sells as the world does, and says nothing of an instance."""

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """Nothing."""
        return None


class Hung(WorldPools):
    """A cloud that does not answer what it is asked of an instance."""

    def __init__(self, world: Any, answers: Event) -> None:
        super().__init__(world)
        self._answers = answers

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """What the world says, once it answers."""
        self._answers.wait()
        return super().instance(pool, instance)


class Posted(Doomed):
    """A node with ten hours of unsaved work on it, about which somebody posts what the cloud never said."""

    def __init__(
        self, pool: PoolPolicy = SPOT, *, silent: bool = False, pods: Sequence[dict[str, Any]] = ({},)
    ) -> None:
        super().__init__(pool, pods=pods)
        self.minutes(60)
        self.outbox.sent.clear()
        if silent:
            self.deps = replace(self.deps, pools=Silent(self.world))

    def post(self, kind: NoticeKind, said: float, goes: float | None, **fields: Any) -> Answer:
        """A notice that says it is so many seconds old (or younger, or to come), and when the node goes."""
        now = self.world.clock.now()
        deadline = None if goes is None else now + timedelta(seconds=goes)
        at = now + timedelta(seconds=said)
        message = InterruptionNotice(
            cluster="c", instance="n1", kind=kind, deadline=deadline, at=at, **{"cloud": "world", **fields}
        )
        return interrupt(self.deps, message)

    @property
    def harmed(self) -> tuple[int, int, int]:
        """What a false notice must not do: nodes bought beside the first, given back, pods evicted."""
        return self.world.launches - 1, self.world.terminations, self.world.interruptions

    @property
    def told(self) -> list[str]:
        """What people were told of interruptions."""
        return [a.why for a in self.alerts if a.kind == "interruption"]

    @property
    def said(self) -> list[str]:
        """What people were told that comes of them."""
        return [a.next for a in self.alerts if a.kind == "interruption"]


DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("pool", "silent", "kind", "said", "goes", "cloud", "why"),
    [
        pytest.param(BOUGHT, False, "spot-interruption", -4 * DAY, -4 * DAY + 120, "aws", "sends no spot-interruption",
                     id="a sample of four days ago, for an on-demand node"),
        pytest.param(BOUGHT, True, "spot-interruption", 0, 120, "aws", "sends no spot-interruption to on-demand",
                     id="a fresh one that only spot gets, for an on-demand node"),
        pytest.param(BOUGHT, True, "rebalance", 0, None, "aws", "sends no rebalance", id="a rebalance for on-demand"),
        pytest.param(BOUGHT, True, "preempted", 0, None, "gcp", "sends no preempted", id="a preemption for on-demand"),
        pytest.param(SPOT, True, "lifecycle", 0, 120, "gcp", "gcp sends no lifecycle", id="a cloud that sends no such"),
        pytest.param(SPOT, False, "spot-interruption", 0, 120, "aws", "the cloud says that it runs on",
                     id="forged to the second, for a spot node"),
        pytest.param(BOUGHT, False, "scheduled-change", 0, 900, "aws", "the cloud says that it runs on",
                     id="forged maintenance"),
        pytest.param(SPOT, True, "spot-interruption", -HOUR, -HOUR + 120, "aws", "is over, and the node is still there",
                     id="replayed an hour later"),
        pytest.param(SPOT, True, "lifecycle", -1.1 * HOUR, None, "aws", "no hook waits so long",
                     id="a hook's word of more than an hour ago"),
        pytest.param(SPOT, True, "spot-interruption", -2 * HOUR, 120, "aws", "and the instance began",
                     id="said before the node began, of an older one of its name"),
        pytest.param(SPOT, True, "preempted", -2 * HOUR, None, "gcp", "and the instance began",
                     id="a preemption of an older one of its name"),
        pytest.param(SPOT, True, "spot-interruption", HOUR, HOUR + 120, "aws", "60 min ahead", id="dated ahead"),
        pytest.param(SPOT, True, "scheduled-change", 0, 400 * DAY, "aws", "no time of a notice",
                     id="maintenance in a year"),
        pytest.param(SPOT, False, "preempted", 0, None, "gcp", "the cloud says that it runs on",
                     id="a preemption of a node that runs on"),
        pytest.param(SPOT, False, "state-change", 0, None, "aws", "the cloud says that it runs on",
                     id="a termination of a node that runs on"),
    ],
)  # fmt: skip
def test_an_untrue_notice_does_nothing_and_is_told(
    pool: PoolPolicy, silent: bool, kind: NoticeKind, said: float, goes: float | None, cloud: str, why: str
) -> None:
    """Nothing is bought, evicted or given back, the node takes pods, and people read once why it is not believed."""
    stage = Posted(pool, silent=silent)
    for _ in range(3):  # However often it is delivered.
        stage.post(kind, said, goes, cloud=cloud)
    stage.until(300)
    assert stage.outcome == "disproved"
    assert stage.harmed == (0, 0, 0)
    assert not stage.world.nodes["n1"].cordoned
    assert why in stage.told[0]
    assert len({alert.fingerprint for alert in stage.alerts if alert.kind == "interruption"}) == 1


@pytest.mark.parametrize("year", [1970, 2200])
@pytest.mark.parametrize("kind", ["spot-interruption", "rebalance", "state-change", "scheduled-change", "lifecycle"])
def test_a_time_that_cannot_be_is_told(kind: NoticeKind, year: int) -> None:
    """The earliest and the latest year that are read at all cost nothing, and are told."""
    stage = Posted(silent=True)
    at = datetime(year, 1, 2, tzinfo=UTC)
    stage.deliver(kind, deadline=at, fields={"at": at, "cloud": "world"})
    assert (stage.outcome, stage.harmed) == ("disproved", (0, 0, 0))
    assert str(year) in stage.told[0]


def test_what_nobody_confirms_is_evicted_as_late_as_can_be() -> None:
    """Cordoned and asked to save at once; evicted its grace and the margin before the deadline, not sooner; then the
    pod waits for its node, which is neither replaced nor given back, and opens when it was not taken."""
    stage = Posted(silent=True, pods=[SAVES])
    begin = stage.world.now_s
    answer = stage.post("spot-interruption", 0, 120)
    assert answer.did[0] == "cordoned n1"
    stage.until(75)
    assert stage.world.running
    stage.until(40)
    assert [t for t, _ in stage.of("stop")] == [begin + 80]
    for _ in range(14):
        stage.until(10)
        stage.tick()
        stage.event(stage.pods[0])
    assert (stage.harmed, stage.outcome, len(stage.world.running)) == ((0, 0, 1), "disproved", 1)
    assert "nobody confirms it" in stage.said[0]


def test_a_notice_of_a_machine_that_boots_is_no_proof_once_it_is_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker is lost before the end, and a pod binds meanwhile: nobody confirms it, and nothing is given back."""
    stage = Posted(silent=True)
    stage.start("late")
    stage.minutes(1)
    (boots,) = set(stage.world.nodes) - {"n1"}

    answers = [None]

    def lost(*_: object) -> None:
        if not answers:
            raise Unavailable("the store is gone for a moment")
        answers.pop()

    now = stage.world.clock.now()
    goes = now + timedelta(seconds=400)
    notice = InterruptionNotice(cluster="c", instance=boots, kind="lifecycle", cloud="world", at=now, deadline=goes)
    monkeypatch.setattr(interruption_records, "last_filed", lost)
    with pytest.raises(Unavailable):
        interrupt(stage.deps, notice)
    monkeypatch.undo()
    stage.wait(300)  # Nobody looks.
    assert len(stage.world.running) == 2
    stage.world.evictions.disruptions["ml"] = 0
    stage.until(250)
    assert (stage.harmed, stage.world.nodes[boots].cordoned) == ((1, 0, 0), False)


def test_what_nobody_confirms_buys_nothing() -> None:
    """With twenty minutes ahead new pods bind for eighteen of them, and no replacement is ever asked for."""
    stage = Posted(silent=True)
    stage.post("scheduled-change", 0, 1200)
    stage.until(1030)
    assert not stage.world.nodes["n1"].cordoned
    stage.until(30)
    assert stage.world.nodes["n1"].cordoned
    stage.until(500)
    assert (stage.harmed, stage.outcome, len(stage.world.running)) == ((0, 0, 1), "disproved", 1)


def test_a_node_with_work_on_it_is_not_given_back_for_what_nobody_confirms() -> None:
    """A disruption budget holds for good: past the deadline the notice is untrue, and the node takes pods again."""
    stage = Posted(silent=True)
    stage.world.evictions.disruptions["ml"] = 0
    stage.post("spot-interruption", 0, 120)
    assert stage.world.nodes["n1"].cordoned
    stage.until(250)
    assert (stage.outcome, stage.harmed[1:]) == ("disproved", (0, 0))
    assert not stage.world.nodes["n1"].cordoned
    assert "is over, and the node is still there" in stage.told[-1]


def test_a_preemption_that_nobody_confirms_waits_for_its_node() -> None:
    """The node goes on being ready: nothing is bought for it, and after five minutes it is untrue."""
    stage = Posted(silent=True)
    stage.post("preempted", 0, None, cloud="gcp")
    stage.until(120)
    assert stage.outcome == ""
    stage.until(240)
    assert (stage.outcome, stage.harmed) == ("disproved", (0, 0, 0))


@pytest.mark.parametrize(
    ("kind", "pool"),
    [
        ("lifecycle", BOUGHT),
        ("scheduled-change", BOUGHT),
        ("capacity-reservation", BOUGHT),
        ("spot-interruption", SPOT),
    ],
)
def test_what_the_cloud_says_too_is_carried_through(kind: NoticeKind, pool: PoolPolicy) -> None:
    """Of on-demand and of spot nodes: replaced, evicted, given back by the deadline, as it is said."""
    stage = Posted(pool)
    stage.notice(kind)
    stage.until(115)
    assert (stage.outcome, stage.harmed) == ("released", (1, 1, 1))


def test_the_clouds_deadline_counts() -> None:
    """Who names an earlier end than the cloud does gets nothing evicted sooner."""
    stage = Posted()
    begin = stage.world.now_s
    stage.world.interrupt("n1", 600)
    stage.post("spot-interruption", 0, 45)
    stage.until(500)
    assert stage.world.interruptions == 0
    stage.until(100)
    assert [t for t, _ in stage.of("terminate")] == [begin + 600 - 10 - 30]


def test_a_nodes_own_mark_confirms() -> None:
    """The cloud cannot be asked, and GKE's taint on the node says so: it is given back once all is saved."""
    stage = Posted(silent=True, pods=[SAVES])
    machine = stage.world.nodes["n1"].machine
    mark = Taint(key="cloud.google.com/impending-node-termination", effect="NoSchedule")
    stage.world.nodes["n1"].machine = msgspec.structs.replace(
        machine, pool=msgspec.structs.replace(machine.pool, taints=(mark,))
    )
    stage.world.nodes["n1"].value = None
    begin = stage.world.now_s
    stage.post("spot-interruption", 0, 120, cloud="gcp")
    stage.until(60)
    assert [t for t, _ in stage.of("terminate")] == [begin + 30]


@pytest.mark.parametrize("first", ["the false one", "the true one"])
def test_a_true_notice_is_heard_whatever_is_posted_beside_it(first: str) -> None:
    """Before it or after it comes a false one: the true one is carried through."""
    stage = Posted(pods=[SAVES])
    if first == "the false one":
        stage.post("spot-interruption", -600, -480)
        stage.wait(5)
        stage.notice()
    else:
        stage.notice()
        stage.wait(5)
        stage.post("spot-interruption", 1, 10)
        stage.post("spot-interruption", -600, -480)
    stage.until(110)
    assert (stage.outcome, stage.harmed) == ("released", (1, 1, 1))
    (job,) = [*stage.world.pending.values(), *stage.world.running.values()]
    assert job.saved_s > HOUR - 60


def test_a_cordon_that_is_not_ours_stays() -> None:
    """A node that a budget keeps closed is not opened when a notice about it turns out to be untrue."""
    stage = Posted()
    node_marks.hold(stage.deps, "n1", "budget", "its budget has no room")
    stage.post("spot-interruption", 0, 120)
    stage.until(10)
    assert stage.outcome == "disproved"
    assert stage.world.nodes["n1"].cordoned


def test_with_the_store_down_a_false_notice_evicts_nobody() -> None:
    """What is saved without the store is saved for a notice that may be true."""
    stage = Posted()

    class Down:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("the store does not answer")

    stage.deps = replace(stage.deps, state=Down())
    for _ in range(12):
        with pytest.raises(Unavailable):
            stage.post("spot-interruption", -stage.world.now_s + 4000, 120)
        stage.wait(10)
    assert (stage.harmed, stage.world.nodes["n1"].cordoned) == ((0, 0, 0), False)


def test_a_cloud_that_hangs_is_not_waited_for() -> None:
    """No answer in time is none, and the question goes on by itself."""
    stage = Posted()
    answers = Event()
    stage.deps = replace(stage.deps, pools=Hung(stage.world, answers))
    hurried = verify_notice.Questions(stage.deps, 0.01)
    assert hurried.ask("p", "n1") is None
    answers.set()
    assert hurried.ask("p", "n1") is None  # A hundred rescues of one look wait no longer than one.
    assert verify_notice.Questions(stage.deps, 60).ask("p", "n1") is not None


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(
        ["spot-interruption", "capacity-reservation", "scheduled-change", "lifecycle", "state-change", "preempted"]
    ),
    cloud=st.sampled_from(["aws", "gcp", "azure", "world"]),
    pool=st.sampled_from([SPOT, BOUGHT]),
    said=st.floats(-3 * DAY, 3 * DAY),
    goes=st.none() | st.floats(-DAY, DAY),
)
def test_no_notice_harms_what_its_cloud_says_runs_on(
    kind: NoticeKind, cloud: str, pool: PoolPolicy, said: float, goes: float | None
) -> None:
    """Whatever is posted, with whatever times: nothing is bought, evicted or given back for it."""
    stage = Posted(pool)
    stage.post(kind, said, goes, cloud=cloud)
    for _ in range(20):
        stage.wait(20)
        go_on(stage.deps)
    assert stage.harmed == (0, 0, 0)
    assert not stage.world.nodes["n1"].cordoned


def test_an_end_that_was_over_when_it_came_evicts_nobody() -> None:
    """Delivered a minute after its deadline: the node is closed and watched, and opened when it is still there."""
    stage = Posted(silent=True)
    stage.post("spot-interruption", -180, -60)
    stage.until(30)
    assert stage.world.nodes["n1"].cordoned
    stage.until(60)
    assert (stage.outcome, stage.harmed, stage.world.nodes["n1"].cordoned) == ("disproved", (0, 0, 0), False)


def test_a_hook_that_is_told_late_is_waited_for_all_the_same() -> None:
    """A lifecycle action ten minutes old, without a deadline: its group waits, and two minutes are taken from now."""
    stage = Posted(silent=True)
    begin = stage.world.now_s
    stage.post("lifecycle", -600, None)
    stage.until(115)
    assert [t for t, _ in stage.of("stop")] == [begin + 80]


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(["spot-interruption", "scheduled-change", "lifecycle"]),
    said=st.floats(-900, 300),
    goes=st.floats(-600, 250),
)
def test_what_nobody_confirms_evicts_no_sooner_than_a_true_one_must(kind: NoticeKind, said: float, goes: float) -> None:
    """Whatever the times: no eviction before the grace and the margin of a deadline that lay ahead."""
    stage = Posted(silent=True)
    begin = stage.world.now_s
    stage.post(kind, said, goes, cloud="aws")
    for _ in range(60):
        stage.wait(5)
        go_on(stage.deps)
        if stage.world.interruptions:
            break
    if stage.world.interruptions:
        assert goes > 0
        assert stage.world.now_s - begin >= goes - 40
    if goes <= 0:
        assert stage.harmed == (0, 0, 0)


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_a_mode_that_does_not_act_tells_what_is_untrue_too(mode: Any) -> None:
    """Nothing is advised for a false notice: people read that it is one."""
    stage = Posted()
    stage.deps = replace(stage.deps, mode=mode)
    stage.post("spot-interruption", 0, 120)
    assert stage.outcome == "disproved"
    assert "the cloud says that it runs on" in stage.told[0]
    assert not [alert for alert in stage.alerts if alert.kind != "interruption"]


def test_a_false_notice_hides_no_person_who_opened_the_node() -> None:
    """It was being given back, its call's answer is lost, and somebody opened it: it is kept for an hour all the same,
    though the notice closed it until its cloud had said that it runs on."""
    stage = Posted()
    node_marks.hold(stage.deps, "n1", "release", "idle", by="1")
    stage.wait(60)
    stage.world.open_by_hand("n1")
    stage.wait(60)
    stage.post("spot-interruption", 0, 120)
    node_marks.lift(stage.deps, "n1", "release", by="1")
    rests, _ = node_marks.settle(stage.deps, stage.deps.cluster.observe().nodes, (), stage.deps.now())
    assert (list(rests), stage.world.nodes["n1"].cordoned) == (["n1"], False)
