"""Events on a decision's pods and nodes, with the outcome: `kubectl describe` is where people look first.

At most one a pod and change: what was bought and when it is ready, why nothing was, with the figures and the next try;
on a node that it was given back, or what kept it. Best effort: the decision is written, and its alerts are out already.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from pilotlight.facts.decisions import Buy, CallStep, NodeVerdict, Record
from pilotlight.facts.labels import KEPT, NO_GPU_NODE, NODE_BOUGHT, RELEASED, WAITS
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.flow.alerts.wording import mark
from pilotlight.flow.deps import Deps
from pilotlight.units import an_hour

MOST_OWNERS = 50
"""Of one group so many pods get an Event of their own."""


class Said(NamedTuple):
    """One Event: on "namespace/pod" or a node, and the change that it is about."""

    about: str
    reason: str
    message: str
    change: str


def on_objects(deps: Deps, record: Record) -> None:
    """Write the Events of a decision whose steps are known; once some cannot be written no more are tried."""
    if deps.policy.events == "none":
        return
    told = (partial(_tell, deps, said) for said in (*_on_pods(deps, record), *_on_nodes(record)))
    for row in deps.write_in_rows(told):
        if not all(row):
            return


def _tell(deps: Deps, said: Said) -> bool:
    namespace, _, name = said.about.rpartition("/")
    return deps.tell(namespace, name, said.reason, said.message, said.change)


def _on_pods(deps: Deps, record: Record) -> Iterator[Said]:
    new = {message.key for message in record.messages}
    for group in record.plan.pods:
        if (said := _of_group(record, group, new)) is not None:
            yield from (said._replace(about=pod) for pod in group.pods[:MOST_OWNERS])
    for found in record.plan.findings:
        if found.uid and mark(f"finding-{found.code}", (found.subject,)) in new:
            yield Said(found.subject, NO_GPU_NODE, found.message, found.code)


def _of_group(record: Record, group: PodGroup, new: set[str]) -> Said | None:
    """The Event that is new for the pods of a group; None where nothing is."""
    verdict, why = record.became(group)
    if verdict == "bought":
        return Said("", NODE_BOUGHT, _bought(record, group), record.id)
    if group.verdict == "bought":
        return Said("", NO_GPU_NODE, f"{why}; {_next_try(record)}", f"{group.where} {record.id}")
    if group.verdict == "refused" and mark("refused", group.pods) in new:
        return Said("", NO_GPU_NODE, f"refused: {why}; {_next_try(record)}", group.code or "refused")
    if group.code == "deadline" and mark("deadline", group.pods) in new:
        return Said("", WAITS, group.why, "deadline")
    held = next((h for h in record.plan.held if h.buy is not None and h.target == group.where), None)
    stopped = held is not None and any(key.startswith(f"stopped/grow/{held.action.pool}/{held.target}") for key in new)
    if group.verdict == "waiting" and held is not None and stopped:
        return Said("", NO_GPU_NODE, f"{why}; {_next_try(record)}", held.code)
    return None


def _bought(record: Record, group: PodGroup) -> str:
    buy = next((buy for buy in record.plan.buys if buy.offering == group.where), None)
    if buy is None:  # A record that was shortened.
        return f"bought {group.where}: {group.why}"
    ready = (record.at + timedelta(seconds=buy.boot_s)).strftime("%H:%M")
    what = f"{buy.count} x {buy.offering} at {an_hour(buy.usd_per_hour)} each"
    return f"bought {what}, ready by about {ready} UTC: {group.why}"


def _next_try(record: Record) -> str:
    at: datetime | None = record.plan.look_again_at
    return f"tried again at {at:%H:%M} UTC" if at is not None else "looked at again every minute"


def _on_nodes(record: Record) -> Iterator[Said]:
    for call, step in record.calls_with_steps:
        if isinstance(call, Buy) or not call.registered:
            continue
        if step.state == "done":
            yield Said(call.node, RELEASED, _released(call), record.id)
        elif step.state in ("denied", "revoked") and step.code not in ("gone", "overtaken"):
            yield Said(call.node, KEPT, _kept(call, step), step.code or step.state)


def _released(node: NodeVerdict) -> str:
    price = f", {an_hour(node.usd_per_hour)} less" if node.usd_per_hour is not None else ""
    return f"{'stopped to stand by' if node.stop else 'given back'} by Pilotlight{price}: {node.why}"


def _kept(node: NodeVerdict, step: CallStep) -> str:
    price = f" at {an_hour(node.usd_per_hour)}" if node.usd_per_hour is not None else ""
    return f"kept{price}: {step.note or step.state}; it was to go, for {node.why}"
