"""An unexpected error costs one object: it is set apart, kept, told once and counted, and everything else goes on."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from isolated_stage import DoorStage, OddError, planted

from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.figures import of_cluster
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.residents import Resident

CAP = 6


def begun(on: DoorStage) -> Counter[str]:
    """How often people were told of each object that cannot be judged."""
    return Counter(alert.subject for alert in on.told if not alert.resolved)


def over(on: DoorStage) -> Counter[str]:
    """How often they were told that it is over."""
    return Counter(alert.subject for alert in on.told if alert.resolved)


def test_a_pod_with_an_endless_grace_costs_only_itself() -> None:
    """Others are served meanwhile and after it, and the hard cap is kept."""
    on = DoorStage("6")
    on.pod("good", run_s=1800)
    on.pod("odd", run_s=20 * HOUR, grace_s=1e12)
    on.play(60, on.count)
    on.pod("late", run_s=600)
    on.play(9 * 60, on.count)
    assert {answer.status for answer in on.answers} == {200}
    assert {"uid-good", "uid-late"} <= set(on.finished())
    assert on.cost() <= CAP


OF_A_POD = {
    "how its node ends": "pilotlight.decide.money.node_end:ending",
    "what its node is committed to": "pilotlight.decide.money.holds:commit_pods",
    "how its hold is moved on": "pilotlight.decide.money.holds:moved_on",
}


@pytest.mark.parametrize("place", OF_A_POD.values(), ids=OF_A_POD)
def test_a_pod_on_a_node_that_cannot_be_judged_costs_only_itself(place: str) -> None:
    """Its node is kept and stopped at the hard cap, others are served meanwhile, and it is told once in ten hours."""
    on = DoorStage("6")
    with planted("uid-odd", place) as met:
        on.pod("good", run_s=1800)
        on.pod("odd", run_s=20 * HOUR)
        on.play(60, on.count)
        on.pod("late", run_s=600)
        on.play(9 * 60, on.count)
    assert met
    assert {answer.status for answer in on.answers} == {200}
    assert {"uid-good", "uid-late"} <= set(on.finished())
    assert 5 < on.cost() <= CAP
    assert begun(on) == over(on) == {"ml/odd": 1}


def test_the_state_and_the_figures_count_each_look() -> None:
    """Each look that sets a pod apart counts one; none does once the pod has gone, and that is told within the hour."""
    on = DoorStage("20")
    with planted("uid-odd", "pilotlight.decide.money.node_end:ending"):
        on.pod("odd", run_s=100 * 60)
        on.play(10)
        counted = sum(on.isolations.counts.values())
        on.play(50)
        assert sum(on.isolations.counts.values()) == counted + 50
        assert list(on.isolations.open) == ["pod ml/odd"]
        (sample,) = [s for s in of_cluster(on.deps) if s.family == "pilotlight_isolated_errors"]
        assert (sample.labels, sample.value) == (("c", "pod", "decide/money/holds"), counted + 50)
        on.play(60)
        assert on.finished() == ["uid-odd"]
        counted = sum(on.isolations.counts.values())
        on.play(60)
        assert sum(on.isolations.counts.values()) == counted
    assert (on.isolations.open, over(on)) == ({}, {"ml/odd": 1})
    assert not on.world.nodes


def test_a_waiting_pod_that_cannot_be_judged_is_not_bought_for() -> None:
    """Nothing is bought for it, the pod beside it is served at once, and it is served once it can be judged."""
    on = DoorStage("40")
    with planted("uid-odd", "pilotlight.decide.place.provision:Provisioner.place"):
        on.pod("odd", run_s=600, gpus=8)
        on.pod("good", run_s=600)
        on.play(50)
        assert on.finished() == ["uid-good"]
        assert begun(on) == {"ml/odd": 1}
        assert on.world.launches == 1
    on.play(70)
    assert on.finished() == ["uid-good", "uid-odd"]
    assert over(on) == {"ml/odd": 1}


ON_A_NODE = {
    "a node's release is weighed": "pilotlight.decide.nodes.scale_down:_Judge._one",
    "the room of a node is worked out": "pilotlight.decide.fit.fit:of_node",
    "a node's facts are summed up": "pilotlight.facts.capacity:digest",
    "a node's runs are learnt": "pilotlight.flow.observe.settle:_worth",
}


@pytest.mark.parametrize("place", ON_A_NODE.values(), ids=ON_A_NODE)
def test_a_node_that_cannot_be_judged_is_kept(place: str) -> None:
    """An idle node that cannot be judged is never released, told once in 50 looks, and released once it can be."""
    on = DoorStage("20")
    on.pod("first", run_s=1800)
    on.pod("second", run_s=600)
    with planted("n2", place) as met:
        on.play(50)
        assert on.nodes("one") == (1 if met else 0)
        assert {answer.status for answer in on.answers} == {200}
        assert begun(on) == ({"node n2": 1} if met else {})
    on.play(65)
    assert not on.world.nodes
    assert begun(on) == over(on)


ON_A_HOLD = {
    "it is moved on": "pilotlight.decide.money.holds:moved_on",
    "its commitment is worked out": "pilotlight.decide.money.holds:commit_pods",
    "it is summed up": "pilotlight.decide.money.budget_limits:held_amount",
    "it is cut": "pilotlight.flow.budgets.budget_room:BudgetRoom.cut",
    "its end is worked out": "pilotlight.decide.money.node_end:ending",
}


@pytest.mark.parametrize("place", ON_A_HOLD.values(), ids=ON_A_HOLD)
def test_a_hold_that_cannot_be_moved_on_stays_held(place: str) -> None:
    """Its dollars stay held, its node ends with them, the cap is kept, and other pods' holds are moved on."""
    on = DoorStage("6")
    on.pod("good", run_s=1800)
    on.pod("odd", run_s=20 * HOUR)
    on.play(5)
    (held,) = [entry.value for entry in HOLD.scan(on.deps.state, "c/") if entry.value.instance == "n2"]
    with planted(held.id, place) as met:
        on.play(50)
        assert met
        assert any(entry.value.id == held.id for entry in HOLD.scan(on.deps.state, "c/"))
        on.pod("late", run_s=600)
        on.play(9 * 60)
    assert {answer.status for answer in on.answers} == {200}
    assert {"uid-good", "uid-late"} <= set(on.finished())
    assert on.cost() <= CAP
    assert max(begun(on).values()) == 1
    on.play(65)
    assert begun(on) == over(on)


@pytest.mark.parametrize(
    "may_move", [("hard-cap",), ()], ids=["a class that a cap stops", "a class with a max_runtime"]
)
@pytest.mark.parametrize("blocked", [True, False], ids=["idle, with a pod that blocks", "with a pod that runs on"])
def test_the_node_of_a_hold_that_cannot_be_judged_ends_with_it(may_move: Any, blocked: bool) -> None:
    """At the end of what is held the node is stopped in order, also where nothing but a pod without a GPU is on it."""
    hours = 24 if may_move else 1
    rules = ClassPolicy(gpu_models="any", idle_timeout=600, max_runtime=hours * HOUR, may_move=may_move)
    on = DoorStage("3", classes={"batch": rules})
    on.pod("odd", run_s=900 if blocked else 90 * HOUR)
    on.play(5)
    (held,) = [entry.value for entry in HOLD.scan(on.deps.state, "c/")]
    if blocked:
        on.world.residents.put("n1", Resident("cache", "local storage"))
    with planted(held.id, "pilotlight.decide.money.holds:moved_on") as met:
        on.play(8 * 60)
    assert met
    assert not on.world.nodes
    assert on.cost() <= 3


OF_A_NODE_NOBODY_BOUGHT = {
    "its classes are read": "pilotlight.decide.money.holds:as_bound",
    "its commitment is worked out": "pilotlight.decide.money.holds:commit_pods",
    "it is moved on": "pilotlight.decide.money.holds:moved_on",
}


@pytest.mark.parametrize("place", OF_A_NODE_NOBODY_BOUGHT.values(), ids=OF_A_NODE_NOBODY_BOUGHT)
def test_a_node_nobody_bought_counts_in_full_before_its_hold_is_written(place: str) -> None:
    """Nothing is bought from the room that it may take, its node ends within the cap, and then others are served."""
    on = DoorStage("6")
    with planted("seen.n1", place) as met:
        on.world.launch("one")
        on.wait(600)
        on.submit("odd", run_s=20 * HOUR)
        on.play(2, on.count)
        on.pod("late", run_s=600)
        on.play(60, on.count)
        assert met
        assert on.world.launches == 1
        on.play(7 * 60, on.count)
        assert 5 < on.cost() <= CAP
        assert "n1" not in on.world.nodes
    assert {answer.status for answer in on.answers} == {200}


def notice(instance: str, on: DoorStage) -> InterruptionNotice:
    """The world takes an instance in two minutes."""
    now = on.deps.now()
    return InterruptionNotice(
        cluster="c", instance=instance, kind="spot-interruption", cloud="world", at=now, deadline=now
    )


def test_a_rescue_that_fails_keeps_no_other_from_being_carried_on() -> None:
    """Of two hard stops one raises at each step: the other evicts its pod in time, and the first is told once."""
    on = DoorStage("6")
    on.pod("one", run_s=20 * HOUR)
    on.pod("two", run_s=20 * HOUR)
    with planted("n1", "pilotlight.decide.interruption.drain_plan:drain_moves") as met:
        on.play(4 * 60)
    assert met
    assert "uid-two" not in on.world.running
    assert [r["node"] for r in on.events("terminate")][:1] == ["n2"]
    assert "pilotlight why " in on.told[0].how
    assert max(begun(on).values()) == 1


OF_A_STOP = {
    "its steps are planned": "pilotlight.decide.interruption.drain_plan:drain_moves",
    "its end is planned": "pilotlight.decide.interruption.drain_plan:_last",
    "who leaves together is worked out": "pilotlight.decide.interruption.drain_plan:groups",
    "what is lost is worked out": "pilotlight.decide.interruption.drain_plan:unsaved_work",
}


@pytest.mark.parametrize("name", ["uid-odd", "n2"], ids=["for the pod", "for the node"])
@pytest.mark.parametrize("place", OF_A_STOP.values(), ids=OF_A_STOP)
def test_a_stop_at_the_cap_that_cannot_be_worked_out_is_made_plainly(place: str, name: str) -> None:
    """Its pod leaves in time and its node goes: the hard cap is kept, and nothing else is stopped."""
    on = DoorStage("6")
    with planted(name, place) as met:
        on.pod("good", run_s=1800)
        on.pod("odd", run_s=20 * HOUR)
        on.play(10 * 60)
    assert met
    assert {answer.status for answer in on.answers} == {200}
    assert on.finished() == ["uid-good"]
    assert 5 < on.cost() <= CAP
    assert not on.world.nodes
    assert max(begun(on).values()) == 1


ON_THE_METER = {
    "seen": "pilotlight.decide.money.metering:metered_node",
    "counted": "pilotlight.decide.money.metering:_advance",
    "summed up": "pilotlight.decide.money.node_hours:_line",
    "shared out": "pilotlight.decide.money.gpu_shares:holdings",
}


@pytest.mark.parametrize("place", ON_THE_METER.values(), ids=ON_THE_METER)
def test_time_that_cannot_be_metered_is_not_lost(place: str) -> None:
    """While one node cannot be metered the other is; afterwards the meter has what both cost, to the cent."""
    on = DoorStage("40")
    on.pod("one", run_s=2 * HOUR)
    on.pod("two", run_s=2 * HOUR)
    on.play(20, on.count)
    with planted("n2", place) as met:
        on.play(50, on.count)
        assert met
        assert {answer.status for answer in on.answers} == {200}
        assert begun(on) == {"node n2": 1}
    on.play(120, on.count)
    assert not on.world.nodes
    (today,) = {answer.body["why"].split(" metered")[0] for answer in on.answers[-1:]}
    assert today == f"${on.cost():.2f}"
    assert over(on) == {"node n2": 1}


OF_A_GONE_NODE = {
    "its life is counted": "pilotlight.decide.money.metering:metered_node",
    "its life is read": "pilotlight.decide.money.metering:stopped_node",
    "its row is compared": "pilotlight.decide.money.metering:_same_but_time",
    "its cost is filed": "pilotlight.decide.money.node_cost:metered_usd",
}


@pytest.mark.parametrize("place", OF_A_GONE_NODE.values(), ids=OF_A_GONE_NODE)
def test_a_gone_node_that_cannot_be_metered_stops_no_other_tick(place: str) -> None:
    """Ticks for money go on while the rows of a node that has gone raise, and then the meter has it to the cent."""
    on = DoorStage("40")
    on.pod("one", run_s=5 * HOUR)
    on.pod("two", run_s=2 * HOUR)
    on.play(60, on.count)
    with planted("n2", place) as met:
        on.play(4 * 60, on.count)
        assert met
        assert {answer.status for answer in on.answers} == {200}
        assert "n2" in {record["node"] for record in on.events("terminate")}
    on.play(60, on.count)
    assert not on.world.nodes
    (today,) = {answer.body["why"].split(" metered")[0] for answer in on.answers[-1:]}
    assert today == f"${on.cost():.2f}"


def test_what_is_no_object_s_fault_fails_as_a_whole() -> None:
    """An error that is of no object is answered as before: the tick fails, nothing is bought or given back."""
    on = DoorStage("20")
    on.pod("one", run_s=600)
    on.play(5)
    nodes = dict(on.world.nodes)
    with pytest.MonkeyPatch.context() as patch:

        def odd(*_: Any, **__: Any) -> None:
            raise OddError("of nobody")

        patch.setattr("pilotlight.flow.observe.settle._sizes", odd)
        on.play(30)
        assert {answer.status for answer in on.answers[-30:]} == {503}
    assert on.world.nodes == nodes
    assert not on.told


def test_the_harness_that_kills_is_not_isolated() -> None:
    """What is no Exception goes through: nobody who ends a worker is set down to a pod."""
    on = DoorStage("20")
    place = "pilotlight.decide.place.provision:Provisioner.place"
    with planted("uid-odd", place, error=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        on.pod("odd")
    assert not on.told
    assert msgspec.to_builtins(on.isolations) == {"counts": {}, "open": {}}
