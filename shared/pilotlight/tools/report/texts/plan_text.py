"""A plan as people read it: five lines, then a line for each group of pods and for nodes alike; options where asked."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec
from rich.text import Text

from pilotlight.facts.decisions import Held, NodeVerdict, Plan
from pilotlight.facts.money.gates import LIMITED, GateLimit
from pilotlight.facts.place.pod_verdicts import NOT_HELPED, PodGroup, Rejected, Verdict
from pilotlight.facts.workload import CLAIM_REFUSED, Finding
from pilotlight.tools.report.texts.plan_head import GATES, head, other_findings
from pilotlight.units import an_hour, cents, count_of

SHOWN_PODS = 20
"""Pods of one shape that are named one by one where options are asked for."""

REASONS = 3
"""Reasons that stand under pods without help; all of them where options are asked for."""

USEFUL_HOUR = "a useful hour is an hour's work as a GPU of speed 1 does it; its node's boot and idle minutes are in it"

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


class Source(NamedTuple):
    """What a plan is of: the cluster with the state, and the policy with the prices."""

    of: str
    by: str


def lines(plan: Plan, at: datetime, source: Source, options: bool = False) -> Iterator[Text]:
    """The plan line by line; ``options``: with what else there was."""
    yield from _opening(plan, at, source)
    others = [*other_findings(plan)]
    unread = [_finding(f) for f in others if f.uid]
    yield from _section("Pods", [*_pods(plan.pods, options), *unread], "no GPU pod waits")
    yield from _section("Nodes", [*_nodes(plan.nodes, options)], f"no GPU node{_yet(plan)}")
    yield from _section("Limits of Karpenter's NodePools", [_limit(gate) for gate in plan.gates])
    yield from _section("Waiting for something else", [_finding(f) for f in plan.findings if f.code in GATES])
    yield from _section("Held by a brake", [_held(one) for one in plan.held])
    yield from _section("To mend", [_finding(f) for f in others if not f.uid])
    yield from _section("Claims that do not count", [_finding(f) for f in plan.findings if f.code == CLAIM_REFUSED])
    yield from _section("Paid for and unused", [Text(f"  {idle}", style="yellow") for idle in plan.paid_idle])
    if not options and any(group.rejected or group.idle for group in plan.pods):
        yield Text()
        yield Text(
            "The options of each pod: --why, or --why POD; every offering with its price: --offerings", style="dim"
        )


def lines_about(plan: Plan, subject: str, at: datetime, source: Source) -> Iterator[Text]:
    """The opening, and all that a plan says of one pod or node; nothing where it says nothing of it."""
    pods = tuple(group for group in plan.pods if _names(group, subject))
    nodes = tuple(node for node in plan.nodes if subject in (node.node, node.instance))
    findings = [one for one in plan.findings if is_named(one.subject, subject) or (one.uid and one.uid == subject)]
    if not (pods or nodes or findings):
        return
    yield from _opening(plan, at, source)
    told = {group.why for group in pods}
    yield from _section("Pods", [*_pods([_with_first(group, subject) for group in pods], True)])
    yield from _section("Nodes", [*_nodes(nodes, True)])
    yield from _section("Findings", [_finding(finding) for finding in findings if finding.message not in told])


def _names(group: PodGroup, subject: str) -> bool:
    return any(is_named(pod, subject) for pod in (*group.pods, *group.uids))


def _with_first(group: PodGroup, subject: str) -> PodGroup:
    """The group with the pod first that is asked about."""
    return msgspec.structs.replace(group, pods=tuple(sorted(group.pods, key=lambda pod: not is_named(pod, subject))))


def is_named(full_name: str, subject: str) -> bool:
    """True of a pod that is named whole, or without its namespace."""
    return subject in (full_name, full_name.partition("/")[2])


def _limit(gate: GateLimit) -> Text:
    """A gated pool: its limit now, the one that would be set, and why."""
    now, then = gate.now or "none", "left as it is" if gate.limit is None else str(gate.limit)
    usd = f"; a node takes {cents(gate.usd_a_node)}" if gate.usd_a_node else ""
    changed = now if now == then else f"{now} -> {then}"
    return Text(f"  {gate.pool} (NodePool {gate.nodepool}): {LIMITED} {changed}: {gate.why}{usd}")


def _opening(plan: Plan, at: datetime, source: Source) -> Iterator[Text]:
    """What the plan is of, and its five lines."""
    yield Text(source.of)
    yield Text.assemble((f"Dry run at {at:%Y-%m-%d %H:%M:%S} UTC", "bold"), f", {source.by}. Nothing is changed.")
    yield Text()
    for word, text in head(plan):
        yield Text.assemble("  ", (f"{word:<8}", "bold"), f"  {text}")


def _yet(plan: Plan) -> str:
    """Where none is there, but one was bought."""
    return " yet: what was bought is on its way" if any(group.verdict == "booting" for group in plan.pods) else ""


def _section(title: str, body: Sequence[Text], empty: str = "") -> Iterator[Text]:
    """A section: its title over its lines, or over the word for none; left out where there are neither."""
    if body or empty:
        yield Text()
        yield Text(title, style="bold")
        yield from body or [Text(f"  {empty}", style="dim")]


def _pods(groups: Iterable[PodGroup], options: bool) -> Iterator[Text]:
    """A line a group. Useful hours are explained where they first stand."""
    explained = False
    for group in groups:
        more = len(group.pods) + group.unnamed - 1
        yield _line(group.verdict, group.pods[0] + (f" and {more} more" if more else ""), group.where, group.why)
        if not explained and "useful hour" in group.why:
            yield _detail(f"({USEFUL_HOUR})")
            explained = True
        if options:
            yield from _options(group)
        elif group.verdict in NOT_HELPED:
            yield from map(_detail, _reasons(group))


def _options(group: PodGroup) -> Iterator[Text]:
    """The pods, their class, idle nodes and offerings that were not taken, equal reasons once."""
    if len(group.pods) > 1:
        left = len(group.pods) + group.unnamed - SHOWN_PODS
        yield _detail(f"pods: {', '.join(group.pods[:SHOWN_PODS])}{f' and {left} more' if left > 0 else ''}")
    if group.workload_class:
        yield _detail(f"class: {group.workload_class} ({group.class_reason})")
    idle = dict(_by_reason((node.why, node.node) for node in group.idle))
    refused = dict(_by_reason((_rejected(no), no.offering) for no in group.rejected))
    for why in dict.fromkeys((*idle, *refused)):
        nodes, offerings = idle.get(why, ()), refused.get(why, ())
        named = [_either(nodes, "idle node")] if nodes else []
        named += [_either(offerings, "offering")] if offerings else []
        reason = "as above" if why in group.why and offerings else why
        yield _detail(f"{'not' if offerings else 'idle'}: {' and '.join(named)}: {reason}")


def _reasons(group: PodGroup) -> Iterator[str]:
    """Offerings that were not chosen, by the first reasons that the verdict does not say itself."""
    every = [*_by_reason((_rejected(no), no.offering) for no in group.rejected)]
    every = [(why, offerings) for why, offerings in every if why not in group.why]
    for why, offerings in every[:REASONS]:
        yield f"{_either(offerings, 'offering')}: {why}"
    if len(every) > REASONS:
        yield f"and {count_of(len(every) - REASONS, 'other reason')}"


def _by_reason(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Each reason once, with all that it is the reason of, in the order of the first."""
    found: dict[str, list[str]] = {}
    for why, name in pairs:
        found.setdefault(why, []).append(name)
    return iter(found.items())


def _either(given: Sequence[str], thing: str) -> str:
    """One by its name, several by their number."""
    return given[0] if len(given) == 1 else count_of(len(given), thing)


def _rejected(rejected: Rejected) -> str:
    usd = rejected.usd_per_useful_hour
    price = f" ({cents(usd)} per useful hour and pod)" if usd is not None and rejected.code != "dearer" else ""
    return f"{rejected.why}{price}"


def _nodes(nodes: Sequence[NodeVerdict], options: bool) -> Iterator[Text]:
    """A line a node, or for neighbours of which the same is said."""
    for _, alike in groupby(nodes, key=lambda n: (n.verdict, n.pool, n.usd_per_hour, n.why, n.blockers)):
        first, *others = alike
        name = first.node + (f" and {len(others)} more" if others else "")
        where = f"{first.pool or 'no pool'}, {an_hour(first.usd_per_hour)}"
        yield _line(first.verdict, name, where, first.why)
        if options and others:
            yield _detail(f"nodes: {', '.join([first.node, *(node.node for node in others)])}")
        for blocker in first.blockers:
            yield _detail(f"blocked: {blocker}")


def _held(held: Held) -> Text:
    return Text(f"  {held.call:<8}  {held.target}: {held.why}", style="yellow")


def _finding(finding: Finding) -> Text:
    return _line("finding", finding.subject, finding.code, finding.message)


def _line(verdict: Verdict | Literal["keep", "release"], name: str, where: str, why: str) -> Text:
    place = f"  [{where}]" if where else ""
    return Text.assemble("  ", (f"{verdict:<8}", _STYLES[verdict]), f"  {name}{place}: {why}")


def _detail(text: str) -> Text:
    return Text(f"            {text}", style="dim")
