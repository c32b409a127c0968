"""One decision as the live page opens it: its pods with options and prices, its nodes, its calls, its brakes."""

from collections.abc import Iterator
from decimal import Decimal

import msgspec

from pilotlight.facts.decisions import Record
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.flow.alerts.wording import line
from pilotlight.tools.report.texts.would_change import would_change
from pilotlight.units import UsdPerHour

GROUPS, OPTIONS, NODES = 20, 12, 20
"""So many groups of pods, options of each, and nodes are shown; the command has all."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An offering: the one chosen, or one that was not, and why. ``usd`` is per useful hour of a pod."""

    offering: str
    chosen: bool = False
    usd: Decimal | None = None
    node_usd: UsdPerHour | None = None  # Of one node, an hour.
    why: str = ""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Pods alike: how many, the first, the verdict as it became, the options, and what would have changed it."""

    pods: int
    first: str
    team: str
    verdict: str
    why: str
    options: tuple[Option, ...] = ()
    more: int = 0  # Options beyond those.
    would: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A whole decision, as far as a page shows it."""

    id: str  # The record's.
    trigger: str  # What made the flow look.
    before: UsdPerHour  # Of what was lit, where prices are known.
    after: UsdPerHour  # The same with the calls made.
    unpriced_before: int = 0  # Nodes without a known price: the dollars are a least.
    unpriced_after: int = 0  # Those of them that stay.
    groups: tuple[Opened, ...] = ()  # Pods alike.
    calls: tuple[str, ...] = ()  # Each with what became of it.
    nodes: tuple[str, ...] = ()  # Those to give back, with the reason.
    held: tuple[str, ...] = ()  # What would be done, but for a brake.
    left_out: int = 0  # Groups and nodes that are not shown.


def decision_of(record: Record) -> Decision:
    """A record's decision."""
    plan = record.plan
    prices = {one.offering: one.usd_per_hour for one in record.basis.prices} if record.basis else {}
    prices |= {buy.offering: buy.usd_per_hour for buy in plan.buys}
    releases = plan.releases
    return Decision(
        id=record.id,
        trigger=record.trigger,
        before=plan.usd_per_hour_before,
        after=plan.usd_per_hour_after,
        unpriced_before=len(plan.unpriced),
        unpriced_after=plan.unpriced_after,
        groups=tuple(_group(record, group, prices) for group in plan.pods[:GROUPS]),
        calls=tuple(line(step) for _, step in record.calls_with_steps[:NODES]),
        nodes=tuple(f"{node.node}: {node.why}" for node in releases[:NODES]),
        held=tuple(f"would {held.call} {held.target}: {held.why}" for held in plan.held[:NODES]),
        left_out=max(0, len(plan.pods) - GROUPS) + max(0, len(releases) - NODES) + sum(record.left_out.values()),
    )


def _group(record: Record, group: PodGroup, prices: dict[str, UsdPerHour]) -> Opened:
    verdict, why = record.became(group)
    options = [*_chosen(group, prices), *_rejected(group, prices)]
    return Opened(
        pods=len(group.pods) + group.unnamed,
        first=group.pods[0] if group.pods else "",
        team=group.team,
        verdict=verdict,
        why=why,
        options=tuple(options[:OPTIONS]),
        more=max(0, len(options) - OPTIONS),
        would=tuple(would_change(group)),
    )


def _chosen(group: PodGroup, prices: dict[str, UsdPerHour]) -> Iterator[Option]:
    if group.where:
        usd = group.usd_per_useful_hour
        yield Option(offering=group.where, chosen=True, usd=usd, node_usd=prices.get(group.where), why="chosen")


def _rejected(group: PodGroup, prices: dict[str, UsdPerHour]) -> Iterator[Option]:
    for one in group.rejected:
        usd = one.usd_per_useful_hour
        yield Option(offering=one.offering, usd=usd, node_usd=prices.get(one.offering), why=one.why)
