"""A period's days in a basis: dollars of a bill in the meter's place, divided as the meter has the time."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, LineKind, MeterDay
from pilotlight.facts.money.money_policy import CostBasis, UnusedRule
from pilotlight.tools.advice.money.month import Month, month
from pilotlight.tools.advice.money.priced_days import PricedDays, price_days

DAY = date(2026, 10, 5)
BASES: tuple[CostBasis, ...] = ("list", "billed", "effective")


def _line(kind: LineKind, usd: str, team: str = "", node: str = "n", hours: str = "1", pool: str = "p4d") -> CostLine:
    return CostLine(
        kind=kind, pool=pool, node=node, instance_type="p4d.24xlarge", capacity_type="on-demand", team=team,
        gpu_hours=Decimal(hours), usd=Decimal(usd),
    )  # fmt: skip


def _metered(*lines: CostLine) -> MeterDay:
    return MeterDay(day=DAY, until=datetime(2026, 10, 6, tzinfo=UTC), lines=lines)


def _row(listed: str, billed: str, effective: str | None, **fields: Any) -> BilledDay:
    told = None if effective is None else Decimal(effective)
    return BilledDay(day=DAY, usd=Decimal(billed), list_usd=Decimal(listed), effective_usd=told, **fields)


def _unlisted(billed: str, effective: str, **fields: Any) -> BilledDay:
    return BilledDay(day=DAY, usd=Decimal(billed), effective_usd=Decimal(effective), resource="n", **fields)


def _priced(lines: list[CostLine], rows: list[BilledDay], basis: CostBasis, *, doubt: bool = False) -> PricedDays:
    return price_days([_metered(*lines)], {DAY: [BillDay(day=DAY, source="f", rows=tuple(rows), doubt=doubt)]}, basis)


def _by_team(priced: PricedDays) -> dict[str, Decimal]:
    return {line.team or line.kind: line.usd for day in priced.days for line in day.lines}


PLAN = _row("900", "0", "600", resource="n", commitment="used")
UNUSED = _row("0", "0", "50", commitment="unused")
FEE = _row("0", "650", "0", commitment="fee")
HELD = [_line("used", "300", "red"), _line("used", "100", "blue"), _line("idle", "200")]

CASES: dict[str, tuple[list[CostLine], list[BilledDay], CostBasis, dict[str, str]]] = {
    "a plan by what it costs, and unused": (
        HELD, [PLAN, UNUSED, FEE], "effective", {"red": "300", "blue": "100", "idle": "200", "commitment": "50"},
    ),
    "without discounts": (HELD, [PLAN, UNUSED, FEE], "list", {"red": "450", "blue": "150", "idle": "300"}),
    "as invoiced": (HELD, [PLAN, UNUSED, FEE], "billed", {"red": "0", "blue": "0", "idle": "0", "commitment": "650"}),
    "reserved nodes, metered at $0, by GPU-hours": (
        [_line("used", "0", "red", hours="6"), _line("idle", "0", hours="2")], [PLAN], "effective",
        {"red": "450", "idle": "150"},
    ),
    "a node that no row names stays metered": (
        [*HELD, _line("used", "7", "green", "other")], [PLAN], "effective",
        {"red": "300", "blue": "100", "idle": "200", "green": "7"},
    ),
    "moved data names no node": (
        HELD[:1], [_row("3", "3", "3", resource="n", egress=True)], "effective", {"red": "300"},
    ),
    "a bill that does not tell it": (HELD[:1], [_row("9", "9", None, resource="n")], "effective", {"red": "300"}),
    "a bill without nodes, by pool": (
        HELD, [_row("900", "0", "600", pool="p4d", commitment="used")], "effective",
        {"red": "300", "blue": "100", "idle": "200"},
    ),
    "a trifle with the pool's tag": (HELD[:1], [_row("1", "1", "1", pool="p4d")], "effective", {"red": "300"}),
    "a meter of the cloud's beside the node": (
        HELD[:1], [_row("0.3", "0.3", "0.3", resource="n")], "effective", {"red": "300"},
    ),
    "a refund alone": (HELD[:1], [_row("-5", "-5", "-5", resource="n")], "billed", {"red": "300"}),
    "a refund beside its node": (
        HELD[:1], [_row("290", "290", "290", resource="n"), _row("-5", "-5", "-5", resource="n")], "billed",
        {"red": "285"},
    ),
    "a refund of a node that a plan pays, in a bill without list prices": (
        HELD[:1], [_unlisted("0", "600", commitment="used"), _unlisted("-5", "-5")], "effective", {"red": "595"},
    ),
    "a day without a node that is lit": ([], [UNUSED], "effective", {"commitment": "50"}),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "rows", "basis", "expected"), CASES.values(), ids=CASES)
def test_lines_have_the_bills_dollars_where_it_tells_them(
    lines: list[CostLine], rows: list[BilledDay], basis: CostBasis, expected: dict[str, str]
) -> None:
    """Divided by what each line was metered at; all else stays as it is."""
    assert _by_team(_priced(lines, rows, basis)) == {name: Decimal(usd) for name, usd in expected.items()}


def test_a_day_in_doubt_stays_metered() -> None:
    """Something of it could not be counted, so its nodes may have cost more."""
    assert _by_team(_priced(HELD, [PLAN], "effective", doubt=True)) == _by_team(PricedDays((_metered(*HELD),)))


def _month(sharing: UnusedRule) -> Month:
    lines = [*HELD, _line("used", "40", "green", "other")]
    priced = _priced(lines, [PLAN, UNUSED, _row("40", "40", "40", resource="other")], "effective")
    return month([_metered(*lines)], [], DAY, DAY, priced=priced, sharing=sharing)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ("nobody", {"red": "436.363636364", "blue": "145.454545455", "green": "58.181818181"}),
        ("held", {"red": "470.454545455", "blue": "156.818181819", "green": "62.727272726"}),
        ("committed", {"red": "473.863636364", "blue": "157.954545455", "green": "58.181818181"}),
    ],
)
def test_unused_commitment_is_shared_by_the_policys_rule(sharing: UnusedRule, expected: dict[str, str]) -> None:
    """By nobody where none is named; by what teams held; or by what their nodes used of commitments: $300 to $100."""
    report = _month(sharing)
    assert {team.name: team.with_share for team in report.teams} == {n: Decimal(usd) for n, usd in expected.items()}
    assert (report.commitment.usd, report.unshared) == (Decimal(50), sharing == "nobody")
    assert sum(team.with_share for team in report.teams) == report.total.usd - (50 if report.unshared else 0)


dollars = st.integers(0, 10**9).map(lambda n: Decimal(n) / 10**6)


@given(
    lines=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(("red", "blue", "")), dollars), max_size=8),
    rows=st.lists(st.tuples(st.sampled_from("ab"), dollars, dollars, dollars), max_size=5),
)
def test_nodes_cost_what_the_bill_says_of_them_to_the_last_digit(
    lines: list[tuple[str, str, Decimal]], rows: list[tuple[str, Decimal, Decimal, Decimal]]
) -> None:
    """In each basis, whoever held them; a node that no row names, or by a trifle alone, costs what was metered."""
    held = [_line("used" if team else "idle", str(usd), team, node) for node, team, usd in lines]
    bill = [_row(str(a), str(b), str(c), resource=node) for node, a, b, c in rows]
    for basis in BASES:
        found = [line for day in _priced(held, bill, basis).days for line in day.lines]
        for node in {line.node for line in held}:
            told = [dict(zip(BASES, amounts, strict=True))[basis] for name, *amounts in rows if name == node]
            counted = [usd for name, _, usd in lines if name == node]
            most = max(sum(amounts[n] for name, *amounts in rows if name == node) for n in range(3))
            said = counted if not told or 0 < most * 10 < sum(counted) else told
            assert sum(line.usd for line in found if line.node == node) == sum(said)
