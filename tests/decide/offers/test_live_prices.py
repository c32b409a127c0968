"""What a cloud says of prices beside a catalogue: the younger price counts, and no machine is made of a price."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import log

import pytest
from small_fleet import offering, plan, pod, policy

from pilotlight.decide.offers.live_prices import MOST_KEPT, learnt, told_offerings, with_told, with_zones
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.labels import ZONE
from pilotlight.facts.offers.catalog import Catalog, InstanceType, LivePrices, Price, SpotLearnt
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def price(usd: str, date: str) -> Price:
    """A price of a day."""
    return Price(usd_per_hour=Decimal(usd), source="test", date=date)


def told(**prices: Price) -> dict[str, Decimal]:
    """What a type costs by capacity type, with these told of it, where its file has $2 of July on demand."""
    kind = InstanceType(cloud="eks", gpu_model="T4", gpus=1, prices={"on-demand": price("2", "2026-07-20")})
    named: dict[CapacityType, Price] = {name.replace("_", "-"): one for name, one in prices.items()}  # type: ignore[misc]
    said = LivePrices(at=NOW, prices={"t4": named, "unknown": named})
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


def spot_told(usd: str) -> SpotPrices:
    """A zone's price, which was between nothing and ten dollars."""
    return SpotPrices(now=Decimal(usd), least=Decimal(0), most=Decimal(10))


def learning(*prices: tuple[float, str]) -> SpotLearnt:
    """What is known of a zone once it was told these, each so many days after the first."""
    known: dict[str, SpotLearnt] = {}
    for days, usd in prices:
        known = learnt(known, {"t4/a": spot_told(usd)}, NOW + timedelta(days=days))
    return known["t4/a"]


@pytest.mark.parametrize(
    ("prices", "usual"),
    [
        pytest.param([(0, "1")], "1", id="once is what it was"),
        pytest.param([(0, "1"), (3, "2")], "1.5", id="three days ago counts half"),
        pytest.param([(0, "1"), (0, "9")], "1", id="a moment's price counts nothing"),
        pytest.param([(0, "1"), (30, "2")], "1.999023", id="a month ago counts next to nothing"),
    ],
)
def test_what_a_zone_usually_costs_fades_by_days(prices: list[tuple[float, str]], usual: str) -> None:
    """Beside the price of now, and the least and most that were told."""
    found = learning(*prices)
    assert (found.usual, found.now, found.most) == (Decimal(usual), Decimal(prices[-1][1]), Decimal(10))


def test_so_many_zones_are_remembered_and_old_ones_forgotten() -> None:
    """The last told stay; one of which nothing was told for a month goes."""
    many = {f"t{n}/a": spot_told("1") for n in range(MOST_KEPT + 5)}
    known = learnt({}, many, NOW)
    assert len(known) == MOST_KEPT
    later = learnt(known, {"new/a": spot_told("1")}, NOW + timedelta(days=1))
    assert "new/a" in later
    assert list(learnt(later, {}, NOW + timedelta(days=30, hours=1))) == ["new/a"]


def test_a_node_is_bought_in_the_zone_that_usually_costs_less() -> None:
    """And held and metered at the price of the catalogue, which is no zone's own."""
    fleet = [
        offering("t4", "T4", 1, "0.5", zone=zone, capacity_type="spot", labels={ZONE: zone}) for zone in ("a", "b", "c")
    ]
    known = learnt({}, {"T4x1/a": spot_told("0.4"), "T4x1/b": spot_told("0.3")}, NOW)
    rules = policy(fleet[:1], classes={"batch": ClassPolicy(capacity_types=("spot",), gpu_models="any")})
    made = plan([pod("p", checkpoint_s=600)], offerings=with_zones(fleet, known), rules=rules)
    assert [(buy.zone, buy.usd_per_hour) for buy in made.buys] == [("b", Decimal("0.5"))]


@pytest.mark.parametrize(
    ("told", "by_catalogue", "found"),
    [
        (LivePrices(at=NOW, soon_taken=("l4/a",)), 0.05, log(2)),
        (LivePrices(at=NOW, soon_taken=("l4/a",)), 2.0, 2.0),
        (LivePrices(at=NOW, taken={"l4/a": 0.1}), 0.05, 0.1),
        (LivePrices(at=NOW, taken={"l4/a": 0.01}), 0.05, 0.05),
        (LivePrices(at=NOW, taken={"l4/a": 0.01}), 0.0, 0.0),
        (LivePrices(at=NOW, taken={"l4/a": 0.1}, soon_taken=("l4/a",)), 0.05, log(2)),
    ],
)
def test_what_a_cloud_says_of_losses_makes_spot_no_safer(told: LivePrices, by_catalogue: float, found: float) -> None:
    """The catalogue's rate counts where it is more, and what is taken for one that says nothing does; half of what is
    soon taken goes within an hour; on-demand and other zones are as they were."""
    kind = InstanceType(
        cloud="gke",
        gpu_model="L4",
        gpus=1,
        prices={"on-demand": price("2", "2026-07-20"), "spot": price("1", "2026-07-20")},
        interruptions_per_hour=by_catalogue,
    )
    kinds: tuple[CapacityType, ...] = ("spot", "on-demand")
    pools: dict[str, PoolPolicy] = {
        sold: PoolPolicy(cloud="gke", instance_type="l4", capacity_type=sold, zones=("a", "b")) for sold in kinds
    }
    catalog = Catalog(name="c", as_of=NOW, instance_types={"l4": kind})
    offered, _ = told_offerings(Policy(version=1, pools=pools), catalog, told, "")
    rates = {(one.capacity_type, one.zone): one.interruptions_per_hour for one in offered}
    assert rates == {
        ("spot", "a"): found,
        ("spot", "b"): by_catalogue,
        ("on-demand", "a"): 0.0,
        ("on-demand", "b"): 0.0,
    }
