"""Makes a decision's record fit the store: a plan over thousands of pods keeps its counts and its first names.

What acting and recovery read is never cut: calls, their outcomes, nodes to release. Messages may be, because they are
made anew from the plan and its outcomes, and a warning that was not told is told by the next look.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from pilotlight.facts.decisions import PodGroup, Record
from pilotlight.ports import LARGEST

KEPT = (1000, 100, 10, 1, 0)
"""Names kept of each list, tried in this order."""


def fitted(record: Record, write: Callable[[Record], bytes]) -> bytes:
    """The record as written, with as many names as fit."""
    written = write(record)
    for most in KEPT:
        if len(written) <= LARGEST:
            break
        written = write(_trimmed(record, most))
    return written


def _trimmed(record: Record, most: int) -> Record:
    plan = record.plan
    kept = tuple(node for node in plan.nodes if node.verdict == "keep")[:most]
    less = msgspec.structs.replace(
        plan,
        buys=tuple(msgspec.structs.replace(b, demands=b.demands[:most], shapes=b.shapes[:most]) for b in plan.buys),
        pods=tuple(_named(group, most) for group in plan.pods[:most]),
        nodes=kept + plan.releases,
        findings=plan.findings[:most],
    )
    cut = msgspec.structs.replace(record, plan=less, messages=record.messages[:most])
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
    }
