"""The report card: what is met, what is missed, and what is not known."""

from datetime import date
from decimal import Decimal
from math import nan

import pytest

from pilotlight.facts.memory import Tally
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.targets import PodsUse, card, longest_of_95, pods_use, waits_of_day


def tally(*waits_s: float) -> Tally:
    """So many pods, each seen in a second, its node booted in these and bound in ten."""
    found = Tally()
    for boot_s in waits_s:
        found = found.count_duration("detect", 1).count_duration("boot", boot_s).count_duration("bind", 10)
    return found


GRADES = [
    pytest.param("0.9", PodsUse(activity=Decimal("0.8")), (), "fleet use", "72.0%", True, id="held and active"),
    pytest.param(
        "0.99", PodsUse(activity=Decimal("0.95")), (), "fleet use", "94.0%", False, id="too full to take a burst"
    ),
    pytest.param("0.5", PodsUse(), (), "fleet use", "at most 50.0%", False, id="held for too little, whatever pods do"),
    pytest.param("0.9", PodsUse(), (), "fleet use", "at most 90.0%", None, id="held, and nobody measured"),
    pytest.param(None, PodsUse(), (), "fleet use", "-", None, id="nothing was paid for"),
    pytest.param(
        "0.9", PodsUse(memory=Decimal("0.81")), (), "memory of pods' GPUs", "81.0%", True, id="memory is used"
    ),
    pytest.param(
        "0.9", PodsUse(memory=Decimal("0.8")), (), "memory of pods' GPUs", "80.0%", False, id="80 % is not over it"
    ),
    pytest.param("0.9", PodsUse(idle=Decimal("0.2")), (), "pods that idle", "20.0%", False, id="a fifth idles"),
    pytest.param("0.9", PodsUse(), (), "pods that idle", "-", None, id="idling is not measured"),
    pytest.param(
        "0.9", PodsUse(), (200,) * 20, "P95 wait, production", "at most 5 min", True, id="five minutes are quick"
    ),
    pytest.param(
        "0.9", PodsUse(), (1500,) * 20, "P95 wait, production", "at most 30 min", None, id="a bound above the limit"
    ),
    pytest.param("0.9", PodsUse(), (1500,) * 20, "P95 wait, research", "at most 30 min", True, id="research may wait"),
    pytest.param(
        "0.9", PodsUse(), (9000,) * 20, "P95 wait, production", "over 60 min", False, id="longer than all bounds"
    ),
    pytest.param("0.9", PodsUse(), (200,) * 19, "P95 wait, research", "-", None, id="19 waits are too few"),
]


@pytest.mark.parametrize(("held", "seen", "waits", "name", "value", "met"), GRADES)
def test_a_target_is_met_missed_or_not_known(
    held: str | None, seen: PodsUse, waits: tuple[float, ...], name: str, value: str, met: bool | None
) -> None:
    """What nobody measured is not known, and neither is what a bound leaves open."""
    graded = {one.name: one for one in card(Decimal(held) if held else None, seen, [tally(*waits)])}
    assert (graded[name].value, graded[name].met) == (value, met)


@pytest.mark.parametrize(
    ("waits_s", "told"),
    [
        pytest.param((), (0, None), id="nobody"),
        pytest.param((41,), (1, 41), id="one pod, and its own wait"),
        pytest.param((*(70,) * 19, 900), (20, 70), id="one of twenty waits longer"),
        pytest.param((*(70,) * 18, 900, 900), (20, 900), id="two of twenty do"),
    ],
)
def test_the_p95_of_a_day_is_a_wait_that_a_bound_pod_had(
    waits_s: tuple[float, ...], told: tuple[int, float | None]
) -> None:
    """A pod that is seen and still waits for its node is none of them, nor is one of another day."""
    day = date(2026, 7, 1)
    found = Tally().count_look(day, again=False).count_duration("detect", 1).count_duration("decide", 1)
    for wait in waits_s:
        found = found.count_bound(wait)
    assert waits_of_day(found, day) == told
    assert waits_of_day(found, date(2026, 7, 2)) == (0, None)


def test_one_of_twenty_may_wait_longer() -> None:
    """95 of 100 are told, over all clusters together."""
    assert longest_of_95([tally(*[100.0] * 19), tally(3000)]) == 1 + 120 + 10
    assert longest_of_95([tally(*[100.0] * 18), tally(3000, 3000)]) == 1 + 3600 + 10
    assert longest_of_95([]) is None


def test_telemetry_counts_what_was_measured() -> None:
    """A sample that is missing is neither idle nor busy."""
    series = GpuSeries(pod="a/b", activity=[0.0, 0.5, nan, 1.0], memory=[20480, nan, 81920, 61440])
    assert pods_use(Telemetry(start_s=0, step_s=60, series=(series,)), 81920) == PodsUse(
        Decimal("0.5"), Decimal("0.666667"), Decimal("0.333333")
    )
    assert pods_use(Telemetry(start_s=0, step_s=60), 81920) == PodsUse()
