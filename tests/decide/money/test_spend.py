"""What is spent of a budget, what its period will end with, and where bill and meter are apart."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.budget_ladder import climb_ladder, figures
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.reconciliation import compare_with_bill, corrections
from pilotlight.decide.money.spend import budget_spend, drift, forecast
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.facts.money.budgets import Meter
from pilotlight.facts.money.money_policy import Budget, BudgetScope, CostBasis, LadderStep

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MONTH = Budget(name="b", usd=Decimal(1000), period="month")


def metered(day: int, usd: str, team: str = "red", pool: str = "a100", **fields: Any) -> MeterDay:
    """A day of November with one line of the meter."""
    on = date(2026, 11, day)
    line = CostLine(
        kind="used",
        pool=pool,
        instance_type="x",
        capacity_type="spot",
        team=team,
        workload_class="batch",
        usd=Decimal(usd),
        gpu_hours=Decimal(usd) / 2,
        **{"node": "n", "begin": day_start(on), **fields},
    )
    return MeterDay(day=on, until=day_start(on), lines=(line,))


def billed(day: int, *rows: tuple[str, str, str], source: str = "focus") -> BillDay:
    """A billed day of November: dollars, pool and team of each row."""
    on = date(2026, 11, day)
    return BillDay(
        day=on,
        source=source,
        rows=tuple(BilledDay(day=on, usd=Decimal(usd), pool=pool, team=team) for usd, pool, team in rows),
    )


def meter_of(**fields: Any) -> Meter:
    """The meter of a month's budget."""
    (found,) = meters([Budget(**{"name": "b", "usd": Decimal(1000), "period": "month", **fields})], NOW)
    return found


DAYS = [metered(18, "10"), metered(19, "12"), metered(20, "5")]
BILLS = [billed(18, ("11", "a100", ""), ("2", "", "")), billed(19, ("11", "a100", "red"))]

SPENT: dict[str, tuple[dict[str, Any], list[BillDay], tuple[str, str]]] = {
    "with no bill all is metered": ({}, [], ("0", "27")),
    "billed up to the horizon, metered since": ({}, BILLS, ("24", "5")),
    "a pool by the bill's rows of it": ({"scope": BudgetScope(pool="a100")}, BILLS, ("22", "5")),
    "another pool": ({"scope": BudgetScope(pool="t4")}, BILLS, ("0", "0")),
    "a team where the export names it near the meter, else by the meter": (
        {"scope": BudgetScope(team="red")},
        [billed(18, ("2", "", "red")), billed(19, ("11.5", "a100", "red"))],
        ("11.5", "15"),
    ),
    "a class is never in a bill": ({"scope": BudgetScope(workload_class="batch")}, BILLS, ("0", "27")),
    "GPU-hours are metered": ({"usd": None, "gpu_hours": Decimal(99)}, BILLS, ("0", "13.5")),
    "a day that one of two sources lacks is metered": (
        {},
        [*BILLS, billed(18, ("1", "t4", ""), source="civo")],
        ("14", "17"),
    ),
    "a day billed at nothing is metered": ({}, [billed(18)], ("0", "27")),
}


@pytest.mark.parametrize(("fields", "bills", "expected"), SPENT.values(), ids=SPENT.keys())
def test_spent_is_billed_and_metered(fields: dict[str, Any], bills: list[BillDay], expected: tuple[str, str]) -> None:
    """No day is counted twice, and none is left out."""
    found = budget_spend(meter_of(**fields), counted_days(DAYS, bills), Decimal(0), NOW)
    assert (found.billed, found.metered) == tuple(map(Decimal, expected))


@given(
    st.lists(
        st.tuples(st.integers(0, 500), *[st.sampled_from(names) for names in (("", "red", "blue"), ("a100", "t4"))])
    ),
    st.sampled_from([BudgetScope(team="red"), BudgetScope(pool="t4"), BudgetScope(workload_class="batch"), "all"]),
    st.sampled_from(["usd", "gpu_hours"]),
)
def test_a_scope_is_spent_by_its_own_lines(
    found: list[tuple[int, str, str]], scope: BudgetScope | Literal["all"], measure: str
) -> None:
    """A budget's sum is that of the lines that its scope names, whatever else was asked of the same days."""
    days = [metered(19, str(cents), team, pool) for cents, team, pool in found]
    lines = tuple(line for day in days for line in day.lines)
    known = counted_days([MeterDay(day=date(2026, 11, 19), until=NOW, lines=lines)], [])
    fields = {"usd": None, "gpu_hours": Decimal(99)} if measure == "gpu_hours" else {}
    for other in (BudgetScope(team="blue"), scope):
        spent = budget_spend(meter_of(scope=other, **fields), known, Decimal(0), NOW)
    names = {scope.team, scope.workload_class, scope.pool} if isinstance(scope, BudgetScope) else set()
    own = [line for line in lines if not names or names & {line.team, line.workload_class, line.pool}]
    assert spent.metered == sum([getattr(line, measure) for line in own], Decimal(0))


@pytest.mark.parametrize(
    ("doubt", "bill", "expected"),
    [
        pytest.param(True, "2", ("0", "12"), id="in doubt and far below the meter, the meter counts"),
        pytest.param(True, "11.5", ("11.5", "0"), id="in doubt and near the meter, the bill counts"),
        pytest.param(True, "50", ("50", "0"), id="in doubt and above the meter, the bill counts"),
        pytest.param(False, "11.5", ("11.5", "0"), id="whole and near the meter, the bill counts"),
        pytest.param(False, "2", ("0", "12"), id="whole and far below the meter, without a node, the meter counts"),
    ],
)
def test_a_day_in_doubt_is_never_cheaper_than_the_meter_knows(
    doubt: bool, bill: str, expected: tuple[str, str]
) -> None:
    """A line that could not be counted does not make its day free."""
    one = msgspec.structs.replace(billed(19, (bill, "a100", "")), doubt=doubt)
    now = budget_spend(meter_of(), counted_days([metered(19, "12")], [one]), Decimal(0), NOW)
    assert (now.billed, now.metered) == (Decimal(expected[0]), Decimal(expected[1]))


def test_one_bill_in_doubt_leaves_its_day_in_doubt() -> None:
    """Of two sources one could not be read whole: their sum is no less than the meter knows."""
    whole = billed(19, ("1", "t4", ""), source="civo")
    doubted = msgspec.structs.replace(billed(19, ("1", "a100", "")), doubt=True)
    near = billed(19, ("10.5", "a100", ""))
    for bills, expected in (([whole, doubted], ("0", "12")), ([whole, near], ("11.5", "0"))):
        now = budget_spend(meter_of(), counted_days([metered(19, "12")], bills), Decimal(0), NOW)
        assert (now.billed, now.metered) == (Decimal(expected[0]), Decimal(expected[1]))


def node_row(node: str, usd: str, **fields: Any) -> BilledDay:
    """A row of the bill of the 19th that names a node; of no node where it is empty."""
    return BilledDay(day=date(2026, 11, 19), usd=Decimal(usd), resource=node, **fields)


SHARED = MeterDay(
    day=date(2026, 11, 19),
    until=day_start(date(2026, 11, 20)),
    lines=(
        *metered(19, "700", "red", node="n1").lines,
        *metered(19, "80", "blue", node="n1").lines,
        *metered(19, "20", "red", node="n2", pool="t4").lines,
    ),
)
N1, N2 = node_row("n1", "750", pool="a100"), node_row("n2", "18", pool="t4")
TRIFLE = node_row("", "0.96", team="red", pool="a100", service="S3")

NAMED: dict[str, tuple[Any, list[BilledDay], tuple[str, str]]] = {
    "a team's bucket comes on top of its shared node": (BudgetScope(team="red"), [N1, N2, TRIFLE], ("0.96", "720")),
    "a node with the team's tag is the bill's": (
        BudgetScope(team="red"),
        [N1, node_row("n2", "18", team="red"), TRIFLE],
        ("18.96", "700"),
    ),
    "a pool's bucket comes on top of nodes without its tag": (
        BudgetScope(pool="a100"),
        [node_row("n1", "750"), TRIFLE],
        ("0.96", "780"),
    ),
    "a pool's nodes are the bill's": (BudgetScope(pool="a100"), [N1, N2, TRIFLE], ("750.96", "0")),
    "a node that no line names is metered": ("all", [N1], ("750", "20")),
    "a node billed at $0 is metered": ("all", [node_row("n1", "0"), N2], ("18", "780")),
    "data that a node moved does not name it": ("all", [node_row("n1", "3", egress=True), N2], ("21", "780")),
    "a bucket alone, where no line names a node, is below the meter": (BudgetScope(team="red"), [TRIFLE], ("0", "720")),
    "a meter of the cloud's beside an untagged node does not name it": (
        BudgetScope(team="red"),
        [N1, node_row("n1", "0.30", team="red", service="CloudWatch")],
        ("0.30", "720"),
    ),
    "a refund alone does not name it": ("all", [node_row("n1", "-5"), N2], ("13", "780")),
    "a class is metered whatever nodes are billed": (BudgetScope(workload_class="batch"), [N1, N2], ("0", "800")),
}


@pytest.mark.parametrize(("scope", "rows", "expected"), NAMED.values(), ids=NAMED.keys())
def test_a_bill_replaces_the_meter_for_nodes_that_it_names(
    scope: Any, rows: list[BilledDay], expected: tuple[str, str]
) -> None:
    """A trifle with a team's or pool's tag sets none of its GPUs aside."""
    bill = BillDay(day=date(2026, 11, 19), source="focus", rows=tuple(rows))
    found = budget_spend(meter_of(scope=scope), counted_days([SHARED], [bill]), Decimal(0), NOW)
    assert (found.billed, found.metered) == tuple(map(Decimal, expected))


PLAN = node_row(
    "n1", "0", pool="a100", team="red", list_usd=Decimal(900), effective_usd=Decimal(500), commitment="used"
)
UNUSED = node_row("", "0", list_usd=Decimal(0), effective_usd=Decimal(40), commitment="unused")
FEE = node_row("", "540", list_usd=Decimal(0), effective_usd=Decimal(0), commitment="fee")

BASES: dict[str, tuple[Any, CostBasis | None, list[BilledDay], tuple[str, str, str]]] = {
    "effective: what the plan costs, spread over its use": ("all", "effective", [PLAN], ("500", "20", "500")),
    "effective: with what nothing used of it": ("all", "effective", [PLAN, UNUSED, FEE], ("540", "20", "540")),
    "a team's part has none of what nothing used": (
        BudgetScope(team="red"), "effective", [PLAN, UNUSED, FEE], ("500", "20", "500")
    ),
    "billed: the node at $0, and the plan's own price": ("all", "billed", [PLAN, UNUSED, FEE], ("540", "20", "540")),
    "billed: a pool at $0": (BudgetScope(pool="a100"), "billed", [PLAN, FEE], ("0", "0", "0")),
    "list: what it would cost without": ("all", "list", [PLAN, UNUSED, FEE], ("900", "20", "900")),
    "none: a line at $0 sets nothing aside": ("all", None, [PLAN], ("0", "800", "0")),
    "none: hours beyond the plan set their part aside": (
        "all",
        None,
        [PLAN, node_row("n1", "300", pool="a100", list_usd=Decimal(300))],
        ("300", "605", "0"),
    ),
    "none: a trifle beside the plan sets nothing aside": (
        "all",
        None,
        [PLAN, node_row("n1", "0.30", service="CloudWatch")],
        ("0.30", "800", "0"),
    ),
    "none: a plan's price is billed, and sunk": ("all", None, [PLAN, FEE], ("540", "800", "540")),
    "effective, of a bill that does not tell it": (
        "all", "effective", [N1, node_row("n2", "0")], ("750", "20", "0")
    ),
    "billed: a trifle of a node without its tag": (
        BudgetScope(team="red"), "billed", [N2, node_row("n1", "0.30", team="red")], ("0.30", "720", "0")
    ),
    "effective: a plan without list prices names its node beside a refund": (
        "all", "effective", [node_row("n1", "0", effective_usd=Decimal(500), commitment="used"),
                             node_row("n1", "-5", effective_usd=Decimal(-5))], ("495", "20", "500")
    ),
    "billed: a refund alone does not name its node": ("all", "billed", [N2, node_row("n1", "-5")], ("13", "780", "0")),
    "billed, of such a bill": ("all", "billed", [N1, node_row("n2", "0")], ("750", "0", "0")),
}  # fmt: skip


@pytest.mark.parametrize(("scope", "basis", "rows", "expected"), BASES.values(), ids=BASES.keys())
def test_a_budget_counts_in_the_basis_that_it_names(
    scope: Any, basis: CostBasis | None, rows: list[BilledDay], expected: tuple[str, str, str]
) -> None:
    """Billed, metered, and what of it is sunk in commitments."""
    bill = BillDay(day=date(2026, 11, 19), source="focus", rows=tuple(rows))
    meter = meter_of(scope=scope, basis=basis)
    found = budget_spend(meter, counted_days([SHARED], [bill]), Decimal(0), NOW)
    assert (found.billed, found.metered, found.sunk) == tuple(map(Decimal, expected))


STANDS = {
    "notify, for all of it is spent": ((LadderStep(at=Decimal(1), do="notify"),), None),
    "nothing is refused for what is sunk": ((LadderStep(at=Decimal("0.1"), do="no-new-buys"),), None),
    "what refusing could have saved refuses": ((LadderStep(at=Decimal("0.02"), do="no-new-buys"),), "no-new-buys"),
}


@pytest.mark.parametrize(("ladder", "does"), STANDS.values(), ids=STANDS.keys())
def test_a_sunk_commitment_stops_nobody(ladder: tuple[LadderStep, ...], does: str | None) -> None:
    """$540 of a budget of $500 are a plan's, $20 are metered: people are told, and purchases are judged by the $20."""
    bill = BillDay(day=date(2026, 11, 19), source="focus", rows=(PLAN, UNUSED, FEE))
    meter = meter_of(basis="effective", usd=Decimal(500), ladder=ladder, ladder_dry_run=False)
    spent = budget_spend(meter, counted_days([SHARED], [bill]), Decimal(0), NOW)
    rung = climb_ladder(None, spent, NOW)
    assert (rung.step.do if rung.step else None) == does
    assert rung.at == (ladder[0].at if does or ladder[0].do == "notify" else 0)
    assert figures(spent) == "budget b: $560.00 of $500.00 a month is spent, $540.00 of it on commitments"


def test_a_budget_in_another_zone_counts_from_its_own_midnight() -> None:
    """A day in New York begins at 05:00 UTC: what was before counts to the day before, bill or not."""
    early, late = metered(20, "3"), metered(20, "5", begin=datetime(2026, 11, 20, 5, tzinfo=UTC))
    both = MeterDay(day=early.day, until=early.until, lines=(*early.lines, *late.lines))
    day = meter_of(period="day", timezone="America/New_York")
    assert budget_spend(day, counted_days([both], [billed(20, ("8", "", ""))]), Decimal(0), NOW).total == Decimal(5)


def test_a_forecast_has_a_band_and_a_day_it_runs_out() -> None:
    """Ten days of $10 to $14 and ten days left: $120 more, give or take what the textbook says."""
    days = [Decimal(12 + 2 * (-1) ** n) for n in range(10)]
    found = forecast(Decimal(300), Decimal(360), days, NOW, NOW + timedelta(days=10), Decimal(0))
    assert found.likely == Decimal(420)
    # t(0.90, 9) = 1.383, s = 2.1082, sqrt(10 + 100 / 10) = 4.4721: 13.04.
    assert found.low is not None
    assert found.high is not None
    assert (round(found.low, 2), round(found.high, 2)) == (Decimal("406.96"), Decimal("433.04"))
    assert found.runs_out == NOW + timedelta(days=5)


def test_the_day_the_books_begin_tells_nothing_of_a_day() -> None:
    """The meter began in the evening of the 10th: $1 is no day's spending; the nine after it are."""
    days = [metered(10, "1"), *(metered(day, "12") for day in range(11, 20))]
    found = budget_spend(meter_of(), counted_days(days, []), Decimal(0), NOW).forecast
    assert found.likely == 1 + 9 * 12 + Decimal("10.5") * 12
    assert found.low == found.high == found.likely


def test_a_forecast_from_nothing_has_no_band() -> None:
    """On the first day it is today's pace."""
    found = forecast(Decimal(6), Decimal(100), [], NOW, NOW + timedelta(days=2), Decimal(12))
    assert (found.likely, found.low, found.high, found.runs_out) == (Decimal(30), None, None, None)


def test_when_a_budget_runs_out_never_lies_in_the_past() -> None:
    """It is told in whole minutes, the next one; what is used up already runs out no more."""
    late, end = NOW + timedelta(seconds=30), NOW + timedelta(days=2)
    assert forecast(Decimal("99.999"), Decimal(100), [], late, end, Decimal(1440)).runs_out == NOW + timedelta(
        minutes=1
    )
    assert forecast(Decimal(101), Decimal(100), [], late, end, Decimal(1440)).runs_out is None


def test_a_forecast_is_never_below_what_is_held() -> None:
    """A node that was just bought is held for its whole run: the period ends with no less, band and all."""
    known = counted_days([metered(20, "0.10")], [])
    found = budget_spend(meter_of(), known, Decimal(40), NOW).forecast
    assert found.likely == Decimal(40)
    known = counted_days([metered(day, "1") for day in range(17, 21)], [])
    found = budget_spend(meter_of(), known, Decimal(40), NOW).forecast
    assert (found.low, found.likely, found.high) == (Decimal(40), Decimal(40), Decimal(40))


amounts = st.lists(st.integers(0, 500).map(Decimal), max_size=20)


@given(days=amounts, already=st.integers(0, 900).map(Decimal), left=st.integers(1, 31))
def test_a_forecast_is_in_its_band_and_never_less_than_what_is_spent(
    days: list[Decimal], already: Decimal, left: int
) -> None:
    """Money that is spent does not come back."""
    found = forecast(already, Decimal(1000), days, NOW, NOW + timedelta(days=left), Decimal(1))
    assert found.likely >= already
    if found.low is not None and found.high is not None:
        assert already <= found.low <= found.likely + Decimal("0.00001")
        assert found.likely <= found.high + Decimal("0.00001")
    assert found.runs_out is None or NOW <= found.runs_out < NOW + timedelta(days=left)


def test_a_pool_that_commitments_pay_is_compared_at_list_prices() -> None:
    """A plan's usage at $0 explains itself; nodes that the meter has not are told, and nothing is learnt."""

    def bill(day: int, listed: str) -> BillDay:
        plan = BilledDay(
            day=date(2026, 11, day), usd=Decimal(3), list_usd=Decimal(listed), pool="a100", commitment="used"
        )
        fee = BilledDay(day=plan.day, usd=Decimal(70), list_usd=Decimal(0), pool="a100", commitment="fee")
        return BillDay(day=plan.day, source="focus", rows=(plan, fee))

    days = [metered(day, "100") for day in range(10, 20)]
    known = counted_days(days, [*(bill(day, "102") for day in range(11, 19)), bill(19, "200")])
    assert [one.subject for one in drift(known)] == ["2026-11-19 pool a100"]
    assert "($200.00 at list prices), metered $100.00: $100.00 more than was metered" in drift(known)[0].message
    assert corrections(compare_with_bill(known.metered, known.billed)) == ()


def test_drift_is_told_by_day_and_pool_above_both_thresholds() -> None:
    """A dollar, and five in a hundred, may be apart; the day that the meter began on is not compared."""
    days = [metered(16, "1"), metered(17, "100"), metered(18, "100"), metered(19, "0.50")]
    bills = [
        billed(16, ("90", "a100", "")),
        billed(17, ("104", "a100", "")),
        billed(18, ("130", "a100", ""), ("7", "", "")),
        billed(19),
    ]
    found = drift(counted_days(days, bills))
    assert [f.subject for f in found] == ["2026-11-18 no pool", "2026-11-18 pool a100"]
    assert "billed $130.00, metered $100.00: $30.00 more than was metered is unexplained" in found[1].message
