"""What commitments paid for, by a bill: one figure for plans, a month's unused capacity and what to pay ahead."""

from datetime import UTC, date, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.counted_days import CountedDays, counted_days
from pilotlight.decide.offers.commitment_use import commitment_use
from pilotlight.facts.money.bill import BillDay, BilledDay, Commitment, CostLine, MeterDay

DAY = date(2026, 11, 10)


def line(
    node: str, pool: str = "own", capacity_type: str = "reserved", gpu_hours: str = "192", usd: str = "0"
) -> CostLine:
    """A node of eight GPUs that was lit for a day."""
    return CostLine(
        kind="used", pool=pool, node=node, instance_type="p4d.24xlarge", capacity_type=capacity_type, team="nlp",
        gpu_hours=Decimal(gpu_hours), usd=Decimal(usd),
    )  # fmt: skip


def row(resource: str, effective: str, commitment: Commitment = "used", pool: str = "", full: str = "800") -> BilledDay:
    """A day that a commitment pays for: billed at $0."""
    return BilledDay(
        day=DAY, usd=Decimal(0), list_usd=Decimal(full), effective_usd=Decimal(effective), commitment=commitment,
        resource=resource, pool=pool,
    )  # fmt: skip


def known(lines: tuple[CostLine, ...], rows: tuple[BilledDay, ...], *, doubt: bool = False) -> CountedDays:
    """One day, metered and billed."""
    until = datetime(2026, 11, 11, tzinfo=UTC)
    return counted_days(
        [MeterDay(day=DAY, until=until, lines=lines)], [BillDay(day=DAY, source="focus", rows=rows, doubt=doubt)]
    )


def test_a_gpu_hour_costs_what_the_bill_spreads_over_its_use() -> None:
    """$600 of a plan for 192 GPU-hours is $3.125 each, whether the node runs in one team's hands or two's."""
    two = (line("n1", gpu_hours="96"), line("n1", gpu_hours="96"))
    for lines in ((line("n1"),), two):
        found = commitment_use(known(lines, (row("n1", "600"), row("", "25", "unused"), row("", "625", "fee"))))
        assert found.rates == {"own": Decimal("3.125")}
        assert found.machines == {}


def test_a_bill_without_nodes_tells_by_pool() -> None:
    """Its tag names the pool."""
    assert commitment_use(known((line("n1"),), (row("", "600", pool="own"),))).rates == {"own": Decimal("3.125")}


def test_nodes_on_demand_that_a_plan_pays_are_known_by_machine() -> None:
    """One of two nodes is covered, and the other for a quarter of its list price: 1.25 nodes."""
    lines = (line("n1", "od", "on-demand", usd="800"), line("n2", "od", "on-demand", usd="800"))
    rows = (row("n1", "600"), row("n2", "150", full="200"), row("n2", "600", "", full="600"))
    found = commitment_use(known(lines, rows))
    assert found.nodes("p4d.24xlarge", 8) == Decimal("1.25")
    assert found.rates == {"od": Decimal("3.125")}


def test_a_day_in_doubt_tells_nothing() -> None:
    """It may have cost more."""
    assert commitment_use(known((line("n1"),), (row("n1", "600"),), doubt=True)).rates == {}


@given(st.lists(st.tuples(st.integers(1, 192), st.integers(1, 1000)), min_size=1, max_size=6))
def test_dollars_of_all_pools_are_those_of_the_bill(nodes: list[tuple[int, int]]) -> None:
    """Nothing is lost or made up by how lines are divided."""
    lines = tuple(line(f"n{n}", f"p{n % 2}", gpu_hours=str(hours)) for n, (hours, _) in enumerate(nodes))
    rows = tuple(row(f"n{n}", str(usd)) for n, (_, usd) in enumerate(nodes))
    found = commitment_use(known(lines, rows))
    assert sum(use.usd for use in found.pools.values()) == sum(usd for _, usd in nodes)
    assert sum(use.gpu_hours for use in found.pools.values()) == sum(hours for hours, _ in nodes)
