"""Text of ``pilotlight why``: pods with the options rejected, nodes, calls, and what a decision came to."""

from collections.abc import Iterator, Sequence

from pilotlight.facts.decisions import Buy, NodeVerdict, Record
from pilotlight.facts.money.bill import NodeCost
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.workload import CLAIM_REFUSED, Finding
from pilotlight.flow.alerts.wording import line
from pilotlight.tools.glance.node_origin import Origin
from pilotlight.tools.report.texts.plan_head import head_of_record, names
from pilotlight.tools.report.texts.would_change import would_change
from pilotlight.units import an_hour, cents

FATE = {"bought": "to be bought", "booting": "node on its way", "finding": "to mend"}
"""Verdicts of a look, which buys nothing, in the live page's words."""


def is_subject_of(record: Record, subject: str) -> bool:
    """True of a decision that is, or names, a subject: a pod, a node, an instance, an offering."""
    return (
        record.id == subject
        or any(True for _ in groups_about(record, subject))
        or any(True for _ in nodes_about(record, subject))
        or any(True for _ in findings_about(record, subject))
    )


def groups_about(record: Record, subject: str) -> Iterator[PodGroup]:
    """Those of a subject, or all of them where there is none."""
    for group in record.plan.pods:
        if subject in ("", record.id, group.where) or names_pod(group, subject):
            yield group


def names_pod(group: PodGroup, subject: str) -> bool:
    """True of pods of which a subject is one, by its name with or without the namespace, or by its uid."""
    return subject in (*group.pods, *group.uids, *(pod.partition("/")[2] for pod in group.pods))


def findings_about(record: Record, subject: str) -> Iterator[Finding]:
    """Findings on a subject that no group of pods tells: a pod that waits for a scheduling gate has none."""
    told = {uid for group in record.plan.pods for uid in group.uids}
    for finding in record.plan.findings:
        named = subject in (finding.subject, finding.subject.partition("/")[2], finding.uid)
        if subject and named and finding.uid not in told and finding.code != CLAIM_REFUSED:
            yield finding


def is_of_team(group: PodGroup, team: str) -> bool:
    """True of pods that a team pays for, and of a namespace's of that name: a team is its namespace by default, though
    another may pay for it.
    """
    return group.team == team or any(pod.partition("/")[0] == team for pod in group.pods)


def nodes_about(record: Record, subject: str) -> Iterator[NodeVerdict]:
    """Verdicts on nodes of a subject; without one, and of a whole decision, the releases."""
    for node in record.plan.nodes:
        if (
            (not subject and node.verdict == "release")
            or subject == node.node
            or subject == node.instance
            or (subject == record.id and node.verdict == "release")
        ):
            yield node


def decision_lines(record: Record, subject: str, team: str) -> Iterator[str]:
    """One decision as people read it: of a subject and a team, where they are given."""
    yield f"{record.at:%Y-%m-%d %H:%M:%S} UTC  decision {record.id}  ({record.flow}, for {record.trigger})"
    if record.flow != "reclaim":  # It buys nothing and releases nothing.
        yield from (f"  {word:<8}  {text}" for word, text in head_of_record(record))
    groups = [group for group in groups_about(record, subject) if not team or is_of_team(group, team)]
    for group in groups:
        yield from _group_lines(record, group)
    for finding in findings_about(record, subject):
        yield f"  {finding.subject}: finding {finding.code}"
        yield f"    because {finding.message}"
    for unused in record.plan.paid_idle:
        yield f"    paid for and unused then: {unused}"
    for node in nodes_about(record, subject):
        yield from node_lines(node)
    for call, step in record.calls_with_steps:
        price = f" at ${call.usd_per_hour}/h each: {call.why}" if isinstance(call, Buy) else ""
        yield f"  {line(step)}{price}"
    for held in record.plan.held:
        if not any(held.why in group.why for group in groups):
            yield f"  would {held.call} {held.target}: {held.why}"
    if record.flow != "reclaim":
        yield f"  {record.status}"


def _group_lines(record: Record, group: PodGroup) -> Iterator[str]:
    """Pods alike: the verdict, what it became, and what else there was."""
    yield from pod_lines(group, *record.became(group))
    for claim in _refused_claims(record, group):
        yield f"    {claim.subject} {claim.message}"


def pod_lines(group: PodGroup, verdict: str, why: str) -> Iterator[str]:
    """Pods alike, with a verdict and its reason: their class, and what else there was."""
    more = len(group.pods) + group.unnamed - 3
    pods = ", ".join(group.pods[:3]) + (f" and {more} more" if more > 0 else "")
    yield f"  {pods}: {verdict} {group.where}".rstrip()
    yield f"    because {why}"
    if group.workload_class:
        reason = f": {group.class_reason}" if group.class_reason else ""
        yield f"    as {group.workload_class}{reason}"
    yield from _not_taken(why, group)
    for line_ in would_change(group, reasons=False):
        yield f"    would have changed it: {line_}"


def _not_taken(told: str, group: PodGroup) -> Iterator[str]:
    """Idle nodes and offerings that were not taken, equal reasons once; what the verdict has ``told`` is no news."""
    found: dict[str, list[str]] = {}
    for idle in group.idle:
        found.setdefault(idle.why, []).append(f"on idle node {idle.node}")
    for option in group.rejected:
        usd = option.usd_per_useful_hour if option.code != "dearer" else None  # Its reason begins with the price.
        price = f" ({cents(usd)} per useful hour)" if usd else ""
        found.setdefault(option.why, []).append(f"{option.offering}{price}")
    for why, given in found.items():
        yield f"    not {names(given)}: {'as above' if why in told else why}"


def _refused_claims(record: Record, group: PodGroup) -> list[Finding]:
    """Findings on claims that pods of the group's namespaces made and may not."""
    spaces = {pod.partition("/")[0] for pod in group.pods}
    found = (one for one in record.plan.findings if one.code == CLAIM_REFUSED)
    return [one for one in found if one.subject.partition("/")[0] in spaces]


def node_lines(node: NodeVerdict) -> Iterator[str]:
    """A node: its verdict, its price, and what blocks its drain."""
    yield f"  node {node.node}: {node.verdict}, {an_hour(node.usd_per_hour)}"
    yield f"    because {node.why}"
    for blocker in node.blockers:
        yield f"    blocked by {blocker}"


def origin_line(found: Origin) -> str:
    """A line on the decision that bought a node, and for which pods."""
    if not found.decision:
        return f"node {found.node} was bought by no decision of the last 30 days"
    pods = f"for {names(found.pods)}" if found.pods else f"({found.why})"
    return f"node {found.node} was bought {pods} by decision {found.decision}"


def cost_lines(record: Record, came_to: Sequence[NodeCost]) -> Iterator[str]:
    """Lines on the true cost of the nodes that a decision bought, once they are over; a bill's word comes last."""
    for cost in came_to:
        if cost.decision != record.id:
            continue
        if cost.billed_usd is not None:
            yield f"  node {cost.node} was billed {cents(cost.billed_usd)} ({cost.source})"
        else:
            lived = f"{cost.since:%Y-%m-%d %H:%M} to {cost.ended_at:%Y-%m-%d %H:%M} UTC"
            yield f"  node {cost.node} came to {cents(cost.usd)}, metered from {lived}"
