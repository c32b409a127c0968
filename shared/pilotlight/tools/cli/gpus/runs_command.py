"""``pilotlight runs``: how long jobs of a group run, or how much GPUs of a group do, and how well that was foretold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.units import human

if TYPE_CHECKING:
    from pilotlight.tools.advice.run_groups import RunGroups
    from pilotlight.tools.advice.run_quantiles import MeasuredError
    from pilotlight.tools.report.tables.sheet import Sheet

SHOWN = 25
"""Groups in the table, the largest; ``--json`` has all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(runs)


def runs(
    trace: Annotated[Path | None, typer.Argument(help="A trace: csv.gz of jobs.")] = None,
    prometheus: Annotated[
        str,
        typer.Option(help="Instead: what pods' GPUs do, from a Prometheus with dcgm-exporter's series.", metavar="URL"),
    ] = "",
    since: Annotated[str, typer.Option(help="How far back it is asked.")] = "7d",
    step: Annotated[str, typer.Option(help="Between two samples.")] = "5m",
    until: Annotated[str, typer.Option(help="Unix seconds of the last sample; left out: now.")] = "",
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every group, as JSON.")] = False,
) -> None:
    """Show P50 and P90 by group, and how many of the later ones stayed under them. Changes nothing.

    Groups of a trace are the app, the team with a shape (GPUs x thousandths), the team, the shape, and all. With
    --prometheus they are the pod, its owner and all, and the figure is the most activity of an hour. Each is predicted
    from what was over by then alone.

    Example: [bold]pilotlight runs week.csv.gz[/bold]
    """
    if bool(prometheus) == (trace is not None):
        raise BadInput("name a TRACE, or --prometheus URL: one of them")
    found = _of_trace(trace) if trace is not None else _of_use(prometheus, since, step, until, auth)
    unit = "s" if trace is not None else "percent"
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(_figures(found, unit)))
        return
    _show(found, unit)


def _of_trace(path: Path) -> "RunGroups":
    from pilotlight.tools.advice.run_groups import run_lengths
    from pilotlight.tools.replay.traces.trace_file import read_trace

    return run_lengths(read_trace(path))


def _of_use(url: str, since: str, step: str, until: str, auth: str) -> "RunGroups":
    from pilotlight.decide.demand.classify import made_by
    from pilotlight.tools.advice.run_groups import hourly_activity
    from pilotlight.tools.cli.gpus.waste_command import end_of_samples, seconds, telemetry_of

    span_s, step_s, end = seconds(since, "since"), seconds(step, "step"), end_of_samples(until)
    if not 0 < step_s <= span_s:
        raise BadInput(f"--step {step} must be more than 0 and at most --since {since}")
    telemetry = telemetry_of(url, auth, end - span_s, end, step_s)
    if not telemetry.series:
        from pilotlight.codec.redact import without_login

        there = without_login(url)
        raise Failed(
            f"telemetry: absent. {there} has no series of dcgm-exporter with a pod in the last {human(span_s)}"
        )
    return hourly_activity(telemetry, made_by)


def _figures(found: "RunGroups", unit: str) -> dict[str, Any]:
    rows = [
        {"group": row.name, "seen": row.seen, **_quantiles(row.quantiles, unit), **_error(row.later)}
        for row in found.rows
    ]
    return {"groups": rows, "by_narrowest": _error(found.narrowest), "as_one": _error(found.as_one)}


def _quantiles(values: tuple[float, ...], unit: str) -> dict[str, float]:
    return {f"p50_{unit}": values[0], f"p90_{unit}": values[1]}


def _error(error: "MeasuredError") -> dict[str, Any]:
    """Nothing is known of an error where nothing was foretold."""
    half, most = error.under if error.runs else (None, None)
    return {
        "foretold": error.runs,
        "under_p50": half,
        "under_p90": most,
        "p50_off_by": error.factor if error.runs else None,
    }


def _show(found: "RunGroups", unit: str) -> None:
    from pilotlight.decide.demand.run_lengths import ENOUGH
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    names = ("seen", "P50", "P90", "foretold", "<= P50", "<= P90", "P50 off by")
    table = Sheet(Column("group", "name"), *(Column(name, "figure") for name in names))
    for row in found.rows[:SHOWN]:
        shown = (human(value) if unit == "s" else f"{value:.0f} %" for value in row.quantiles)
        _add(table, row.name, f"{row.seen:,}", *shown, error=row.later)
    _add(table, "by the narrowest", "", "", "", error=found.narrowest, style="bold")
    _add(table, "by all as one", "", "", "", error=found.as_one, style="bold")
    out = console()
    out.print(table)
    if not found.rows:
        out.print(f"No group is known: each has fewer than {ENOUGH}.")
    if len(found.rows) > SHOWN:
        out.print(f"and {len(found.rows) - SHOWN} smaller groups; --json has all")
    what = "runs" if unit == "s" else "hours of a GPU (their most activity)"
    out.print(
        f"Each was predicted from the {what} of its group that were over by then. Half should be under P50, nine in "
        "ten under P90."
    )


def _add(table: "Sheet", name: str, *cells: str, error: "MeasuredError", style: str = "") -> None:
    half, most = error.under
    judged = (f"{half:.1%}", f"{most:.1%}", f"x{error.factor:.1f}") if error.runs else ("-", "-", "-")
    table.add(name, *cells, f"{error.runs:,}", *judged, style=style)
