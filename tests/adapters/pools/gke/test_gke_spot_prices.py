"""Spot's prices as Google lists them: the latest of a region, in dollars, and nothing that is not told."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import PROJECT, WHERE, ZONE, error
from gke_server import Gke
from gke_site import serving
from small_cloud import world

from pilotlight import connections
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.cloud_shop import ToldPrices
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.ports.clouds import CloudAccount
from pilotlight.settings import Settings


@pytest.fixture
def site() -> Iterator[tuple[Gke, Mapping[str, str]]]:
    """A project, and the environment that leads to it."""
    gke = Gke(world())
    with serving(gke) as environ:
        yield gke, environ


def record(start: str, units: str, nanos: int = 0, currency: str = "USD") -> dict[str, Any]:
    """A price from a day on."""
    price = {"currencyCode": currency, "units": units, "nanos": nanos}
    return {"interval": {"startTime": f"{start}T00:00:00Z"}, "listPrice": price}


def told(site: tuple[Gke, Mapping[str, str]], *names: str, where: str = WHERE) -> ToldPrices:
    """What a shop tells."""
    gke, environ = site
    return gke_cloud.open_shop(where, CloudAccount({}, gke.world.clock, str, environ)).prices(names)


def usd(found: ToldPrices) -> dict[str, Decimal]:
    """Spot's price by type."""
    return {name: prices["spot"].usd_per_hour for name, prices in found.prices.items()}


def test_the_latest_record_of_a_region_counts_to_the_nano_dollar(site: tuple[Gke, Mapping[str, str]]) -> None:
    """Records come in any order; a zone's region is asked, and a region itself."""
    site[0].spot["g2-standard-4"] = [
        record("2026-11-01", "0", 281_400_000),
        record("2026-10-01", "1", 500_000_000),
        record("2026-09-01", "0", 100_000_000),
    ]
    for where in (WHERE, f"{PROJECT}/europe-west4/prod"):
        assert usd(told(site, "g2-standard-4", where=where)) == {"g2-standard-4": Decimal("0.2814")}
    method, path, _, asked = site[0].calls[0]
    assert (method, path["region"]) == ("compute.advice.capacityHistory", ZONE.rpartition("-")[0])
    assert asked["types"] == ["PRICE"]


def test_a_type_that_google_does_not_know_stops_no_other(site: tuple[Gke, Mapping[str, str]]) -> None:
    """Nor does one without a history, or one priced in another currency; GPUs of an N1 are not asked for at all."""
    site[0].spot |= {
        "a2-highgpu-1g": [record("2026-11-01", "1", 100_000_000)],
        "a3-highgpu-8g": [],
        "g2-standard-8": [record("2026-11-01", "1", currency="EUR")],
        "g2-standard-12": [record("2026-11-01", "0")],
    }
    names = ("a3-ultragpu-8g", "a3-highgpu-8g", "g2-standard-8", "g2-standard-12", "n1-standard-8", "a2-highgpu-1g")
    found = told(site, *names)
    assert (usd(found), found.refused) == ({"a2-highgpu-1g": Decimal("1.1")}, ())
    assert "n1-standard-8" not in str(site[0].calls)


def test_a_right_that_is_missing_is_named_and_asked_for_once(site: tuple[Gke, Mapping[str, str]]) -> None:
    """What is known goes on counting until it is old."""
    site[0].granted = set()
    found = told(site, "a2-highgpu-1g", "g2-standard-4")
    assert found.prices == {}
    assert found.refused[0].startswith("compute.advice.capacityHistory is refused, so prices of spot grow old")
    assert len(site[0].calls) == 1


def test_an_interface_that_does_not_answer_is_asked_again_later(site: tuple[Gke, Mapping[str, str]]) -> None:
    """Nothing is taken for a price."""
    site[0].faults = [Fault((503, error(503, "backendError", "try again")))]
    with pytest.raises(Unavailable):
        told(site, "g2-standard-4")


@pytest.mark.parametrize("kind", ["spot", "on-demand"])
def test_only_pools_of_spot_cost_a_call(site: tuple[Gke, Mapping[str, str]], kind: CapacityType) -> None:
    """A policy without one asks Google for no price, and one with one for that type alone."""
    gke, environ = site
    gke.spot["g2-standard-4"] = [record("2026-11-01", "0", 300_000_000)]
    pools = {
        "l4": PoolPolicy(cloud="gke", instance_type="g2-standard-4", capacity_type=kind),
        "a100": PoolPolicy(cloud="gke", instance_type="a2-highgpu-1g"),
    }
    settings = Settings(pools=f"gke:{WHERE}", environ=environ)
    ask = connections.prices_at(settings, Policy(version=1, pools=pools))
    found = usd(ask(["a2-highgpu-1g", "g2-standard-4"])) if ask is not None else None
    assert found == ({"g2-standard-4": Decimal("0.3")} if kind == "spot" else None)
    assert len(gke.calls) == (kind == "spot")
    assert connections.spot_prices_at(settings) is None
    assert connections.region_at(settings) == "europe-west4"
