"""Days of the meter that are over: by node where that fits one record, else without nodes, in as many as it takes."""

from datetime import date, timedelta
from decimal import Decimal

import msgspec

from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.ports.state import LARGEST, State
from pilotlight.state_schema.billing_records import METER

DAY = timedelta(days=1)

MOST_UNPRICED = 100
"""So many nodes without a price are named where a day's lines by node do not fit one record."""


def close(state: State, cluster: str, day: MeterDay) -> None:
    """Write a day that is over, where it is not written yet or what it cost became known better."""
    fits = len(METER.table.format.write(day)) <= LARGEST
    METER.write(state, f"{cluster}/{day.day}", day if fits else _without_nodes(day))


def days(state: State, cluster: str, first: date, last: date) -> dict[date, MeterDay]:
    """The days from the first to the last that are closed."""
    found = (entry.value for entry in METER.scan(state, f"{cluster}/", after=f"{cluster}/{first - DAY}/~"))
    return {day.day: day for day in found if day.day <= last}


def _without_nodes(day: MeterDay) -> MeterDay:
    """A day's lines summed over nodes."""
    sums: dict[CostLine, tuple[Decimal, Decimal]] = {}
    for line in day.lines:
        key = msgspec.structs.replace(line, usd=Decimal(0), gpu_hours=Decimal(0), node="")
        usd, hours = sums.get(key, (Decimal(0), Decimal(0)))
        sums[key] = usd + line.usd, hours + line.gpu_hours
    summed = tuple(msgspec.structs.replace(line, usd=usd, gpu_hours=hours) for line, (usd, hours) in sums.items())
    return msgspec.structs.replace(day, lines=summed, unpriced=day.unpriced[:MOST_UNPRICED])
