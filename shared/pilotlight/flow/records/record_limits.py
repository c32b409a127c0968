"""Makes a decision's record fit the store: a plan over thousands of pods keeps its counts and its first names.

What acting and recovery read is never cut: calls, their steps, nodes to release; so a plan of very many releases
becomes several. Messages may be cut, because they are made anew from the plan and its outcomes, and a warning that was
not told is told by the next look. Terms may be, because holds have records of their own.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime

import msgspec

from pilotlight.facts.decisions import Plan, Record, known_per_hour
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.ports.state import LARGEST

MOST_RELEASES = 300
"""Nodes that one decision gives back: about 400 bytes of its record each."""

KEPT = (1000, 100, 10, 1, 0)
"""Names kept of each list, tried in this order."""


def limit_releases(plan: Plan, now: datetime) -> Plan:
    """A plan of more than ``MOST_RELEASES`` with the first of them; the others stay for the next look, at once."""
    later = {node.node: node for node in plan.releases[MOST_RELEASES:]}
    after = plan.usd_per_hour_after + known_per_hour(later.values())
    why = f"to be released too; one decision releases {MOST_RELEASES} nodes at most"
    nodes = tuple(
        msgspec.structs.replace(node, verdict="keep", why=why) if node.node in later else node for node in plan.nodes
    )
    return msgspec.structs.replace(plan, nodes=nodes, usd_per_hour_after=after, look_again_at=now)


def fitting(record: Record, write: Callable[[Record], bytes]) -> Record:
    """The record with as many names as fit the store, as it is written."""
    less = record
    for most in KEPT:
        if len(write(less)) <= LARGEST:
            break
        less = _trimmed(record, most)
    return less


def _trimmed(record: Record, most: int) -> Record:
    plan = record.plan
    kept = tuple(node for node in plan.nodes if node.verdict == "keep")[:most]
    less = msgspec.structs.replace(
        plan,
        buys=tuple(
            msgspec.structs.replace(
                b, demands=b.demands[:most], homes=b.homes[:most], shapes=b.shapes[:most], terms=b.terms[:most]
            )
            for b in plan.buys
        ),
        pods=tuple(_named(group, most) for group in plan.pods[:most]),
        nodes=kept + plan.releases,
        findings=plan.findings[:most],
    )
    basis = record.basis and msgspec.structs.replace(record.basis, prices=record.basis.prices[:most])
    cut = msgspec.structs.replace(record, plan=less, messages=record.messages[:most], basis=basis)
    return msgspec.structs.replace(cut, left_out=dict(Counter(_counts(record)) - Counter(_counts(cut))))


def _named(group: PodGroup, most: int) -> PodGroup:
    unnamed = max(0, len(group.pods) - most)
    return msgspec.structs.replace(group, pods=group.pods[:most], uids=group.uids[:most], unnamed=unnamed)


def _counts(record: Record) -> dict[str, int]:
    plan = record.plan
    return {
        "groups": len(plan.pods),
        "nodes": len(plan.nodes),
        "findings": len(plan.findings),
        "messages": len(record.messages),
        "prices": len(record.basis.prices) if record.basis else 0,
    }
