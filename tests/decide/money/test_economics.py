"""The one objective, and what relighting costs."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import offering

from pilotlight.decide.money.economics import (
    billed_cost,
    billed_seconds,
    break_even_s,
    paid_until_s,
    usd_per_useful_hour,
)

BY_SECOND = offering("s", "T4", 1, "3.60")
BY_HOUR = offering("h", "T4", 1, "2", minimum_s=3600, increment_s=3600)

BILLS = {
    "a second is a minute at least": (BY_SECOND, 1, "0.06"),
    "a minute": (BY_SECOND, 60, "0.06"),
    "61.5 seconds are 62": (BY_SECOND, 61.5, "0.062"),
    "an hour": (BY_SECOND, 3600, "3.60"),
    "a minute of a node billed by the hour": (BY_HOUR, 60, "2"),
    "an hour and a second of one": (BY_HOUR, 3601, "4"),
}


@pytest.mark.parametrize(("node", "seconds", "usd"), BILLS.values(), ids=BILLS.keys())
def test_billing_steps(node: object, seconds: float, usd: str) -> None:
    """A node is billed at least its minimum and then by whole increments."""
    assert billed_cost(node, seconds) == Decimal(usd)  # type: ignore[arg-type]


@given(st.floats(0, 1e7), st.sampled_from([60, 3600]), st.sampled_from([1, 60, 3600]))
def test_a_bill_never_covers_less_than_the_life(seconds: float, minimum: float, step: float) -> None:
    """Billed time is at least the life, the minimum, and less than one step more than the larger of them."""
    paid = billed_seconds(offering("x", "T4", 1, "1", minimum_s=minimum, increment_s=step), seconds)
    assert paid >= seconds
    assert minimum <= paid < max(seconds, minimum) + step + 1e-6


OBJECTIVE = {
    "a boot of 180 s, an hour's run, no idle tail": (BY_SECOND, 1, 3600, 0, 1.0, "3.78"),
    "and a 180 s idle tail": (BY_SECOND, 1, 3600, 180, 1.0, "3.96"),
    "two pods share it": (BY_SECOND, 2, 3600, 180, 1.0, "1.98"),
    "half as fast a GPU runs for twice as long": (BY_SECOND, 1, 3600, 0, 0.5, "7.38"),
    "a ten-minute run carries the boot": (BY_SECOND, 1, 600, 0, 1.0, "4.68"),
    "ten minutes on a node billed by the hour": (BY_HOUR, 1, 600, 0, 1.0, "12"),
}


@pytest.mark.parametrize(("node", "pods", "run_s", "idle_s", "speed", "usd"), OBJECTIVE.values(), ids=OBJECTIVE.keys())
def test_dollars_per_useful_hour(node: object, pods: int, run_s: float, idle_s: float, speed: float, usd: str) -> None:
    """Boot, run and idle tail are paid; the useful hours are those of the run at full speed."""
    assert usd_per_useful_hour(node, pods, run_s, idle_s, speed) == Decimal(usd)  # type: ignore[arg-type]


def test_interruptions_cost_run_time() -> None:
    """At one interruption an hour each hour loses half a checkpoint interval, a restore and a boot: 9 minutes."""
    spot = offering("s", "T4", 1, "3.60", interruptions_per_hour=1.0)
    assert usd_per_useful_hour(spot, 1, 3600, 0) == Decimal("3.78") + Decimal("0.54")


EVEN = {
    "no worth of a wait: the boot itself": ("1", "0", 180),
    "a wait worth the price: twice the boot": ("1", "1", 360),
    "a wait worth a tenth of it": ("10", "1", 198),
    "a node that costs nothing": ("0", "5", 180),
}


@pytest.mark.parametrize(("price", "wait", "seconds"), EVEN.values(), ids=EVEN.keys())
def test_break_even(price: str, wait: str, seconds: float) -> None:
    """Idling so long costs what relighting would: its boot, and the wait through it."""
    assert break_even_s(180, Decimal(price), Decimal(wait)) == pytest.approx(seconds)


@pytest.mark.parametrize(("age_s", "until_s"), [(0, 3600), (3599, 3600), (3600, 3600), (3601, 7200)])
def test_paid_until(age_s: float, until_s: float) -> None:
    """A node billed by the hour is paid to the end of the hour it is in."""
    assert paid_until_s(BY_HOUR, age_s) == until_s
