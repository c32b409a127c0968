"""Warm nodes worth their price, learned from how often they would have been taken."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, T4, fate, node, plan, policy

from pilotlight.decide.capacity.warm import ENOUGH, HALF_LIFE_S, learned, saving, seen, worth_keeping
from pilotlight.facts.memory import Hits, Memory
from pilotlight.units import HOUR, clock_seconds

BOOT_S = 180.0
NOW_S = clock_seconds(NOW)


def history(every_s: float, at_once: int = 1, days: float = 3) -> Hits:
    """Demand that came regularly up to now, ``at_once`` nodes each time."""
    hits: Hits | None = None
    for step in range(int(days * 24 * HOUR / every_s), -1, -1):
        hits = seen(hits, at_once, NOW_S - step * every_s, BOOT_S)
    assert hits is not None
    return hits


@pytest.mark.parametrize("every_s", [300, 900, 3600])
def test_the_rate_is_learned(every_s: float) -> None:
    """A demand every so often saves, an hour, its rate times the wait of a boot times the worth of a wait."""
    worth = saving(history(every_s), 1, NOW_S, BOOT_S, Decimal(12))
    assert float(worth) == pytest.approx(12 * HOUR / every_s * BOOT_S / HOUR, rel=0.15)


KEPT = {
    "one at a time, a wait worth much": (1, "100", 1),
    "one at a time, a wait worth little": (1, "0.1", 0),
    "three at a time": (3, "100", 3),
    "a wait worth nothing": (3, "0", 0),
}


@pytest.mark.parametrize(("at_once", "wait", "kept"), KEPT.values(), ids=KEPT.keys())
def test_how_many_pay_for_themselves(at_once: int, wait: str, kept: int) -> None:
    """As many warm nodes as come at once, where their wait is worth more than their price."""
    hits = history(900, at_once)
    assert worth_keeping(hits, NOW_S, BOOT_S, Decimal(1), Decimal(wait)) == kept


def test_demand_fades() -> None:
    """After a half-life without demand a warm node saves half as much."""
    hits = history(900)
    before, after = (saving(hits, 1, NOW_S + s, BOOT_S, Decimal(12)) for s in (0, HALF_LIFE_S))
    assert float(after) == pytest.approx(float(before) / 2)


@given(st.lists(st.tuples(st.floats(0, 5000), st.integers(1, 5)), min_size=1, max_size=30), st.integers(0, 100))
def test_a_further_warm_node_never_saves_more(gaps: list[tuple[float, int]], price: int) -> None:
    """A dearer node is never kept in greater number, and no more are kept than ever came at once."""
    hits, now_s = None, NOW_S
    for gap_s, nodes in gaps:
        now_s += gap_s
        hits = seen(hits, nodes, now_s, BOOT_S)
    assert hits is not None
    assert hits.count == sum(n for _, n in gaps)
    cheap, dear = (worth_keeping(hits, now_s, BOOT_S, Decimal(p), Decimal(50)) for p in (price, price + 1))
    assert dear <= cheap <= len(hits.rates)


def test_a_node_that_pays_for_itself_stays() -> None:
    """With a busy history one idle node stays lit however long it idles, and the second goes after a minute."""
    rules = policy([T4], value_of_wait=Decimal(100))
    memory = Memory(hits={"t4": history(900)})
    lit = [node("a", idle_s=7000), node("b", idle_s=61)]
    both = plan(nodes=lit, offerings=[T4], rules=rules, memory=memory)
    assert [n.node for n in both.releases] == ["a"]
    one = plan(nodes=[lit[0]], offerings=[T4], rules=rules, memory=memory)
    assert fate(one, "a")[0] == "keep"
    assert "pay for themselves" in fate(one, "a")[1]
    assert one.look_again_at is not None


def test_too_little_history_is_none() -> None:
    """A pool with a handful of demands is judged by its break-even, as one without any."""
    few = history(3600, days=(ENOUGH - 2) / 24)
    assert not learned(few)
    rules = policy([T4], value_of_wait=Decimal(1))
    for memory in (Memory(), Memory(hits={"t4": few})):
        made = plan(nodes=[node("a", idle_s=359)], offerings=[T4], rules=rules, memory=memory)
        assert made.look_again_at == NOW + timedelta(seconds=1)
        assert "break-even" in fate(made, "a")[1]
