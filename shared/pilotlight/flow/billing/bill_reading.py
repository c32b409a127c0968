"""Reading a bill that is not as it was read.

An export in files is read file by file, and what each comes to is kept: a read that is cut off goes on with the next
file, and one whose files, rules or manifests changed meanwhile begins anew. The bill is taken in once all are read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.metering import day_start
from pilotlight.errors import PilotlightError
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.bill_files import BillFile, BillListing
from pilotlight.flow.answer import tell_once
from pilotlight.flow.billing import billed_days, node_costs, pool_readings
from pilotlight.flow.billing.bill_alerts import DAILY_S, bill_alert, list_findings
from pilotlight.flow.billing.billed_days import DAY, LOOK_BACK
from pilotlight.flow.deps import Deps
from pilotlight.ports.clouds import Bills, FiledBills
from pilotlight.state_schema.billing_records import (
    BILL_FILE,
    BILL_SEEN,
    BILL_TRIED,
    COST,
    METERING,
    SeenBill,
    TriedFile,
)
from pilotlight.state_schema.marks import BILL_READ, Mark
from pilotlight.units import Seconds, count_of

AT_ONCE_S: Seconds = 240
"""No further file is begun after so long: the next tick goes on."""

EVER = datetime.max.replace(tzinfo=UTC)
"""A file is read whole: how far it counts is asked once all are there, for the clock may be set between two of them."""

TOO_OFTEN = 3
"""A file that was begun so often and never came to its end is told of."""


class BillUnread(Exception):
    """The bill cannot be read now, unlike the store."""

    def __init__(self, error: PilotlightError) -> None:
        self.error = error


def tell_unread(deps: Deps, error: PilotlightError, now: datetime) -> None:
    """Tell once a day that the bill cannot be read."""
    tell_once(deps, bill_alert(deps, "bill-unread", "the bill could not be read", str(error), now), DAILY_S)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except PilotlightError as error:
        raise BillUnread(error) from error


class _Work(NamedTuple):
    """Files of a bill, those of them that are read, and the day that all of them are read from."""

    listing: BillListing
    read: dict[str, BillFile]
    since: date

    @property
    def left(self) -> list[tuple[int, tuple[str, ...]]]:
        """What is not read yet, with its number."""
        return [one for one in enumerate(self.listing.groups) if one[1][0] not in self.read]


def look(deps: Deps, bills: Bills) -> str:
    """Read what is not as it was read, for as long as a tick has; what was read. Raises ``BillUnread``."""
    now = deps.state.now()
    since = (now - LOOK_BACK).date()
    if not isinstance(bills, FiledBills):
        with _reading():
            read = bills.read(day_start(since), now)
        return _take_in(deps, read, since, now)
    work = _work(deps, bills, since)
    if work is None:
        BILL_READ.put(deps.state, deps.name, Mark(at=deps.state.now()))
        return "the bill is as it was read"
    took, nodes = deps.clock.stopwatch(), _known_nodes(deps)
    for number, group in work.left:
        if took() > AT_ONCE_S:
            return f"{_read_of(work)}; the next tick goes on"
        _begin(deps, work.listing, group[0], now)
        known = [work.read[one[0]] for one in work.listing.groups if one[0] in work.read]
        with _reading():
            file = bills.read_file(work.listing, group, known, day_start(work.since), EVER, nodes)
        work.read[file.name] = file = msgspec.structs.replace(file, since=work.since)
        BILL_FILE.write(deps.state, f"{deps.name}/{number:05d}", file)
    files = [work.read[group[0]] for group in work.listing.groups]
    said = _take_in(deps, bills.join(work.listing, files, now), work.since, now)
    reach = max((line.reach for file in files for line in file.lines if line.reach), default=None)
    BILL_SEEN.put(deps.state, deps.name, SeenBill(version=work.listing.word, since=work.since, at=now, reach=reach))
    _forget(deps, list(range(len(work.listing.groups))))
    return said


def _work(deps: Deps, bills: FiledBills, since: date) -> _Work | None:
    """What lies there and what is read of it; None where all is as it was read. What is of another listing goes."""
    with _reading():
        listing = bills.files()
    if _as_seen(deps, listing, since):
        return None
    there = [(int(entry.name.rpartition("/")[2]), entry.value) for entry in BILL_FILE.scan(deps.state, f"{deps.name}/")]
    own = [file for _, file in there if file.word == listing.word and file.since <= since]
    _forget(deps, [number for number, file in there if file not in own])
    return _Work(listing, {file.name: file for file in own}, min((file.since for file in own), default=since))


def _as_seen(deps: Deps, listing: BillListing, since: date) -> bool:
    """True where the bill is as it was read, and the clock that it was read by was not set since."""
    found = BILL_SEEN.get(deps.state, deps.name)
    if found is None or found.value.version != listing.word or found.value.since > since:
        return False
    at, reach = found.value.at, found.value.reach
    return reach is None or reach <= at + DAY or deps.state.now() <= at + DAY


def _forget(deps: Deps, numbers: Sequence[int]) -> None:
    for number in numbers:
        BILL_FILE.delete(deps.state, f"{deps.name}/{number:05d}")
    if numbers:
        BILL_TRIED.delete(deps.state, deps.name)


def _begin(deps: Deps, listing: BillListing, name: str, now: datetime) -> None:
    """Count how often a file is begun, and tell of one that no function comes to the end of."""
    was = BILL_TRIED.get(deps.state, deps.name)
    again = was is not None and (was.value.word, was.value.name) == (listing.word, name)
    tried = TriedFile(word=listing.word, name=name, times=was.value.times + 1 if was is not None and again else 1)
    BILL_TRIED.put(deps.state, deps.name, tried)
    if tried.times > TOO_OFTEN:
        what = f"a file of the bill was begun {TOO_OFTEN} times and never read to its end"
        why = f"{name}: give billing_import more time and memory, export smaller files, or read a table of a warehouse"
        tell_once(deps, bill_alert(deps, "bill-unread", what, why, now), DAILY_S)


def _read_of(work: _Work) -> str:
    return f"read {len(work.read)} of {count_of(len(work.listing.groups), 'file')} of the bill"


def say_left(deps: Deps, bills: Bills) -> str:
    """What there is to read."""
    if not isinstance(bills, FiledBills):
        return "the bill would be read"
    listing = bills.files()
    if _as_seen(deps, listing, (deps.state.now() - LOOK_BACK).date()):
        return "the bill is as it was read"
    return f"{count_of(len(listing.names), 'file')} of the bill would be read"


def _known_nodes(deps: Deps) -> list[str]:
    """Machines that a bill's lines may be of, by every name: those that the meter knows. Others are summed."""
    known = {cost.instance for cost in (entry.value for entry in COST.scan(deps.state, f"{deps.name}/"))}
    for entry in METERING.scan(deps.state, f"{deps.name}/"):
        known |= {name for instance, node in entry.value.nodes.items() for name in (instance, node.name)}
    return sorted(known)


def _take_in(deps: Deps, read: Bill, since: date, now: datetime) -> str:
    """Replace the days that a bill covers whole, and tell of its lines that could not be counted."""
    covered = billed_days.store(deps.state, deps.name, read, day_start(since), now)
    if read.findings:
        what = f"{count_of(len(read.findings), 'line')} of the bill {read.source} could not be counted"
        tell_once(deps, bill_alert(deps, "bill-finding", what, list_findings(read.findings), now), DAILY_S)
    node_costs.file_billed(deps, read, now)
    pool_readings.keep_committed(deps, billed_days.count_days(deps, now))
    BILL_READ.put(deps.state, deps.name, Mark(note=read.source, at=deps.state.now()))
    return "; ".join([f"read {count_of(covered, 'whole day')} of {read.source}", *read.notes])
