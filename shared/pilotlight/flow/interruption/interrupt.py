"""A cloud takes an instance back, may do so, or has done so: one owner acts, and each interruption is accounted for."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pilotlight.errors import Conflict, Denied, Reject, Retry, Unavailable
from pilotlight.facts.interruption.interruption import (
    AT_LEISURE,
    NOTICE_S,
    PODS_LEAVE,
    SOONER,
    STAYS,
    STILL_THERE,
    Interruption,
)
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.ports.state import ABSENT

if TYPE_CHECKING:
    from pilotlight.facts.capacity import ClusterView
    from pilotlight.flow.deps import Deps

ANOTHER = timedelta(minutes=10)
"""A notice that is so much younger is not the same one again. A cloud tells the end of an instance within that."""

STANDS = {"": "goes on", "unknown": "no node is known by this instance"}
"""How an interruption that is heard again stands, by its outcome; others are said as they are."""


def interrupt(deps: "Deps", notice: InterruptionNotice, *, dry_run: bool = False) -> Answer:
    """Answer one notice now; what is left is kept for the next look. A second notice decides nothing anew.

    With the store down the work is saved all the same (cordon, checkpoints, evictions that are due), nothing is bought
    or given back, and ``Unavailable`` is raised, so that the notice comes again.
    """
    now = interruption_records.moment(deps)
    try:
        begun = _begun(deps, notice, now, dry_run)
    except Conflict:
        return Answer(decision="", did=(), why="another delivery of this notice is at work")
    except (Retry, Reject, Denied) as error:
        if not dry_run:
            from pilotlight.flow.interruption.begin import without_store

            without_store(deps, notice, now)
        if isinstance(error, Reject):  # The notice is not to blame: it was read before.
            raise Unavailable(str(error)) from error
        raise
    return begun if isinstance(begun, Answer) else _advance(deps, *begun)


def _begun(
    deps: "Deps", notice: InterruptionNotice, now: datetime, dry_run: bool
) -> "Answer | tuple[Versioned, ClusterView]":
    """The record that a notice begins, with the look that it is of; the answer where it begins none."""
    view = deps.observe() if notice.kind == "lifecycle" else None
    if view is not None and not dry_run and (own := _of_our_own(deps, notice, view)) is not None:
        return own
    known = interruption_records.find(deps, notice.instance)
    if known is not None and not news(known.found, notice):
        return _again(deps, known, dry_run)
    # A notice that was dealt with costs a cold start nothing of this.
    from pilotlight.flow.interruption import begin

    view = view or deps.observe()
    before = known.found.of_node if known and not known.found.is_over else None
    found = begin.opened(deps, view, notice, before, now)
    if before and found.truth == "disproved":
        return _aside(before, found)
    if dry_run:
        return begin.would(deps, found, view)
    return _written(deps, notice, Versioned(found, known.version if known else ABSENT), view)


def _written(
    deps: "Deps", notice: InterruptionNotice, found: Versioned, view: "ClusterView"
) -> "Answer | tuple[Versioned, ClusterView]":
    """The record in the state. It is withdrawn where another delivery began it and ended it while this one stood still
    before its write."""
    kept = interruption_records.write(deps, found)
    over = interruption_records.last_filed(deps, notice.instance) if found.version == ABSENT else None
    if over is None or news(over, notice):
        return kept, view
    interruption_records.withdraw(deps, kept)
    return _again(deps, Versioned(over, ABSENT), dry_run=False)


def news(known: Interruption, notice: InterruptionNotice) -> bool:
    """True where a notice says more than what is known: a probability becomes an order, an order an earlier deadline.

    What happened well after the last one ended is another interruption: groups give a new machine an old one's name.
    """
    known = known.of_node
    if known.kind in (*AT_LEISURE, *PODS_LEAVE):  # Ours, and of no end: whatever a cloud says then is more.
        return known.outcome in ("", *STILL_THERE)
    if known.is_over:
        same = (notice.kind, notice.at) == (known.kind, known.said_at)
        if same or known.outcome == "disproved":  # After a false one there may come a true one.
            return not same
        if notice.at is not None and notice.at - (known.ended_at or known.received_at) > ANOTHER:
            return True
        ends = known.kind != "rebalance" and notice.action not in STAYS
        return known.outcome in STILL_THERE and (ends or _RANK.get(notice.kind, 2) > _RANK.get(known.kind, 2))
    return _RANK.get(notice.kind, 2) > _RANK.get(known.kind, 2) or _sooner(known, notice)


def _sooner(known: Interruption, notice: InterruptionNotice) -> bool:
    """An earlier end than the one that is known: which of the two is true is yet to be seen.

    A stop of our own ends when we say, and is not moved.
    """
    if notice.deadline is None or known.deadline is None or known.kind not in NOTICE_S:
        return False
    return notice.kind in NOTICE_S and known.deadline - notice.deadline > SOONER


_RANK = {"rebalance": 0, "scheduled-change": 1}


def _of_our_own(deps: "Deps", notice: InterruptionNotice, view: "ClusterView") -> Answer | None:
    from pilotlight.flow.interruption.begin import answer_own_release

    with suppress(Denied):  # Its cloud does not let us answer: then it is told like any other.
        return answer_own_release(deps, notice, view)
    return None


def _again(deps: "Deps", known: Versioned, dry_run: bool) -> Answer:
    if known.found.is_over or dry_run:
        stands = STANDS.get(known.found.outcome, known.found.outcome)
        why = f"heard before, at {known.found.received_at:%H:%M:%S}: {stands}"
        return Answer(decision=known.found.decision, did=(), why=why)
    return _advance(deps, known, deps.observe())


def _aside(known: Interruption, false: Interruption) -> Answer:
    """An untrue notice beside one that is being dealt with: it changes nothing of that."""
    why = f"{false.kind} of {false.instance} is not true: {false.proof}; {known.kind} goes on"
    return Answer(decision=known.decision, did=(), why=why)


def _advance(deps: "Deps", kept: Versioned, view: "ClusterView") -> Answer:
    from pilotlight.flow.interruption.drain_one import advance

    return advance(deps, kept, view)
