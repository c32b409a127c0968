"""Offerings for pods that wait, as rows: price, fit, dollars a useful hour, and why (not)."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.decisions import Plan
from pilotlight.facts.place.pod_verdicts import NOT_NOW, PodGroup
from pilotlight.facts.workload import CLAIM_REFUSED
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.tools.report.texts.plan_head import GATES, head
from pilotlight.tools.report.texts.plan_text import Source
from pilotlight.units import an_hour, cents

Prices = Mapping[str, Decimal]
"""Dollars an hour by offering."""


class Offer(NamedTuple):
    """One offering for pods of one shape."""

    pods: str
    offering: str
    price: str
    fit: str
    useful_hour: str
    why: str


def offers(plan: Plan, prices: Prices) -> Iterator[Offer]:
    """A row an offering that was weighed, the chosen one first."""
    for group in plan.pods:
        if group.verdict == "bought":
            yield _offer(group, group.where, prices, "chosen", group.usd_per_useful_hour, group.why)
        for no in group.rejected:
            fit = "dearer" if no.code == "dearer" else "not now" if no.code in NOT_NOW else "no"
            yield _offer(group, no.offering, prices, fit, no.usd_per_useful_hour, no.why)


def _offer(group: PodGroup, offering: str, prices: Prices, fit: str, useful: Decimal | None, why: str) -> Offer:
    more = len(group.pods) + group.unnamed - 1
    pods = group.pods[0] + (f" and {more} more" if more else "")
    price = an_hour(prices[offering]) if offering in prices else "-"
    return Offer(pods, offering, price, fit, "-" if useful is None else cents(useful), why)


HEADS = ("for", "offering", "price", "fit", "a useful hour", "because")


def table(plan: Plan, prices: Prices) -> Sheet:
    """The rows as a table."""
    kinds = ("name", "name", "figure", "name", "figure", "words")
    sheet = Sheet(*(Column(head, kind) for head, kind in zip(HEADS, kinds, strict=True)))  # type: ignore[arg-type]
    for offer in offers(plan, prices):
        sheet.add(*offer, style="bold green" if offer.fit == "chosen" else "")
    return sheet


def markdown(plan: Plan, prices: Prices | None, at: datetime, source: Source) -> Iterator[str]:
    """The plan for the comment of a pull request: five lines, reasons, offerings if their prices are given."""
    yield f"### Pilotlight plan at {at:%Y-%m-%d %H:%M:%S} UTC"
    of = f"{source.of[:1].upper()}{source.of[1:]}"
    yield f"\n{_safe(of)}; {_safe(source.by)}. Nothing is changed.\n"
    for word, text in head(plan):
        yield f"- **{word}**: {_safe(text)}"
    yield ""
    for buy in plan.buys:
        yield f"- buy {buy.count} x {_safe(buy.offering)}, {cents(buy.count * buy.usd_per_hour)}/h: {_safe(buy.why)}"
    for node in plan.releases:
        yield f"- release {_safe(node.node)}, {an_hour(node.usd_per_hour)}: {_safe(node.why)}"
    for held in plan.held:
        yield f"- would {held.call} {_safe(held.target)}: {_safe(held.why)}"
    rows = [] if prices is None else list(offers(plan, prices))
    if rows:
        yield f"\n| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}"
    for row in rows:
        yield f"| {' | '.join(_safe(cell) for cell in row)} |"
    for finding in plan.findings:
        word = "Waits" if finding.code in GATES else "Does not count" if finding.code == CLAIM_REFUSED else "To mend"
        yield f"\n{word}: {_safe(finding.subject)}: {_safe(finding.message)}"


def _safe(text: str) -> str:
    """Text that formats, mentions and links nothing, whatever a pod is called."""
    plain = "".join(f"\\{c}" if c in "\\`*_[]<>|#~!" else c for c in " ".join(text.split()))
    return plain.replace("@", "@\u200b").replace("://", ":\u200b//")
