"""A plan as people read it: what is bought, one line of reason per pod and per node, dollars before and after."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from rich.text import Text

from pilotlight.facts.decisions import Buy, NodeVerdict, Plan
from pilotlight.facts.place.pod_verdicts import PodGroup, Rejected, Verdict
from pilotlight.facts.workload import CLAIM_REFUSED, Finding
from pilotlight.units import an_hour, cents

SHOWN_PODS = 20
"""Pods of one shape that are named one by one; of more, only the first."""

_STYLES: dict[Verdict | Literal["keep", "release"], str] = {
    "fits": "green",
    "booting": "cyan",
    "bought": "bold green",
    "waiting": "yellow",
    "refused": "red",
    "finding": "red",
    "noticed": "yellow",
    "snoozed": "yellow",
    "rested": "cyan",
    "woken": "green",
    "spared": "green",
    "keep": "green",
    "release": "bold yellow",
}


def lines(plan: Plan, at: datetime, source: str) -> Iterator[Text]:
    """The plan line by line. ``source`` says which policy and prices it was made with."""
    yield Text.assemble((f"Dry run at {at:%Y-%m-%d %H:%M:%S} UTC", "bold"), f" with {source}. Nothing is changed.")
    yield from _section("Buy", [_buy(b) for b in plan.buys], "nothing")
    yield from _section("Pods", [line for group in plan.pods for line in _pods(group)], "no GPU pod waits")
    yield from _section("Nodes", [line for node in plan.nodes for line in _node(node)], "no GPU node")
    told = {uid for group in plan.pods if group.verdict == "finding" for uid in group.uids}
    findings = [_finding(f) for f in plan.findings if f.code != CLAIM_REFUSED and (not f.uid or f.uid not in told)]
    yield from _section("To mend (no node would help)", findings)
    yield from _section("Claims that do not count", [_finding(f) for f in plan.findings if f.code == CLAIM_REFUSED])
    yield from _section("Paid for and unused", [Text(f"  {idle}", style="yellow") for idle in plan.paid_idle])
    yield from _section("Dollars", [_dollars(plan)])


def _section(title: str, body: Sequence[Text], empty: str = "") -> Iterator[Text]:
    """A section: its title over its lines, or over the word for none; left out where there are neither."""
    if body or empty:
        yield Text()
        yield Text(title, style="bold")
        yield from body or [Text(f"  {empty}", style="dim")]


def _buy(buy: Buy) -> Text:
    price = cents(buy.count * buy.usd_per_hour)
    return Text.assemble("  ", (f"{buy.count} x {buy.offering}", "bold green"), f"  {price}/h: {buy.why}")


def _pods(group: PodGroup) -> Iterator[Text]:
    many = len(group.pods) > SHOWN_PODS
    for name in group.pods[:1] if many else group.pods:
        yield _line(group.verdict, name, group.where, group.why)
    if many:
        yield Text(f"            and {len(group.pods) - 1} more of the same shape, for the same reason", style="dim")
    if group.workload_class:
        yield _detail("class", f"{group.workload_class} ({group.class_reason})")
    for node in group.idle:
        yield _detail("idle", f"{node.node}: {node.why}")
    for rejected in group.rejected:
        yield _detail("not", _rejected(rejected))


def _node(node: NodeVerdict) -> Iterator[Text]:
    yield _line(node.verdict, node.node, f"{node.pool or 'no pool'}, {an_hour(node.usd_per_hour)}", node.why)
    for blocker in node.blockers:
        yield _detail("blocked", blocker)


def _finding(finding: Finding) -> Text:
    return _line("finding", finding.subject, finding.code, finding.message)


def _line(verdict: Verdict | Literal["keep", "release"], name: str, where: str, why: str) -> Text:
    place = f"  [{where}]" if where else ""
    return Text.assemble("  ", (f"{verdict:<8}", _STYLES[verdict]), f"  {name}{place}: {why}")


def _detail(what: str, text: str) -> Text:
    return Text(f"            {what}: {text}", style="dim")


def _rejected(rejected: Rejected) -> str:
    usd = rejected.usd_per_useful_hour
    price = f" ({cents(usd)} per useful hour and pod)" if usd is not None and rejected.code != "dearer" else ""
    return f"{rejected.offering}{price}: {rejected.why}"


def _dollars(plan: Plan) -> Text:
    before, after = round(plan.usd_per_hour_before, 2), round(plan.usd_per_hour_after, 2)
    change = after - before  # Of what is shown.
    sign = "+" if change > 0 else "-" if change < 0 else ""
    return Text(f"  {cents(before)}/h now, {cents(after)}/h after this plan ({sign}{cents(abs(change))}/h)")
