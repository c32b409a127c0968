"""Deliveries under deaths and faults, by seed, and a count of what must never happen: `make chaos`."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from harness import parallel_run, serial_run
from harness.chaos_sweep import Total, seed_range, sweep, total
from harness.serial_run import SeedResult
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pilotlight.adapters.logs import LOGGER
from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import run as run_command
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet

SHOWN = 20
"""Violations that are printed; ``--json`` gives all."""


app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=False)


@app.command()
def chaos(
    seeds: Annotated[str, typer.Option(help="Seeds to run, both ends included: A..B.")] = "0..199",
    deliveries: Annotated[int, typer.Option(min=1, help="Deliveries a seed.")] = 40,
    seed: Annotated[int | None, typer.Option(help="Repeat one seed exactly and print its schedule.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Seeds at a time.")] = os.cpu_count() or 1,
    parallel: Annotated[
        int,
        typer.Option(
            min=0,
            help="So many runs instead, from the first seed on, whose workers are real threads and processes: "
            "no run repeats exactly.",
        ),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
    log: Annotated[Path | None, typer.Option(help="Write the schedules of broken seeds to this file.")] = None,
) -> None:
    """Kill, stall, double, drop, delay, forge, by seed; count what must never happen. Exit code 1 when something did.

    Example: [bold]make chaos ARGS="--seeds 0..9999 --deliveries 40"[/bold]

    One seed again, with its schedule: [bold]make chaos ARGS="--seed 17"[/bold]

    With [bold]--parallel 500[/bold] what broke is kept: the log and the store, in the folder that is printed.
    """
    logging.getLogger(LOGGER).setLevel(logging.CRITICAL + 1)  # Retries are what is provoked here.
    run = parallel_run.run if parallel else serial_run.run
    if seed is not None:
        outcome = run(seed, deliveries)
        if not as_json:
            typer.echo("\n".join(outcome.lines))
        found = total([outcome])
    else:
        chosen = seed_range(seeds)
        found = _all(range(chosen.start, chosen.start + parallel) if parallel else chosen, deliveries, jobs, run)
    if log is not None:
        _write(log, found.broken)
    typer.echo(_json(found, deliveries)) if as_json else _show(found, deliveries)
    if found.broken:
        raise typer.Exit(1)


def _all(seeds: range, deliveries: int, jobs: int, run: Callable[[int, int], SeedResult]) -> Total:
    bar = Progress(
        TextColumn("seeds"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=len(seeds))
        return total(sweep(seeds, deliveries, jobs, run), lambda _: bar.advance(task))


def _write(path: Path, broken: tuple[SeedResult, ...]) -> None:
    try:
        path.write_text("".join(f"seed {o.seed}\n" + "\n".join((*o.lines, *_lines(o))) + "\n" for o in broken))
    except OSError as error:
        raise BadInput(f"--log {path}: {error.strerror}; name a file that can be written") from None


def _lines(outcome: SeedResult) -> list[str]:
    return [f"seed {outcome.seed}: {v.kind} at {v.t:.1f} s: {v.text}" for v in outcome.violations]


def _again(seed: int, deliveries: int) -> str:
    return f'make chaos ARGS="--seed {seed} --deliveries {deliveries}"'


def _show(found: Total, deliveries: int) -> None:
    table = Sheet(Column("what must never happen"), Column("count", "figure"))
    for kind, count in found.counts.items():
        table.add(kind.replace("_", " "), str(count), style="red" if count else "")
    out = console()
    out.print(table)
    lines = [line for outcome in found.broken for line in _lines(outcome)]
    for line in lines[:SHOWN]:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    if len(lines) > SHOWN:
        out.print(f"and {len(lines) - SHOWN} more; --json shows all")
    for outcome in found.broken[:SHOWN]:
        again = f"kept in {outcome.folder}" if outcome.folder else _again(outcome.seed, deliveries)
        out.print(f"seed {outcome.seed}: {again}", highlight=False, soft_wrap=True)
    _show_apart(out, found)
    out.print(
        f"{found.runs} {'seed' if found.runs == 1 else 'seeds'}: {found.deliveries:,} deliveries, "
        f"{found.deaths:,} deaths, {found.launches:,} nodes launched for {found.jobs:,} jobs",
        highlight=False,
    )


def _show_apart(out: Console, found: Total) -> None:
    """What no check can stop is no violation: a worker that stands still after the last one."""
    if any(found.apart.values()):
        said = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in found.apart.items())
        out.print(f"beyond every check, between the last one and the first byte: {said}", highlight=False)


def _json(found: Total, deliveries: int) -> str:
    violations = [{"seed": o.seed, **v._asdict()} for o in found.broken for v in o.violations]
    folders = {str(o.seed): o.folder for o in found.broken if o.folder}
    again = {str(o.seed): _again(o.seed, deliveries) for o in found.broken if not o.folder}
    broken = {
        "seeds": [o.seed for o in found.broken],
        "violations": violations,
        "folders": folders,
        "reproduce": again,
    }
    return json.dumps({**found._asdict(), "broken": broken}, indent=2)


def main() -> None:
    """The command line, which ends as every command of ours does."""
    run_command(lambda _: app, "run_chaos.py")


if __name__ == "__main__":
    main()
