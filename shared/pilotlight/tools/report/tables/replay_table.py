"""Measures of replays, as a table for people and as JSON for programs (shape: the replay's documented report)."""

from collections.abc import Callable, Sequence

from rich.text import Text

from pilotlight.tools.replay.traces.trace_job import Result, Spread
from pilotlight.tools.report.tables.sheet import Column as Shown
from pilotlight.tools.report.tables.sheet import Sheet
from pilotlight.units import Seconds, Usd

Column = tuple[str, Callable[[Result], str]]
"""A heading, and what stands below it."""

REASONS = 3
"""So many of a run's reasons for unfinished jobs are told in a line; JSON has them all."""

DIGITS = 6
"""After the point, of every figure in JSON: a millionth of a dollar, of a second, of a share."""


def as_json(result: Result) -> dict[str, object]:
    """One result as plain JSON values: numbers to six digits after the point, a ratio over nothing as null."""
    bounds = {"fluid": _dollars(result.bound_usd.fluid), "integral": _dollars(result.bound_usd.integral)}
    shape: dict[str, object] = {
        "policy": result.policy,
        "trace": result.trace,
        "jobs": result.jobs,
        "jobs_done": result.jobs_done,
        "cost_usd": _dollars(result.cost_usd),
        "cost_per_gpu_hour_usd": _rounded(result.usd_per_gpu_hour),
        "gpu_hours": _rounded(result.gpu_hours),
        "utilization": _rounded(result.utilization),
        "wait_s": _spread(result.wait_s, "mean", "p50", "p95", "p99", "max"),
        "delay_s": _spread(result.delay_s, "mean", "p95"),
        "launches": result.launches,
        "terminations": result.terminations,
        "wakes": result.wakes,
        "standby_usd": _dollars(result.standby_usd),
        "interruptions": result.interruptions,
        "lost_gpu_hours": _rounded(result.lost_gpu_hours),
        "bound_usd": bounds,
        "x_integral": _rounded(result.x_integral),
    }
    if result.bound_usd.on_demand is not None:
        bounds["on_demand"] = _dollars(result.bound_usd.on_demand)
        shape["x_on_demand"] = _rounded(result.x_on_demand)
    if not result.finished:
        shape["unfinished"] = [{"jobs": some.jobs, "why": some.why} for some in result.unfinished]
    return shape


def failure(results: Sequence[Result]) -> str:
    """Which runs did not serve every job, how many they left, and why; nothing where none did."""
    return "; ".join(f"{r.policy}: {_left(r)}" for r in results if not r.finished)


def _left(result: Result) -> str:
    shown = [f"{some.jobs:,} of them: {some.why}" for some in result.unfinished[:REASONS]]
    more = sum(some.jobs for some in result.unfinished[REASONS:])
    shown += [f"{more:,} for other reasons"] if more else []
    return f"{result.jobs - result.jobs_done:,} of {result.jobs:,} jobs did not finish ({', '.join(shown)})"


def table(results: Sequence[Result]) -> Sheet:
    """The results side by side, in the order given."""
    columns = columns_for(results)
    figures = (Shown(heading, "figure") for heading, _ in columns[1:])
    shown = Sheet(Shown("policy", "name"), *figures, title=Text(_title(results)))
    for i, result in enumerate(results):
        shown.add(*(cell(result) for _, cell in columns), style="bold" if i == 0 else "")
    return shown


def columns_for(results: Sequence[Result]) -> list[Column]:
    """The columns that these results need: one list for the terminal and the page."""
    spot = any(r.bound_usd.on_demand for r in results)
    columns: list[Column] = [
        ("policy", lambda r: r.policy),
        ("dollars", lambda r: usd(r.cost_usd)),
        ("x bound", lambda r: multiple(r.x_integral)),
        *([("x on-demand", lambda r: multiple(r.x_on_demand))] if spot else []),
        ("GPUs used", lambda r: "-" if r.utilization is None else f"{r.utilization:.1%}"),
        ("mean wait", lambda r: wait(r.wait_s.mean)),
        ("P95 wait", lambda r: wait(r.wait_s.p95)),
        ("P99 wait", lambda r: wait(r.wait_s.p99)),
        ("launches", lambda r: f"{r.launches:,}"),
    ]
    if any(r.wakes for r in results):
        columns.append(("wakes", lambda r: f"{r.wakes:,}"))
    if any(r.interruptions for r in results):
        columns.append(("interruptions", lambda r: f"{r.interruptions:,}"))
    if not all(r.finished for r in results):
        columns.append(("jobs done", lambda r: f"{r.jobs_done:,} of {r.jobs:,}"))
    return columns


def usd(amount: Usd) -> str:
    """Whole dollars, as figures of thousands are compared: "$8,779"; with cents below ten: "$0.41"."""
    return f"${amount:,.2f}" if 0 < amount < 10 else f"${amount:,.0f}"


def wait(seconds: Seconds) -> str:
    """A wait in seconds, so that columns compare: "13.7 s", "189 s", "0 s"."""
    return f"{seconds:.1f} s" if 0 < seconds < 20 else f"{seconds:,.0f} s"


def multiple(ratio: float | None) -> str:
    """A multiple of the lower bound: "1.145x", or "-" where there is no bound."""
    return "-" if ratio is None else f"{ratio:.3f}x"


def _title(results: Sequence[Result]) -> str:
    if not results:
        return "no results"
    r = results[0]
    several = "job" if r.jobs == 1 else "jobs"
    bound = usd(r.bound_usd.integral)
    return f"{r.trace}: {r.jobs:,} {several}, {r.gpu_hours:,.0f} GPU-hours; lower bound {bound}"


def _dollars(amount: Usd) -> float:
    return round(float(amount), DIGITS)


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, DIGITS)


def _spread(spread: Spread, *names: str) -> dict[str, float]:
    return {name: round(getattr(spread, name), DIGITS) for name in names}
