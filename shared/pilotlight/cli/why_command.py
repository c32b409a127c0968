"""``pilotlight why``: past decisions about a pod, a node or a pool, from their records, and why a node is there now.

Nothing is decided about a node that stays, so there is no record of it: the cluster is looked at instead.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import Failed, PilotlightError
from pilotlight.facts.decisions import Buy, NodeVerdict, PodGroup, Record
from pilotlight.facts.interruption import Interruption
from pilotlight.flow.alerts.words import line
from pilotlight.ports import State
from pilotlight.report.interruption_text import about, lines
from pilotlight.settings import deployed
from pilotlight.units import an_hour

if TYPE_CHECKING:
    from pilotlight.wiring import App

SHOWN = 5
"""Decisions that are printed; ``--json`` gives all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(why)


def why(
    subject: Annotated[
        str, typer.Argument(help="A pod (namespace/name, name or uid), a node, an instance, or a decision's id.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="All records, as JSON.")] = False,
) -> None:
    """Explain past decisions, the newest first; of a node also why it is kept now, or goes.

    Example: [bold]pilotlight why ml-research/train-0[/bold]
    """
    from pilotlight.wiring import app

    wired = app(deployed())
    found = [record for record in records(wired.state, wired.settings.cluster_name) if _about(record, subject)]
    interrupted = _interruptions(wired.state, wired.settings.cluster_name, subject)
    now = [] if any(True for record in found for _ in _groups(record, subject)) else _now(wired, subject)
    if not found and not interrupted and not now:
        where = f"of cluster {wired.settings.cluster_name}; another is named by PILOTLIGHT_CLUSTER"
        raise Failed(f"nothing known about {subject!r}: no decision of the last 30 days names it, {where}")
    if as_json:
        from pilotlight.cli.printing import json_text

        typer.echo(json_text([*now, *interrupted, *found]))
        return
    for node in now:
        typer.echo("\n".join(("now", *_node_lines(node))))
    for interruption in interrupted:
        typer.echo("\n".join(lines(interruption)))
    for record in found[:SHOWN]:
        typer.echo("\n".join(_lines(record, subject)))
    if len(found) > SHOWN:
        typer.echo(f"and {len(found) - SHOWN} earlier; --json shows all")


def _now(wired: "App", subject: str) -> list[NodeVerdict]:
    """What a look would do with the node at this moment, where a cluster outside this process is named."""
    from pilotlight.flow.cycle.cycle import dry_run

    settings = wired.settings
    if settings.cluster_name not in wired.clusters or not (settings.api or settings.clusters or settings.world):
        return []
    try:
        plan = dry_run(wired.at(settings.cluster_name).deps, releases=True).plan
    except PilotlightError as error:
        typer.echo(f"the cluster cannot be looked at now: {error}", err=True)
        return []
    return [node for node in plan.nodes if subject in (node.node, node.instance)] if plan else []


def _interruptions(state: State, cluster: str, subject: str) -> list[Interruption]:
    from pilotlight.flow.books.interruptions import every

    return [found for found in every(state, cluster) if about(found, subject)]


def records(state: State, cluster: str) -> list[Record]:
    """Every decision's record of a cluster, the newest first."""
    from pilotlight.flow.memory.ledger import filed_records

    return filed_records(state, cluster)[::-1]


def _about(record: Record, subject: str) -> bool:
    return (
        record.id == subject
        or any(True for _ in _groups(record, subject))
        or any(True for _ in _nodes(record, subject))
    )


def _groups(record: Record, subject: str) -> Iterator[PodGroup]:
    for group in record.plan.pods:
        names = (*group.pods, *group.uids, *(pod.partition("/")[2] for pod in group.pods))
        if subject in (record.id, group.where) or subject in names:
            yield group


def _nodes(record: Record, subject: str) -> Iterator[NodeVerdict]:
    for node in record.plan.nodes:
        if subject == node.node or subject == node.instance or (subject == record.id and node.verdict == "release"):
            yield node


def _lines(record: Record, subject: str) -> Iterator[str]:
    """One decision as people read it."""
    yield f"{record.at:%Y-%m-%d %H:%M:%S} UTC  decision {record.id}  ({record.flow}, for {record.trigger})"
    for group in _groups(record, subject):
        more = len(group.pods) + group.unnamed - 3
        pods = ", ".join(group.pods[:3]) + (f" and {more} more" if more > 0 else "")
        verdict, why = record.became(group)
        yield f"  {pods}: {verdict} {group.where}".rstrip()
        yield f"    because {why}"
        if group.workload_class:
            yield (
                f"    as {group.workload_class}: {group.class_reason}"
                if group.class_reason
                else f"    as {group.workload_class}"
            )
        for idle in group.idle:
            yield f"    not on idle node {idle.node}: {idle.why}"
        for option in group.rejected:
            price = f" (${option.usd_per_useful_hour:.2f} per useful hour)" if option.usd_per_useful_hour else ""
            yield f"    not {option.offering}{price}: {option.why}"
    for unused in record.plan.paid_idle:
        yield f"    paid for and unused then: {unused}"
    for node in _nodes(record, subject):
        yield from _node_lines(node)
    for call, step in record.made:
        price = f" at ${call.usd_per_hour}/h each: {call.why}" if isinstance(call, Buy) else ""
        yield f"  {line(step)}{price}"
    for held in record.plan.held:
        yield f"  would {held.call} {held.target}: {held.why}"
    before, after = record.plan.usd_per_hour_before, record.plan.usd_per_hour_after
    yield f"  ${before}/h before, ${after}/h after; {record.status}"


def _node_lines(node: NodeVerdict) -> Iterator[str]:
    yield f"  node {node.node}: {node.verdict}, {an_hour(node.usd_per_hour)}"
    yield f"    because {node.why}"
    for blocker in node.blockers:
        yield f"    blocked by {blocker}"
