"""How long spot nodes live by type, zone and hour: what is counted, what is believed, and how much is remembered."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, bought, node, offering, plan, pod, policy

from pilotlight.decide.offers.spot_lifetimes import (
    MOST_AN_HOUR,
    MOST_KEPT,
    PRIOR_AN_HOUR,
    as_lived,
    gave_back,
    learn_from_look,
    learn_from_purchase,
    place,
    survival,
)
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.labels import ZONE
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.offers.spot_history import Lives
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.units import clock_seconds


def spot(zone: str, rate: float = 0.05) -> Offering:
    """A T4 as spot in a zone."""
    labels = {ZONE: zone} if zone else {}
    return offering("t4", "T4", 1, "1", zone=zone, capacity_type="spot", interruptions_per_hour=rate, labels=labels)


A, B = spot("a"), spot("b")


def nodes(count: int, since: datetime = NOW, zone: str = "a") -> list[Node]:
    """Ready spot nodes of a zone."""
    return [node(f"n{n}", A, created_at=since, ready_since=since, zone=zone) for n in range(count)]


def seen(*looks: tuple[float, int], begins: datetime = NOW) -> dict[str, Lives]:
    """What is known after looks, each so many hours after the first and with so many of the first nodes."""
    known: dict[str, Lives] = {}
    for after_h, count in looks:
        known = dict(learn_from_look(known, nodes(count, begins), [A, B], begins + timedelta(hours=after_h)))
    return known


def rate(known: dict[str, Lives], zone: str = "a") -> float:
    """What is believed of a T4 in a zone at any hour."""
    return survival(known, A.instance_type, zone, 0.05).rate


def test_where_nothing_was_seen_the_catalogue_is_believed() -> None:
    """Its rate, and a stated prior where it says nothing."""
    assert survival({}, "T4x1", "a", 0.2).rate == pytest.approx(0.2)
    assert survival({}, "T4x1", "a", 0.0).rate == PRIOR_AN_HOUR


@pytest.mark.parametrize(
    ("taken", "of"),
    [(1, 1), (4, 4), (1, 4)],
    ids=["one of one is one loss", "four of four at once is one loss too", "one of four is a quarter"],
)
def test_what_is_counted_is_the_share_of_a_zone_that_is_taken(taken: int, of: int) -> None:
    """In hours in which the zone had any node, however many."""
    lives = seen((0, of), (1, of), (2, of - taken))[place("T4x1", "a")]
    assert sum(lives.hours) == pytest.approx(2, rel=0.03)
    assert sum(lives.lost) == pytest.approx(taken / of, rel=0.03)


def test_hours_are_counted_in_the_hour_of_the_day_in_which_they_were() -> None:
    """From half past eleven to half past one: half an hour, an hour, half an hour."""
    begins = NOW.replace(hour=11, minute=30)
    lives = seen((0, 1), (2, 1), begins=begins)[place("T4x1", "a")]
    assert [round(lives.hours[h], 1) for h in (10, 11, 12, 13, 14)] == [0, 0.5, 1.0, 0.5, 0]


def test_a_node_that_we_gave_back_was_not_taken() -> None:
    """It is no loss, and one that was launched meanwhile hides none."""
    known = seen((0, 2), (1, 2))
    given_back = dict(gave_back(known, nodes(1)[0]))
    after = learn_from_look(given_back, nodes(1), [A], NOW + timedelta(hours=2))
    assert sum(after[place("T4x1", "a")].lost) == 0
    young = node("young", A, created_at=NOW + timedelta(hours=1.5), ready_since=NOW + timedelta(hours=1.6), zone="a")
    hidden = learn_from_look(known, [nodes(1)[0], young], [A], NOW + timedelta(hours=2))
    assert sum(hidden[place("T4x1", "a")].lost) == pytest.approx(0.5, rel=0.03)


def test_each_level_leans_on_the_next() -> None:
    """A zone's losses of one type make its other types doubtful, not other zones; an hour leans on its type's day."""
    known = seen((0, 1), (1, 0))
    other_type, other_zone = survival(known, "V100x4", "a", 0.05).rate, rate(known, "b")
    assert rate(known) > other_type > 0.05
    assert other_zone == pytest.approx(0.05)
    at_that_hour = survival(known, "T4x1", "a", 0.05, (NOW + timedelta(hours=1)).hour).rate
    assert at_that_hour > rate(known) > survival(known, "T4x1", "a", 0.05, NOW.hour).rate


def test_what_was_seen_fades() -> None:
    """After weeks without a node the catalogue is believed again."""
    known = seen((0, 1), (1, 0), (2, 1), (24 * 60, 1))
    assert sum(known[place("T4x1", "a")].lost) < 0.01


def test_the_zone_whose_nodes_live_longer_is_bought_at_one_price() -> None:
    """Of two zones alike by price the one without losses is chosen; without any history it goes by name."""
    rules = policy([A, B], classes={"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any")})
    waits = [pod("p", workload_class="batch", checkpoint_s=600.0)]
    memory = Memory(lives=seen((0, 1), (1, 0)))
    fresh, learnt = (plan(waits, offerings=[A, B], rules=rules, memory=known) for known in (Memory(), memory))
    assert (fresh.buys[0].zone, learnt.buys[0].zone, bought(learnt)) == ("a", "b", {"t4": 1})
    assert "on spot a checkpoint every 10 min makes" in learnt.pods[0].why


def test_nodes_kept_warm_are_bought_where_they_live_longest() -> None:
    """Not in the zone that is first by name; and where that one rests, in the other."""
    pools = {"t4": PoolPolicy(instance_type="T4x1", capacity_type="spot", spares=SparePolicy(warm=1))}
    short = Backoff(offering=B.name, until=NOW + timedelta(minutes=2), why="out of stock")
    memory = Memory(lives=seen((0, 1), (1, 0)))
    resting = msgspec.structs.replace(memory, backoffs=(short,))
    made = [plan(offerings=[A, B], rules=policy([A], pools=pools), memory=m).buys[0].zone for m in (memory, resting)]
    assert made == ["b", "a"]


def test_safe_lengths_are_those_of_the_zone() -> None:
    """A run that tells no checkpoints is refused the zone that loses nodes, with the sample, and not the other."""
    rules = policy(
        [A], classes={"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any", max_runtime=3 * 3600.0)}
    )
    memory = Memory(lives=seen((0, 1), (0.5, 0)))
    memory = msgspec.structs.replace(
        memory, lives={name: msgspec.structs.replace(lives, lost=(8.0,) * 24) for name, lives in memory.lives.items()}
    )
    told = plan([pod("p", workload_class="batch")], offerings=[A], rules=rules, memory=memory).pods[0]
    assert (told.verdict, told.rejected[0].code) == ("finding", "spot")
    assert "losses in" in told.rejected[0].why


SURE = offering("sure", "T4", 1, "3")
MIXED = {"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any", fallback="allow")}


def often(rate: float) -> Memory:
    """Zone a takes its nodes so often, by a long sample."""
    lives = Lives(at=clock_seconds(NOW), hours=(100.0,) * 24, lost=(100.0 * rate,) * 24)
    return Memory(lives={place("T4x1", "a"): lives})


@pytest.mark.parametrize(
    ("rate", "worth", "fallback", "lit", "pool"),
    [
        pytest.param(0.1, "0", "allow", False, "t4", id="spot costs less: it is bought"),
        pytest.param(0.1, "150", "allow", False, "sure", id="the waits that it makes are worth more than it saves"),
        pytest.param(0.1, "150", "deny", False, "t4", id="who may not fall back stays on spot"),
        pytest.param(0.1, "140", "allow", False, "t4", id="spot is a little cheaper"),
        pytest.param(0.1, "140", "allow", True, "sure", id="who has retreated does not return for a little"),
        pytest.param(0.1, "100", "allow", True, "t4", id="and does for a tenth"),
    ],
)
def test_spot_is_left_where_it_costs_more_and_gone_back_to(
    rate: float, worth: str, fallback: Any, lit: bool, pool: str
) -> None:
    """By dollars per useful hour and what interruptions keep waiting, with room between leaving and returning."""
    classes = {"batch": msgspec.structs.replace(MIXED["batch"], fallback=fallback)}
    rules = policy([A, SURE], classes=classes, value_of_wait=Decimal(worth))
    here = [node("od", SURE, used=1)] if lit else []
    told = plan(
        [pod("p", workload_class="batch", checkpoint_s=600.0)],
        here,
        offerings=[A, SURE],
        rules=rules,
        memory=often(rate),
    )
    assert bought(told) == {pool: 1}
    if pool == "sure":
        assert "on demand" in next(r.why for r in told.pods[0].rejected if r.code == "spot")


def test_what_zones_refused_is_remembered_with_how_long_they_were_away() -> None:
    """Two refusals and a success twenty minutes later: a third was served, and one spell away ended."""
    known: dict[str, Lives] = {}
    for minutes, served in ((0, False), (10, False), (20, True)):
        known = dict(learn_from_purchase(known, A, served, NOW + timedelta(minutes=minutes)))
    lives = known[place("T4x1", "a")]
    assert survival(known, "T4x1", "a", 0.05).up == pytest.approx(1 / 3)
    assert lives.away_h == pytest.approx(1 / 3)
    assert (lives.away, lives.short_since) == (1, 0)


def test_pools_without_zones_learn_nothing() -> None:
    """What names no zone stays with the catalogue's rate, object for object."""
    plain = spot("")
    known = learn_from_look({}, [node("n", plain)], [plain], NOW)
    assert (known, as_lived([plain], seen((0, 1), (1, 0)), NOW)[0] is plain) == ({}, True)


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    """Of more types and zones than are kept those seen last stay."""
    known: dict[str, Lives] = {}
    for n in range(MOST_KEPT + 5):
        known = dict(learn_from_purchase(known, spot(f"z{n:03}"), True, NOW + timedelta(seconds=n)))
    assert (len(known), place("T4x1", "z000") in known) == (MOST_KEPT, False)


def test_a_look_after_which_nothing_is_new_writes_nothing() -> None:
    """What is known is the same object for ten minutes while the same nodes stay."""
    known = seen((0, 2), (1, 2))
    again = learn_from_look(known, nodes(2), [A, B], NOW + timedelta(hours=1, minutes=5))
    assert again == known


@given(st.lists(st.tuples(st.floats(0.001, 30), st.integers(0, 5)), max_size=30))
def test_whatever_is_seen_the_estimate_stays_in_bounds(looks: list[tuple[float, int]]) -> None:
    """Above nothing, at most what is ever believed, and losses never outnumber the looks."""
    at, told = 0.0, []
    for step, count in looks:
        at += step
        told.append((at, count))
    known = seen(*told)
    for hour in (None, 0, 12):
        assert 0 < survival(known, "T4x1", "a", 0.05, hour).rate <= MOST_AN_HOUR
    assert sum(sum(lives.lost) for lives in known.values()) <= len(looks)
