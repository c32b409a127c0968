"""Verification of a notice: by what can be real at all, by its times, and by the word of the node and the cloud.

A notice is a hint that anybody may send. ``verified`` is only what the node or its cloud says too; ``disproved`` is
what they contradict, or what cannot be; the rest is ``unverified``, and does no harm that a true one would not do.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.interruption import LEAD_S, NOTICE_S, OUR_OWN, SOONER, Interruption, Truth
from pilotlight.facts.interruption.notice_kinds import (
    ANNOUNCED,
    CONDITIONS,
    LABELS,
    OF_NODE,
    TAINTS,
    WORLD,
    capacity_types,
)
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.units import human

SKEW = timedelta(minutes=2)
"""Clocks differ by so much, and events round their times."""

BOOT = timedelta(minutes=15)
"""An instance is so much older than its node at most."""

AHEAD = timedelta(minutes=10)
"""What is said is not said so long before."""

FAR = timedelta(days=90)
"""Nothing is announced so long ahead: clouds announce maintenance by weeks."""

WAIT = timedelta(minutes=5)
"""A node whose end was told goes on being ready no longer than that: kubelets report every few seconds."""

SAYS_LATE = timedelta(seconds=30)
"""What a cloud's own API says lags so far behind its notices at most."""

NAMELESS_WAIT = timedelta(hours=1)
"""A hook that names no deadline waits so long at most by default."""


class Proof(NamedTuple):
    """Truth of a notice, and the reason in words. ``deadline`` is the cloud's own, where it says one."""

    truth: Truth
    why: str
    deadline: datetime | None = None


def judge(found: Interruption, node: Node, said: InstanceState | None, now: datetime, whose: str = "") -> Proof:
    """Proof, as far as is known now, of a notice about a node that the cluster has. ``said`` is the cloud's word;
    None where it has none. ``whose`` is the cluster's cloud, as its pools name it.
    """
    shown = "" if found.confirmed else marks(node, found.kind)  # A mark says that a node goes, and not when.
    if shown and found.kind != "rebalance":
        return Proof("verified", f"its node says so: {shown}")
    if said is not None and said.there and (_says_when(found, said, now) if found.confirmed else _goes(said, now)):
        return Proof("verified", "the cloud says so too", said.deadline)
    wrong = impossible(found, node, now, whose) or _too_young(found, node, said)
    if wrong:
        return Proof("disproved", wrong)
    if found.cloud == OF_NODE and found.kind not in OUR_OWN:
        return Proof("disproved", "its node shows no such mark")
    if found.kind == "rebalance":
        return _may_go(said)
    if said is not None and said.there and said.going is False:
        return Proof("disproved", "the cloud says that it runs on")
    return _orders(found, said, now) if found.deadline else _ended(found, node, said, now)


def _may_go(said: InstanceState | None) -> Proof:
    """Of what may go: a word that orders nothing, and that few clouds repeat when they are asked."""
    if said is None or not said.there or said.at_risk is None:
        return Proof("unverified", _SILENT)
    if said.at_risk:
        return Proof("verified", "the cloud says so too")
    return Proof("disproved", "the cloud says that it runs on")


def _goes(said: InstanceState, now: datetime) -> bool:
    """True where the cloud's word is of an end to deal with now: a block of capacity has one from its first day."""
    return bool(said.going) and (said.deadline is None or said.deadline - now <= timedelta(seconds=LEAD_S))


def _says_when(found: Interruption, said: InstanceState, now: datetime) -> bool:
    """True where the cloud's word tells which of two ends is so. Its API may say the later one for a while after it has
    told the earlier."""
    if not said.going or said.deadline is None or found.confirmed is None:
        return False
    return found.confirmed.deadline - said.deadline > SOONER or now - found.received_at >= SAYS_LATE


def impossible(found: Interruption, node: Node | None, now: datetime, whose: str = "") -> str:
    """Why a notice cannot be true whatever anybody says, or empty: its times, whose it is, who can get such a one."""
    for at, what in ((found.said_at, "it is dated"), (found.deadline, "its deadline is")):
        if at is not None and abs(at - now) > FAR:
            return f"{what} {at:%Y-%m-%d}: that is no time of a notice that comes now"
    if found.said_at is not None and found.said_at - now > AHEAD:
        return f"it is dated {human((found.said_at - now).total_seconds())} ahead"
    if found.kind in OUR_OWN:
        return ""
    return _of_another(found, whose) or (_not_for(found, node) if node is not None else "")


def _of_another(found: Interruption, whose: str) -> str:
    """A word of a cloud that is not the cluster's. A world's word is taken only where the world is the cloud."""
    if found.cloud in ("", OF_NODE, whose) or whose == WORLD or (not whose and found.cloud != WORLD):
        return ""
    return f"it is {found.cloud}'s, and the cluster's cloud is {whose or 'no world'}"


def _not_for(found: Interruption, node: Node) -> str:
    """Reason why a cloud never sends such a notice to such a node."""
    if found.cloud in ("", OF_NODE, WORLD):
        return ""
    if node.cloud and node.cloud != found.cloud:
        return f"it is {found.cloud}'s, and the node is {node.cloud}'s"
    if node.capacity_type not in capacity_types(found.kind, found.cloud):
        return f"{found.cloud} sends no {found.kind} to {node.capacity_type} capacity"
    return ""


def marks(node: Node, kind: str) -> str:
    """Marks of such an end on the node itself: a taint, a condition or a label of its cloud; empty where nothing is."""
    shown = [("taint", t.key) for t in node.taints if t.key in TAINTS]
    shown += [("condition", c) for c in node.conditions if c in CONDITIONS]
    shown += [("label", name) for name in LABELS if name in node.labels]
    fitting = (f"{what} {name}" for what, name in shown if kind == "scheduled-change" or name not in ANNOUNCED)
    return next(fitting, "")


def untrue_at(found: Interruption) -> datetime | None:
    """When a node that is still there shows that its deadline was none; None for what has no deadline."""
    if found.deadline is None:
        return None
    if _nameless(found):
        return max(found.deadline, (found.said_at or found.received_at) + NAMELESS_WAIT)
    return found.deadline + SKEW


def _nameless(found: Interruption) -> bool:
    return found.kind == "lifecycle" and not found.named


def _too_young(found: Interruption, node: Node, said: InstanceState | None) -> str:
    """A group gives a new machine an old one's name: what was said before it began was said of another."""
    if found.said_at is None:
        return ""
    late = found.kind not in NOTICE_S and found.kind != "rebalance"
    if said is not None and said.there and said.created_at is not None:
        born, before = said.created_at, SKEW
    else:
        born, before = node.created_at, SKEW if late else BOOT
    if found.said_at >= born - before:
        return ""
    return f"it is dated {found.said_at:%Y-%m-%d %H:%M:%S}, and the instance began {born:%Y-%m-%d %H:%M:%S}"


def _orders(found: Interruption, said: InstanceState | None, now: datetime) -> Proof:
    if _nameless(found) and found.said_at is not None and found.received_at - found.said_at > NAMELESS_WAIT:
        return Proof("disproved", f"it is dated {found.said_at:%Y-%m-%d %H:%M:%S}: no hook waits so long")
    over = untrue_at(found)
    if over is not None and now >= over:
        return Proof("disproved", f"its deadline, {found.deadline:%H:%M:%S}, is over, and the node is still there")
    if found.kind == "lifecycle" and _contradicted(found, said, now):
        return Proof("disproved", "its group says that it is in service")
    return Proof("unverified", _SILENT if said is None or said.there else "the cloud knows no such instance")


def _ended(found: Interruption, node: Node, said: InstanceState | None, now: datetime) -> Proof:
    """Proof of an end that is over: a node that is not ready says so too, where its cloud does not say that it
    runs."""
    if _contradicted(found, said, now):
        return Proof("disproved", "the cloud says that it runs")
    if said is not None and said.there and said.runs:
        return Proof("unverified", "the cloud does not say so yet")
    if not node.ready:
        return Proof("verified", "its node is not ready any more")
    if said is not None and not said.there:
        return Proof("verified", "the cloud has it no more")
    if now - found.received_at > WAIT:
        return Proof("disproved", "it is said to have ended, and its node is still ready")
    return Proof("unverified", _SILENT)


def _contradicted(found: Interruption, said: InstanceState | None, now: datetime) -> bool:
    """True where the cloud has the instance in service when it should have said otherwise by now."""
    return said is not None and said.there and bool(said.runs) and now - found.received_at >= SAYS_LATE


_SILENT = "neither the cloud nor the node says so"
