"""What a replay measured, as JSON and as a table."""

import io
import json
import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from rich.console import Console

from pilotlight.tools.replay.traces.trace_job import Bounds, Result, Spread, Unfinished
from pilotlight.tools.report.tables.replay_table import as_json, failure, multiple, table, wait

Maker = Callable[..., Result]


def test_json_has_the_documented_shape_with_plain_numbers(result: Maker) -> None:
    """Every documented key is there, dollars are numbers, and ratios are worked out."""
    assert json.loads(json.dumps(as_json(result()))) == {
        "policy": "pilotlight",
        "trace": "openb_dev",
        "jobs": 4,
        "jobs_done": 4,
        "cost_usd": 120.0,
        "cost_per_gpu_hour_usd": 3.0,
        "gpu_hours": 40.0,
        "utilization": 0.8,
        "wait_s": {"mean": 95.0, "p50": 190.0, "p95": 190.0, "p99": 190.0, "max": 190.0},
        "delay_s": {"mean": 95.0, "p95": 190.0},
        "launches": 7,
        "terminations": 7,
        "wakes": 0,
        "standby_usd": 0.0,
        "interruptions": 0,
        "lost_gpu_hours": 0.0,
        "bound_usd": {"fluid": 80.5, "integral": 100.0},
        "x_integral": 1.2,
    }


def test_a_run_on_spot_is_also_measured_by_on_demand_prices(result: Maker) -> None:
    """JSON and table have the multiple of the on-demand bound where spot was bought."""
    bound = Bounds(fluid=Decimal(80), integral=Decimal(100), on_demand=Decimal(300))
    shown = as_json(result(bound_usd=bound))
    assert (shown["x_on_demand"], shown["x_integral"]) == (0.4, 1.2)
    assert "0.400x" in _printed(result(bound_usd=bound))


def test_a_run_that_left_jobs_says_how_many_and_why(result: Maker) -> None:
    """A failed run is told by policy, count and its most frequent reasons; one that finished is not."""
    left = tuple(Unfinished(jobs=n, why=f"reason {n}") for n in (9, 5, 3, 2, 1))
    failed = result(jobs=24, unfinished=left)
    assert failure([result(), failed]) == (
        "pilotlight: 20 of 24 jobs did not finish "
        "(9 of them: reason 9, 5 of them: reason 5, 3 of them: reason 3, 3 for other reasons)"
    )
    assert as_json(failed)["unfinished"] == [{"jobs": some.jobs, "why": some.why} for some in left]
    assert failure([result()]) == ""


def test_json_of_an_empty_run_has_nulls_for_ratios_over_nothing(result: Maker) -> None:
    """No jobs, no GPU-hours and no bound give null ratios, never 0 or NaN."""
    empty = result(
        jobs=0,
        jobs_done=0,
        cost_usd=Decimal(0),
        gpu_hours=0.0,
        gpu_hours_paid=0.0,
        wait_s=Spread.of_waits([]),
        bound_usd=Bounds(fluid=Decimal(0), integral=Decimal(0)),
    )
    shown = as_json(empty)
    assert (shown["cost_per_gpu_hour_usd"], shown["utilization"], shown["x_integral"]) == (None, None, None)
    assert "-" in _printed(empty)


def test_table_lists_policies_in_the_order_given_with_their_figures(result: Maker) -> None:
    """Pilotlight stands first when it is given first, and each row carries dollars, multiple, waits and launches."""
    text = _printed(result(), result("keda", cost_usd=Decimal("165.2"), launches=12))
    assert text.index("pilotlight") < text.index("keda")
    for figure in ("$120", "1.200x", "80.0%", "95 s", "190 s", "$165", "1.652x", "12"):
        assert figure in text


@pytest.mark.parametrize(
    ("change", "heading"),
    [
        pytest.param({"interruptions": 3}, "ruptions", id="a reclaimed node adds the interruptions column"),
        pytest.param({"jobs_done": 3}, "4 of 4", id="an unfinished job adds the jobs-done column"),
    ],
)
def test_table_has_a_rare_column_only_when_needed(result: Maker, change: dict[str, object], heading: str) -> None:
    """A column that would be the same everywhere is left out."""
    assert heading not in _printed(result())
    assert heading in _printed(result(), result("keda", **change))


def test_a_narrow_terminal_folds_names_and_keeps_figures(result: Maker) -> None:
    """In 80 columns a long policy name takes two lines and every figure is whole."""
    text = _printed(result(), result("cluster-autoscaler-pinned:900", cost_usd=Decimal("2386770.12")), width=80)
    assert "…" not in text
    assert "$2,386,770" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0.0, "0 s", id="no wait is 0 s"),
        pytest.param(13.71, "13.7 s", id="a short wait keeps one decimal"),
        pytest.param(189.4, "189 s", id="a long wait is whole seconds"),
        pytest.param(1169.0, "1,169 s", id="a very long wait has a thousands separator"),
    ],
)
def test_waits_are_seconds_that_compare_down_a_column(seconds: float, text: str) -> None:
    """Waits are printed in seconds at the precision that tells them apart."""
    assert wait(seconds) == text


def test_a_multiple_without_a_bound_is_a_dash() -> None:
    """A ratio over no bound is not invented."""
    assert multiple(None) == "-"


def _printed(*results: Result, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table(results))
    return out.getvalue()


def test_json_has_no_digits_that_nobody_measured(result: Maker) -> None:
    """A third of anything is told to a millionth."""
    thirds = result(cost_usd=Decimal("100") / 3, gpu_hours=10 / 3, wait_s=Spread.of_waits([0.0, 0.0, 1.0]))
    assert max(len(digits) for digits in re.findall(r"\.(\d+)", json.dumps(as_json(thirds)))) <= 6
