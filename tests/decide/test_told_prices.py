"""What a cloud says of prices beside a catalogue: the younger price counts, and no machine is made of a price."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pilotlight.decide.told_prices import with_told
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.catalog import Catalog, InstanceType, Price, ToldPrices

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def price(usd: str, date: str) -> Price:
    """A price of a day."""
    return Price(usd_per_hour=Decimal(usd), source="test", date=date)


def told(**prices: Price) -> dict[str, Decimal]:
    """What a type costs by capacity type, with these told of it, where its file has $2 of July on demand."""
    kind = InstanceType(cloud="eks", gpu_model="T4", gpus=1, prices={"on-demand": price("2", "2026-07-20")})
    named: dict[CapacityType, Price] = {name.replace("_", "-"): one for name, one in prices.items()}  # type: ignore[misc]
    said = ToldPrices(at=NOW, prices={"t4": named, "unknown": named})
    merged = with_told(Catalog(name="c", as_of=NOW, instance_types={"t4": kind}), said)
    assert list(merged.instance_types) == ["t4"]
    return {sold: one.usd_per_hour for sold, one in merged.instance_types["t4"].prices.items()}


@pytest.mark.parametrize(
    ("prices", "costs"),
    [
        pytest.param({"on_demand": price("3", "2026-11-22")}, {"on-demand": 3}, id="a younger one"),
        pytest.param({"on_demand": price("3", "2026-01-01")}, {"on-demand": 2}, id="an older one"),
        pytest.param({"spot": price("1", "2026-11-22")}, {"on-demand": 2, "spot": 1}, id="one that the file lacks"),
        pytest.param({}, {"on-demand": 2}, id="none"),
    ],
)
def test_the_younger_of_two_prices_counts(prices: dict[str, Price], costs: dict[str, int]) -> None:
    """A type that no file knows stays unknown."""
    assert told(**prices) == costs
