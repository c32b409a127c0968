"""Interruptions by seed, and a count of what must never happen: `make interruptions`."""

import logging
import os
from typing import Annotated

import typer
from harness.chaos_sweep import seed_range
from harness.interruptions.interruption_sweep import Total, run, sweep
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotlight.adapters.logs import LOGGER
from pilotlight.tools.cli.main import run as run_command
from pilotlight.tools.cli.printing import console, json_text
from pilotlight.tools.report.tables.sheet import Column, Sheet

SHOWN = 20
"""Violations that are printed; ``--json`` gives all."""

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=False)


@app.command()
def interruptions(
    seeds: Annotated[str, typer.Option(help="Seeds to run, both ends included: A..B.")] = "0..499",
    jobs: Annotated[int, typer.Option(min=1, help="Seeds at a time.")] = os.cpu_count() or 1,
    seed: Annotated[int | None, typer.Option(help="Repeat one seed exactly and print what happened.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Take nodes in the world, by seed; count what must never happen. Exit code 1 when something did.

    Example: [bold]make interruptions ARGS="--seeds 0..499"[/bold]

    One seed again, with all that happened: [bold]make interruptions ARGS="--seed 9"[/bold]
    """
    logging.getLogger(LOGGER).setLevel(logging.CRITICAL + 1)  # Retries are what is provoked here.
    if seed is not None:
        outcome = run(seed)
        typer.echo("\n".join(outcome.lines))
        raise typer.Exit(1 if outcome.broken else 0)
    wanted = seed_range(seeds)
    with _bar() as bar:
        task = bar.add_task("", total=len(wanted))
        found = sweep(wanted, jobs, lambda: bar.advance(task))
    typer.echo(_json(found)) if as_json else _show(found)
    if found.broken:
        raise typer.Exit(1)


def _bar() -> Progress:
    return Progress(
        TextColumn("seeds"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _show(found: Total) -> None:
    table = Sheet(Column("what must never happen"), Column("count", "figure"))
    for kind, count in found.counts.items():
        table.add(kind.replace("_", " "), str(count), style="red" if count else "")
    out = console()
    out.print(table)
    lines = [f"seed {outcome.seed}: {kind}: {line}" for outcome in found.broken for kind, line in outcome.broken]
    for line in lines[:SHOWN]:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items() if count)
    out.print(
        f"{found.seeds} seed{'' if found.seeds == 1 else 's'}: {kinds}; {found.lost_gpu_hours:,.0f} GPU-hours lost",
        highlight=False,
    )


def _json(found: Total) -> str:
    violations = [{"seed": o.seed, "kind": kind, "text": text} for o in found.broken for kind, text in o.broken]
    return json_text({**found._asdict(), "broken": violations})


def main() -> None:
    """The command line, which ends as every command of ours does."""
    run_command(lambda _: app, "run_interruptions.py")


if __name__ == "__main__":
    main()
