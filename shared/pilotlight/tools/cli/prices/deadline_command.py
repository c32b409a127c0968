"""``pilotlight deadline``: the expected cost of a job that moves between spot, on-demand and waiting, never late."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil, floor
from typing import Annotated, Any, NamedTuple

import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.decide.job_deadlines.deadline_capacity import DOWN_S, UP_S, Chances, DeadlinePlan
from pilotlight.errors import BadInput, Failed
from pilotlight.settings import read
from pilotlight.tools.replay.deadline_runs import DeadlineJob, Now, Step, learnt, play
from pilotlight.tools.replay.traces.spot_availability import Availability, read_availability
from pilotlight.units import HOUR, Seconds, Usd, human

TICKS, LEAST_TICK_S, MOST_SLACK = 240, 60.0, 480
"""Ticks that the work is cut into, at most; none is shorter; more slack than this many of them is not planned with."""
HISTORY_S: Seconds = 7 * 24 * 3600.0
"""So much of the end of a file says what spot is like now."""
DRAWN = 200
"""Runs that the odds are drawn from, always the same."""


class Odds(NamedTuple):
    """Outcomes of the drawn runs: costs in on-demand hours, the share with no hour on on-demand, late ones."""

    median: float
    p90: float
    spot_only: float
    late: int


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(deadline)


def deadline(
    work: Annotated[str, typer.Option(help="Run that the job needs, as 48h; it saves its work.", metavar="DURATION")],
    by: Annotated[str, typer.Option(help="Its deadline: a time with its zone, or from now as 72h.")],
    zones: Annotated[list[str] | None, typer.Option(help="When spot was up in a zone: an availability file.")] = None,
    restart: Annotated[str, typer.Option(help="Time of a start on other capacity, boot included.")] = "10m",
    price: Annotated[float | None, typer.Option(min=0, max=1e6, help="On-demand, dollars an hour; needed.")] = None,
    spot: Annotated[float | None, typer.Option(min=0, max=1e6, help="Spot, dollars an hour; needed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Figures as JSON.")] = False,
) -> None:
    """Say what a job is expected to cost that ends by its deadline, moving between spot, on-demand and waiting.

    Example: [bold]pilotlight deadline --work 48h --by 72h --price 3.06 --spot 0.92[/bold]
    """
    now = datetime.now(UTC)
    work_s, restart_s = _seconds(work, "--work"), _seconds(restart, "--restart", "m")
    until = _until(by, now)
    if price is None or spot is None:
        raise BadInput("name both prices, as --price 3.06 --spot 0.92; pilotlight sizes and pilotlight spot show them")
    if not 0 < spot <= price:
        raise BadInput(f"--spot {spot:g} must be above 0 and at most --price {price:g}")
    if work_s <= 0:
        raise BadInput("--work must be more than 0")
    asked = Asked(work_s, restart_s, now, until)
    figures = _figures(asked, _job(asked), zones or [], price, spot)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(figures))
        return
    for line in _told(figures):
        typer.echo(line)


class Asked(NamedTuple):
    """A job as it was asked about: seconds of its work and of a start, and the time that it has."""

    work_s: Seconds
    restart_s: Seconds
    now: datetime
    until: datetime

    @property
    def tick_s(self) -> Seconds:
        """Seconds that it is planned by."""
        return max(LEAST_TICK_S, self.work_s / TICKS)


def _job(asked: Asked) -> DeadlineJob:
    """The job in ticks. Raises ``Failed`` where on-demand alone would be late."""
    tick_s, left_s = asked.tick_s, (asked.until - asked.now).total_seconds()
    job = DeadlineJob(ceil(asked.work_s / tick_s), floor(left_s / tick_s), ceil(asked.restart_s / tick_s) or 1)
    if _slack(job) < job.restart:
        first = asked.now + timedelta(seconds=tick_s * (job.work + job.restart + 1))
        raise Failed(
            f"{human(asked.work_s)} of work and {human(asked.restart_s)} to start cannot end by "
            f"{asked.until:%Y-%m-%d %H:%M} UTC even on on-demand; the earliest deadline is {first:%Y-%m-%d %H:%M} UTC"
        )
    return job


def _slack(job: DeadlineJob) -> int:
    return min(job.time - job.work, MOST_SLACK)


def _figures(asked: Asked, job: DeadlineJob, zones: Sequence[str], price: float, spot: float) -> dict[str, Any]:
    """Dollars and odds of the job, by when spot was up in the zones."""
    tick_s = asked.tick_s
    rows = [_zone(name, tick_s)[-max(1, int(HISTORY_S / tick_s)) :] for name in zones]
    chances, name = _best(rows, zones, tick_s)
    plan = DeadlinePlan(job.work, _slack(job), job.restart, spot / price, chances)
    share = chances.back / (chances.back + chances.none_left)
    expected = share * plan.cost(True) + (1 - share) * plan.cost(False)
    odds = _odds(plan, job, chances, spot / price)
    tick_usd = Decimal(repr(price)) * Decimal(repr(tick_s / HOUR))

    def usd(ticks: float) -> Usd:
        return Decimal(repr(ticks)) * tick_usd

    return {
        "work_h": asked.work_s / HOUR,
        "deadline": asked.until,
        "latest_start": asked.until - timedelta(seconds=tick_s * (job.work + job.restart)),
        "zone": name,
        "spot_stays_h": tick_s / chances.lost / HOUR,
        "spot_away_h": tick_s / chances.back / HOUR,
        "expected_usd": usd(expected),
        "median_usd": usd(odds.median),
        "p90_usd": usd(odds.p90),
        "on_demand_usd": Decimal(repr(price)) * Decimal(repr(asked.work_s / HOUR)),
        "spot_only_share": odds.spot_only,
        "runs": DRAWN,
        "late": odds.late,
        "first": {"spot_up": _first(plan, job, True), "spot_down": _first(plan, job, False)},
    }


def _seconds(text: str, option: str, usual: str = "h") -> Seconds:
    """Seconds of a duration with its unit: a bare number may mean hours to who writes it."""
    if text.strip().replace(".", "", 1).isdecimal() and text.strip("0. "):
        raise BadInput(f"{option} {text} has no unit: write {text.strip()}{usual}")
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"{option} {text!r} {error}") from None


def _until(text: str, now: datetime) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        if not text[:1].isdigit():
            raise BadInput(
                f"--by {text!r} is no time: write 2027-01-01T00:00Z, or a duration from now as 72h"
            ) from None
        return now + timedelta(seconds=_seconds(text, "--by"))
    if found.tzinfo is None:
        raise BadInput(f"--by {text!r} has no zone: write {text}Z, or a duration from now as 72h")
    return found.astimezone(UTC)


def _zone(name: str, tick_s: Seconds) -> tuple[bool, ...]:
    """A file's ticks, cut or joined to ours."""
    found: Availability = read_availability(read(name), name).thin_out(tick_s)
    times = max(1, round(found.gap_s / tick_s))
    return tuple(up for up in found.up for _ in range(times))


def _best(rows: Sequence[Sequence[bool]], names: Sequence[str], tick_s: Seconds) -> tuple[Chances, str]:
    """The zone that spot stays in for longest, and its chances; what is taken where no zone is known."""
    if not rows:
        return Chances(lost=min(0.95, tick_s / UP_S), back=min(0.95, tick_s / DOWN_S)), ""
    length = min(map(len, rows))
    cut = [row[-length:] for row in rows]
    return min(((learnt(cut, n, tick_s), name) for n, name in enumerate(names)), key=lambda found: found[0].lost)


def _odds(plan: DeadlinePlan, job: DeadlineJob, chances: Chances, spot: float) -> Odds:
    draw = random.Random(7)
    costs, spot_only, late = [], 0, 0

    def rule(now: Now) -> Step:
        return plan.step(now.work, now.time, now.where, now.restart_left, now.up[0]), 0

    for _ in range(DRAWN):
        log, work_left = play([_drawn(draw, job.time, chances)], job, rule)
        paid = [where for where, _ in log if where != "none"]
        costs.append(sum(spot if where == "spot" else 1.0 for where in paid))
        spot_only += "on-demand" not in paid
        late += work_left > 0
    costs.sort()
    return Odds(costs[DRAWN // 2], costs[DRAWN * 9 // 10], spot_only / DRAWN, late)


def _drawn(draw: random.Random, ticks: int, chances: Chances) -> list[bool]:
    """Spot's ticks of one run, True where it is up: a lost zone is as good as kept where another is up at once."""
    up = draw.random() < chances.back / (chances.back + chances.none_left)
    row = []
    for _ in range(ticks):
        row.append(up)
        up = not up if draw.random() < (chances.none_left if up else chances.back) else up
    return row


def _first(plan: DeadlinePlan, job: DeadlineJob, up: bool) -> str:
    return plan.step(job.work, job.time, "none", 0, up)


def _told(found: dict[str, Any]) -> list[str]:
    """The figures as people read them."""
    kept = 1 - found["expected_usd"] / found["on_demand_usd"]
    known = (
        f"zone {found['zone']}, its last 7 days" if found["zone"] else "nothing is known of a zone: name --zones FILE"
    )
    started = {"spot": "starts on spot", "on-demand": "starts on on-demand", "none": "waits"}
    up, down = (started[found["first"][key]] for key in ("spot_up", "spot_down"))
    return [
        f"expected ${found['expected_usd']:,.2f}, {kept:.0%} under on-demand alone (${found['on_demand_usd']:,.2f})",
        f"  median ${found['median_usd']:,.2f}, P90 ${found['p90_usd']:,.2f}; of {found['runs']} drawn runs "
        f"{found['spot_only_share']:.0%} had no hour on on-demand, {found['late']} were late",
        f"  now: where spot is up it {up}, where it is down it {down}",
        f"  on-demand alone must start by {found['latest_start']:%Y-%m-%d %H:%M} UTC; deadline "
        f"{found['deadline']:%Y-%m-%d %H:%M} UTC",
        f"  spot is taken to stay {human(found['spot_stays_h'] * HOUR)}, then to be away "
        f"{human(found['spot_away_h'] * HOUR)} ({known})",
    ]
