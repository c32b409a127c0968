"""Limits of GPUs for Karpenter's NodePools, made of dollars: what Karpenter counts, and further nodes with a budget.

A limit is the GPUs that Karpenter counts, and those of as many whole nodes as every hard budget has room for. A node
takes of a budget what it would be held for with the longest run of the classes that may use it. Karpenter checks a
limit against its own count: claims that are being deleted are not in it while they drain and bill, and a replacement
runs beside its old node (kubernetes-sigs/karpenter, ``pkg/controllers/state``). So dollars are kept for both, and what
will expire is taken for uncounted ahead of time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import NamedTuple

import msgspec

from pilotlight.decide.offers.selection import allows
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.money.gates import GateState
from pilotlight.facts.money.money_policy import LitCaps
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import count_of

AHEAD = timedelta(minutes=5)
"""A claim that expires within so long counts as gone: Karpenter frees its GPUs at once, we look once a minute."""
DISRUPTED, INITIALIZED = "karpenter.sh/disrupted", "karpenter.sh/initialized"
"""Karpenter's taint of nodes that it means to delete, and its label of those that it has seen ready."""


class PoolShare(NamedTuple):
    """A gated pool's part in the dollars: ``each`` is what a node takes of each meter, ``takes`` how many of that each
    further node takes, the first one first: two where it may be replaced beside others. It gets no more nodes."""

    pool: str
    weight: int
    takes: Sequence[int]
    each: Mapping[str, Decimal]


class Count(NamedTuple):
    """GPUs that Karpenter counts, nodes that nobody holds for (claims without one, replacements), those that stay."""

    gpus: int
    owed: int
    stay: int = 0


def split(shares: Sequence[PoolShare], free: Mapping[str, Decimal]) -> dict[str, int]:
    """Further nodes of each pool: whole ones, within every meter.

    Of each meter nodes are given in turn, the next one to the pool that has the fewest dollars for its weight, until
    that does not fit: more dollars never mean fewer nodes.
    """
    found = {share.pool: len(share.takes) for share in shares}
    for meter, dollars in free.items():
        for pool, nodes in _in_turn([s for s in shares if s.each.get(meter)], meter, dollars).items():
            found[pool] = min(found[pool], nodes)
    return found


def _in_turn(shares: Sequence[PoolShare], meter: str, dollars: Decimal) -> dict[str, int]:
    given = {share.pool: 0 for share in shares}
    turns = [(s.each[meter] * s.takes[0] / s.weight, s.pool, s, s.each[meter] * s.takes[0]) for s in shares if s.takes]
    heapify(turns)
    while turns:
        key, pool, share, usd = turns[0]
        if usd > dollars or key.is_infinite():
            break
        dollars -= usd
        given[pool] += 1
        full = given[pool] >= len(share.takes)
        more = Decimal("Infinity") if full else share.each[meter] * share.takes[given[pool]]
        heapreplace(turns, (key + more / share.weight, pool, share, more))
    return given


def as_in_pool(policy: Policy, offering: Offering) -> Policy:
    """The policy as if each class had the rules of one that may use an offering: of the longest run that such one has.

    A class may not whose capacity types, listed models or least memory rule it out, or that no namespace may claim.
    """
    found = [name for name in DEFAULT_CLASSES if _may_use(name, policy.of_class(name), offering)]
    claimed = {name for claims in policy.claims.values() for name in claims.classes or DEFAULT_CLASSES}
    if "*" in policy.claims:  # Every namespace has an entry.
        found = [name for name in found if name in claimed]
    longest = max(found or DEFAULT_CLASSES, key=lambda name: policy.of_class(name).longest_run_s)
    classes = {name: policy.of_class(name if name in found else longest) for name in DEFAULT_CLASSES}
    return msgspec.structs.replace(policy, classes=classes)


def _may_use(name: WorkloadClass, rules: ClassPolicy, offering: Offering) -> bool:
    kind, models = offering.capacity_type, rules.gpu_models
    return (
        (allows(rules, kind) or (rules.fallback == "allow" and kind == "on-demand"))
        and not (kind == "spot" and name == "serving")
        and (not isinstance(models, tuple) or offering.gpu_model in models)
        and offering.gpu_memory_gib >= rules.min_gpu_memory
    )


def cap_takes(offering: Offering) -> dict[str, Decimal]:
    """What a node takes of each cap on what is lit."""
    return {"nodes": Decimal(1), "gpus": Decimal(offering.gpus), "usd_per_hour": offering.usd_per_hour}


def caps_left(caps: LitCaps, lit: Mapping[str, int], offerings: Mapping[str, Offering]) -> dict[str, Decimal]:
    """What each cap leaves beside so many nodes of each pool."""
    left = {key: Decimal(cap) for key in LitCaps.__struct_fields__ if (cap := getattr(caps, key)) is not None}
    for pool in lit.keys() & offerings.keys():
        takes = cap_takes(offerings[pool])
        left = {key: most - lit[pool] * takes[key] for key, most in left.items()}
    return left


def count_gpus(state: GateState, nodes: Mapping[str, Node], now: datetime) -> Count:
    """The GPUs that Karpenter goes on counting, and the nodes that cost, or may, and are held for by nobody.

    Of an initialised node Karpenter counts what its plugin shows: what many of them lack together may open a node more.
    """
    gpus = owed = stay = lack = each = 0
    for claim in state.claims:
        node = nodes.get(claim.node)
        owed += node is None
        marked = node is not None and any(taint.key == DISRUPTED for taint in node.taints)
        if claim.going or marked or (claim.ends_at is not None and claim.ends_at <= now + AHEAD):
            continue
        stay += 1
        has = claim.gpus or 0
        gpus, each = gpus + has, max(each, has)
        if node is not None and node.labels.get(INITIALIZED) == "true":
            lack += max(0, has - node.gpus)
    return Count(gpus - (lack // each * each if each else 0), owed + state.surge(stay), stay)


def open_nodes(state: GateState, count: Count, gpus: int) -> int:
    """Nodes that Karpenter may still light under a limit of ours as it stands, with those that may replace some of
    them; none where no limit of ours does."""
    if state.limit is None or state.before is None:
        return 0
    more = max(0, -(-(state.limit - count.gpus) // gpus))
    return more + state.surge(count.stay + more) - state.surge(count.stay)


def refusal(state: GateState, rules: PoolPolicy, offering: Offering, nodes: Sequence[Node]) -> str:
    """Why a NodePool is not opened, with what to write instead; or empty."""
    if state.unread:
        return f"it cannot be read: {state.unread}"
    if state.given:
        return f"it was handed back at {state.given}: pilotlight takeover --pool {state.nodepool} takes it again"
    if state.static:
        return "it is static: remove spec.replicas, as Karpenter takes no limit of GPUs beside it"
    if state.types != (rules.instance_type,):
        named = ", ".join(state.types[:3]) or "none"
        return (
            f"its requirements name {named} as node.kubernetes.io/instance-type: name {rules.instance_type} alone, the "
            f"type whose price is held"
        )
    if state.capacity_types != (rules.capacity_type,):
        named = ", ".join(state.capacity_types) or "none"
        return f"its requirements name {named} as karpenter.sh/capacity-type: name {rules.capacity_type} alone"
    for claim in state.claims:
        if claim.gpus not in (None, offering.gpus) and claim.type in ("", rules.instance_type):
            return (
                f"NodeClaim {claim.name} says {count_of(claim.gpus or 0, 'GPU')} in its status.capacity and has "
                f"{offering.gpus}: Karpenter counts what it says; no limit holds where a NodeOverlay changes it"
            )
    for node in nodes:
        if node.labels.get(INITIALIZED) == "true" and (not node.gpus or node.gpus > offering.gpus):
            return (
                f"node {node.name} shows {count_of(node.gpus, 'GPU')} and has {offering.gpus}: Karpenter counts what "
                f"it shows; no limit holds where MIG, time-slicing or DRA share GPUs"
            )
    return ""


def further_nodes(state: GateState, rules: PoolPolicy, count: Count, gpus: int) -> list[int]:
    """What each further node takes, itself and what may replace it beside the others. There are no more than the
    policy's ``max`` lets, and the limit from before ours."""
    most = rules.max - len(state.claims)
    most = most if state.cap is None else min(most, (state.cap - count.gpus) // gpus)
    surges = [state.surge(count.stay + n) for n in range(max(0, most) + 1)]
    return [1 + after - before for before, after in pairwise(surges)]
