"""The dated price file of AWS: its common GPU shapes, each price with its source and day, and no machine at $0."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from pilotlight.codec.catalog import read_catalog
from pilotlight.codec.policy import read_policy
from pilotlight.decide.capacity.offerings import offerings

FILE = Path(__file__).resolve().parents[2] / "data" / "catalogs" / "aws-us-east-1.yaml"
CATALOG = read_catalog(FILE.read_bytes(), FILE.name)
FAMILIES = {"g4dn", "g5", "g6", "g6e", "p3", "p4d", "p4de", "p5", "p5e", "p5en"}
POLICY = b"""
version: 1
pools:
  block: {cloud: eks, instance_type: p5e.48xlarge, capacity_type: reserved}
  dear: {cloud: eks, instance_type: p5e.48xlarge}
"""


def test_the_common_shapes_are_there_each_price_with_its_source_and_day() -> None:
    """A price says where it is from; none is $0."""
    assert {name.partition(".")[0] for name in CATALOG.instance_types} == FAMILIES
    prices = [price for kind in CATALOG.instance_types.values() for price in kind.prices.values()]
    assert len(prices) >= len(FAMILIES)
    assert all(price.usd_per_hour > 0 and price.source for price in prices)
    assert max(date.fromisoformat(price.date) for price in prices) <= date(2026, 11, 22)


def test_a_type_that_is_only_reserved_has_a_pool_of_that_and_no_price_on_demand() -> None:
    """Capacity Blocks of it cost nothing more; on demand it is an error that names it."""
    found, findings = offerings(read_policy(POLICY, "policy"), CATALOG)
    assert [(one.pool, one.usd_per_hour) for one in found] == [("block", Decimal(0))]
    assert ["p5e.48xlarge/on-demand" in one.message for one in findings] == [True]
