"""``pilotlight why``: past decisions about a pod, a node or a pool, from their records, and why a node is there now.

Nothing is decided about a node that stays, so there is no record of it: the cluster is looked at instead. So it is for
a pod that the next decision is the first about.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pilotlight.errors import BadInput, Failed, PilotlightError
from pilotlight.facts.decisions import NodeVerdict, Record
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.money.bill import NodeCost
from pilotlight.facts.place.pod_verdicts import NOT_HELPED, PodGroup
from pilotlight.ports.state import State
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import cluster_line
from pilotlight.tools.report.texts.interruption_text import is_about, lines
from pilotlight.tools.report.texts.plan_head import names
from pilotlight.tools.report.texts.why_text import (
    FATE,
    cost_lines,
    decision_lines,
    groups_about,
    is_of_team,
    is_subject_of,
    names_pod,
    node_lines,
    origin_line,
    pod_lines,
)

if TYPE_CHECKING:
    from pilotlight.decide.interruption.give_way import GiveWay
    from pilotlight.facts.capacity import BoundPod
    from pilotlight.facts.decisions import Plan
    from pilotlight.flow.observe.snapshot import Snapshot
    from pilotlight.tools.glance.new_nodes import NewNode
    from pilotlight.tools.glance.node_origin import Origin
    from pilotlight.wiring import App

    Looked = tuple[Snapshot, Plan]

SHOWN = 5
"""Decisions that are printed; ``--json`` gives all."""


AGO = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(why)


def why(
    subject: Annotated[
        str,
        typer.Argument(help="A pod (namespace/name, name or uid), a node, an instance, a decision, or an alert."),
    ] = "",
    team: Annotated[str, typer.Option(help="Decisions on pods of this team, or of the namespace of its name.")] = "",
    since: Annotated[str, typer.Option(help="From when on: 2h, 3d, or 2026-11-20T08:00Z.")] = "",
    until: Annotated[str, typer.Option(help="Up to when, written alike.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="All records, as JSON.")] = False,
) -> None:
    """Explain past decisions, the newest first, and what would have changed them; of a node also why it is kept now.

    An alert is named by its fingerprint, which stands last in it.

    Example: [bold]pilotlight why ml-research/train-0[/bold], [bold]pilotlight why --team nlp --since 2h[/bold]
    """
    from pilotlight.wiring import app

    if not (subject or team or since or until):
        raise BadInput("name a pod, a node, an alert or a decision; or --team, --since and --until")
    wired = app(deployed_settings())
    first, last = (_moment(text, wired.state.now()) if text else None for text in (since, until))
    asked = Asked(_of_alert(wired, subject), team, first, last)
    known = _known(wired, asked)
    head = cluster_line(
        known=bool(known.now or known.origins or known.interrupted) or _looked(wired.state, wired.settings.cluster_name)
    )
    if not (known.records or known.interrupted or known.now or known.origins):
        raise Failed(_nothing(wired, asked, since, until))
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        there = (*known.origins, *known.now, *known.ways, *known.interrupted)
        typer.echo(json_text([*there, *known.records, *known.costs, *known.steps]))
    else:
        from pilotlight.tools.cli.printing import say

        say([head])
        _show(known, asked)


def _nothing(wired: "App", asked: "Asked", since: str, until: str) -> str:
    """One line where no decision is as it was asked for."""
    from pilotlight.state_schema.lease_records import FENCE

    cluster = wired.settings.cluster_name
    others = sorted({entry.name for entry in FENCE.scan(wired.state)} - {cluster})
    hint = (
        f"PILOTLIGHT_CLUSTER={others[0]} asks another" if others else "pilotlight status shows nodes and waiting pods"
    )
    where = f"of cluster {cluster}; {hint}"
    span = "".join(f" {word} {text}" for word, text in (("since", since), ("until", until)) if text)
    if asked.subject:
        among = f"{f' for team {asked.team!r}' if asked.team else ''}{span}"
        return f"nothing known about {asked.subject!r}: no decision of the last 30 days names it{among}, {where}"
    if not asked.team:
        return f"no decision of the last 30 days was made{span}, {where}"
    known = sorted({group.team for record in records(wired.state, cluster) for group in record.plan.pods if group.team})
    teams = f"; decisions are for {names(known)}" if known else ""
    return f"no decision of the last 30 days is for team {asked.team!r}{span}{teams}, {where}"


class Asked(NamedTuple):
    """A question: about a subject, a team's pods and a span of time, each where it is given."""

    subject: str
    team: str
    first: datetime | None
    last: datetime | None

    def covers(self, record: Record) -> bool:
        """True of a decision in the span, for the team."""
        return (
            (self.first is None or record.at >= self.first)
            and (self.last is None or record.at <= self.last)
            and (not self.team or any(is_of_team(group, self.team) for group in record.plan.pods))
        )


class Known(NamedTuple):
    """All that is known of what was asked."""

    origins: "list[Origin]"  # Purchases of the node.
    now: list[NodeVerdict | PodGroup]  # Verdicts on a node as it stands, or on a pod that waits.
    ways: "list[GiveWay]"  # Pods that could give way to a pod that waits.
    interrupted: list[Interruption]  # Interruptions of the subject.
    records: list[Record]  # Decisions, the newest first.
    costs: list[NodeCost]  # Costs of the nodes that those bought.
    steps: "list[NewNode]"  # Time until pods work on new nodes of the pools that those bought of.


def _known(wired: "App", asked: Asked) -> Known:
    """Answers from the records; of a subject that none of them names in its pods also from a look at the cluster."""
    state, cluster, subject = wired.state, wired.settings.cluster_name, asked.subject
    costs, kept = _costs(state, cluster), records(state, cluster)
    covered = [record for record in kept if asked.covers(record)]
    named = _names_pods(covered, subject)
    seen, origins = (None, []) if named or not subject else _of_node(wired, subject, kept)
    bought = _bought(costs, subject) | {one.decision for one in origins}
    found = [record for record in covered if not subject or record.id in bought or is_subject_of(record, subject)]
    shown = {record.id for record in found}
    return Known(
        origins=origins,
        interrupted=_interruptions(state, cluster, subject) if subject else [],
        now=_now(seen, subject),
        ways=_ways(wired, found[0], subject) if named else [],
        records=found,
        costs=[cost for cost in costs if cost.decision in shown],
        steps=_steps(state, cluster, found[:SHOWN]),
    )


def _names_pods(found: Sequence[Record], subject: str) -> bool:
    """True where a decision's pods are what was asked for: then it is no node."""
    return any(True for record in found for _ in groups_about(record, subject))


def _bought(costs: Sequence[NodeCost], node: str) -> set[str]:
    """Decisions that bought the node or instance of that name."""
    return {cost.decision for cost in costs if node in (cost.node, cost.instance)}


def _show(known: Known, asked: Asked) -> None:
    """Answers as people read them."""
    from pilotlight.tools.cli.printing import say

    say(map(origin_line, known.origins))
    for one in known.now:
        fate = FATE.get(one.verdict, one.verdict)
        say(("now", *(pod_lines(one, fate, one.why) if isinstance(one, PodGroup) else node_lines(one))))
    if known.ways:
        from pilotlight.tools.report.texts.give_way_text import SHOWN as PAIRS
        from pilotlight.tools.report.texts.give_way_text import section

        say([*section(known.ways, PAIRS)][1:])
    for interruption in known.interrupted:
        say(lines(interruption))
    for record in known.records[:SHOWN]:
        say((*decision_lines(record, asked.subject, asked.team), *cost_lines(record, known.costs)))
    if known.steps:
        from pilotlight.tools.report.texts.first_work_text import steps_line

        say(map(steps_line, known.steps))
    if len(known.records) > SHOWN:
        say([f"and {len(known.records) - SHOWN} earlier; --json shows all"])


def _of_node(wired: "App", subject: str, kept: Sequence[Record]) -> "tuple[Looked | None, list[Origin]]":
    """A look, and the purchases of the node of that name, of the decisions that are kept."""
    from pilotlight.tools.glance.node_origin import origins

    settings, seen = wired.settings, _look(wired)
    if settings.cluster_name not in wired.clusters:
        return seen, []
    known = {record.id: record for record in kept}
    try:
        deps = wired.for_cluster(settings.cluster_name).deps
    except BadInput:  # A state is asked whose cluster is not set up here.
        return seen, []
    return seen, list(origins(deps, subject, seen[0] if seen else None, known, wired.state.now()))


def _now(seen: "Looked | None", subject: str) -> "list[NodeVerdict | PodGroup]":
    """Verdicts on the node, also on that where the pod runs, or on the pod that waits, as a look gives them now."""
    if seen is None:
        return []
    held = {node.name for node in seen[0].view.nodes for pod in node.gpu_pods if subject in _names(pod)}
    nodes = [node for node in seen[1].nodes if subject in (node.node, node.instance) or node.node in held]
    return [*nodes, *(group for group in seen[1].pods if names_pod(group, subject))]


def _names(pod: "BoundPod") -> tuple[str, ...]:
    return pod.uid, pod.name, f"{pod.namespace}/{pod.name}"


def _ways(wired: "App", newest: Record, subject: str) -> "list[GiveWay]":
    """Pods that could give way at this moment to one that waited for money or capacity at the newest decision."""
    if not any(group.verdict in NOT_HELPED for group in newest.plan.pods):
        return []
    from pilotlight.decide.interruption.give_way import give_way, short_of

    short = {name for group in short_of(newest.plan) for name in (*group.pods, *group.uids)}
    if not any(subject in (name, name.partition("/")[2]) for name in short):
        return []
    seen = _look(wired)
    if seen is None:
        return []
    snapshot, plan = seen
    policy = wired.for_cluster(wired.settings.cluster_name).deps.policy
    return give_way(plan, snapshot.view, snapshot.memory, policy, snapshot.now, named=subject)


def _look(wired: "App") -> "Looked | None":
    """A look at this moment, where a cluster outside this process is named and can be looked at."""
    from pilotlight.flow.cycle.planning import preview

    settings = wired.settings
    if settings.cluster_name not in wired.clusters or not (settings.api or settings.clusters or settings.world):
        return None
    from pilotlight.tools.glance.drained_nodes import with_drains

    deps = wired.for_cluster(settings.cluster_name).deps
    try:
        snapshot, plan = preview(deps, releases=True)
        return snapshot, with_drains(deps, snapshot, plan)
    except PilotlightError as error:
        typer.echo(f"the cluster cannot be looked at now: {error}", err=True)
        return None


def _steps(state: State, cluster: str, found: Sequence[Record]) -> "list[NewNode]":
    """Until when a pod works on a new node, of each pool that these decisions bought of, where it is learned."""
    bought = {buy.pool: buy.offering.split("/")[1] for record in found for buy in record.plan.buys}
    if not bought:
        return []
    from pilotlight.flow.records.ledger import recall
    from pilotlight.tools.glance.new_nodes import new_nodes

    return list(new_nodes(recall(state, cluster).memory.first_work, dict(sorted(bought.items()))))


def _moment(text: str, now: datetime) -> datetime:
    """A moment, or how long ago."""
    number, unit = text[:-1], text[-1:]
    try:
        if unit in AGO and number.isdigit():
            return now - int(number) * AGO[unit]
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadInput(f"{text!r} is no time: write 2h, 3d, or 2026-11-20T08:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _of_alert(wired: "App", subject: str) -> str:
    """The decision of an alert with that fingerprint; else the subject as it is."""
    from pilotlight.state_schema.alert_records import PROOF, WAITING

    if "/" not in subject:
        return subject
    told = (entry.value.alert for table in (PROOF, WAITING) for entry in table.scan(wired.alerts))
    return next((alert.decision for alert in told if alert.fingerprint == subject and alert.decision), subject)


def _interruptions(state: State, cluster: str, subject: str) -> list[Interruption]:
    from pilotlight.flow.budgets.interruption_records import every

    return [found for found in every(state, cluster) if is_about(found, subject)]


def records(state: State, cluster: str) -> list[Record]:
    """Every decision's record of a cluster, the newest first."""
    from pilotlight.flow.records.ledger import filed_records

    return filed_records(state, cluster)[::-1]


def _looked(state: State, cluster: str) -> bool:
    """Whether the cluster was ever looked at, or decided on."""
    from pilotlight.state_schema.lease_records import FENCE

    return FENCE.get(state, cluster) is not None or bool(records(state, cluster))


def _costs(state: State, cluster: str) -> list[NodeCost]:
    """All that is kept, by the day of the end; a bill's word comes after what was metered."""
    from pilotlight.state_schema.billing_records import COST

    return [entry.value for entry in COST.scan(state, f"{cluster}/")]
