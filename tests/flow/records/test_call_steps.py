"""Steps: what a worker that stood still may do, what may still land, and what becomes of a lost answer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct
from stage import Stage

from pilotlight.errors import BadRequest, Busy, Unsure
from pilotlight.facts.decisions import CallStep, Plan, Record
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import brake_records, call_steps, lease, ledger, node_marks
from pilotlight.ports.clouds import OPEN, Gate
from pilotlight.world.world_pools import WorldPools


class Cloud(WorldPools):
    """A cloud that loses the answers to so many ``grows`` and ``releases``, ``made`` or not."""

    def __init__(self, stage: Stage, *, made: bool = True) -> None:
        super().__init__(stage.world)
        self.made, self.grows, self.releases = made, 0, 0
        self.sent: list[str] = []
        self.tokens: list[str] = []

    def grow(self, pool: str, to: int, zone: str = "", *, token: str = "", **more: Any) -> PoolState:
        """Grow, or lose the answer."""
        self.sent.append(f"grow {pool} to {to}")
        self.tokens.append(token)
        if self.grows:
            self.grows -= 1
            if self.made:
                super().grow(pool, to, zone, **more)
            else:
                more["gate"](to)
            raise Unsure("the answer is lost")
        return super().grow(pool, to, zone, **more)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Release, or lose the answer."""
        self.sent.append(f"release {instance}")
        if self.releases:
            self.releases -= 1
            if self.made:
                super().release(pool, instance, gate=gate)
            else:
                gate()
            raise Unsure("the answer is lost")
        super().release(pool, instance, gate=gate)


def on_cloud(*, made: bool) -> tuple[Stage, Cloud]:
    """A stage whose cloud can lose answers."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)})
    cloud = Cloud(stage, made=made)
    stage.deps = replace(stage.deps, pools=cloud)
    return stage, cloud


def states(stage: Stage) -> list[str]:
    """The states of all steps of decisions that were filed."""
    return [step.state for record in ledger.filed_records(stage.deps.state, "c") for step in record.steps]


def test_a_purchase_whose_answer_is_lost_counts_as_on_its_way_and_is_adopted() -> None:
    """It came: the next look says so, nothing is bought twice, and people are told of one purchase."""
    stage, cloud = on_cloud(made=True)
    cloud.grows = 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.minutes(5)
    assert stage.world.launches == 1
    assert states(stage) == ["done"]
    assert [a.kind for a in stage.alerts] == ["capacity-grow"]


def test_a_purchase_that_never_lands_is_made_again_once_it_cannot_land_any_more() -> None:
    """While it may land nothing else is asked of its pool; then it is told as not done, and bought anew."""
    stage, cloud = on_cloud(made=False)
    cloud.grows = 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.wait(20)
    waits = stage.tick()
    assert (stage.world.launches, len(cloud.sent)) == (0, 1)
    assert stage.alerts == []
    assert waits.outcome == "seen"
    stage.wait(call_steps.LATE.total_seconds())
    stage.tick()
    assert (stage.world.launches, len(cloud.sent)) == (1, 2)
    assert states(stage) == ["unknown", "done"]


def test_no_pool_is_grown_while_an_earlier_call_may_land() -> None:
    """A size is all that the call names: an earlier one that lands after a later one would take nodes away."""
    stage, cloud = on_cloud(made=False)
    cloud.grows = 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.submit("b")
    stage.submit("c")
    stage.wait(10)
    answer = stage.tick()
    assert cloud.sent == ["grow one to 1"]
    assert "may still land, until 12:00:27" in answer.why


def test_a_hand_that_raises_a_pool_is_not_taken_for_a_call_that_may_still_land() -> None:
    """What a cloud creates by name comes on top of it: nothing more is asked of the pool until that is known."""
    stage, cloud = on_cloud(made=False)
    cloud.grows = 1
    with pytest.raises(Unsure):
        stage.event(stage.submit("a"))
    stage.world.launch("one")
    stage.submit("b")
    stage.wait(10)
    answer = stage.tick()
    assert cloud.sent == ["grow one to 1"]
    assert "may still land" in answer.why
    stage.wait(call_steps.LANDS.total_seconds())
    stage.tick()
    assert cloud.sent == ["grow one to 1", "grow one to 2"]


class Raised(WorldPools):
    """A cloud where a person raises each pool just before our call."""

    def grow(self, pool: str, to: int, zone: str = "", *, token: str = "", **more: Any) -> PoolState:
        """It is that large already."""
        self._world.launch(pool)
        return super().grow(pool, to, zone, **more)


def test_a_pool_that_was_raised_meanwhile_is_not_said_to_be_asked() -> None:
    """Nothing was sent, and nobody is told of a purchase; the node that came serves the pod."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)})
    stage.deps = replace(stage.deps, pools=Raised(stage.world))
    answer = stage.event(stage.submit("a"))
    assert answer.did == ("asked pool one for nothing: nothing was sent: its pool was raised that far meanwhile",)
    assert "buys no one/one/on-demand: nothing was sent" in answer.why
    stage.minutes(5)
    assert stage.world.launches == 1
    assert "uid-a" in stage.world.running
    assert stage.alerts == []
    assert not [message for message in stage.outbox.sent if message.topic == "capacity"]


class Refusing(Cloud):
    """A cloud that refuses what is sent again."""

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """The first answer is lost, every other is no."""
        if self.releases:
            super().release(pool, instance, gate=gate)
        gate()
        self.sent.append(f"release {instance}")
        raise BadRequest("the pool is being repaired")


def test_a_refusal_of_what_is_sent_again_does_not_prolong_the_first_call() -> None:
    """However often it is looked, the node is open again once the first request can no longer land."""
    stage, _ = on_cloud(made=False)
    cloud = Refusing(stage, made=False)
    stage.deps = replace(stage.deps, pools=cloud)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    (node,) = stage.world.nodes.values()
    for _ in range(3):
        assert node.cordoned
        stage.wait(10)
        stage.tick()
    assert "unknown" in states(stage)
    assert not node.cordoned


def test_a_release_whose_answer_is_lost_is_sent_again_to_the_same_node() -> None:
    """It did not land: under its mark the node is given back by the same decision, and told once."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    node = cloud.sent[-1]
    stage.wait(5)
    stage.tick()
    assert cloud.sent[-2:] == [node, node]
    assert not stage.world.nodes
    assert [a.kind for a in stage.alerts] == ["capacity-grow", "capacity-release"]
    assert list(node_marks.every(stage.deps)) == []


def test_a_release_that_may_land_is_not_sent_again_where_a_pod_has_bound() -> None:
    """The node stays closed until the call can no longer land, and is opened then: the pod on it is not touched."""
    stage, cloud = on_cloud(made=False)
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(4)
    cloud.releases = 1
    with pytest.raises(Unsure):
        stage.minutes(12)
    (node,) = stage.world.nodes
    stage.world.cordon(node, on=False)  # It binds as one that tolerates every taint does.
    stage.submit("late", run_s=7200)
    stage.wait(1)
    stage.world.cordon(node)
    assert "uid-late" in stage.world.running
    stage.wait(10)
    stage.tick()
    assert [s for s in cloud.sent if s.startswith("release")] == [f"release {node}"]
    assert not stage.deps.cluster.observe().nodes[0].schedulable
    stage.wait(call_steps.LANDS.total_seconds())
    stage.tick()
    assert stage.deps.cluster.observe().nodes[0].schedulable
    assert "uid-late" in stage.world.running


def recorded(stage: Stage) -> Record:
    """A decision with one planned release, as a worker writes it before its first call."""
    step = CallStep(n=0, call="release", pool="one", target="n1", instance="n1")

    return Record(
        id="1", cluster="c", flow="f", trigger="t", at=stage.deps.now(), status="open", plan=Plan(), steps=(step,)
    )


def test_who_takes_over_revokes_what_is_planned_and_the_old_worker_cannot_send() -> None:
    """However long it stood still, its compare-and-set fails between connecting and the first byte."""
    stage = Stage()
    record = recorded(stage)
    (old,) = call_steps.write_planned(stage.deps, record)
    (new,) = call_steps.taken_over(stage.deps, record)
    assert (new.step.state, new.step.code) == ("revoked", "overtaken")
    with pytest.raises(call_steps.Overtaken):
        old.gate()
    assert not old.let_out


def test_a_step_that_its_worker_had_not_written_yet_cannot_be_written_after() -> None:
    """Between the record and its steps a worker may stand still too."""
    stage = Stage()
    record = recorded(stage)
    call_steps.taken_over(stage.deps, record)
    with pytest.raises(Exception, match="another version"):
        call_steps.write_planned(stage.deps, record)


class Slow:
    """A clock whose stopwatch says that so much time passes at every question."""

    def __init__(self, deps: Deps, seconds: float) -> None:
        self.now = deps.clock.now
        self._seconds = seconds

    def stopwatch(self) -> Callable[[], float]:
        """A watch that has run for as long as it is told."""
        return lambda: self._seconds


@pytest.mark.parametrize(("seconds", "sent"), [(1.9, True), (2.0, False), (600.0, False)])
def test_a_worker_that_stood_still_after_it_was_let_through_sends_nothing(seconds: float, sent: bool) -> None:
    """From the compare-and-set to the first byte pass less than two seconds, or the step is revoked."""
    stage = Stage()
    (sending,) = call_steps.write_planned(replace(stage.deps, clock=Slow(stage.deps, seconds)), recorded(stage))
    if sent:
        sending.gate()
    else:
        with pytest.raises(call_steps.Stalled):
            sending.gate()
    (found,) = call_steps.taken_over(stage.deps, recorded(stage))
    assert (sending.let_out, found.step.state) == (sent, "sent" if sent else "revoked")


def test_a_pause_that_is_written_while_a_call_is_prepared_stops_it() -> None:
    """A worker may stand still between its plan and its call: what a person said meanwhile counts."""
    stage = Stage()
    (sending,) = call_steps.write_planned(stage.deps, recorded(stage))
    brake_records.pause(stage.deps.state, "c", "", "stop", stage.deps.now())
    with pytest.raises(call_steps.Paused, match=r"paused since .*: stop; nothing was sent"):
        sending.gate()
    assert (sending.let_out, sending.step.state, sending.step.code) == (False, "revoked", "paused")


def test_time_since_an_earlier_check_of_the_same_call_counts() -> None:
    """A release rests on a look at the node's pods: two seconds after it that look is too old."""
    stage = Stage()
    (sending,) = call_steps.write_planned(stage.deps, recorded(stage))
    with pytest.raises(call_steps.Stalled):
        sending.gate(ran=lambda: 2.0)
    assert (sending.let_out, sending.step.state) == (False, "revoked")


def test_a_release_that_may_still_land_is_not_revoked_by_the_one_who_sends_it_again() -> None:
    """Its first request may be on its way: a worker that stood still before the second leaves it as sent."""
    stage = Stage()
    (first,) = call_steps.write_planned(stage.deps, recorded(stage))
    first.gate()
    (again,) = call_steps.taken_over(stage.deps, recorded(stage))
    with pytest.raises(call_steps.Stalled):
        again.gate(ran=lambda: 600.0)
    assert again.step.state == "sent"


@pytest.mark.parametrize(
    ("pool", "asked", "beyond"), [("one", 3, 2), ("one", 2, 3), ("eight", 2, 2)], ids=["it came", "it did not", "other"]
)
def test_a_lost_purchase_comes_beyond_what_a_later_one_made_of_a_smaller_pool(
    pool: str, asked: int, beyond: int
) -> None:
    """It was to make the pool two nodes; one that found two, another pool's, or one that was refused moves nothing."""
    stage = Stage()
    made = (("1", "one", 2), ("2", pool, 3))
    steps = [CallStep(n=0, call="grow", pool=of, target="o", to=to) for _, of, to in made]
    records = [
        replace_struct(recorded(stage), id=id, steps=(step,)) for (id, *_), step in zip(made, steps, strict=True)
    ]
    ((lost,), (later,)) = (call_steps.write_planned(stage.deps, record) for record in records)
    lost.gate(2)
    later.gate(asked)
    lost.comes_beyond(later.step, 0)
    lost.comes_beyond(later.step, 1)
    assert (lost.step.to, later.step.to) == (beyond, asked)


def test_a_call_starts_only_where_the_lease_outlasts_it() -> None:
    """A lease with less than the call's deadline and a margin left is renewed first; one that was lost stops it."""
    stage = Stage()
    held = lease.acquire(stage.deps.state, "c", "a")
    assert held is not None
    stage.wait(14)
    held.keep(for_s=50)
    assert held.left_s == 60
    stage.wait(61)
    assert lease.acquire(stage.deps.state, "c", "b") is not None
    with pytest.raises(Busy, match="lost to another"):
        held.keep(for_s=20)


def test_each_purchase_is_named_to_its_cloud_for_good() -> None:
    """The token is the step's own key: two purchases never share one."""
    stage, cloud = on_cloud(made=True)
    for name in ("a", "b"):
        stage.event(stage.submit(name))
        stage.wait(1)
    records = ledger.filed_records(stage.deps.state, "c")
    assert sorted(cloud.tokens) == sorted(f"c/{record.id}/0000" for record in records)
    assert len(set(cloud.tokens)) == 2
