"""The dated price file of AWS: its common GPU shapes, each price with its source and day, and no machine at $0."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.codec.catalog import read_catalog
from pilotlight.codec.policy import read_policy
from pilotlight.decide.capacity.offerings import offerings
from pilotlight.errors import BadInput

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


ELSEWHERE = b"""
version: 1
pools:
  far: {cloud: eks, instance_type: g5.xlarge, zones: [eu-west-1a]}
  near: {cloud: eks, instance_type: g5.xlarge, zones: [us-east-1b]}
  unsaid: {cloud: eks, instance_type: g5.xlarge}
  own: {cloud: eks, instance_type: g6.xlarge, zones: [eu-west-1a]}
prices: {overrides: {g6.xlarge/on-demand: 0.9}}
"""


def test_another_regions_price_is_no_price() -> None:
    """A pool that is elsewhere by its zones, or by the deployment's region, has an error with its type and region."""
    policy = read_policy(ELSEWHERE, "policy")
    found, findings = offerings(policy, CATALOG.resolved(), "eu-central-1")
    assert [(one.pool, one.usd_per_hour) for one in found] == [("near", Decimal("1.006")), ("own", Decimal("0.9"))]
    said = {each.subject: each.message for each in findings}
    assert "no price for g5.xlarge/on-demand in eu-west-1 (the price file is of us-east-1)" in said["pool far"]
    assert "no price for g5.xlarge/on-demand in eu-central-1 (the price file is of us-east-1)" in said["pool unsaid"]


def test_what_a_type_costs_while_it_stands_by_is_its_disks() -> None:
    """100 GiB of gp3 by the month of 720 hours that AWS bills disks by, rounded up; one's own figure stays."""
    text = FILE.read_text(encoding="utf-8")
    types = text.index("  g5.xlarge:")
    own = text[:types] + text[types:].replace("cloud: eks", "cloud: eks\n    disk_gib: 100\n    wake_s: 60", 1)
    kind = read_catalog(own, "own").resolved().instance_types["g5.xlarge"]
    assert kind.standby_usd_per_hour == Decimal("0.011112")
    hand = own.replace("disk_gib: 100", "disk_gib: 100\n    standby_usd_per_hour: 0.02")
    assert read_catalog(hand, "own").resolved().instance_types["g5.xlarge"].standby_usd_per_hour == Decimal("0.02")


def test_a_disk_without_a_price_is_an_error() -> None:
    """It names the kind, and what to write."""
    text = FILE.read_text(encoding="utf-8").replace("cloud: eks", "cloud: eks\n    disk: io2\n    disk_gib: 100", 1)
    with pytest.raises(BadInput, match=r"g4dn.xlarge.disk: no price of io2 under disks; write disks.io2"):
        read_catalog(text, "own")
