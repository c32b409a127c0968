"""The bill beside the meter, as tables: by day and pool, what is learnt, and what is to be billed by it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from pilotlight.decide.money.reconciliation import Compared, Correction
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import Usd, cents, count_of

NO_POOL = "(no pool)"
GUARDS = "budgets, holds and caps are not moved by it: prices.overrides of the policy are what they count with"


class Held(NamedTuple):
    """A cluster's bill and meter. ``awaited`` is metered and not billed: pool, dollars, and what they may come to."""

    cluster: str
    days: tuple[Compared, ...]
    learnt: tuple[Correction, ...]
    awaited: tuple[tuple[str, Usd, Usd], ...]


def render(held: Sequence[Held]) -> RenderableType:
    """The tables of all clusters."""
    blocks: list[RenderableType] = []
    for one in held:
        title = f"{one.cluster}: " if len(held) > 1 else ""
        blocks += [_days(one, title), "", *(Text(line) for line in notes(one)), ""]
    return Group(*blocks[:-1])


def _days(held: Held, title: str) -> Sheet:
    columns = (Column("day", "figure"), Column("pool", "name"), *(Column(n, "figure") for n in _FIGURES), Column(""))
    table = Sheet(*columns, title=f"{title}billed and metered by day and pool")
    for one in held.days:
        doubt = "in doubt: something could not be counted" if one.doubt else ""
        table.add(str(one.day), one.pool or NO_POOL, *_figures(one.billed, one.metered), doubt)
    billed = sum((one.billed for one in held.days), Decimal(0))
    table.add("all", "", *_figures(billed, sum((one.metered for one in held.days), Decimal(0))), "", style="bold")
    return table


_FIGURES = ("billed", "metered", "more", "share")


def _figures(billed: Usd, metered: Usd) -> tuple[str, str, str, str]:
    share = f"{100 * (billed - metered) / metered:+.1f} %" if metered else "-"
    return cents(billed), cents(metered), signed_dollars(billed - metered), share


def signed_dollars(usd: Usd) -> str:
    """An amount with its sign: "-$1.20"."""
    return f"{'-' if usd < 0 else ''}{cents(abs(usd))}"


def notes(held: Held) -> list[str]:
    """Notes on what is learnt, with its date and evidence, and what only metered days will come to by it."""
    out = [correction_sentence(one) for one in held.learnt]
    for pool, usd, coming in held.awaited:
        out.append(f"not billed yet: {_pool(pool)} metered at {cents(usd)}, by what is learnt {cents(coming)}")
    return [*out, GUARDS] if held.learnt else out


def correction_sentence(one: Correction) -> str:
    """A correction in a sentence."""
    limit = "; the days say more than is believed: look for a wrong price or scope" if one.bounded else ""
    return (
        f"{_pool(one.pool)} is billed at {one.factor:.3f} of what is metered, learnt on {one.through} from "
        f"{count_of(one.days, 'day')} ({cents(one.billed)} billed, {cents(one.metered)} metered, spread "
        f"{one.spread:.3f}){limit}"
    )


def _pool(name: str) -> str:
    return f"pool {name}" if name else "the whole bill"


def plain(held: Held) -> dict[str, Any]:
    """All of it for JSON."""
    return {
        "cluster": held.cluster,
        "days": [{**one._asdict(), "more": one.more} for one in held.days],
        "learnt": [one._asdict() for one in held.learnt],
        "awaited": [{"pool": pool, "metered": usd, "corrected": coming} for pool, usd, coming in held.awaited],
    }
