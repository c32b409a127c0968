"""Which lines of a bill are a cluster's, in dollars, and how far it reaches."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.bills.bill_scope import Rules, scope_bill
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.spend import budget_spend
from pilotlight.facts.money.bill import Bill, CostLine, MeterDay
from pilotlight.facts.money.bill_files import Line
from pilotlight.facts.money.money_policy import BillScope, Budget, CurrencyRate
from pilotlight.flow.billing.billed_days import days, store
from pilotlight.world.world_clock import WallClock

DAY = timedelta(days=1)
FIRST = date(2026, 11, 1)
END = datetime(2026, 12, 1, tzinfo=UTC)
POOLS = {"gpu-a100": "a100"}


def _at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def _line(day: int, usd: str, **fields: Any) -> Line:
    """A node's day, tagged with its pool."""
    whole = {
        "day": FIRST + (day - 1) * DAY, "team": "", "pool": "gpu-a100", "service": "EC2", "account": "1", "payer": "9",
        "tags": (), "currency": "USD", "doubt": 0, "amount": Decimal(usd), "rows": 1, "reach": _at(day + 1),
    }  # fmt: skip
    return Line(**{**whole, **fields})


def _bill(*lines: Line, **rules: Any) -> Bill:
    return scope_bill("focus", lines, Rules(**{"cluster": "ml", "pools": POOLS, **rules}), END)


def _usd(bill: Bill) -> Decimal:
    return sum((row.usd for row in bill.days), Decimal(0))


NODES = [_line(day, "786.50") for day in range(1, 11)]
"""Ten days of nodes: $7,865.00."""
DATABASE = [_line(day, "250", service="RDS", pool="") for day in range(1, 11)]
"""What somebody else's database costs beside them: $2,500.00, and it carries no tag."""


def test_what_no_tag_ties_to_the_cluster_does_not_count() -> None:
    """A database without a tag is not this cluster's: $7,865.00, not $10,365.00; how much is left out is said."""
    bill = _bill(*NODES, *DATABASE)
    assert _usd(bill) == Decimal("7865.00")
    assert bill.notes == ("$2,500.00 of lines without a tag are left out (RDS): bill in the policy says whose",)


def test_without_tags_of_pools_every_line_counts() -> None:
    """An export that carries no tag of the policy's pools is all there is to know."""
    bare = [line._replace(pool="") for line in NODES]
    assert _usd(_bill(*bare, *DATABASE)) == Decimal("10365.00")


def test_a_day_of_left_out_lines_alone_is_in_doubt() -> None:
    """Before tags are switched on nodes are billed without them: such a day did not cost nothing."""
    early = _line(1, "786.50", pool="")
    assert _bill(early, *NODES[1:]).doubtful == (FIRST,)


SCOPES = {
    "an account": (BillScope(accounts=("1",)), "7865.00"),
    "who pays": (BillScope(accounts=("9",)), "10365.00"),
    "a service": (BillScope(services=("RDS",)), "2500.00"),
    "an account and a service that it has not": (BillScope(accounts=("1",), services=("RDS",)), "0"),
    "everything": (BillScope(), "10365.00"),
}


@pytest.mark.parametrize(("scope", "usd"), SCOPES.values(), ids=SCOPES)
def test_a_scope_says_which_lines_are_the_clusters(scope: BillScope, usd: str) -> None:
    """Accounts and services that are named, all where none is."""
    elsewhere = [line._replace(account="2") for line in DATABASE]
    assert _usd(_bill(*NODES, *elsewhere, scope=scope)) == Decimal(usd)


def test_a_scope_that_fits_no_line_is_told() -> None:
    """An account that is written wrong would bill nothing in silence."""
    bill = _bill(*NODES, scope=BillScope(accounts=("7",)))
    assert [finding.message for finding in bill.findings] == ["no line is this cluster's: check bill in its policy"]
    assert bill.horizon is None


@pytest.mark.parametrize("shared", ["0", "0.25", "1"])
def test_clusters_of_one_bill_count_it_once(shared: str) -> None:
    """Two clusters told apart by one tag, each with its part of the lines without it: together never more than all."""
    lines = [
        *(line._replace(tags=("ml",)) for line in NODES),
        *(line._replace(tags=("web",), amount=Decimal(100)) for line in NODES),
        *(line._replace(tags=(None,)) for line in DATABASE),
    ]
    parts = {"ml": Decimal(shared), "web": 1 - Decimal(shared)}
    scopes = {name: BillScope(tags={"eks:cluster-name": "{cluster}"}, shared=part) for name, part in parts.items()}
    billed = {name: _usd(_bill(*lines, cluster=name, scope=scope)) for name, scope in scopes.items()}
    assert billed["ml"] == Decimal(7865) + 2500 * Decimal(shared)
    assert sum(billed.values()) == Decimal("7865") + 1000 + 2500


def test_one_services_horizon_does_not_hide_anothers_late_rows() -> None:
    """Nodes are billed up to the 8th, disks up to the 10th: the 9th and 10th are not billed yet."""
    disks = [_line(day, "50", service="EBS") for day in range(1, 11)]
    assert _bill(*NODES[:8], *disks).horizon == _at(9)
    other = [line._replace(account="2") for line in NODES]
    assert _bill(*NODES[:8], *other).horizon == _at(9)


def test_what_is_billed_and_metered_is_whole_while_a_service_is_late() -> None:
    """Nodes are billed to the 8th and metered since, a bucket of $2 to the 10th: $7,867.00, not $6,294.00."""
    bucket = [_line(day, "0.25" if day < 9 else "0", service="S3", pool="") for day in range(1, 11)]
    bill = _bill(*[line._replace(pool="") for line in NODES[:8]], *bucket)
    assert _usd(bill) == Decimal("6294.00")
    state = MemoryState(WallClock(END))
    store(state, "ml", bill, END - 30 * DAY, END)
    line = CostLine(kind="used", pool="a100", node="n", instance_type="x", capacity_type="spot", usd=Decimal("786.50"))
    metered = [MeterDay(day=FIRST + n * DAY, until=_at(n + 2), lines=(line,)) for n in range(10)]
    known = counted_days(metered, days(state, "ml", FIRST, FIRST + 29 * DAY))
    (meter,) = meters([Budget(name="b", usd=Decimal(10_000), period="month")], _at(11))
    found = budget_spend(meter, known, Decimal(0), _at(11))
    assert (found.billed, found.metered, found.total) == tuple(map(Decimal, ("6294.00", "1573.00", "7867.00")))


def test_a_service_that_has_ended_or_is_small_is_not_waited_for() -> None:
    """One that is a week behind has no usage any more; one below a hundredth of the bill is not waited for."""
    ended, small = _line(1, "400", service="once"), _line(8, "1", service="small")
    assert _bill(*NODES, ended, small).horizon == _at(11)


RATES = tuple(
    CurrencyRate(currency="EUR", usd=Decimal(usd), date=day, source="ECB")
    for usd, day in (("1.10", "2026-11-01"), ("1.20", "2026-11-03"))
)


def test_lines_in_another_currency_count_at_the_rate_of_their_day() -> None:
    """The last rate on or before the day; before the first there is none."""
    euros = [_line(day, "10", currency="EUR") for day in (1, 2, 3, 4)]
    assert [row.usd for row in _bill(*euros, rates=RATES).days] == [Decimal(11), Decimal(11), Decimal(12), Decimal(12)]


def test_a_line_without_a_rate_is_counted_apart_and_stops_nothing() -> None:
    """It is a finding with its sum, its day is in doubt, and the others are billed."""
    bill = _bill(*NODES, _line(2, "120.50", currency="EUR", rows=3))
    assert (_usd(bill), bill.horizon, bill.doubtful) == (Decimal("7865.00"), _at(11), (FIRST + DAY,))
    assert [finding.message for finding in bill.findings] == [
        "3 rows: BillingCurrency is 'EUR', 120.50 in all, without a rate: add it to prices.currencies"
    ]


@pytest.mark.parametrize(
    ("others", "usd"),
    [
        ([{}], Decimal(10)),
        ([{"currency": "USD"}], Decimal(20)),
        ([{"currency": "eur", "amount": Decimal(0)}], Decimal(11)),
        ([{"currency": "EUR", "payer": "8", "amount": Decimal(0)}], Decimal(11)),
        ([{"currency": "EUR", "payer": "8", "amount": Decimal(0)}, {"currency": "USD"}], Decimal(20)),
    ],
    ids=["none", "dollars", "euros", "another's", "dollars of its own"],
)
def test_a_line_without_a_currency_has_that_of_who_pays(others: list[dict[str, Any]], usd: Decimal) -> None:
    """Else of the whole bill; dollars where no line tells any."""
    lines = [_line(1, "10", currency=""), *(_line(1, "10", **({"currency": ""} | other)) for other in others)]
    bill = _bill(*(lines if others != [{}] else lines[:1]), rates=RATES)
    assert (_usd(bill), bill.findings) == (usd, ())


def test_a_line_without_a_currency_beside_several_is_counted_apart() -> None:
    """It is a finding with its sum, and its day is in doubt."""
    euros = _line(1, "10", currency="EUR")
    bill = _bill(*NODES, euros, _line(2, "9", currency=" ", rows=2), rates=RATES)
    assert (_usd(bill), bill.doubtful) == (Decimal("7876.00"), (FIRST + DAY,))
    assert [finding.message for finding in bill.findings] == [
        "2 rows: BillingCurrency is empty, 9.00 in all, and other lines have several: export it with each line"
    ]


def test_what_is_anothers_is_no_finding() -> None:
    """A line of another account that cannot be counted is not ours to mend."""
    odd = _line(2, "5", currency="EUR", account="2", payer="8")
    assert _bill(*NODES, odd, scope=BillScope(accounts=("1",))).findings == ()
