"""Which queued work is let in: that whose pods all have room on ready nodes. Where there is no money it comes again.

Where another makes the nodes of the pool it would be bought for, it is let in on dollars alone. A ready node that
another's budget holds is no gift: its own budget holds it first. Whatever else keeps
it waiting is waited for: its nodes boot, or are tried again at the next look. Nothing is rejected.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import repeat
from math import ceil
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.budget_limits import most, part_of, terms
from pilotlight.decide.money.economics import stop_s
from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.decisions import Buy, Plan
from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.pod_verdicts import Code, PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import AMD, NVIDIA, CheckAnswer, PodDemand, Queued, QueuedSet
from pilotlight.units import MILLI_PER_GPU

NO_MONEY: tuple[Code, ...] = ("budget", "unpaid", "step", "cap")


class DollarGate(NamedTuple):
    """A Workload to be let in once the dollars of these nodes, of ``offering``, are held; ``why`` nobody here makes
    them. ``selectors`` pin its pods to what is held for, by pod set."""

    of: Queued
    nodes: tuple[Terms, ...]
    why: str
    offering: str
    selectors: dict[str, dict[str, str]]


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

    Pods that fit on ready nodes are held for there. Nothing is stretched: nobody here can stop what runs there. Where
    the policy's pool says of which type its nodes are labelled, its pods are pinned to that; else another may give any
    node that does, and the dearest is held for.
    """
    by_name = {offering.name: offering for offering in offerings}
    fits = {uid for group in plan.pods if group.verdict == "fits" for uid in group.uids}
    groups = {uid: group for group in plan.pods for uid in group.uids}
    pods = {pod.uid: pod for pod in view.pending}
    for queued in view.queued:
        uids = _uids(queued, pods)
        found = _held_for(uids, plan)
        placed = fits.union(*(own for _, own in found))
        if not (found and placed.issuperset(uids) and all(buy.pool in others for buy, _ in found)):
            continue
        pin = _type_label(policy, {buy.pool for buy, _ in found})
        nodes: list[tuple[Offering, Terms]] = []
        for buy, own in found:
            mine, share = [pods[uid] for uid in own], buy.count / len(buy.demands)
            may = [by_name[buy.offering]] if pin else _may_give(by_name, groups[own[0]], buy, others)
            dearest = max((_with_terms(each, mine, policy, share) for each in may), key=_dollars)
            nodes += dearest
        first = found[0][0]
        pins = type_pins(queued, policy, {buy.pool for buy, _ in found})
        yield DollarGate(queued, tuple(t for _, t in nodes), others[first.pool], nodes[0][0].name, pins)


def type_pins(queued: Queued, policy: Policy, pools: set[str]) -> dict[str, dict[str, str]]:
    """The labels of the type that the policy says the nodes of these pools carry, for sets that select none."""
    pin = _type_label(policy, pools)
    return {each.name: pin for each in queued.sets if pin and INSTANCE_TYPE not in each.selects}


def _type_label(policy: Policy, pools: set[str]) -> dict[str, str]:
    """The label of the type that the policy says the nodes of these pools carry, where it says one."""
    said = {policy.pools[pool].labels.get(INSTANCE_TYPE, "") for pool in pools if pool in policy.pools}
    kind = said.pop() if len(said) == 1 else ""
    return {INSTANCE_TYPE: kind} if kind else {}


def _may_give(by_name: Mapping[str, Offering], group: PodGroup, buy: Buy, others: Mapping[str, str]) -> list[Offering]:
    """What another may make for these pods: what was chosen, and what does too and is dearer."""
    dearer = (by_name[r.offering] for r in group.rejected if r.code == "dearer" and r.offering in by_name)
    return [by_name[buy.offering], *(each for each in dearer if each.pool in others)]


def _with_terms(
    offering: Offering, pods: Sequence[PodDemand], policy: Policy, share: float
) -> list[tuple[Offering, Terms]]:
    return [(offering, terms_) for terms_ in nodes_for(offering, pods, policy, share)]


def _dollars(nodes: Sequence[tuple[Offering, Terms]]) -> tuple[Decimal, str]:
    return sum((most(terms_) for _, terms_ in nodes), Decimal(0)), nodes[0][0].name


def unpaid_nodes(
    answer: CheckAnswer,
    view: ClusterView,
    plan: Plan,
    offerings: Iterable[Offering],
    policy: Policy,
    held: Mapping[str, Terms],
) -> list[tuple[Offering, Terms]]:
    """The nodes that a Workload is let in to and that are held for by others (``held``: whose, by instance): it will
    hold them, and is held for before it does. What a node does for anybody else is not counted on."""
    by_pool = {offering.pool: offering for offering in offerings}
    where = {uid: group.where for group in plan.pods for uid in group.uids if group.verdict == "fits"}
    uids = {uid for each in answer.of.sets for uid in each.uids}
    on: dict[str, list[PodDemand]] = {}
    for pod in view.pending:
        if pod.uid in uids and pod.uid in where:
            on.setdefault(where[pod.uid], []).append(pod)
    found: list[tuple[Offering, Terms]] = []
    for node in view.nodes:
        offering = by_pool.get(node.pool)
        if offering is None or node.name not in on:
            continue
        asked = next(nodes_for(offering, on[node.name], policy, stretched=True))
        mine = held.get(node.instance or node.name)
        if mine is None or any(part_of(b, mine) < part_of(b, asked) for b in policy.budgets):
            found.append((offering, asked))
    return found


def _uids(queued: Queued, known: Container[str]) -> list[str]:
    """Those of a Workload's pods that are known."""
    return [uid for each in queued.sets for uid in each.uids if uid in known]


def _held_for(uids: Sequence[str], plan: Plan) -> list[tuple[Buy, list[str]]]:
    """Purchases for some of these pods that are held back, each with those pods."""
    buys = [held.buy for held in plan.held if held.buy is not None]
    return [(buy, own) for buy in buys if (own := [uid for uid in uids if uid in buy.demands])]


def nodes_for(
    offering: Offering, pods: Sequence[PodDemand], policy: Policy, share: float = 0, *, stretched: bool = False
) -> Iterator[Terms]:
    """The nodes that a Workload's pods take for themselves: by their GPUs, and at least a ``share`` of one each.

    Their whole run is held for, or, ``stretched``, what a purchase would be.
    """
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
    return repeat(made if stretched else msgspec.structs.replace(made, stretch_s=0), count)


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
