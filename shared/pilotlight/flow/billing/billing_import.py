"""billing_import: take in what is billed, where it is not as it was read. Nothing else waits for it.

The mark that a read is on its way is written before it, and ends by itself where the function does not come to its end.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from pilotlight.errors import Conflict
from pilotlight.facts.messages import BillExported, Tick
from pilotlight.flow.answer import Answer
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.marks import BILL_READ, BILL_READING, Mark
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps

READ_AGAIN_S: Seconds = 600
"""After a bill could not be read it is read again in so long."""


def billing_import(deps: "Deps", message: Tick | BillExported, *, dry_run: bool = False) -> Answer:
    """Answer one message: a tick, or a bill's export. A dry run only says what there is to read."""
    asked = isinstance(message, BillExported)
    if not asked and not dry_run and _holds(BILL_READ.get(deps.state, deps.name), deps.state.now()):
        return Answer(decision="", did=(), why="the bill was looked at lately")
    if deps.bills is None:
        if not dry_run:  # The ticks to come need not open everything for it.
            BILL_READ.put(deps.state, deps.name, _mark(deps, "none"), ttl_s=READ_AGAIN_S)
        return Answer(decision="", did=(), why="no bill is set up; set PILOTLIGHT_BILLS")
    # A bill that was looked at lately costs a cold start nothing of this.
    from pilotlight.flow.billing import bill_reading

    if dry_run:
        return Answer(decision="", did=(), why=bill_reading.say_left(deps, deps.bills))
    if not _begun(deps):
        return Answer(decision="", did=(), why="the bill is being read")
    try:
        said = bill_reading.look(deps, deps.bills)
    except bill_reading.BillUnread as unread:
        error = unread.error
        BILL_READING.delete(deps.state, deps.name)
        if asked:
            raise error from None
        now = deps.state.now()
        bill_reading.tell_unread(deps, error, now)
        BILL_READ.put(deps.state, deps.name, _mark(deps, str(error)), ttl_s=READ_AGAIN_S)
        said = f"the bill could not be read: {error}"
    else:
        BILL_READING.delete(deps.state, deps.name)
    return Answer(decision="", did=(said,), why=said)


def _mark(deps: "Deps", note: str = "") -> Mark:
    return Mark(note=note, at=deps.state.now())


def _holds(found: Entry[Mark] | None, now: datetime) -> bool:
    """True where a mark is there and holds: one of later than now was made before a clock was set back."""
    return found is not None and (found.value.at is None or found.value.at <= now)


def _begun(deps: "Deps") -> bool:
    """Mark that a read is on its way; False where one is already."""
    found = BILL_READING.get(deps.state, deps.name)
    if _holds(found, deps.state.now()):
        return False
    try:
        BILL_READING.put(deps.state, deps.name, _mark(deps), if_version=found.version if found else ABSENT)
    except Conflict:
        return False
    return True
