"""Forecasts of spares, set right by how long their pool has been quiet."""

import random
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, T4, fate, node, plan, policy

from pilotlight.decide.nodes.spares.demand_rates import Outlook, add_demand, age_history, lead_s, return_idle
from pilotlight.decide.nodes.spares.quiet_time import LENGTHS_S, REMEMBERED, SPARES, corrections
from pilotlight.decide.nodes.spares.spare_nodes import Spares
from pilotlight.facts.memory import Hits, Memory, Quiet
from pilotlight.units import HOUR, clock_seconds

LEAD_S = lead_s(T4)
NOW_S = clock_seconds(NOW)
DAY = 24 * HOUR


def mornings(days: int, runs: int = 4, run_s: float = 600, pause_s: float = 60) -> Hits:
    """Each day some runs, one soon after the other, and nothing for the rest of it; the last run ends now."""
    hits = None
    starts = [step * (run_s + pause_s) for step in range(runs)]
    last = (days - 1) * DAY + starts[-1] + run_s
    for day in range(days):
        for start in starts:
            at = NOW_S - last + day * DAY + start
            hits = return_idle(add_demand(hits, 1, 1, at, LEAD_S), 1, at + run_s)
    assert hits is not None
    return hits


def test_people_who_come_back_within_minutes_are_foretold_for_minutes() -> None:
    """After a month of mornings a hit within two minutes is likelier than by rates alone, and a later one is rarer."""
    outlook = Outlook(mornings(30))
    assert (outlook.hits_per_hour(1, 60) or 0) > 5 * (outlook.by_rates(1, 60) or 0)
    assert 0 < (outlook.hits_per_hour(1, 250) or 0) < (outlook.by_rates(1, 250) or 0) * 0.6


@pytest.mark.parametrize("every_s", [300, 900, 3600, 14400])
def test_demand_without_memory_is_foretold_as_by_rates(every_s: float) -> None:
    """Where the next demand has nothing to do with the last one a forecast is changed by a third on average at most."""
    drawn, at, hits = random.Random(4), NOW_S, None
    for _ in range(150):
        at += drawn.expovariate(1 / every_s)
        hits = add_demand(hits, 1, 1, at, LEAD_S)
    assert hits is not None
    first = hits.quiets[0]
    assert sum(first.came) / sum(first.foretold) == pytest.approx(1, abs=0.35)


counts = st.lists(st.floats(0, 1e4), min_size=len(LENGTHS_S), max_size=len(LENGTHS_S)).map(tuple)


@given(counts, counts)
def test_a_correction_never_rises_with_the_quiet(foretold: tuple[float, ...], came: tuple[float, ...]) -> None:
    """Whatever was counted, corrections fall with the length of the quiet, above zero, and keep the sum of the hits."""
    right = corrections(Quiet(foretold=foretold, came=came))
    assert all(later <= sooner * (1 + 1e-9) for sooner, later in pairwise(right))
    assert min(right) > 0
    whole = sum(each * (told + 1) for each, told in zip(right, foretold, strict=True))
    assert whole == pytest.approx(sum(came) + len(came), rel=1e-6)


def test_without_hits_a_forecast_is_that_of_the_rates() -> None:
    """A pool of which nothing was counted yet has no corrections."""
    assert set(corrections(Quiet())) == {1.0}


def test_a_quiet_counts_when_it_ends() -> None:
    """A forecast says of an hour from now what it says then, if nothing is asked for meanwhile: looks can wait."""
    hits = mornings(10)
    for after_s in (100.0, 1000.0, 2 * HOUR, 9 * HOUR):
        then = Outlook(age_history(hits, NOW_S + after_s)).hits_per_hour(1)
        assert then == pytest.approx(Outlook(hits).hits_per_hour(1, after_s), rel=0.02)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 5)), min_size=1, max_size=120))
def test_what_is_counted_of_quiets_is_bounded(demands: list[tuple[float, int]]) -> None:
    """Whatever comes, two spares of a pool are counted, ten lengths each, and no more hits than are remembered."""
    at, hits = NOW_S, None
    for gap_s, nodes in demands:
        at += gap_s
        hits = add_demand(hits, nodes, nodes, at, LEAD_S)
    assert hits is not None
    assert len(hits.quiets) <= SPARES
    for quiet in hits.quiets:
        assert sum(quiet.came) <= REMEMBERED
        assert {len(quiet.foretold), len(quiet.came)} <= {0, len(LENGTHS_S)}
        assert min((*quiet.foretold, *quiet.came, 0.0)) == 0


def test_no_spare_is_bought_that_no_longer_pays_when_it_comes() -> None:
    """After a job that is followed within two minutes or not at all, an idle node is kept and none is bought."""
    hits, rules = mornings(30), policy([T4], value_of_wait=Decimal(10))
    spares = Spares(T4, hits, rules.value_of_wait, NOW)
    assert spares.count == 1
    assert spares.paying_until(1) < NOW + timedelta(seconds=LEAD_S)
    memory = Memory(hits={"t4": hits})
    assert plan(offerings=[T4], rules=rules, memory=memory).buys == ()
    assert fate(plan(nodes=[node("a", idle_s=5)], offerings=[T4], rules=rules, memory=memory), "a")[0] == "keep"
