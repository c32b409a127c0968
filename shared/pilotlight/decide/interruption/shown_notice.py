"""A node's own mark of its end, as a notice: whoever wrote the mark need not have told anybody."""

from datetime import datetime, timedelta

from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.notice_kinds import OF_NODE, SHOWN, capacity_types
from pilotlight.facts.messages import InterruptionNotice, NoticeKind


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
