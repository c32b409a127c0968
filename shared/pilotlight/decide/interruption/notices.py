"""Notices of interruption: the owner who answers one, by policy and node, and a node's own mark of its end as a notice.

Another's mark on the node counts more than the policy. Whoever wrote a mark of its end need not have told anybody.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.notice_kinds import OF_NODE, SHOWN, capacity_types
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.facts.policy import Policy

KARPENTER = "karpenter.sh/nodepool"
NTH = "aws-node-termination-handler/"


class OursOrNot(NamedTuple):
    """The answer that a notice is ours or not, and the reason."""

    ours: bool
    why: str


def owner_of(policy: Policy, pool: str, node: Node | None) -> OursOrNot:
    """The owner of a pool's interruptions. Another's mark on the node counts more than the policy."""
    if not pool:
        return OursOrNot(
            False, "no node is known by this instance, and no pool it was of: reported, nothing is guessed"
        )
    taint = next((t.key for t in node.taints if t.key.startswith(NTH)), "") if node else ""
    if taint:
        return OursOrNot(False, f"AWS' node termination handler is at work on it (taint {taint})")
    if node is not None and KARPENTER in node.labels:
        return OursOrNot(False, f"Karpenter owns it (label {KARPENTER}={node.labels[KARPENTER]})")
    rules = policy.pools.get(pool)
    if rules is None:
        return OursOrNot(False, f"pool {pool} is not in the policy: its interruptions are another's")
    if rules.handled_by != "pilotlight":
        return OursOrNot(False, f"pools.{pool}.handled_by is {rules.handled_by}")
    return OursOrNot(True, f"pools.{pool}.handled_by is pilotlight")


def notice_of(node: Node, cluster: str, now: datetime) -> InterruptionNotice | None:
    """The notice that a node's taints and conditions are; None where they are none. The soonest end counts."""
    marks = [mark for mark in (*(t.key for t in node.taints), *node.conditions) if mark in SHOWN]
    if not marks:
        return None
    mark = min(marks, key=lambda one: SHOWN[one][1])
    kind, left_s = SHOWN[mark]
    cloud = next((known for known in ("aws", "gcp", "azure") if known == node.cloud), OF_NODE)
    ends = timedelta(seconds=left_s)
    if node.capacity_type not in capacity_types(kind, cloud):
        kind, ends = _AFTER, timedelta()
    return InterruptionNotice(
        cluster=cluster,
        instance=node.instance or node.name,
        kind=kind,
        cloud=cloud,
        action="terminate",
        zone=node.zone,
        identity=f"{node.instance or node.name}/{mark}",
        at=now,
        deadline=now + ends if ends else None,
    )


_AFTER: NoticeKind = "state-change"
"""On-demand that shuts down is nobody's order: it ends, and what is lost is counted."""
