"""Nodes whose GPUs are not well: no room for new pods, given back once no GPU pod is on them, and told.

A pod runs as long as it can, or its own rules end it: only a class that says so (``may_move``) has its pods moved.
What replaces the node is bought as any other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.decide.money.economics import billed_cost
from pilotlight.decide.nodes.failed_capacity import resting
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.nodes.gpu_faults import MANY_SICK, NODE_LOST, SHORT_OF_GPUS, SICK_GPU
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, count_of

YOUNG = timedelta(hours=1)
"""A node that is sick so soon says more of its offering than of itself: that rests, and what replaces it is another."""

SETTLES = timedelta(minutes=10)
"""Drivers and those who watch them come up after a node is ready: before, nothing they say is believed."""

MANY, SHARE = 2, 0.5
"""With so many sick at once, and more than this share of the pool, it is a driver or a detector: nothing is done."""


class GpuHealth(NamedTuple):
    """``closed``: nodes that take no new pod, and why. ``verdicts``: those that go. ``findings``: what to know."""

    closed: Mapping[str, str]
    verdicts: tuple[NodeVerdict, ...]
    findings: tuple[Finding, ...]


def judge_gpu_health(nodes: Sequence[Node], by_pool: Mapping[str, Offering], now: datetime) -> GpuHealth:
    """Verdicts on the sick nodes of the policy's pools. ``by_pool`` is one offering a pool."""
    pools: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.pool in by_pool:
            pools[node.pool].append(node)
    closed: dict[str, str] = {}
    gone: list[NodeVerdict] = []
    findings: list[Finding] = []
    for pool, its in sorted(pools.items()):
        offering = by_pool[pool]
        settled = [node for node in its if now - (node.ready_since or node.created_at) >= SETTLES]
        whys = {node.name: why for node in settled if (why := _why(node, its, offering))}
        findings += _short_of(settled, whys, offering)
        findings += _lost(its, whys)
        if len(whys) >= MANY and len(whys) > SHARE * len(its):
            findings.append(_many(pool, whys, len(its)))
            continue
        closed |= whys
        for node in sorted((n for n in its if n.name in whys), key=lambda n: n.name):
            findings.append(_told(node, whys[node.name]))
            if not node.gpu_pods:
                gone.append(_verdict(node, offering, whys[node.name], now))
    return GpuHealth(closed, tuple(gone), tuple(findings))


def close_unhealthy(work: Work) -> None:
    """Keep pods off nodes whose GPUs are not well, and give back those without work."""
    failed = {verdict.node for verdict in work.failed}
    found = judge_gpu_health([node for node in work.staying if node.name not in failed], work.by_pool, work.now)
    work.failed = [*work.failed, *found.verdicts]
    work.findings += found.findings
    work.no_room = {*work.look.leaving, *found.closed}
    work.memory = resting(work.memory, found.verdicts, work.now)


def _why(node: Node, others: Sequence[Node], offering: Offering) -> str:
    """Why its GPUs are not well, or nothing. That some are missing is believed where another of its type has them."""
    if node.sick and (node.ready or node.gpu_pods):  # One that never was ready has its own deadline.
        return node.sick
    if not _short(node, offering):
        return ""
    most = max((n.gpus for n in others if n.ready and n.instance_type == node.instance_type), default=0)
    return (
        f"it shows {count_of(node.gpus, 'GPU')}, and others of {node.instance_type} {most}" if most > node.gpus else ""
    )


def _short(node: Node, offering: Offering | None) -> bool:
    """True for a ready node that shows fewer whole GPUs than its type has; one that is cut into parts shows others."""
    if offering is None or not node.ready or node.slices or offering.slices or node.kinds:
        return False
    return node.resource == offering.resource and 0 < node.gpus < len(offering.devices)


def _verdict(node: Node, offering: Offering, why: str, now: datetime) -> NodeVerdict:
    spent = billed_cost(offering, (now - node.created_at).total_seconds())
    return NodeVerdict(
        node=node.name,
        pool=node.pool,
        instance=node.instance or node.name,
        verdict="release",
        why=f"its GPUs are not well: {why}; it has cost {cents(spent)}",
        usd_per_hour=offering.usd_per_hour,
        failed=True,
        offering=offering.name if now - node.created_at < YOUNG else "",
        spent_usd=spent,
    )


def _told(node: Node, why: str) -> Finding:
    then = f"{len(node.gpu_pods)} pod(s) run on it; it goes once they are done, or moved by their class's may_move"
    message = f"{why}: it takes no new pods; {then if node.gpu_pods else 'it is given back'}"
    return Finding(subject=f"node {node.name}", code=SICK_GPU, message=message)


def _short_of(nodes: Sequence[Node], whys: Mapping[str, str], offering: Offering) -> list[Finding]:
    return [
        Finding(
            subject=f"node {node.name}",
            code=SHORT_OF_GPUS,
            message=f"it shows {node.gpus} of the {count_of(len(offering.devices), 'GPU')} of "
            f"{offering.instance_type}, and no other node has more: nothing is done; look at the driver's log, or mend "
            "the type in the catalogue",
        )
        for node in nodes
        if node.name not in whys and _short(node, offering)
    ]


def _lost(nodes: Sequence[Node], whys: Mapping[str, str]) -> list[Finding]:
    return [
        Finding(
            subject=f"node {node.name}",
            code=NODE_LOST,
            message=f"it is not ready, with {len(node.gpu_pods)} GPU pod(s) bound to it: Kubernetes ends them, "
            "Pilotlight does not",
        )
        for node in nodes
        if node.gpu_pods and not node.ready and node.name not in whys
    ]


def _many(pool: str, whys: Mapping[str, str], all_: int) -> Finding:
    first = min(whys)
    what = f"{len(whys)} of {all_} nodes at once ({first}: {whys[first]})"
    message = f"{what}: nothing is closed or given back; look at the driver and at who watches it"
    return Finding(subject=f"pool {pool}", code=MANY_SICK, message=message)
