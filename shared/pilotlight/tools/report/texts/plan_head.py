"""Five lines that a plan opens with: purchases, releases, waits for something else, dollars an hour, things to mend."""

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.decisions import BrakeCode, Buy, NodeVerdict, Plan, Record, known_per_hour
from pilotlight.facts.place.pod_verdicts import Code, PodGroup, Verdict
from pilotlight.facts.workload import CLAIM_REFUSED, UNREADABLE, Finding
from pilotlight.units import UsdPerHour, at_least, count_of, of_unknown_price, round_usd

NAMED = 2
"""Pods, nodes and offerings that a line names; more are counted."""

GATES = {
    "scheduling-gated": ("for a scheduling gate", "pod"),
    "own-request": ("for a ProvisioningRequest", "pod"),
    "waits-for-quota": ("for quota", "queue"),
}
"""Findings of work that waits its turn elsewhere, by their codes: its wait, and the word for what waits."""

_FOR: dict[Verdict, str] = {
    "booting": "for nodes on their way",
    "waiting": "for capacity that is not to be had now",
    "refused": "for room under a cap, budget or quota",
}
"""What pods wait for, by their verdict."""

_REFUSED: dict[Code, str] = {
    "cap": "for room under a cap",
    "budget": "for room under a budget",
    "unpaid": "for a budget of their team",
    "step": "for the end of a budget's step",
    "quota": "for room under the account's quota",
}
"""What refused pods wait for, by the code where it says so."""

_BRAKES: dict[BrakeCode, str] = {
    "mode": "for mode act",
    "paused": "for a pool that is paused, or another's",
    "limit": "for the limit of ten minutes",
    "approval": "for an approval",
    "settling": "for an earlier call to land",
}
"""What held calls wait for."""


class Said(NamedTuple):
    """One of the lines: its word, and what it says."""

    word: str
    text: str


def head(plan: Plan) -> tuple[Said, ...]:
    """The five lines of a plan, as it was decided."""
    whole = _in_full(plan)
    return (
        Said("buy", _buys(plan, whole)),
        Said("release", _releases(plan.releases, whole)),
        Said("waits", "; ".join(_waits(plan)) or "nothing"),
        Said("dollars", dollars(plan)),
        Said("to mend", "; ".join(_to_mend(plan)) or "nothing"),
    )


def head_of_record(record: Record) -> tuple[Said, ...]:
    """Those of a decision: of the purchases and the releases also how many did not happen."""
    buy, release, *rest = head(record.plan)
    return (
        Said(buy.word, f"{buy.text}{_missed(record, 'grow', 'bought')}"),
        Said(release.word, f"{release.text}{_missed(record, 'release', 'released')}"),
        *rest,
    )


def names(given: Iterable[str], more: int = 0) -> str:
    """The first names, then how many more there are."""
    every = list(given)
    left = len(every) - NAMED + more
    return ", ".join(every[:NAMED]) + (f" and {left} more" if left > 0 else "")


def dollars(plan: Plan) -> str:
    """Dollars an hour now and after the plan, each rounded once; with all digits where the rounded do not add up."""
    now, change, whole = plan.usd_per_hour_before, _change(plan), _in_full(plan)
    sign = "+" if change > 0 else "-" if change < 0 else ""
    unknown, less = len(plan.unpriced), at_least(abs(change), 0, whole=whole)
    after = at_least(now + change, plan.unpriced_after, whole=whole)
    return (
        f"{at_least(now, unknown, whole=whole)} now, {after} after this plan ({sign}{less}){of_unknown_price(unknown)}"
    )


def _change(plan: Plan) -> UsdPerHour:
    bought = sum((buy.count * buy.usd_per_hour for buy in plan.buys), Decimal(0))
    return bought - known_per_hour(plan.releases)


def _in_full(plan: Plan) -> bool:
    """True where dollars that are rounded to the cent would not add up: all lines give every digit then."""
    now, change = plan.usd_per_hour_before, _change(plan)
    return round_usd(now) + round_usd(change) != round_usd(now + change)


def _buys(plan: Plan, whole: bool) -> str:
    """Nodes by offering, the dearest first."""
    said = _nodes_of([(buy, buy.count) for buy in plan.buys], whole) or "nothing"
    held = _nodes_of([(one.buy, one.count) for one in plan.held if one.buy is not None], whole)
    return f"{said}; held: {held}" if held else said


def _nodes_of(buys: list[tuple[Buy, int]], whole: bool) -> str:
    count: Counter[str] = Counter()
    usd = {}
    for buy, nodes in buys:
        count[buy.offering] += nodes
        usd[buy.offering] = buy.usd_per_hour
    if not count:
        return ""
    order = sorted(count, key=lambda offering: -count[offering] * usd[offering])
    what = names(f"{count[offering]} x {offering}" for offering in order)
    total = sum((count[offering] * usd[offering] for offering in count), Decimal(0))
    return f"{count_of(count.total(), 'node')}, {at_least(total, 0, whole=whole)}: {what}"


def _releases(going: tuple[NodeVerdict, ...], whole: bool) -> str:
    if not going:
        return "nothing"
    unknown = sum(node.usd_per_hour is None for node in going)
    besides = f" and {count_of(unknown, 'unknown price')}" if unknown else ""
    usd = at_least(known_per_hour(going), 0, whole=whole)
    return f"{count_of(len(going), 'node')}, {usd}{besides}: {names(node.node for node in going)}"


def _missed(record: Record, call: str, word: str) -> str:
    """Nodes of ended calls that did not come, or did not go."""
    missed = 0
    for planned, step in record.calls_with_steps:
        if step.call == call and not step.open:
            wanted = 1 if isinstance(planned, NodeVerdict) else planned.count
            missed += wanted - (min(step.count, wanted) if step.state == "done" else 0)
    return f"; {missed} not {word}" if missed else ""


def _waits(plan: Plan) -> Iterator[str]:
    """Waits that no purchase of this plan ends."""
    yield from _pods_that_wait(plan)
    for code, (wait, thing) in GATES.items():
        if gated := [finding.subject for finding in plan.findings if finding.code == code]:
            yield f"{count_of(len(gated), thing)} {wait} ({names(gated)})"
    for brake, what in _BRAKES.items():
        if held := sum(one.count for one in plan.held if one.code == brake):
            yield f"{count_of(held, 'node')} {what}"


def _pods_that_wait(plan: Plan) -> Iterator[str]:
    stopped = {one.buy.offering for one in plan.held if one.buy is not None}
    for verdict, what in _FOR.items():
        groups = [group for group in plan.pods if group.verdict == verdict]
        if verdict == "waiting":  # For a purchase that is held its nodes stand below.
            groups = [group for group in groups if group.where not in stopped]
            if ruled := sum(_size(group) for group in groups if group.code == "rule"):
                yield f"{count_of(ruled, 'pod')} for the end of a rule"
            groups = [group for group in groups if group.code != "rule"]
        yield from _by_wait(groups, what)


def _by_wait(groups: Iterable[PodGroup], what: str) -> Iterator[str]:
    """Pods of a verdict by what they wait for."""
    sizes = Counter[str]()
    for group in groups:
        sizes[_REFUSED.get(group.code, what) if group.verdict == "refused" else what] += _size(group)
    for wait, pods in sizes.items():
        yield f"{count_of(pods, 'pod')} {wait}"


def _to_mend(plan: Plan) -> Iterator[str]:
    groups, every = [group for group in plan.pods if group.verdict == "finding"], list(other_findings(plan))
    unread = [finding.subject for finding in every if finding.code == UNREADABLE]
    if pods := sum(map(_size, groups)) + len(unread):
        first = [*(group.pods[0] for group in groups), *unread]
        yield f"{count_of(pods, 'pod')} that no node would help ({names(first, pods - len(first))})"
    if others := [finding for finding in every if finding.code != UNREADABLE]:
        yield f"{count_of(len(others), 'finding')} ({names(finding.subject for finding in others)})"
    if claims := [finding for finding in plan.findings if finding.code == CLAIM_REFUSED]:
        yield f"{count_of(len(claims), 'claim')} that {'does' if len(claims) == 1 else 'do'} not count"


def other_findings(plan: Plan) -> Iterator[Finding]:
    """Findings that are no group's verdict, no refused claim, and no wait for something else."""
    told = {uid for group in plan.pods if group.verdict == "finding" for uid in group.uids}
    for finding in plan.findings:
        if finding.code not in (CLAIM_REFUSED, *GATES) and not (finding.uid and finding.uid in told):
            yield finding


def _size(group: PodGroup) -> int:
    return len(group.pods) + group.unnamed
