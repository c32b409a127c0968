"""A month's report on a terminal and as CSV: its parts in cents, which add up to its total in cents."""

import csv
import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from pilotlight.decide.money.hourly_costs import cause
from pilotlight.facts.money.bill import Anomaly
from pilotlight.tools.advice.money.month import Amount, Month, cents
from pilotlight.tools.cli.terminal import visible_text
from pilotlight.tools.report.tables.bill_table import correction_sentence
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import Usd, count_of, round_usd

NOBODY = "(no team)"
OTHERS = "others"
COMMITMENT = "commitments that no node used"
_BASES = {
    "list": "without discounts",
    "billed": "as invoiced, with commitments at $0 where they were used",
    "effective": "commitments spread over what used them",
}
TENTH = Decimal("0.1")
REQUESTS = "requests"
"""A unit that is told by the thousand."""
ODD = 5
"""So many days and pools with odd hours are told."""


class Line(NamedTuple):
    """One line of a part of the report. ``usd`` is in cents."""

    name: str
    gpu_hours: Decimal
    usd: Usd
    note: str = ""


def parts(month: Month) -> Iterator[tuple[str, list[Line]]]:
    """The report's parts. The lines of each add up to the total, or to what teams held, in cents."""
    kinds = [("used", month.used), ("idle", month.idle), ("shared", month.shared)]
    own = [(COMMITMENT, month.commitment)] if month.commitment.usd else []
    yield "where it went", _lines([*kinds, *own], month.total.usd)
    yield "by machine", _lines(month.machines, month.total.usd, rate=True)
    yield "by pool", _lines(month.pools, month.total.usd)
    yield "by team, for what it held", _teams(month)
    used, _, _ = month.split
    yield "by class, for what was held", _lines(month.classes, used)
    top = [(f"{c.team or NOBODY}/{c.project} on {c.machine}", c.held) for c in month.top]
    yield "who held most", _lines([*top, (OTHERS, month.others)] if month.others.usd else top, used)


def heading(month: Month, title: str) -> str:
    """A part's heading for people: by machine and pool also says that rows hold what ``report --by`` has apart."""
    beside = title in ("by machine", "by pool") and (month.idle.usd or month.shared.usd)
    return f"{title}, with idle and shared time" if beside else title


def _lines(amounts: Sequence[tuple[str, Amount]], whole: Usd, *, rate: bool = False) -> list[Line]:
    rounded = cents([amount.usd for _, amount in amounts], whole)
    return [
        Line(name or "(none)", amount.gpu_hours, usd, f"${amount.rate:,.4f} a GPU-hour" if rate else "")
        for (name, amount), usd in zip(amounts, rounded, strict=True)
    ]


def _teams(month: Month) -> list[Line]:
    held = cents([team.held.usd for team in month.teams], month.split[0])
    whole = [team.with_share for team in month.teams]
    shares = cents(whole, sum(whole, Decimal(0)))
    return [
        Line(team.name or NOBODY, team.held.gpu_hours, usd, f"${share:,.2f} with its share of {_shared_of(month)}")
        for team, usd, share in zip(month.teams, held, shares, strict=True)
    ]


def _shared_of(month: Month) -> str:
    return "idle and shared" if month.unshared else "idle, shared and commitments"


def notes(month: Month) -> list[str]:
    """Notes that a reader needs to judge the figures: how they were come by, and how far they agree."""
    used, idle, shared = month.split
    own, whole = month.commitment_cents, used + idle + shared + month.commitment_cents
    out = [
        f"teams ${used:,.2f} + idle ${idle:,.2f} + shared ${shared:,.2f}"
        + (f" + commitments ${own:,.2f}" if own else "")
        + f" = ${whole:,.2f}",
        *_basis(month),
        *_of_hours(month),
        f"idle is priced at its own nodes' rate, ${month.idle.rate:,.4f}; at the month's blended rate of "
        f"${month.total.rate:,.4f} it would be ${month.idle_at_blended:,.2f}",
        f"charged for what they held, teams pay ${used:,.2f}: ${whole - used:,.2f} is not recovered; "
        f"with their shares they pay all of it{_but(month)}",
    ]
    if month.billed is not None:
        billed, metered = round_usd(month.billed), round_usd(month.metered)
        days = count_of(month.billed_days, "whole day")
        out.append(
            f"billed ${billed:,.2f} for {days} on which the meter counted "
            f"${metered:,.2f}: {_signed(billed - metered)} is unexplained"
        )
    if month.egress:
        out.append(f"of the bill, ${month.egress:,.2f} is for data that was moved (egress)")
    out += [correction_sentence(one) + (f" ({name})" if name else "") for name, one in month.learnt]
    out += [_of_unit(month, unit, count) for unit, count in month.units]
    out += _odd(month)
    out += [
        f"paid for and unused, in no line: {each.gpu_hours:,.1f} GPU-hours of pool {each.pool}"
        + (_worth(each.usd, each.effective) if each.usd is not None else ", whose price is not known")
        for each in month.paid_idle
    ]
    if month.unpriced:
        out.append(f"in no line, for their price is not known: {', '.join(month.unpriced)}")
    return out


def _of_hours(month: Month) -> Iterator[str]:
    """Shares of the GPU-hours, where there are any. What is shared, as a boot, is no use of a GPU."""
    if hours := month.total.gpu_hours:
        held, shared = month.used.gpu_hours / hours, month.shared.gpu_hours / hours
        yield (
            f"of the GPU-hours teams held {_percent(held)}, idle were {_percent(month.idle_share)}, "
            f"shared, as boots are, {_percent(shared)}; on spot were {_percent(month.spot_share)}"
        )


def _worth(usd: Usd, effective: Usd) -> str:
    """Dollars of what was paid for and unused: a bill's, on demand, or of both."""
    if effective in (0, usd):
        return f", ${usd:,.2f} {'effective' if effective else 'on demand'}"
    return f", ${usd:,.2f}: ${effective:,.2f} effective, the rest on demand"


def _basis(month: Month) -> Iterator[str]:
    """Which dollars these are."""
    if month.basis is not None:
        told = f", ${month.told:,.2f} of it" if month.told is not None else ""
        yield (
            f"dollars are {month.basis} ones ({_BASES[month.basis]}) where a bill tells them{told}; "
            "else they are metered, by the policy's prices"
        )


def _but(month: Month) -> str:
    if not month.unshared:
        return ""
    return f" but ${month.commitment_cents:,.2f} of commitments, which prices.unused_commitments shares with nobody"


def _of_unit(month: Month, unit: str, count: Decimal) -> str:
    """Cost of one of a unit; of a thousand where they are requests."""
    if unit == REQUESTS:
        return f"${1000 * month.total.usd / count:,.4f} for each thousand of {count:,} {unit}"
    return f"${month.total.usd / count:,.4f} for each of {count:,} {unit}"


def _odd(month: Month) -> Iterator[str]:
    """The odd hours by day and pool, the dearest first, each with what was behind its worst hour."""
    groups: dict[tuple[str, str, str], list[Anomaly]] = {}
    for name, one in month.anomalies:
        groups.setdefault((name, f"{one.at:%Y-%m-%d}", one.pool), []).append(one)
    ordered = sorted(groups.items(), key=lambda group: -sum(one.more for one in group[1]))
    for (name, day, _), odd in ordered[:ODD]:
        worst = max(odd, key=lambda one: one.more)
        more, where = sum((one.more for one in odd), Decimal(0)), f" ({name})" if name else ""
        yield f"odd: {count_of(len(odd), 'hour')} of {day} cost ${more:,.2f} above what is usual{where}: {cause(worst)}"
    if len(ordered) > ODD:
        yield f"odd: {len(ordered) - ODD} more days and pools; --json has all"


def render(month: Month) -> RenderableType:
    """The report for a terminal."""
    blocks: list[RenderableType] = [
        Text(
            f"{month.first} to {month.last}: ${month.total.usd:,.2f} for {month.total.gpu_hours:,.1f} GPU-hours",
            style="bold",
        )
    ]
    for title, lines in parts(month):
        table = Sheet(
            Column(kind="name"), *2 * [Column(kind="figure")], Column(style="dim"), title=heading(month, title)
        )
        for line, held in zip(lines, _tenths(month, lines), strict=True):
            style = "yellow" if line.name == "idle" else ""
            table.add(Text(line.name, style=style), f"{held:,.1f} h", f"${line.usd:,.2f}", line.note)
        if lines:
            blocks += ["", table]
    return Group(*blocks, "", *(Text(note, style="dim") for note in notes(month)))


def _tenths(month: Month, lines: Sequence[Line]) -> list[Decimal]:
    """Hours in tenths, which add up; those of what was held to the tenths that stand beside "used"."""
    hours = [line.gpu_hours for line in lines]
    whole = sum(hours, Decimal(0))
    return cents(hours, month.held_hours(TENTH) if whole == month.used.gpu_hours else whole, TENTH)


def as_csv(month: Month) -> str:
    """One row a line: part, name, GPU-hours, dollars."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("part", "name", "gpu_hours", "usd"))
    for title, lines in parts(month):
        writer.writerows((title, plain_name(line.name), f"{line.gpu_hours:f}", f"{line.usd:f}") for line in lines)
    return out.getvalue()


def plain_name(name: str) -> str:
    """A name that no spreadsheet takes for a formula: names come from labels that anyone may set."""
    # A carriage return would end the row for some readers; it is shown by its escape.
    return visible_text(f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else name)


def _percent(share: Decimal) -> str:
    return f"{100 * share:.1f} %"


def _signed(usd: Usd) -> str:
    return f"{'-' if usd < 0 else ''}${abs(usd):,.2f}"
