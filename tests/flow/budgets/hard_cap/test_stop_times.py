"""What a pod says it takes to stop never passes a hard cap: it is held for at the purchase, refused, or cut short."""

import re
from decimal import Decimal

import pytest
from cap_stage import CAP, KEEP, STOP, capped, days, pod, says_now
from msgspec.structs import replace

from pilotlight.facts.labels import MOVED
from pilotlight.facts.policy import ClassPolicy
from pilotlight.units import HOUR
from pilotlight.world.world_cluster import WorldCluster

SAYS = {
    "a grace of 8 h": {"grace_s": 8 * HOUR},
    "a grace of 24 h": {"grace_s": 24 * HOUR},
    "a checkpoint of 8 h": {"takes_s": 8 * HOUR},
    "a checkpoint of 24 h": {"takes_s": 24 * HOUR},
    "both of 4 h": {"grace_s": 4 * HOUR, "takes_s": 4 * HOUR},
}


@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS.keys())
@pytest.mark.parametrize("rules", [STOP, KEEP], ids=["may be stopped", "held whole"])
def test_what_cannot_stop_within_what_may_be_held_is_refused(rules: ClassPolicy, says: dict[str, float]) -> None:
    """Six dollars do not last for its stop alone: nothing is bought, and the refusal says what to change."""
    on = capped(rules=rules)
    answer = on.event(pod(on, "a", 20 * HOUR, **says))
    on.minutes(60)
    assert not on.events("launch")
    assert "terminationGracePeriodSeconds" in answer.why
    (told,) = [a for a in on.alerts if a.kind == "refused"]
    assert "to stop: shorten terminationGracePeriodSeconds or pilotlight.dev/checkpoint-takes-seconds" in told.why
    if rules is STOP:
        assert re.search(
            r"would be held in the day from 11-2\d 00:00 UTC \(the node is held for [0-9.]+ h at \$1.00 an hour",
            told.why,
        )


def test_one_pod_of_a_long_grace_costs_only_itself() -> None:
    """Of pods alike one asks for a day to stop: it is refused, and the others get their nodes."""
    on = capped(Decimal(10))
    pod(on, "greedy", HOUR, grace_s=86400.0)
    on.event(pod(on, "a", HOUR))
    on.event(pod(on, "b", HOUR))
    on.minutes(6)
    assert {"uid-a", "uid-b"} <= set(on.world.running)


@pytest.mark.parametrize("lingers", [False, True], ids=["stops at once", "takes all of its grace"])
@pytest.mark.parametrize("grace_s", [30.0, 600.0, 2 * HOUR])
def test_a_long_grace_that_fits_is_bought_for_once_a_day(grace_s: float, lingers: bool) -> None:
    """Work of days under six dollars a day: one launch a day, its whole grace within what is held."""
    on = capped()
    on.world.evictions.lingers = lingers
    on.event(pod(on, "a", 90 * HOUR, grace_s=grace_s))
    on.minutes(24 * 60)
    assert len(on.events("launch")) == 2
    assert max(days(on)) <= CAP
    first = on.events("stop")[0]["t"]
    assert first >= 6 * HOUR - 1200 - (0 if lingers else grace_s)


@pytest.mark.parametrize("lingers", [False, True], ids=["stops at once", "takes all that it is given"])
@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS.keys())
def test_what_a_pod_says_after_it_was_bought_for_moves_no_end(says: dict[str, float], lingers: bool) -> None:
    """It is raised while the pod runs: the node is gone by the end of what is held, and the pod was told how long."""
    on = capped()
    on.world.evictions.lingers = lingers
    on.event(pod(on, "a", 90 * HOUR))
    on.minutes(60)
    says_now(on, grace_s=says.get("grace_s", 30.0), checkpoint_takes_s=says.get("takes_s", 0.0))
    on.minutes(11 * 60)
    assert max(days(on)) <= CAP
    assert on.events("stop")[0]["t"] > 3 * HOUR


def test_a_grace_raised_at_the_last_moment_moves_no_end() -> None:
    """Ten minutes before the end of the cap a pod asks for a day: it gets what is left."""
    on = capped()
    on.world.evictions.lingers = True
    on.event(pod(on, "a", 90 * HOUR))
    on.minutes(5 * 60 + 50)
    says_now(on, grace_s=86400.0, checkpoint_takes_s=86400.0)
    on.minutes(60)
    assert not on.world.nodes
    assert Decimal("5.7") < max(days(on)) <= CAP


@pytest.mark.parametrize("lingers", [False, True], ids=["stops at once", "takes all that it is given"])
@pytest.mark.parametrize(("grace_s", "binds_s"), [(2 * HOUR, 5 * HOUR), (2 * HOUR, 5.5 * HOUR), (4 * HOUR, 5.5 * HOUR)])
def test_a_long_grace_that_binds_late_has_what_is_left(grace_s: float, binds_s: float, lingers: bool) -> None:
    """The node was bought for such a grace, and another pod of it binds by itself near the end of what is held."""
    on = capped()
    on.world.evictions.lingers = lingers
    on.event(pod(on, "a", 1200.0, grace_s=grace_s))
    on.minutes(23)
    pod(on, "b", binds_s - 23 * 60)
    on.minutes(binds_s / 60 - 23)
    pod(on, "c", 90 * HOUR, grace_s=grace_s)
    assert "uid-c" in on.world.running
    on.minutes(12 * 60 - 1 - binds_s / 60)
    (day,) = days(on)
    assert Decimal("5.5") < day <= CAP


def test_a_long_grace_stops_nobody_else_on_the_node_sooner() -> None:
    """Of two pods of one node one asks for a day: the other is not made to leave before its own time has come."""
    on = capped(Decimal(180))
    on.event(on.submit("big", gpus=7, run_s=90 * HOUR))
    on.minutes(5)
    on.submit("small", run_s=90 * HOUR)
    on.minutes(5)
    job = on.world.running["uid-small"]
    on.minutes(30)
    job.placement = [one._replace(demand=replace(one.demand, grace_s=86400.0)) for one in job.placement]
    for node in on.world.nodes.values():
        node.value = None
    on.minutes(7 * 60)
    stops = {r["job"]: r["t"] for r in reversed(on.events("stop"))}
    assert max(days(on)) <= 180
    assert stops["uid-big"] > 5 * HOUR
    assert stops["uid-small"] > 3 * HOUR


def test_a_class_that_may_not_be_stopped_has_its_whole_run_whatever_its_grace() -> None:
    """A run of two hours is not cut short by a grace that was raised to eight."""
    on = capped(rules=KEEP)
    on.event(pod(on, "a", 2 * HOUR - 300, max_run_s=2 * HOUR))
    on.minutes(10)
    says_now(on, grace_s=8 * HOUR, checkpoint_takes_s=8 * HOUR)
    on.minutes(5 * 60)
    assert [job.id for job in on.world.finished] == ["uid-a"]
    assert not on.world.interruptions
    assert max(days(on)) <= CAP


def test_who_is_given_less_than_its_grace_is_told() -> None:
    """The Event on the pod says how much of its grace was left."""
    on = capped()
    on.event(pod(on, "a", 90 * HOUR))
    on.minutes(60)
    says_now(on, grace_s=8 * HOUR)
    on.minutes(6 * 60)
    cluster = on.deps.cluster
    assert isinstance(cluster, WorldCluster)
    told, *_ = [message for _, _, reason, message in cluster.told if reason == MOVED]
    assert "instead of its grace of 8.0 h" in told
    assert "what its budget holds for its node ends" in told
    assert "taken by" not in told
    assert "room" not in told


@pytest.mark.parametrize("says_s", [2 * HOUR - 60, 80 * HOUR], ids=["as its class has it", "of 80 hours"])
def test_a_run_limit_of_its_own_passes_no_written_one(says_s: float) -> None:
    """A pod that binds by itself and says that it runs longer than its class may is stopped when its class's time is
    over and the cap has no more."""
    on = capped(rules=KEEP)
    on.event(pod(on, "a", 1200.0, max_run_s=HOUR))
    on.minutes(23)
    pod(on, "b", 90 * HOUR, max_run_s=says_s)
    on.minutes(23 * 60)
    assert not on.world.nodes
    assert max(days(on)) <= CAP + Decimal("0.005")
