"""Bills in the state, day by day: reading an export again, or one with late corrections, replaces its days.

Only days that an export covers whole are written, from that of its first row
up to its horizon: a partial file neither counts twice nor takes away what an earlier one had, and days before an export
was set up stay metered. A cluster has one bill: what another source said of a day that is written is gone.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import msgspec

from pilotlight.decide.money.bills.bill_scope import sum_rows
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.spend import CountedDays, counted_days
from pilotlight.facts.money.bill import Bill, BillDay, BilledDay, MeterDay
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.deps import HasBudgets
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import BILL

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
    return covered


def _by_node(state: State, cluster: str, rows: Sequence[BilledDay]) -> tuple[BilledDay, ...]:
    """A day's rows, of nodes that the meter knows by their names; of all else summed over resources."""
    named = [row for row in rows if row.resource]
    names: dict[str, str] = {}
    for instance, node in meter_nodes.nodes(state, cluster, named[0].day).items() if named else ():
        names |= {node.name: node.name, instance: node.name}
    return sum_rows(msgspec.structs.replace(row, resource=names.get(row.resource, "")) for row in rows)


def count_days(deps: HasBudgets, now: datetime, today: MeterDay | None = None) -> CountedDays:
    """The days that budgets count: metered, billed, or both."""
    first, last = (now - LOOK_BACK).date(), now.date()
    return counted_days(
        meter_nodes.days(deps.state, deps.name, first, last, meter_nodes.unmetered_nodes(deps), today),
        days(deps.state, deps.name, first, last),
    )


def days(state: State, cluster: str, first: date, last: date) -> list[BillDay]:
    """Every source's days from the first to the last."""
    found = (entry.value for entry in BILL.scan(state, f"{cluster}/", after=f"{cluster}/{first - DAY}/~"))
    return [bill for bill in found if first <= bill.day <= last]
