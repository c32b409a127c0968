"""Nodes that show that they go, and of which no notice came: their marks are the notice."""

from collections.abc import Callable

from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.interruption import NOTICE_S, STILL_THERE, Interruption
from pilotlight.facts.interruption.notice_kinds import SHOWN
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot

See = Callable[[Snapshot], Snapshot]


class ShownNotices:
    """Notes such nodes while a cycle looks (``see``), and begins their rescues after it (``begin_drains``)."""

    def __init__(self, deps: Deps, then: See | None) -> None:
        self._deps, self._then = deps, then
        self._nodes: dict[str, Node] = {}

    def see(self, snapshot: Snapshot) -> Snapshot:
        """The look as it is, or as who looks besides sees it."""
        for node in snapshot.view.nodes:
            if (node.conditions or node.taints) and not SHOWN.keys().isdisjoint(
                (*node.conditions, *[taint.key for taint in node.taints])
            ):
                self._nodes[node.name] = node
        return self._then(snapshot) if self._then is not None else snapshot

    def begin_drains(self) -> None:
        """Begin what no notice began. One that fails keeps none of the others; the first error is raised last."""
        if not self._nodes:
            return
        from pilotlight.decide.interruption.notices import notice_of
        from pilotlight.flow.budgets import interruption_records
        from pilotlight.flow.interruption.interrupt import interrupt, news

        failed: Retry | Denied | None = None
        for node in self._nodes.values():
            notice = notice_of(node, self._deps.name, interruption_records.moment(self._deps))
            try:
                known = interruption_records.find(self._deps, node.instance or node.name)
                if notice is None or (known is not None and _dealt_with(known.found, node, notice)):
                    continue
                if known is None or news(known.found, notice):
                    interrupt(self._deps, notice)
            except (Retry, Denied) as error:
                failed = failed or error
        if failed is not None:
            raise failed


def _dealt_with(known: Interruption, node: Node, notice: InterruptionNotice) -> bool:
    """True where a mark adds nothing to what is known of its node: it is shown until the node is gone.

    A mark proves what is begun of it: what was disproved, or left the node there, was of something else.
    """
    if known.kind == "rebalance":
        return False
    if known.is_over:
        return known.outcome not in STILL_THERE and known.received_at >= node.created_at
    if known.truth == "verified" and known.kind in (notice.kind, *_ORDERS):
        return True  # A mark says that a node goes, and not when.
    return notice.deadline is None  # After the fact: a rescue that is at work may still save what is on it.


_ORDERS = tuple(kind for kind in NOTICE_S if kind != "scheduled-change")
"""What nothing is announced before: no other word of an end says more."""
