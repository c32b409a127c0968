"""Which queued work is let in: that whose pods all have room on ready nodes. Where there is no money it comes again.

Whatever else keeps it waiting is waited for: its nodes boot, or are tried again at the next look. Nothing is rejected.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import Code, Plan, PodGroup
from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.facts.workload import CheckAnswer, Queued, QueuedSet
from pilotlight.units import Seconds

NO_MONEY: tuple[Code, ...] = ("budget", "step", "cap")
RETRY_S: Seconds = 600
LEAST_S: Seconds = 60
LONGEST_S: Seconds = 3600


def answers(view: ClusterView, plan: Plan, now: datetime) -> Iterator[CheckAnswer]:
    """An answer for each Workload that gets one now."""
    groups = {uid: group for group in plan.pods for uid in group.uids}
    mended = {finding.uid for finding in plan.findings if finding.uid}
    nodes = {node.name: node for node in view.nodes}
    waiting = {pod.uid for pod in view.pending}
    for queued in view.queued:
        uids = [uid for each in queued.sets for uid in each.uids if uid in waiting or uid in mended]
        if any(uid not in groups for uid in uids):
            continue  # A person must mend it, or the plan was shortened.
        refused = next((groups[u] for u in uids if groups[u].verdict == "refused" and groups[u].code in NO_MONEY), None)
        if refused is not None:
            yield CheckAnswer(of=queued, state="Retry", message=refused.why, retry_s=_retry_s(plan, now))
        elif all(groups[uid].verdict == "fits" for uid in uids):
            yield _ready(queued, groups, nodes)


def _retry_s(plan: Plan, now: datetime) -> Seconds:
    if plan.look_again_at is None:
        return RETRY_S
    return min(LONGEST_S, max(LEAST_S, (plan.look_again_at - now).total_seconds()))


def _ready(queued: Queued, groups: Mapping[str, PodGroup], nodes: Mapping[str, Node]) -> CheckAnswer:
    on = sorted({groups[uid].where for each in queued.sets for uid in each.uids if uid in groups})
    pins = {each.name: pin for each in queued.sets if (pin := _pin(each, groups, nodes))}
    message = f"ready: {', '.join(on[:5])}{' and more' if len(on) > 5 else ''}" if on else "it asks for no GPU"
    return CheckAnswer(of=queued, state="Ready", message=message, selectors=pins)


def _pin(each: QueuedSet, groups: Mapping[str, PodGroup], nodes: Mapping[str, Node]) -> dict[str, str]:
    """The type of the nodes that are meant for a pod set, where it is one, and the set does not select it itself."""
    found: Sequence[Node | None] = [nodes.get(groups[uid].where) for uid in each.uids if uid in groups]
    types = {node.labels.get(INSTANCE_TYPE, "") if node is not None else "" for node in found}
    kind = types.pop() if len(types) == 1 else ""
    return {INSTANCE_TYPE: kind} if kind and INSTANCE_TYPE not in each.selects else {}
