"""Whose a node's time was between two looks: by when it became ready, when pods started and when the last one ended.

A look shows who holds a node now. Pods tell since when, so that what is new holds from its start and not from the look;
what is gone holds until the look that misses it, or, on a node that fell idle, until that moment.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from pilotlight.decide.money.gpu_shares import shares
from pilotlight.facts.capacity import Node
from pilotlight.facts.money.bill import Holder, MeteredNode

Owner = tuple[str, str, str]
"""Team, project and class."""


class Told(NamedTuple):
    """A node's word at a look on the time before. ``idle_since`` only while nobody holds it."""

    ready_since: datetime | None
    idle_since: datetime | None
    held: tuple[tuple[Owner, Fraction, datetime | None], ...]


def node_times(node: Node, gpus: int) -> Told:
    """The node's own times; each pod's part of it with its start."""
    held = shares(node, gpus)
    whole = max(Fraction(gpus), sum((share for _, share in held), Fraction(0))) or Fraction(1)
    own = tuple(((pod.team, pod.namespace, pod.workload_class), share / whole, pod.started_at) for pod, share in held)
    return Told(node.ready_since if node.ready else None, None if held else node.idle_since, own)


def spans(
    node: MeteredNode, says: Told, since: datetime, at: datetime
) -> Iterator[tuple[datetime, tuple[Holder, ...], int, bool]]:
    """The time from the look at ``since`` to that at ``at`` in spans: each one's end, who held it, and if it was ready.

    ``node`` is as the look before left it.
    """
    before = {(h.team, h.project, h.workload_class): Fraction(h.parts, node.parts) for h in node.holders}
    edges = {says.ready_since, says.idle_since, *(start for _, _, start in says.held)}
    begin = since
    for end in [*sorted(edge for edge in edges if edge and since < edge < at), at]:
        ready = node.ready or (says.ready_since is not None and says.ready_since <= begin)
        gone = says.idle_since is not None and since < says.idle_since <= begin
        yield end, *_holders({} if gone else before, _started(says, begin)), ready
        begin = end


def _started(says: Told, by: datetime) -> dict[Owner, Fraction]:
    """Shares that pods that are there now held at a moment already."""
    sums: dict[Owner, Fraction] = {}
    for owner, share, start in says.held:
        if start is not None and start <= by:
            sums[owner] = sums.get(owner, Fraction(0)) + share
    return sums


def _holders(before: Mapping[Owner, Fraction], now: Mapping[Owner, Fraction]) -> tuple[tuple[Holder, ...], int]:
    """Holders with their parts, of how many: those of now, and in what they leave those of before."""
    held = dict(now)
    room = max(Fraction(0), 1 - sum(now.values(), Fraction(0)))
    for owner, share in sorted(before.items()):
        more = min(room, max(Fraction(0), share - now.get(owner, Fraction(0))))
        if more:
            held[owner] = held.get(owner, Fraction(0)) + more
            room -= more
    parts = lcm(*(share.denominator for share in held.values())) if held else 1
    return tuple(Holder(*owner, int(share * parts)) for owner, share in sorted(held.items())), parts
