"""Civo's charges: hours without money, so that each is its hours times the price file's rate for code and region.

The shape is documented twice, and not the same each time: ``product_id`` and ``region`` may be missing, ``size_gb`` may
be null, times carry offsets. Hours are whole as Civo rounds them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from pilotlight import typed_json
from pilotlight.codec.bills.rates import Rate, Rates
from pilotlight.facts.money.bill import BilledDay
from pilotlight.facts.workload import Finding
from pilotlight.units import Usd

KNOWN = {"code", "product_id", "label", "from", "to", "num_hours", "size_gb", "region"}
MOST_HOURS = 24 * 40
"""Longer than any window that may be asked for."""
SLACK_H = 1
"""Civo rounds a charge's hours; one whose hours are more than its time by more than this is not what it seems."""

DAY = timedelta(days=1)


class Charge(NamedTuple):
    """One charge that can be counted."""

    code: str
    resource: str
    region: str
    start: datetime
    end: datetime
    hours: Decimal
    gb: Decimal | None


class Read(NamedTuple):
    """Sums of an answer's charges. On ``doubtful`` days something is missing that could not be counted; one that is not
    ``readable`` bills nothing."""

    rows: tuple[BilledDay, ...]
    findings: tuple[Finding, ...]
    doubtful: tuple[date, ...] = ()
    readable: bool = True


class Uncountable(Exception):
    """Why a charge cannot be counted, in one line that names the field."""


def read_charges(document: object, rates: Rates, region: str, start: datetime, end: datetime) -> Read:
    """The days that an answer's charges come to within ``start`` to ``end``, and what of it cannot be counted.

    Never raises. ``region`` holds where a charge names none. A charge that is there twice, as where windows meet,
    counts once.
    """
    if not isinstance(document, list):
        return Read(
            (), (_finding("charges", "bill-unreadable", f"expected an array, got {_kind(document)}"),), readable=False
        )
    seen: set[Charge] = set()
    rows: list[BilledDay] = []
    findings: list[Finding] = []
    unknown: Counter[str] = Counter()
    doubtful: set[date] = set()
    for index, item in enumerate(document):
        try:
            charge = _charge(item, region)
            rate = _rate(charge, rates)
            cost = _cost(charge, rate)
        except Uncountable as why:
            findings.append(_finding(f"charges[{index}]", "bill-uncounted", str(why)))
            doubtful.update(_days_of(item, start, end))
            continue
        unknown.update(str(key)[:50] for key in item if key not in KNOWN)
        if charge not in seen:
            seen.add(charge)
            rows += _by_day(charge, rate, cost, start, end)
    if unknown:
        names = ", ".join(sorted(unknown)[:20])
        findings.append(_finding("charges", "bill-new-fields", f"fields that are not read: {names}"))
    return Read(tuple(rows), tuple(findings), tuple(sorted(doubtful)))


def _days_of(item: object, start: datetime, end: datetime) -> Iterator[date]:
    """The days of the period that a charge may lie in: where it does not say, all."""
    since, until = start, end
    if isinstance(item, dict):
        with suppress(Uncountable):
            since = min(max(start, _moment(item, "from")), end)
        with suppress(Uncountable):
            until = min(max(start, _moment(item, "to")), end)
    yield from (day for day, _ in _days(*sorted([since, until])))


def _charge(item: object, region: str) -> Charge:
    if not isinstance(item, dict):
        raise Uncountable(f"expected an object, got {_kind(item)}")
    start, end = _moment(item, "from"), _moment(item, "to")
    hours = _number(item, "num_hours")
    if end < start:
        raise Uncountable(f"to: {item['to']} is before from")
    if hours > MOST_HOURS or hours > Decimal((end - start).total_seconds()) / 3600 + SLACK_H:
        raise Uncountable(f"num_hours: {hours} are more than lie between from and to")
    gb = None if item.get("size_gb") is None else _number(item, "size_gb")
    resource = next((v for k in ("product_id", "label") if isinstance(v := item.get(k), str) and v), "")
    return Charge(_text(item, "code"), resource[:200], _text(item, "region", region), start, end, hours, gb)


def _rate(charge: Charge, rates: Rates) -> Rate:
    rate = rates.get((charge.code, charge.region)) or rates.get((charge.code, ""))
    if rate is None:
        where = charge.region or "no region"
        raise Uncountable(f"code: {charge.code[:100]!r} in {where} has no price; add it to prices.charges")
    return rate


def _cost(charge: Charge, rate: Rate) -> Usd:
    if rate.usd_per_hour is not None:
        return charge.hours * rate.usd_per_hour
    if charge.gb is None:
        raise Uncountable(f"size_gb: missing, and {charge.code} is sold by the GB")
    return charge.hours * charge.gb * (rate.usd_per_gb_hour or Decimal(0))


def _by_day(charge: Charge, rate: Rate, cost: Usd, start: datetime, end: datetime) -> Iterator[BilledDay]:
    """The charge's parts by UTC day, by the time that lies in each; the parts of all its days are the whole."""
    parts = list(_days(charge.start, charge.end))
    all_s = sum(seconds for _, seconds in parts) or 1
    left, hours_left = cost, charge.hours * rate.gpus
    for number, (day, seconds) in enumerate(parts, 1):
        last = number == len(parts)
        usd = left if last else (cost * seconds / all_s).quantize(Decimal("1e-9"))
        hours = hours_left if last else (charge.hours * rate.gpus * seconds / all_s).quantize(Decimal("1e-9"))
        left, hours_left = left - usd, hours_left - hours
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        if at + DAY > start and at < end:
            yield BilledDay(
                day=day, usd=usd, pool=rate.pool, resource=charge.resource, service=charge.code, gpu_hours=hours
            )


def _days(start: datetime, end: datetime) -> Iterator[tuple[date, Decimal]]:
    """UTC days with the seconds of the span in each; a span of no length is one day."""
    at = start
    while at < end or at == start:
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + DAY
        until = min(midnight, end)
        yield at.date(), Decimal((until - at).total_seconds())
        if until <= at:
            return
        at = until


def _moment(item: Mapping[str, Any], key: str) -> datetime:
    text = item.get(key)
    try:
        moment = typed_json.convert(text, datetime) if isinstance(text, str) else None
    except (msgspec.ValidationError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None or not 2000 <= moment.year <= 2200:
        raise Uncountable(f"{key}: {_shown(text)} is no time with its zone")
    return moment.astimezone(UTC)


def _number(item: Mapping[str, Any], key: str) -> Decimal:
    value = item.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = Decimal(repr(value))
        if number.is_finite() and number >= 0:
            return number
    raise Uncountable(f"{key}: {_shown(value)} is no number from 0 on")


def _text(item: Mapping[str, Any], key: str, otherwise: str = "") -> str:
    value = item.get(key) or otherwise
    if isinstance(value, str) and value:
        return value
    raise Uncountable(f"{key}: {_shown(item.get(key))} is no name")


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]


def _kind(value: object) -> str:
    return {dict: "an object", str: "text", type(None): "nothing"}.get(type(value), type(value).__name__)


def _finding(subject: str, code: str, message: str) -> Finding:
    return Finding(subject=subject, code=code, message=message)


def merge_findings(findings: Sequence[Finding], most: int = 50) -> tuple[Finding, ...]:
    """At most so many findings; the rest as their number."""
    if len(findings) <= most:
        return tuple(findings)
    more = f"{len(findings) - most} more that cannot be counted either"
    return (*findings[:most], _finding("charges", "bill-uncounted", more))
