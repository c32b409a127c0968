"""Which queued work is let in: that whose pods all have room on ready nodes. Where there is no money it comes again.

Where another makes the nodes of the pool it would be bought for, it is let in on dollars alone. Whatever else keeps
it waiting is waited for: its nodes boot, or are tried again at the next look. Nothing is rejected.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from math import ceil
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.economics import stop_s
from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.decisions import Buy, Plan
from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.pod_verdicts import Code, PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import AMD, NVIDIA, CheckAnswer, PodDemand, Queued, QueuedSet
from pilotlight.units import MILLI_PER_GPU

NO_MONEY: tuple[Code, ...] = ("budget", "step", "cap")


class DollarGate(NamedTuple):
    """A Workload to be let in once the dollars of these nodes are held; ``why`` nobody here makes them.

    ``offering`` is that of the first of them.
    """

    of: Queued
    nodes: tuple[Terms, ...]
    why: str
    offering: str


def answers(view: ClusterView, plan: Plan) -> Iterator[CheckAnswer]:
    """An answer for each Workload that gets one now. One that waits on is pinned to no node of an earlier answer."""
    groups = {uid: group for group in plan.pods for uid in group.uids}
    asked = {finding.uid for finding in plan.findings if finding.uid} | {pod.uid for pod in view.pending}
    nodes = {node.name: node for node in view.nodes}
    for queued in view.queued:
        uids = _uids(queued, asked)
        known = all(uid in groups for uid in uids)  # Else a person must mend it, or the plan was shortened.
        refused = refused_group(queued, groups) if known else None
        if refused is not None:
            yield CheckAnswer(of=queued, state="Retry", message=refused.why)
        elif known and all(groups[uid].verdict == "fits" for uid in uids):
            yield _ready(queued, groups, nodes)
        elif queued.pinned:
            yield CheckAnswer(of=queued, state="Pending", message="waits for its nodes")


def refused_group(queued: Queued, groups: Mapping[str, PodGroup]) -> PodGroup | None:
    """The first of a Workload's pods, by the groups of a plan, that there is no money for."""
    found = (groups[uid] for each in queued.sets for uid in each.uids if uid in groups)
    return next((group for group in found if group.verdict == "refused" and group.code in NO_MONEY), None)


def on_dollars(
    view: ClusterView, plan: Plan, offerings: Iterable[Offering], policy: Policy, others: Mapping[str, str]
) -> Iterator[DollarGate]:
    """The Workloads that wait for nodes which another makes (``others``: who, by pool), with what is to be held.

    Pods that fit on ready nodes are held for there. Nothing is stretched: nobody here can stop what runs there.
    """
    by_name = {offering.name: offering for offering in offerings}
    fits = {uid for group in plan.pods if group.verdict == "fits" for uid in group.uids}
    pods = {pod.uid: pod for pod in view.pending}
    for queued in view.queued:
        uids = _uids(queued, pods)
        found = _held_for(uids, plan)
        placed = fits.union(*(own for _, own in found))
        if found and placed.issuperset(uids) and all(buy.pool in others for buy, _ in found):
            nodes = [
                terms_
                for buy, own in found
                for terms_ in nodes_for(
                    by_name[buy.offering], [pods[uid] for uid in own], policy, buy.count / len(buy.demands)
                )
            ]
            first = found[0][0]
            yield DollarGate(of=queued, nodes=tuple(nodes), why=others[first.pool], offering=first.offering)


def _uids(queued: Queued, known: Container[str]) -> list[str]:
    """Those of a Workload's pods that are known."""
    return [uid for each in queued.sets for uid in each.uids if uid in known]


def _held_for(uids: Sequence[str], plan: Plan) -> list[tuple[Buy, list[str]]]:
    """Purchases for some of these pods that are held back, each with those pods."""
    buys = [held.buy for held in plan.held if held.buy is not None]
    return [(buy, own) for buy in buys if (own := [uid for uid in uids if uid in buy.demands])]


def nodes_for(offering: Offering, pods: Sequence[PodDemand], policy: Policy, share: float = 0) -> Iterator[Terms]:
    """The nodes that a Workload's pods take for themselves: by their GPUs, and at least a ``share`` of one each."""
    shapes = [pod.shape for pod in pods]
    gpus = sum(shape.gpu.total_milli for shape in shapes if shape.gpu.resource in (NVIDIA, AMD)) / MILLI_PER_GPU
    count = max(ceil(gpus / max(1, offering.gpus)), ceil(share * len(shapes)), 1)
    longest = max(shapes, key=lambda shape: (shape.max_run_s == 0, shape.max_run_s))
    made = terms(
        offering,
        policy,
        workload_class=longest.workload_class,
        team=longest.team,
        max_run_s=longest.max_run_s,
        stop_s=stop_s(pods),
    )
    return repeat(msgspec.structs.replace(made, stretch_s=0), count)


def _ready(queued: Queued, groups: Mapping[str, PodGroup], nodes: Mapping[str, Node]) -> CheckAnswer:
    on = sorted({groups[uid].where for uid in _uids(queued, groups)})
    pins = {each.name: pin for each in queued.sets if (pin := _pin(each, groups, nodes))}
    message = f"ready: {', '.join(on[:5])}{' and more' if len(on) > 5 else ''}" if on else "it asks for no GPU"
    return CheckAnswer(of=queued, state="Ready", message=message, selectors=pins)


def _pin(each: QueuedSet, groups: Mapping[str, PodGroup], nodes: Mapping[str, Node]) -> dict[str, str]:
    """The type of the nodes that are meant for a pod set, where it is one, and the set does not select it itself."""
    found: Sequence[Node | None] = [nodes.get(groups[uid].where) for uid in each.uids if uid in groups]
    types = {node.labels.get(INSTANCE_TYPE, "") if node is not None else "" for node in found}
    kind = types.pop() if len(types) == 1 else ""
    return {INSTANCE_TYPE: kind} if kind and INSTANCE_TYPE not in each.selects else {}
