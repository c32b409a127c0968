"""What Pilotlight itself costs: free tiers, ticks, and no price that is unknown."""

from decimal import Decimal

import pytest

from pilotlight.tools.advice.own_cost import (
    DAYS,
    MINUTES,
    TICKS_PER_DAY,
    Fleet,
    OwnLine,
    OwnPrices,
    UnitPrice,
    Use,
    own_cost,
)

USES = (
    "cpu_seconds", "gib", "document_reads", "document_writes", "document_deletes", "published_kib", "nat_instances",
    "minute_reads", "minute_writes", "minute_deletes", "budget_reads", "budget_writes", "node_reads", "node_writes",
    "day_reads", "day_node_reads", "billed_day_reads", "billed_day_node_reads",
)  # fmt: skip
PRICED = (
    "cpu_second", "gib_second", "request", "document_read", "document_write", "document_delete", "published_gib",
    "scheduled_job", "nat_instance_hour", "address_hour", "secret_version",
    "scanned_gib",
)  # fmt: skip


def _prices(**free: int) -> OwnPrices:
    """Everything costs a dollar, and a delivery uses one of everything."""
    prices = {
        name: UnitPrice(usd=Decimal(1), free_per_month=Decimal(free.get(name, 0)), source="a test") for name in PRICED
    }
    return OwnPrices(
        as_of="2026-11-21",
        region="a test",
        prices=prices,
        uses={name: Use(amount=Decimal(1), source="a test") for name in USES},
    )


def _line(lines: list[OwnLine], what: str) -> OwnLine:
    return next(line for line in lines if line.what == what)


def test_ticks_and_events_are_deliveries() -> None:
    """A cluster ticks 2,880 times a day; each of 1,000 events is one delivery more."""
    assert _line(own_cost(_prices(), 0), "request").used == TICKS_PER_DAY * DAYS
    assert _line(own_cost(_prices(), 1000, Fleet(clusters=2)), "request").used == (1000 + 2 * 2880) * DAYS


@pytest.mark.parametrize(
    ("days", "gib", "more"), [(0, None, 0), (10, None, 10 * 4), (10, Decimal(0), 10 * 8), (400, None, 35 * 4)]
)
def test_each_minute_reads_the_days_that_it_looks_back_on(days: int, gib: Decimal | None, more: int) -> None:
    """One of a cluster and one of each of three nodes, as metered and, with a bill, as billed: of 35 days at most."""
    fresh, old = (
        _line(own_cost(_prices(), 0, Fleet(nodes=3, days=n), bill_gib=gib), "document_read") for n in (0, days)
    )
    assert old.used - fresh.used == MINUTES * more


def test_a_bill_is_scanned_once_an_hour_and_ticks_every_ten_minutes() -> None:
    """In a table by what a query reads, in files for nothing; without a bill there is neither."""
    for gib, scanned, ticks in ((None, 0, 2880), (Decimal(0), 0, 3024), (Decimal(10), 240, 3024)):
        lines = own_cost(_prices(), 0, bill_gib=gib)
        assert (_line(lines, "scanned_gib").used, _line(lines, "request").used) == (scanned * DAYS, ticks * DAYS)
        assert _line(lines, "scheduled_job").used == (2 if gib is None else 3)


def test_a_free_tier_is_taken_off_once() -> None:
    """What is within it costs nothing, what is over it is paid for."""
    used = TICKS_PER_DAY * DAYS
    assert _line(own_cost(_prices(request=10**9), 0), "request").usd == 0
    assert _line(own_cost(_prices(request=1000), 0), "request").usd == used - 1000


def test_without_addresses_there_is_no_network_to_pay() -> None:
    """The DNS endpoint needs neither NAT nor addresses."""
    lines = own_cost(_prices(), 0, addresses=0)
    assert _line(lines, "address_hour").usd == _line(lines, "nat_instance_hour").usd == 0


def test_an_unknown_price_is_no_zero() -> None:
    """A price that is missing is an error."""
    found = _prices()
    del found.prices["document_read"]
    with pytest.raises(KeyError, match="document_read"):
        own_cost(found, 0)
