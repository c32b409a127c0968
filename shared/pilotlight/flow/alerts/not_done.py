"""Calls that were not made, told once a cause: advice, a brake, a refusal of the cloud, a call that never happened."""

from collections.abc import Container
from typing import Literal

from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import Alert, CapacityChanged
from pilotlight.flow.alerts.wording import CallWorth

Call = Literal["grow", "release"]

NotDone = Literal["advised", "stopped", "kept", "denied", "undone"]
"""How a call that was not made, or not carried out, ended."""

_SAID: dict[NotDone, str] = {
    "advised": "would",
    "stopped": "may not",
    "denied": "could not",
    "undone": "did not",
    "kept": "could not",
}
_NEXT: dict[NotDone, str] = {
    "advised": "set the pool's mode to act",
    "stopped": "tried again at every look, until the brake lets it through",
    "kept": "tried again at every look; it is paid for meanwhile",
    "denied": "another offering is tried",
    "undone": "looked at again at once",
}


def not_done(change: CapacityChanged, ended: NotDone, call: Call, target: str, note: str, in_all: CallWorth) -> Alert:
    """The alert of a call that was not made, or not carried out; ``note`` says why not."""
    return Alert(
        cluster=change.cluster,
        kind=f"capacity-{ended}",
        severity="info" if ended == "advised" else "warning",
        fingerprint=_cause(ended, call, change.pool, target),
        what=f"{_SAID[ended]} {call} pool {change.pool} ({target})",
        why=f"{change.why}; {note}",
        next=_NEXT[ended],
        how=f"pilotlight why {change.decision}",
        usd_per_hour=change.usd_per_hour,
        usd=in_all.usd if call == "grow" else "",
        subject=f"pool {change.pool}",
        decision=change.decision,
        at=change.at,
    )


def landed_late(fingerprint: str, nodes: Container[str]) -> str:
    """The node of a release that people were told was not made, where it is gone by now; else nothing."""
    node = fingerprint.rpartition("/")[2]
    return node if fingerprint.startswith("undone/release/") and node not in nodes else ""


def node_gone_alert(record: Record, fingerprint: str, node: str) -> Alert:
    """The end of what was told of a node that was not given back: it is gone after all."""
    return Alert(
        cluster=record.cluster,
        kind="capacity-undone",
        severity="warning",
        fingerprint=fingerprint,
        what=f"node {node} is gone",
        why="it was given back since, or the call whose answer was lost has landed late",
        next="GPU pods that ran on it wait again, and are served as any that wait",
        how=f"pilotlight why {node}",
        subject=f"node {node}",
        resolved=True,
        decision=record.id,
        at=record.at,
    )


def blocks_no_more(record: Record, fingerprint: str, node: str) -> Alert:
    """The end of what was told of pods that kept an idle node lit: they have gone, are others, or the node works."""
    return Alert(
        cluster=record.cluster,
        kind=fingerprint.partition("/")[0],
        severity="warning",
        fingerprint=fingerprint,
        what=f"{node} is kept lit by those pods no longer",
        why="they have gone, others are in the way now, or it is at work or gone itself",
        next="an idle node goes when its time is over and nothing is in the way",
        how=f"pilotlight why {node.removeprefix('node ')}",
        subject=node,
        resolved=True,
        decision=record.id,
        at=record.at,
    )


def owes_no_more(record: Record, fingerprint: str, pool: str) -> Alert:
    """The end of what was told of nodes that a cloud could not launch."""
    return Alert(
        cluster=record.cluster,
        kind=fingerprint.partition("/")[0],
        severity="warning",
        fingerprint=fingerprint,
        what=f"{pool} is owed nothing any more",
        why="its cloud has launched what was asked for, or it was called off",
        next="a node that came late is used, or given back when it has idled its time",
        how="pilotlight pools",
        subject=pool,
        resolved=True,
        decision=record.id,
        at=record.at,
    )


def _cause(ended: str, call: Call, pool: str, target: str) -> str:
    return f"{ended}/{call}/{pool}/{target}"
