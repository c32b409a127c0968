"""Which lines of a bill are one cluster's, in dollars, and how far the bill reaches.

A line is the cluster's by account, service and tags where the policy says so (``bill``). Else it is by a pool's or a
team's tag; where no line has the tag of a pool of the policy, all are. Lines that no tag ties to anybody are left out,
or the cluster's share of them counted. What cannot be counted is a finding: its day stays billed, in doubt.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.bills.bill_versions import current_files
from pilotlight.facts.money.bill import Bill, BilledDay
from pilotlight.facts.money.bill_files import BillFile, BillListing, Line
from pilotlight.facts.money.money_policy import BillScope, CurrencyRate
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, count_of

ZERO, ONE = Decimal(0), Decimal(1)
DOLLARS = "USD"
LATE = timedelta(days=7)
"""A service that is so far behind the others has no usage any more; one that is less far is late, and waited for."""
SMALL = Decimal("0.01")
"""A service with a smaller part of the bill is not waited for."""

DOUBTS = {
    1: "BilledCost is missing or no number",
    2: "ChargePeriodStart or ChargePeriodEnd is missing or no time",
    3: "EffectiveCost or ListCost is no number",
}
"""Why lines cannot be counted, by the number that the reader gives them; 0 is none."""

AMOUNTS = ("usd", "list_usd", "effective_usd", "gpu_hours")
"""Fields of a row that are summed."""

Tie = Literal["own", "shared", "other"]


class Rules(NamedTuple):
    """Rules that lines are judged by. ``pools`` are the policy's names by what the cloud calls its node groups."""

    cluster: str = ""
    scope: BillScope | None = None
    rates: Sequence[CurrencyRate] = ()
    pools: Mapping[str, str] = {}


_Counted = tuple[Line, Decimal, Decimal, Decimal]
"""A line, the share of it that is the cluster's, dollars of one unit of its currency, and its amount in that. A bill
has very many: fields by name cost more than all else here."""


def scope_bill(source: str, lines: Sequence[Line], rules: Rules, end: datetime, *, dropped: int = 0) -> Bill:
    """The cluster's bill of lines up to ``end``. ``dropped`` says how many files were not read: they are replaced."""
    lines = _with_currencies(lines)
    names = {*rules.pools, *rules.pools.values()}
    tagged = any(line.pool in names for line in lines)
    ties = [(line, _tie(line, rules, tagged=tagged)) for line in lines]
    shares = {"own": ONE, "shared": rules.scope.shared if rules.scope else ZERO, "other": ZERO}
    counts = {tie for tie, share in shares.items() if share > 0}
    mine = [(line, shares[tie]) for line, tie in ties if tie in counts]
    counted, uncounted = _counted(mine, rules)
    left_out = [line for line, tie in ties if tie == "shared" and not shares[tie]]
    days = tuple(_days(counted, rules.pools))
    nobody = (_finding("no line is this cluster's: check bill in its policy"),) if lines and not mine else ()
    return Bill(
        source=source,
        days=days,
        horizon=_horizon(counted, end),
        findings=(*_doubts(uncounted), *nobody),
        notes=(*_notes(left_out, rules.rates, dropped), *_committed(days)),
        doubtful=_doubtful(days, uncounted, left_out),
    )


def _counted(mine: Iterable[tuple[Line, Decimal]], rules: Rules) -> tuple[list[_Counted], list[Line]]:
    """Lines in dollars, and those that cannot be."""
    counted, uncounted = list[_Counted](), list[Line]()
    for line, share in mine:
        plain = line.currency == DOLLARS and not line.doubt and line.day
        rate = ONE if plain else _rate(line, rules.rates)
        if (amount := line.amount) is None or rate is None:
            uncounted.append(line)
        else:
            counted.append((line, share, rate, amount))
    return counted, uncounted


def _with_currencies(lines: Sequence[Line]) -> list[Line]:
    """Lines with their currency's name. One that tells none has the only one of who pays, else of the bill: dollars
    where no line tells any. An account pays in one; where several are told it stays empty, for nobody knows.
    """
    told: dict[str, set[str]] = defaultdict(set)
    each = {(line.payer, line.currency) for line in lines}
    for payer, currency in each:
        if code := currency.strip().upper():
            told[payer].add(code)
    every = set[str]().union(*told.values()) or {DOLLARS}

    def known(payer: str, currency: str) -> str:
        of = told.get(payer, every)
        return currency.strip() or (next(iter(of)) if len(of) == 1 else "")

    changed = {one: code for one in each if (code := known(*one)) != one[1]}
    if not changed:
        return list(lines)
    codes = (changed.get((line.payer, line.currency)) for line in lines)
    return [line if code is None else line._replace(currency=code) for line, code in zip(lines, codes, strict=True)]


def _tie(line: Line, rules: Rules, *, tagged: bool) -> Tie:
    scope = rules.scope
    if scope is None:
        return "own" if line.team or line.pool or not tagged else "shared"
    if scope.accounts and not {line.account, line.payer} & set(scope.accounts):
        return "other"
    if scope.services and line.service not in scope.services:
        return "other"
    wanted = [value.replace("{cluster}", rules.cluster) for value in scope.tags.values()]
    if any(own is not None and own != value for own, value in zip(line.tags, wanted, strict=True)):
        return "other"
    return "shared" if None in line.tags else "own"


def _usd(line: Line, rates: Sequence[CurrencyRate]) -> Decimal | None:
    """A line's dollars, at the last rate on or before its day; None where they cannot be known."""
    rate = _rate(line, rates)
    return None if rate is None or line.amount is None else line.amount * rate


def _rate(line: Line, rates: Sequence[CurrencyRate]) -> Decimal | None:
    """Dollars of one unit of a line's currency on its day; None where it cannot be counted."""
    if line.doubt or line.day is None:
        return None
    currency = line.currency.strip().upper()
    if currency == DOLLARS:
        return ONE
    known = [one for one in rates if one.currency == currency and one.date <= line.day.isoformat()]
    return max(known, key=lambda one: one.date).usd if known else None


def _days(counted: Iterable[_Counted], pools: Mapping[str, str]) -> Iterator[BilledDay]:
    """The days of lines that can be counted. A share of a machine is no machine's."""
    for line, share, rate, usd in counted:
        listed, effective = line.listed, line.effective
        if not (whole := share == ONE) or rate != ONE:
            usd = usd * rate * share
            listed, effective = (None if each is None else each * rate * share for each in (listed, effective))
        assert line.day is not None
        yield BilledDay(
            day=line.day,
            usd=usd,
            list_usd=listed,
            effective_usd=effective,
            commitment=line.commitment,
            team=line.team,
            pool=pools.get(line.pool, line.pool),
            resource=line.instance if whole else "",
            service=line.service,
            egress=line.egress,
        )


def sum_rows(rows: Iterable[BilledDay]) -> tuple[BilledDay, ...]:
    """Rows that differ in their amounts alone as one. One that tells a basis is not added to one that does not."""
    sums: dict[BilledDay, BilledDay] = {}
    for row in rows:
        amounts = {name: getattr(row, name) for name in AMOUNTS}
        key = replace(row, **{name: None if usd is None else ZERO for name, usd in amounts.items()})
        was = sums.get(key, key)
        sums[key] = replace(key, **{n: None if usd is None else getattr(was, n) + usd for n, usd in amounts.items()})
    return tuple(sums.values())


def _horizon(lines: Iterable[_Counted], end: datetime) -> datetime | None:
    """Reach of the bill: every service of every account that goes on is in it up to there."""
    reached: dict[tuple[str, str], set[datetime | None]] = defaultdict(set)
    amounts: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for line, _, rate, amount in lines:
        key = line.service, line.account or line.payer
        amounts[key].append(amount if rate == ONE else amount * rate)
        reached[key].add(line.reach)
    sums = {key: sum(map(abs, each), ZERO) for key, each in amounts.items()}
    reach = {key: max(told) for key, each in reached.items() if (told := [at for at in each if at is not None])}
    if not reach:
        return None
    last, whole = max(reach.values()), sum(sums.values(), ZERO)
    goes_on = [at for key, at in reach.items() if at > last - LATE and sums[key] >= SMALL * whole]
    return min([*goes_on, last, end.astimezone(UTC)])


def _doubtful(days: Sequence[BilledDay], uncounted: Sequence[Line], left_out: Sequence[Line]) -> tuple[date, ...]:
    """Days that may have cost more: something of them could not be counted, or nothing in them is tied to anybody."""
    billed = {row.day for row in days}
    if any(line.day is None for line in uncounted):
        return tuple(sorted(billed | {line.day for line in uncounted if line.day}))
    missing = {line.day for line in uncounted if line.day}
    return tuple(sorted(missing | {line.day for line in left_out if line.day and line.day not in billed}))


def _doubts(uncounted: Sequence[Line]) -> tuple[Finding, ...]:
    found = []
    for number, why in DOUBTS.items():
        if rows := sum(line.rows for line in uncounted if line.doubt == number):
            found.append(_finding(f"{count_of(rows, 'row')}: {why}"))
    for currency in sorted({line.currency for line in uncounted if not line.doubt}):
        lines = [line for line in uncounted if not line.doubt and line.currency == currency]
        amount = sum((line.amount or ZERO for line in lines), ZERO)
        rows = sum(line.rows for line in lines)
        why = f"BillingCurrency is {currency[:20]!r}, {amount:.2f} in all, without a rate: add it to prices.currencies"
        if not currency:
            why = (
                f"BillingCurrency is empty, {amount:.2f} in all, and other lines have several: export it with each line"
            )
        found.append(_finding(f"{count_of(rows, 'row')}: {why}"))
    return tuple(found)


def _notes(left_out: Sequence[Line], rates: Sequence[CurrencyRate], dropped: int) -> tuple[str, ...]:
    notes = [f"{count_of(dropped, 'file')} replaced by newer ones"] if dropped else []
    if usd := sum((_usd(line, rates) or ZERO for line in left_out), ZERO):
        services = ", ".join(sorted({line.service or "no service" for line in left_out})[:3])
        notes.insert(0, f"{cents(usd)} of lines without a tag are left out ({services}): bill in the policy says whose")
    return tuple(notes)


def _committed(days: Sequence[BilledDay]) -> tuple[str, ...]:
    """A note where commitments pay: dollars by EffectiveCost beside those billed, and the unused among them."""
    told = [(row, row.effective_usd) for row in days if row.effective_usd is not None]
    billed, effective = sum((row.usd for row, _ in told), ZERO), sum((own for _, own in told), ZERO)
    if abs(effective - billed) < Decimal("0.01"):
        return ()
    unused = sum((own for row, own in told if row.commitment == "unused"), ZERO)
    return (
        f"{cents(effective)} by EffectiveCost where {cents(billed)} are billed: commitments are paid apart; "
        f"{cents(unused)} of it are unused commitment; reports go by effective, a budget by the basis that it names",
    )


def _finding(message: str) -> Finding:
    return Finding(subject="export", code="bill-uncounted", message=message)


def join_files(listing: BillListing, files: Sequence[BillFile], last: date) -> tuple[list[Line], tuple[Finding, ...]]:
    """Lines of a bill's files as they count, up to the ``last`` day, with what is to be told of it."""
    versions, gone, told = current_files(listing, files)
    lines = [
        line
        for version in versions
        for file in version
        for line in file.lines
        if (file.name, line.day) not in gone and (line.day is None or line.day <= last)
    ]
    effective, listed = (any(getattr(line, name) is not None for line in lines) for name in ("effective", "listed"))
    if effective or listed:
        lines = [_with_bases(line, effective=effective, listed=listed) for line in lines]
    folded = sorted({what for version in versions for file in version for what in file.folded})
    return lines, (*told, *(_finding(what) for what in folded))


def _with_bases(line: Line, *, effective: bool, listed: bool) -> Line:
    """A line that lacks a basis which others tell has in it what is billed."""
    if effective and line.effective is None:
        line = line._replace(effective=line.amount)
    return line._replace(listed=line.amount) if listed and line.listed is None else line
