"""Spare nodes worth their price: kept, and bought before they are asked for, by what the pool's history says."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_fleet import NOW, T4, fate, node, plan, pod, policy

from pilotlight.decide.nodes.spares.demand_rates import (
    ENOUGH,
    HALF_LIVES_S,
    LEVELS,
    MEMORY_OF_SPELLS,
    MOST,
    MOST_COMING,
    Outlook,
    add_demand,
    at_work,
    has_learned,
    lead_s,
    return_idle,
)
from pilotlight.decide.nodes.spares.spare_nodes import Spares
from pilotlight.facts.memory import Hits, Memory
from pilotlight.units import HOUR, clock_seconds

LEAD_S = lead_s(T4)
NOW_S = clock_seconds(NOW)


def history(every_s: float, at_once: int = 1, days: float = 3, to_s: float = NOW_S) -> Hits:
    """Demand that came regularly up to now, ``at_once`` nodes each time."""
    hits: Hits | None = None
    for step in range(int(days * 24 * HOUR / every_s), -1, -1):
        hits = add_demand(hits, at_once, at_once, to_s - step * every_s, LEAD_S)
    assert hits is not None
    return hits


def spares(hits: Hits, wait: str, after_s: float = 0) -> Spares:
    """Those of a pool whose node costs $1 an hour."""
    return Spares(T4, hits, Decimal(wait), NOW + timedelta(seconds=after_s))


@pytest.mark.parametrize("every_s", [300, 900, 3600])
def test_the_rate_is_learned(every_s: float) -> None:
    """Of a demand every so often the first spare is hit as often, while it is there: not while it is replaced."""
    there = 1 - LEAD_S / every_s
    assert spares(history(every_s), "9").hits_per_hour(1) == pytest.approx(HOUR / every_s / there, rel=0.3)


KEPT = {
    "one at a time, a wait worth much": (1, "100", 1),
    "one at a time, a wait worth little": (1, "0.1", 0),
    "three at a time": (3, "100", 3),
    "seventy at a time: no more than are considered": (MOST + 6, "100", MOST),
}


@pytest.mark.parametrize(("at_once", "wait", "kept"), KEPT.values(), ids=KEPT.keys())
def test_how_many_pay_for_themselves(at_once: int, wait: str, kept: int) -> None:
    """As many spares as come at once, where their wait is worth more than their price."""
    assert spares(history(900, at_once, days=0.5), wait).count == kept


def bursts(sizes: Sequence[int], every_s: float = 5, apart_s: float = 2 * HOUR) -> Hits:
    """Bursts in which a node is asked for every so often, the last node of the last one just now."""
    hits, at_s = Hits(at=NOW_S - len(sizes) * apart_s), NOW_S
    for number, size in enumerate(sizes):
        for step in range(size):
            at_s = NOW_S - (len(sizes) - 1 - number) * apart_s - (size - 1 - step) * every_s
            hits = add_demand(hits, 1, 1, at_s, LEAD_S)
    return hits


def test_what_follows_on_a_burst_is_learned_by_how_large_it_has_grown() -> None:
    """Where bursts come to thirty nodes the first few call for most of the rest; where they end at three, nothing."""
    large, small = [30] * 12, [3] * 12
    assert 16 <= spares(bursts([*large, 4]), "3").count <= 26
    assert spares(bursts([*small, 4]), "3").count <= 1
    assert spares(bursts([*large, 4]), "0.01").count == 0


def test_what_a_burst_calls_for_goes_when_the_burst_is_over() -> None:
    """Spares bought into a burst are judged again as it shrinks, and let go a lead time after its last demand."""
    hits = bursts([*[30] * 12, 8])
    first = spares(hits, "3")
    assert first.count > first.steady
    assert first.paying_until(first.count) == NOW + timedelta(seconds=LEAD_S - 7 * 5)
    assert "% x 95 s x ($3.00 - $1.00)/h >" in first.explain(first.count)
    assert spares(hits, "3", LEAD_S).count == spares(hits, "3", LEAD_S).steady


def test_demand_of_one_moment_says_nothing_of_what_follows() -> None:
    """Twenty nodes asked for at once, twice over, are one demand: none of them follows on another."""
    hits = Hits(at=NOW_S - 20 * HOUR)
    for hour in range(19, -1, -1):
        for _ in range(2):
            hits = add_demand(hits, 10, 10, NOW_S - hour * HOUR, LEAD_S)
    assert {share for past in hits.followed for share in past.shares[LEVELS.index(2) :]} <= {0.0}


def test_in_a_stream_of_demand_the_deep_spares_pay_too() -> None:
    """Where a node is asked for every 20 s the first spares are hardly ever there: those behind them pay."""
    assert spares(history(20, days=0.1), "30").count >= LEAD_S / 20


def test_a_node_that_falls_idle_stands_in_for_one_on_its_way() -> None:
    """Demand that the next node to fall idle serves never asks for a second spare."""
    hits: Hits | None = None
    for step in range(60):
        at_s = NOW_S - HOUR + step * 60
        hits = return_idle(add_demand(hits, 1, 1, at_s, LEAD_S), 1, at_s + 30)
    assert hits is not None
    assert len(hits.rates) == 1
    assert spares(hits, "100").count == 1


def test_a_burst_of_minutes_is_foretold_by_minutes_and_steady_days_by_days() -> None:
    """Each pool's own past says which half-life counts."""
    bursts: Hits | None = None
    for day in range(12):
        for step in range(40):
            at_s = NOW_S + day * 7200 + step * 15
            bursts = return_idle(add_demand(bursts, 1, 1, at_s, LEAD_S), 1, at_s + 10)
    steady = history(2 * HOUR, days=20)
    assert bursts is not None
    short, long = sum(Outlook(bursts).weights()[:2]), sum(Outlook(steady).weights()[3:])
    assert (short > 0.9, long > 0.9) == (True, True)


def test_what_one_is_worth_is_scaled_by_its_class_and_by_how_many_wait() -> None:
    """A gang of four nodes is one job: each is worth a quarter of a wait; a node for four jobs is worth four."""
    gangs, shared = Hits(at=NOW_S), Hits(at=NOW_S)
    for _ in range(60):
        gangs, shared = add_demand(gangs, 4, 1, NOW_S, LEAD_S), add_demand(shared, 1, 4, NOW_S, LEAD_S)
    assert gangs.worth == pytest.approx(0.25, rel=0.1)
    assert shared.worth == pytest.approx(4, rel=0.1)
    assert float(spares(shared, "2").wait) == pytest.approx(4, rel=0.1)


@given(
    st.lists(st.tuples(st.floats(0, 5000), st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=30),
    st.integers(1, 300),
)
def test_what_is_learned_is_bounded(gaps: list[tuple[float, int, int]], wait: int) -> None:
    """No more is kept where a wait is worth less, nor than ever came at once; shares and weights stay shares."""
    hits, now_s = Hits(at=NOW_S), NOW_S
    for gap_s, nodes, back in gaps:
        now_s += gap_s
        hits = return_idle(add_demand(hits, nodes, nodes, now_s, LEAD_S), back, now_s)
    assert hits.count == len(gaps)
    assert len(hits.coming) <= MOST_COMING
    assert len(hits.rates) <= MOST
    assert len({window.size for window in hits.windows}) == len(hits.windows) <= MOST_COMING.bit_length()
    assert len(hits.followed) <= MOST_COMING.bit_length()
    assert hits.spells <= MEMORY_OF_SPELLS
    assert all(0 <= share <= 1 for past in hits.followed for share in past.shares)
    assert all(0 <= share <= 1.0000001 for row in hits.there for share in row)
    assert sum(Outlook(hits).weights()) == pytest.approx(1)
    few, many = (spares(hits, str(w), now_s - NOW_S).count for w in (wait, wait + 1))
    assert few <= many <= max(len(hits.rates), LEVELS[-1])


@example([(3600.0, 1)] * 40, 50)
@given(
    st.lists(st.tuples(st.floats(0.5, 20_000), st.integers(1, 6)), min_size=ENOUGH, max_size=40), st.integers(1, 300)
)
def test_idling_after_the_last_hit_costs_at_most_twice_what_the_hits_could_save(
    gaps: list[tuple[float, int]], wait: int
) -> None:
    """Whatever came: from a pool's last hit on, idle dollars <= 2 x nodes x (price x boot + wait x lead)."""
    hits, now_s = Hits(at=NOW_S), NOW_S
    for gap_s, nodes in gaps:
        now_s += gap_s
        hits = add_demand(hits, nodes, nodes, now_s, LEAD_S)
    at_s, idle_usd = 0.0, 0.0
    first = most = spares(hits, str(wait), now_s - NOW_S).count
    while most:
        now = spares(hits, str(wait), now_s - NOW_S + at_s)
        end_s = clock_seconds(now.paying_until(now.count)) - now_s if now.count else at_s
        idle_usd += now.count * float(T4.usd_per_hour) * max(end_s - at_s, 1.0) / HOUR
        at_s, most = max(end_s, at_s + 1.0), now.count
    assert idle_usd <= 2 * first * float(spares(hits, str(wait)).usd_per_hit) + first * 0.01


def test_a_node_that_pays_for_itself_stays_and_the_others_go_at_once() -> None:
    """With a busy history one idle node stays lit however long it idles, with its sum; the second goes at once."""
    rules = policy([T4], value_of_wait=Decimal(100))
    memory = Memory(hits={"t4": history(900)})
    lit = [node("a", idle_s=7000), node("b", idle_s=1)]
    both = plan(nodes=lit, offerings=[T4], rules=rules, memory=memory)
    assert [n.node for n in both.releases] == ["a"]
    assert "would not pay for itself: hit 0" in fate(both, "a")[1]
    one = plan(nodes=[lit[0]], offerings=[T4], rules=rules, memory=memory)
    assert fate(one, "a")[0] == "keep"
    assert "x 190 s x ($100.00 - $1.00)/h > $1.00/h" in fate(one, "a")[1]
    at = one.look_again_at
    assert at is not None
    assert not plan(nodes=[lit[0]], offerings=[T4], rules=rules, memory=memory, now=at - timedelta(seconds=5)).releases
    assert plan(nodes=[lit[0]], offerings=[T4], rules=rules, memory=memory, now=at).releases


def test_a_spare_is_bought_before_it_is_asked_for() -> None:
    """A pool whose spare pays for itself and that has none gets one, with its sum; one on its way is enough."""
    rules, memory = policy([T4], value_of_wait=Decimal(100)), Memory(hits={"t4": history(900)})
    made = plan(offerings=[T4], rules=rules, memory=memory)
    assert [(buy.pool, buy.count, buy.demands) for buy in made.buys] == [("t4", 1, ())]
    assert "1 spare pays for itself: the last is hit" in made.buys[0].why
    booting = node("n", ready=False, created_at=NOW)
    assert not plan(nodes=[booting], offerings=[T4], rules=rules, memory=memory).buys


def test_spares_pay_by_waits_alone_and_the_first_dollar_an_hour_does_not_count() -> None:
    """The boot that a hit saves keeps no spare; one pays from where hits x lead x (value of wait - $1) is its price."""
    hits = history(900)
    rate = spares(hits, "100").hits_per_hour(1) or 0.0
    pays = 1 + HOUR / (rate * LEAD_S)
    found = [spares(hits, f"{value:f}") for value in (pays * 0.95, pays * 1.05)]
    assert [(one.count, one.bought) for one in found] == [(0, 0), (1, 1)]
    assert [spares(history(20, days=0.1), value).count for value in ("0", "1")] == [0, 0]


def test_a_burst_is_bought_for_at_better_odds_where_boots_are_most_of_what_a_hit_saves() -> None:
    """What comes in 52 % of cases pays at $4, not at $3: there a boot for nothing counts 1.47 times."""
    hits = bursts([*[30, 5] * 9, 30, 30, 4])
    assert [share for share in hits.followed[2].shares if share][-1] == pytest.approx(0.52, abs=0.02)
    assert [spares(hits, value).count >= 16 for value in ("3", "4")] == [False, True]


@pytest.mark.parametrize("seed", range(40))
def test_until_when_spares_pay_is_not_after_one_of_them_stopped(seed: int) -> None:
    """However rates fade, also those of spares that are hardly ever there now: each pays up to the moment told."""
    draw, at_s = Random(seed), NOW_S
    hits = Hits(at=NOW_S)
    for _ in range(30):
        at_s = hits.at + draw.choice([1, 5, 20, 60, 300, 2000]) * draw.random()
        hits = return_idle(add_demand(hits, draw.randint(1, 3), 1, at_s, LEAD_S), draw.randint(0, 2), at_s + 1)
    found = spares(hits, "20", hits.at - NOW_S)
    left_s = clock_seconds(found.paying_until(found.steady)) - found.hits.at
    assert all(found.pays(k, max(0.0, left_s - 2)) for k in range(1, found.steady + 1))


def test_a_pod_that_takes_the_spare_on_its_way_has_another_bought() -> None:
    """The demand is counted at that look, once: the next look of the same pods buys and counts nothing."""
    rules, memory = policy([T4], value_of_wait=Decimal(100)), Memory(hits={"t4": history(900)})
    booting = node("n", ready=False, created_at=NOW)
    made = plan([pod("p")], nodes=[booting], offerings=[T4], rules=rules, memory=memory)
    assert [(buy.count, buy.demands) for buy in made.buys] == [(1, ())]
    assert [(one.pool, one.nodes, one.jobs) for one in made.demands] == [("t4", 1, 1.0)]
    later = Memory(hits=memory.hits, counted_to=made.counted_to)
    two = [booting, node("m", ready=False, created_at=NOW)]
    again = plan([pod("p")], nodes=two, offerings=[T4], rules=rules, memory=later)
    assert (again.buys, again.demands) == ((), ())


def rounds(run_s: float, every_s: float = 900, at_once: int = 1) -> Hits:
    """Demand that comes regularly, the last now; its nodes work so long and are idle again."""
    hits: Hits | None = None
    for step in range(40, -1, -1):
        at_s = NOW_S - step * every_s
        hits = add_demand(hits, at_once, at_once, at_s, LEAD_S)
        if step:
            hits = at_work(return_idle(hits, at_once, at_s + run_s), max(0, hits.out - at_once), at_s + run_s)
    assert hits is not None
    return hits


BACK_IN_TIME = {
    "idle before the next comes: its node is kept, none is bought": (rounds(300), 0),
    "idle after the next has come: one is bought": (history(900), 1),
}


@pytest.mark.parametrize(("hits", "count"), BACK_IN_TIME.values(), ids=BACK_IN_TIME.keys())
def test_no_spare_is_bought_in_place_of_a_node_that_comes_back_in_time(hits: Hits, count: int) -> None:
    """Both pools have room for one spare that pays; while a node works it is bought only where that one comes late."""
    found = spares(hits, "100")
    assert (found.count, found.bought) == (1, count)
    rules = policy([T4], value_of_wait=Decimal(100))
    made = plan(offerings=[T4], rules=rules, memory=Memory(hits={"t4": hits}))
    assert sum(buy.count for buy in made.buys) == count


def test_where_nothing_is_at_work_a_spare_is_bought() -> None:
    """Once the node that was to come back is gone, the spare that pays is bought after all."""
    hits = at_work(rounds(300), 0, NOW_S + 60)
    assert spares(hits, "100", 60).bought == 1


def test_a_stated_idle_timeout_is_no_place_for_spares() -> None:
    """Where the policy says how long nodes idle nothing is bought ahead."""
    from pilotlight.facts.policy import PoolPolicy

    pools = {"t4": PoolPolicy(instance_type="T4x1", idle_timeout=60)}
    rules = policy([T4], pools=pools, value_of_wait=Decimal(100))
    assert not plan(offerings=[T4], rules=rules, memory=Memory(hits={"t4": history(900)})).buys


def test_too_little_history_is_none() -> None:
    """A pool with a handful of demands is judged by its break-even, as one without any."""
    few = history(HOUR, days=(ENOUGH - 2) / 24)
    assert not has_learned(few)
    rules = policy([T4], value_of_wait=Decimal(1))
    for memory in (Memory(), Memory(hits={"t4": few})):
        made = plan(nodes=[node("a", idle_s=359)], offerings=[T4], rules=rules, memory=memory)
        assert made.look_again_at == NOW + timedelta(seconds=1)
        assert "break-even" in fate(made, "a")[1]


def test_every_half_life_has_its_place_in_a_history() -> None:
    """What is learned holds one figure a half-life, so that a changed list is a changed record."""
    assert {len(row) for row in history(900).rates} == {len(HALF_LIVES_S)}
