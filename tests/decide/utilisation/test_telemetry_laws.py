"""Laws of telemetry: what is missing, stale, doubled, reset or negative makes no figure up; parts add up."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotlight.decide.utilisation.gpu_waste import waste
from pilotlight.decide.utilisation.idle_pods import idle_pods
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.fragmentation import fragments
from pilotlight.tools.advice.weeks_of_use import Hours, dollars_by_use, total, weeks

STEP = 600.0
MONDAY = datetime(2026, 11, 16, tzinfo=UTC).timestamp()
VALUES = st.lists(st.sampled_from([0.0, 0.02, 0.5, 1.0, nan]), min_size=30, max_size=30)
FLEET = st.lists(VALUES, min_size=1, max_size=5)


def fleet(rows: list[list[float]]) -> Telemetry:
    """Replicas of one service, ten minutes a sample."""
    series = tuple(
        GpuSeries(pod=f"a/s-{n}", device=f"GPU-{n}", activity=row, memory=[1000.0 if v == v else nan for v in row])
        for n, row in enumerate(rows)
    )
    return Telemetry(start_s=MONDAY, step_s=STEP, metric="m", series=series)


@given(FLEET)
@example([[nan] * 30])
def test_waste_is_never_more_than_is_held(rows: list[list[float]]) -> None:
    """Idle, beyond, spare and the rest add up to what is held, none is negative, and what is not there is not held."""
    found = waste(fleet(rows), Decimal("3.06"), 240)
    held = sum(not isnan(row[-1]) for row in rows)
    assert sum(row.held for row in found) == held
    for row in found:
        parts = (row.idle_usd, row.beyond_usd, row.spare_usd, row.rest_usd)
        assert sum(parts) == row.usd_per_hour == Decimal("3.06") * Decimal(row.held)
        assert min(parts) >= 0
        assert 0 <= row.activity <= 1


@given(FLEET, st.data())
def test_samples_that_go_missing_only_take_away(rows: list[list[float]], data: st.DataObject) -> None:
    """No sum of hours grows when samples are lost, and no pod becomes idle by the loss of its own last samples."""
    pod = data.draw(st.integers(0, len(rows) - 1))
    lost = data.draw(st.sets(st.integers(0, 29), min_size=1))
    fewer = [list(row) for row in rows]
    for n in lost:
        fewer[pod][n] = nan
    before, after = total(weeks(fleet(rows))), total(weeks(fleet(fewer)))
    assert after.held <= before.held + 1e-9
    assert after.silent <= before.silent + 1e-9
    if 29 in lost:
        assert f"a/s-{pod}" not in {one.pod for one in idle_pods(fleet(fewer), {})}


@given(FLEET)
def test_hours_of_a_week_are_those_measured(rows: list[list[float]]) -> None:
    """Silent, working and room add up to the samples that are there; silence is a whole hour or none."""
    found = total(weeks(fleet(rows)))
    measured = sum(value == value for row in rows for value in row)
    assert found.held == pytest.approx(measured * STEP / 3600)
    assert found.silent * 3600 / STEP == pytest.approx(round(found.silent * 3600 / STEP))


def test_weeks_begin_on_mondays() -> None:
    """A span over two weeks is told in two rows, in the order of time."""
    rows = Telemetry(
        start_s=MONDAY - 3600,
        step_s=STEP,
        series=(GpuSeries(pod="a/b", activity=[0.5] * 18, memory=[nan] * 18),),
    )
    found = weeks(rows)
    assert list(found) == [date(2026, 11, 9), date(2026, 11, 16)]
    assert [round(hours.held, 6) for hours in found.values()] == [1, 2]
    assert tuple(total(found)) == pytest.approx((0.0, 1.5, 1.5))


MONEY = st.decimals(0, 100_000, places=2)


@given(st.tuples(*[st.floats(0, 5000)] * 3), st.floats(0, 10_000), MONEY, MONEY, MONEY)
@example((0.0, 0.0, 0.0), 0.0, Decimal("1.23"), Decimal(0), Decimal(0))
def test_books_are_the_meters_to_the_cent(
    hours: tuple[float, float, float], metered: float, teams: Decimal, idle: Decimal, shared: Decimal
) -> None:
    """Whatever telemetry saw, its parts are the teams' dollars, and with idle and shared what nodes cost."""
    found = dollars_by_use(Hours(*hours), metered, teams, idle, shared)
    assert found.silent + found.working + found.room + found.unseen == teams
    assert found.total == teams + idle + shared
    assert min(found) >= Decimal("-0.02")
    if not sum(hours):
        assert found.unseen == teams


FREE: dict[str, tuple[dict[str, int], list[int], int, float]] = {
    "nothing waits": ({"a": 1, "b": 2}, [], 0, 1 / 3),
    "what waits fits nowhere": ({"a": 1, "b": 1}, [2, 8], 2, 0.5),
    "the least of what waits fits on one": ({"a": 1, "b": 4}, [8, 2], 1, 0.2),
    "all whole": ({"a": 8}, [8], 0, 0),
    "a node that is over its capacity has none free": ({"a": -1, "b": 0}, [1], 0, 0),
}


@pytest.mark.parametrize(("free", "waiting", "stranded", "score"), FREE.values(), ids=FREE)
def test_free_gpus_are_stranded_only_while_something_waits(
    free: dict[str, int], waiting: list[int], stranded: int, score: float
) -> None:
    """Where none of what waits fits on the node."""
    found = fragments(free, waiting)
    assert found.stranded == stranded
    assert found.score == pytest.approx(score)


DRAWN = st.lists(st.sampled_from([nan, -1.0, 0.0, 50.0, 90.0]), max_size=30)


@given(DRAWN, st.booleans(), st.booleans())
@example([nan] * 30, False, False)
@example([50.0] * 30, True, False)
def test_no_watts_are_made_up(drawn: list[float], shared: bool, part: bool) -> None:
    """An idle pod's are the mean of what was measured, none where nothing was or where its device is not its alone."""
    watts = [*[nan] * (150 - len(drawn)), *drawn]
    idle = GpuSeries(
        pod="a/idle",
        device="GPU-1/2" if part else "GPU-1",
        part=part,
        activity=[0.0] * 150,
        memory=[nan] * 150,
        watts=watts if drawn else (),
    )
    busy = GpuSeries(pod="b/busy", device="GPU-1", activity=[0.9] * 150, memory=[nan] * 150, watts=watts)
    seen = Telemetry(start_s=MONDAY, step_s=STEP, metric="m", series=(idle, busy) if shared else (idle,))
    found = {row.owner: row.watts for row in waste(seen, Decimal(1), 240)}
    known = [] if shared or part else [value for value in drawn if value > 0]
    assert found["a/idle"] == (pytest.approx(sum(known) / len(known)) if known else None)
    assert found.get("b/busy") is None


Spoil = Callable[[list[float]], list[float]]
SPOILS: dict[str, Spoil] = {
    "no series": lambda values: [nan] * len(values),
    "one that ended": lambda values: [*values[:-8], *[nan] * 8],
    "one that was reset": lambda values: [*values[:10], *[nan] * 12, *values[22:]],
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_busy_pod_stays_busy(spoil: Spoil) -> None:
    """However its series is broken, it is called neither idle nor beyond use."""
    found = waste(fleet([spoil([0.9] * 60)]), Decimal(1), 240)
    assert [(row.idle, row.beyond) for row in found] in ([], [((), ())])
