"""The proof of a bill as a table: by node what was metered, billed and effective, and why they differ."""

from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from pilotlight.decide.money.invoice_proof import InvoiceProof, NodeProof
from pilotlight.tools.report.tables.bill_table import signed_dollars
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import cents, count_of, shorten_figure

NOT_BY_NODE = "(not by node)"
CENT = Decimal("0.005")


class Proved(NamedTuple):
    """The whole days from the first to the last, and what they prove."""

    first: date
    last: date
    proof: InvoiceProof


def render(proved: Proved) -> RenderableType:
    """The table, and the one figure below it."""
    columns = (Column("node", "name"), *(Column(name, "figure") for name in ("metered", "billed", "effective", "more")))
    sheet = Sheet(*columns, Column("why"), title=f"{proved.first} to {proved.last}: the bill by node")
    for one in proved.proof.nodes:
        sheet.add(Text(one.node or NOT_BY_NODE), *_figures(one), _why(one))
    sheet.add("all", *_figures(proved.proof.total), _why(proved.proof.total), style="bold")
    return Group(sheet, "", Text(sentence(proved.proof)))


def sentence(proof: InvoiceProof) -> str:
    """Metered against billed in a sentence, with what is unexplained."""
    total, percent = proof.total, proof.percent
    share = f", {percent:.2f} % of {cents(total.billed)} billed" if percent is not None else ", and nothing billed"
    nodes = count_of(sum(abs(one.unexplained) >= CENT for one in proof.nodes), "node")
    lost = f"; {count_of(total.uncounted, 'row')} without an amount" if total.uncounted else ""
    return f"metered {cents(total.metered)}{share}; {cents(proof.unexplained)} unexplained, on {nodes}{lost}"


def plain(proved: Proved) -> dict[str, Any]:
    """All of it for JSON."""
    proof = proved.proof
    return {
        "first": str(proved.first),
        "last": str(proved.last),
        "metered_percent_of_billed": _exact(proof.percent),
        "unexplained": _exact(proof.unexplained),
        "total": _plain(proof.total),
        "nodes": [_plain(one) for one in proof.nodes],
    }


def _plain(one: NodeProof) -> dict[str, Any]:
    return {
        "node": one.node,
        "pool": one.pool,
        "metered": _exact(one.metered),
        "billed": _exact(one.billed),
        "effective": _exact(one.effective),
        "more": _exact(one.more),
        "parts": {cause.replace(" ", "_"): _exact(usd) for cause, usd in one.parts.items()},
        "uncounted": one.uncounted,
    }


def _exact(figure: Decimal | None) -> str | None:
    """A figure to the billionth, without the zeros that a bill's columns have."""
    if figure is None:
        return None
    text = f"{shorten_figure(figure, 9):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _figures(one: NodeProof) -> tuple[str, str, str, str]:
    effective = "-" if one.effective is None else cents(one.effective)
    return cents(one.metered), cents(one.billed), effective, signed_dollars(one.more)


def _why(one: NodeProof) -> str:
    """The parts, the largest first, without those below a cent."""
    parts = sorted(one.parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{cause} {signed_dollars(usd)}" for cause, usd in parts if abs(usd) >= CENT)
