"""``pilotlight demo``: a story of an hour that every function plays in, told as it happens, and checked."""

import shutil
import sys
import tempfile
import time
import webbrowser
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from pilotlight.errors import Failed, PilotlightError
from pilotlight.settings import environment
from pilotlight.tools.cli.terminal import console_of
from pilotlight.units import Seconds, cents

if TYPE_CHECKING:
    from pilotlight.facts.messages import Alert
    from pilotlight.tools.demo.demo_story import Line, Story
    from pilotlight.tools.report.tables.budget_table import BudgetRow

LOOK_S: Seconds = 0.25
"""How often the budget's bar is brought up to date, by the wall's clock."""

WIDTH = 100
"""Columns where the output is no terminal."""

_COLOURS = {"info": "cyan", "warning": "yellow", "critical": "bold red"}
_STEPS = {"pending": "yellow", "refused": "bold red", "warned": "yellow", "spent": "bold red", "notice": "yellow"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    speed: Annotated[
        float, typer.Option(min=1, max=120, help="Seconds of the world in a second; a busy machine wants fewer.")
    ] = 60,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the state, the log and the alerts, and say where.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Steps, alerts, report and budgets, as JSON.")] = False,
) -> None:
    """Play an hour of a small cluster: bought, warned, interrupted, refused, released, and accounted for.

    Starts serve and a world of its own, in a folder of its own; needs no cluster and no cloud. Its live page opens
    where there is a desktop. It checks itself: exit code 1 when a step does not come within its time, when an alert
    is told twice, or when the report does not add up.

    Example: [bold]pilotlight demo --speed 60[/bold]
    """
    home = Path(tempfile.mkdtemp(prefix="pilotlight-demo-"))
    try:
        _play(home, speed, as_json, keep)
    except PilotlightError as error:
        raise Failed(f"{error}; see {home}/serve.log") from None
    except BaseException:
        keep = False
        shutil.rmtree(home, ignore_errors=True)
        raise
    if not keep:
        shutil.rmtree(home)


def _play(home: Path, speed: float, as_json: bool, keep: bool) -> None:
    from pilotlight.tools.demo.demo_stage import stage
    from pilotlight.tools.demo.demo_story import Story

    screen = _Screen(quiet=as_json)
    with stage(home, speed) as set_, screen.open(set_.page):
        story = Story(set_, screen.line, screen.wait)
        problem = ""
        try:
            story.play()
        except PilotlightError as error:
            problem = str(error)
        screen.alerts(story)
        if as_json:
            from pilotlight.tools.cli.printing import json_text

            typer.echo(json_text(_json(story, problem, home if keep else None)))
        elif not problem:
            screen.end(story)
            screen.stay()
    if problem:
        raise Failed(problem)
    if keep and not as_json:
        screen.out.print(f"kept: PILOTLIGHT_HOME={home} pilotlight alerts list", highlight=False, soft_wrap=True)


class _Screen:
    """Prints what happens as it does, with the budget's bar below it on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self.out = console_of(width=None if sys.stdout.isatty() else WIDTH)
        self._bar = Progress(
            TextColumn("{task.fields[at]}"),
            BarColumn(bar_width=40),
            TextColumn("{task.fields[spent]}"),
            console=self.out,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, at="", spent="")
        self._heard = 0
        self._shown = False
        self._looked = 0.0

    def open(self, page: str) -> AbstractContextManager[object]:
        """The bar, where there is somebody to see it; and the live page, where it can be opened."""
        if self._quiet:
            return nullcontext()
        self.out.print("An hour and more of a small cluster: one spot pool, and $1.20 a day for team research.")
        self.out.print(f"Live, while it plays: {page}\n", highlight=False)
        self._shown = self.out.is_terminal and sys.stdin.isatty()
        if self._shown and _desktop():
            webbrowser.open(page)
        return self._bar if self.out.is_terminal else nullcontext()

    def line(self, line: "Line") -> None:
        """A step that came."""
        if not self._quiet:
            colour = _STEPS.get(line.step, "green")
            self.out.print(
                f"[dim]{line.at:%H:%M:%S}[/dim] {cents(line.usd):>6}  [{colour}]{line.step:<9}[/] {escape(line.text)}",
                highlight=False,
            )

    def wait(self, story: "Story") -> None:
        """Print what arrived meanwhile, and how far the budget is used."""
        self.alerts(story)
        if self._quiet or not self.out.is_terminal or time.monotonic() < self._looked + LOOK_S:
            return
        self._looked = time.monotonic()
        spent = story.budget_spent()
        limit = spent.meter.limit
        self._bar.update(
            self._task,
            total=float(limit),
            completed=min(float(spent.total), float(limit)),
            at=f"{story.stage.app.clock.now():%H:%M:%S}",
            spent=f"{cents(spent.total)} of {cents(limit)} spent by team research",
        )

    def alerts(self, story: "Story") -> None:
        """Alerts that arrived since."""
        new = story.told[self._heard :]
        self._heard += len(new)
        if not self._quiet:
            for alert in new:
                self.out.print(_alert(alert), highlight=False)

    def end(self, story: "Story") -> None:
        """The month's report, where the budget stands, and that all came."""
        from pilotlight.tools.report.tables.budget_table import BudgetRow, table
        from pilotlight.tools.report.tables.month_table import render

        spent = story.budget_spent()
        row = BudgetRow(cluster="local", meter=spent.meter, held=spent.held, spent=spent, rung=story.rung())
        self.out.print("", render(story.report()), "", table([row]), "", _beyond(row), "", highlight=False)
        self.out.print(f"[bold green]all {len(story.lines)} steps came, each within its time[/]", highlight=False)

    def stay(self) -> None:
        """Where a person is at the terminal, serve and its page stay as long as they are looked at."""
        if self._shown:
            self._bar.stop()
            self.out.print("The page stays until you press Enter.")
            sys.stdin.readline()


def _beyond(row: "BudgetRow") -> str:
    """Why more than the limit is used, in the words of the demo's own policy."""
    spent = row.spent
    if spent is None or spent.total <= row.meter.limit:
        return ""
    return (
        f"Why more than {cents(row.meter.limit)}: the budget has hard: false, so what runs goes on to its end, "
        "and only purchases stop. It is settled and held until the node is gone, an idle time included."
    )


def _desktop() -> bool:
    """True where a browser would come up in a window before whoever started this."""
    if sys.platform in ("darwin", "win32"):
        return True
    set_ = environment()
    return bool(set_.get("DISPLAY") or set_.get("WAYLAND_DISPLAY")) and "SSH_CONNECTION" not in set_


def _alert(alert: "Alert") -> str:
    over = ", over" if alert.resolved else ""
    return f"{'':17}[{_COLOURS[alert.severity]}]alert[/]     [dim]{alert.severity}{over}: {escape(alert.what)}[/dim]"


def _json(story: "Story", problem: str, home: Path | None) -> dict[str, Any]:
    from pilotlight.tools.cli.records.report_command import plain

    found = story.stage.world.report()
    return {
        "ok": not problem,
        "problem": problem,
        "home": str(home) if home else None,
        "speed": story.stage.speed,
        "steps": story.lines,
        "alerts": story.told,
        "cloud": {"usd": found.cost_usd, "launches": found.launches, "terminations": found.terminations},
        "budget": story.budget_spent(),
        "report": plain(story.report()),
    }
