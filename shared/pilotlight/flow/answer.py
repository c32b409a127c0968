"""The answer that a flow gives."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from pilotlight.facts.decisions import Plan

Outcome = Literal["done", "seen", "stopped", "nothing", "at-work", "known", "dry-run"]
"""``done``: a decision was recorded. ``seen``: there is demand, and nothing new to do or tell of it. ``stopped``:
brakes hold all that would be done. ``nothing``: there was nothing to do. ``at-work``: another delivery looks after this
one. ``known``: this event was handled before, or is of no use.
"""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A function's answer: the decision's id (empty when none was needed), what it did, and why in one line.

    ``outcome`` is for code, ``why`` for people. ``released`` are the nodes that were given back. ``plan`` is there on a
    dry run. ``look_again_at`` is when a look could change something without a new event.
    """

    decision: str
    did: tuple[str, ...]
    why: str
    outcome: Outcome = "done"
    released: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    plan: "Plan | None" = None


def join_answers(first: Answer | None, second: Answer) -> Answer:
    """Two looks in one answer."""
    if first is None or first.outcome != "done":
        return second
    if second.outcome != "done":
        return msgspec.structs.replace(first, did=first.did + second.did, look_again_at=second.look_again_at)
    return msgspec.structs.replace(second, did=first.did + second.did, released=first.released + second.released)
