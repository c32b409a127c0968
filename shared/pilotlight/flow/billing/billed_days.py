"""Bills in the state, day by day: reading an export again, or one with late corrections, replaces its days.

Only days that an export covers whole are written, from that of its first row
up to its horizon: a partial file neither counts twice nor takes away what an earlier one had, and days before an export
was set up stay metered. A cluster has one bill: what another source said of a day that is written is gone.

What budgets ask of days that the meter has closed is kept (``closed``), so that a tick reads it and the days after it,
whatever the history: by one scan, also where hundreds of budgets need several records. It holds for an hour, for the
days and budgets that it was made for, and until a bill is taken in: then the days are read again.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import NONE_CLOSED, CountedDays, counted_days, keep_closed, open_kept
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.spend import answers, close_days
from pilotlight.errors import Conflict, Corrupt
from pilotlight.facts.money.bill import Bill, BillDay, BilledDay, ClosedDays, KeptDays, MeterDay
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.deps import HasBudgets
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.billing_records import BILL, CLOSED

DAY = timedelta(days=1)

LOOK_BACK = timedelta(days=35)
"""Late corrections of a bill are taken in for so long: a month and its closing."""


def store(state: State, cluster: str, bill: Bill, start: datetime, end: datetime) -> int:
    """Write what was read for a period, and say how many days it covers whole. Without rows it covers none."""
    if bill.horizon is None or not bill.days:
        return 0
    until = min(end, bill.horizon)
    rows: dict[date, list[BilledDay]] = defaultdict(list)
    for row in bill.days:
        rows[row.day].append(row)
    day = max(min(rows), start.date() if day_start(start.date()) >= start else start.date() + DAY)
    covered = 0
    others = [other for other in days(state, cluster, day, end.date()) if other.source != bill.source]
    while day_start(day + DAY) <= until:
        own = _by_node(state, cluster, rows[day])
        one = BillDay(day=day, source=bill.source, rows=own, doubt=day in bill.doubtful)
        BILL.write(state, f"{cluster}/{day}/{bill.source}", one)
        for other in (other for other in others if other.day == day):
            BILL.delete(state, f"{cluster}/{day}/{other.source}")
        covered, day = covered + 1, day + DAY
    CLOSED.table.put(state, _closed(cluster), KeptDays())  # Over the version that one who reads the old days has seen.
    return covered


def _by_node(state: State, cluster: str, rows: Sequence[BilledDay]) -> tuple[BilledDay, ...]:
    """A day's rows, of nodes that the meter knows by their names; of all else summed over resources."""
    from pilotlight.decide.money.bills.bill_scope import sum_rows

    named = [row for row in rows if row.resource]
    names: dict[str, str] = {}
    for instance, node in meter_nodes.nodes(state, cluster, named[0].day).items() if named else ():
        names |= {node.name: node.name, instance: node.name}
    return sum_rows(replace(row, resource=names.get(row.resource, "")) for row in rows)


def count_days(deps: HasBudgets, now: datetime, today: MeterDay | None = None) -> CountedDays:
    """The days that budgets count: metered, billed, or both."""
    return _since(deps, (now - LOOK_BACK).date(), now, today)


def budget_days(deps: HasBudgets, now: datetime, today: MeterDay | None = None, *, keep: bool = False) -> CountedDays:
    """The same days for the policy's budgets, the closed ones by what is kept of them; where asked, that is kept."""
    first, asked = (now - LOOK_BACK).date(), [meter for meter in meters(deps.policy.budgets, now) if meter.end]
    (version, closed), end = _kept(deps), min(meter_nodes.counted_from(deps.state, deps.name), now.date())
    if (closed.first, closed.end) == (first, end) and answers(closed, asked):
        return _since(deps, end, now, today, closed)
    known = count_days(deps, now, today)
    if keep:
        kept = keep_closed(close_days(asked, known, first, end))
        with suppress(Conflict):  # A bill was taken in, or another tick was faster.
            CLOSED.write(deps.state, _closed(deps.name), kept, if_version=version)
    return known


def _closed(cluster: str) -> str:
    return f"{cluster}/x"


def _kept(deps: HasBudgets) -> tuple[int, ClosedDays]:
    """What is kept, and its version. What cannot be read is gone within the hour, and until then days are read as
    without it."""
    try:
        found = next(CLOSED.scan(deps.state, f"{deps.name}/"), None)
    except Corrupt:
        return ABSENT, NONE_CLOSED
    if found is None:
        return ABSENT, NONE_CLOSED
    return found.version, open_kept(found.value)


def _since(
    deps: HasBudgets, first: date, now: datetime, today: MeterDay | None, closed: ClosedDays = NONE_CLOSED
) -> CountedDays:
    last = now.date()
    metered = meter_nodes.days(deps.state, deps.name, first, last, meter_nodes.unmetered_nodes(deps), today)
    return counted_days(metered, days(deps.state, deps.name, first, last), closed)


def days(state: State, cluster: str, first: date, last: date) -> list[BillDay]:
    """Every source's days from the first to the last."""
    found = (entry.value for entry in BILL.scan(state, f"{cluster}/", after=f"{cluster}/{first - DAY}/~"))
    return [bill for bill in found if first <= bill.day <= last]
