"""Where spot is soon taken, as Google estimates it: less than an hour of uptime, by type and zone."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import log
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import WHERE, error
from gke_server import Gke
from gke_site import serving
from small_cloud import world

from pilotlight import connections
from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.cloud_shop import SpotPrices, ToldPrices
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.settings import Settings

A, B = "europe-west4-a", "europe-west4-b"
TYPE = "g2-standard-4"


@pytest.fixture
def site() -> Iterator[tuple[Gke, Mapping[str, str]]]:
    """A project, and the environment that leads to it."""
    gke = Gke(world())
    with serving(gke) as environ:
        yield gke, environ


def told(
    site: tuple[Gke, Mapping[str, str]], *zones: str, kind: CapacityType = "spot", type: str = TYPE
) -> ToldPrices | None:
    """What a policy with a pool of such a type in such zones is told."""
    pool = PoolPolicy(cloud="gke", instance_type=type, capacity_type=kind, zones=zones)
    ask = connections.prices_at(Settings(pools=f"gke:{WHERE}", environ=site[1]), Policy(version=1, pools={"l4": pool}))
    return ask([type]) if ask is not None else None


def advised(gke: Gke) -> list[str]:
    """The zones that advice was asked for, in order, each once."""
    asked = [body for method, _, _, body in gke.calls if method == "compute.advice.capacity"]
    zones = (body["distributionPolicy"]["zones"][0]["zone"].rpartition("/")[2] for body in asked)
    return list(dict.fromkeys(zones))


@pytest.mark.parametrize(
    ("uptime", "soon"),
    [("3600s", False), ("600s", True), ("0s", True), ("599.5s", True), ("", False), ("none", False), ("soon", False)],
)
def test_less_than_an_hour_is_soon(site: tuple[Gke, Mapping[str, str]], uptime: str, soon: bool) -> None:
    """An hour is the most that is told; no estimate, no recommendation or words say nothing."""
    site[0].uptimes[TYPE, A] = uptime
    if uptime == "soon":
        site[0].faults = [
            Fault((200, b'{"recommendations": [{"scores": {"estimatedUptime": "soon"}}]}'), "after", "capacity")
        ]
        site[0].uptimes[TYPE, A] = "3600s"
    found = told(site, A)
    assert found is not None
    assert found.soon_taken == ((f"{TYPE}/{A}",) if soon else ())


def test_each_zone_of_the_policy_is_asked_for_by_itself(site: tuple[Gke, Mapping[str, str]]) -> None:
    """One that Google does not know stops no other; prices are told beside."""
    site[0].uptimes = {(TYPE, A): "600s", (TYPE, B): "3600s"}
    site[0].spot[TYPE] = [
        {"interval": {"startTime": "2026-11-01T00:00:00Z"}, "listPrice": {"currencyCode": "USD", "units": "1"}}
    ]
    found = told(site, B, "europe-west4-c", A)
    assert found is not None
    assert (found.soon_taken, found.refused) == ((f"{TYPE}/{A}",), ())
    assert found.prices[TYPE]["spot"].usd_per_hour == Decimal(1)
    assert advised(site[0]) == [A, B, "europe-west4-c"]


@pytest.mark.parametrize(
    ("zones", "kind", "type"),
    [((), "spot", TYPE), ((A,), "on-demand", TYPE), ((A,), "spot", "n1-standard-8")],
    ids=["no zone is named", "no spot", "GPUs that are added"],
)
def test_nothing_else_costs_a_call(
    site: tuple[Gke, Mapping[str, str]], zones: tuple[str, ...], kind: CapacityType, type: str
) -> None:
    """Advice is for pools of spot in named zones, of types with GPUs built in."""
    told(site, *zones, kind=kind, type=type)
    assert advised(site[0]) == []


def test_a_right_that_is_missing_is_named_and_prices_are_told(site: tuple[Gke, Mapping[str, str]]) -> None:
    """It is asked for once; where spot is soon taken is learnt by losing it, as before."""
    site[0].granted = {"compute.advice.capacityHistory"}
    found = told(site, A, B)
    assert found is not None
    assert found.refused[0].startswith("compute.advice.capacity is refused, so where spot is soon taken")
    assert [method for method, *_ in site[0].calls].count("compute.advice.capacity") == 1


@pytest.mark.parametrize("young", [False, True])
def test_the_beta_is_asked_where_v1_refuses_spot(site: tuple[Gke, Mapping[str, str]], young: bool) -> None:
    """And no sooner: v1's document has the same method."""
    site[0].young = young
    site[0].uptimes = {(TYPE, A): "600s"}
    found = told(site, A)
    assert found is not None
    assert found.soon_taken == (f"{TYPE}/{A}",)
    assert [method for method, *_ in site[0].calls].count("compute.advice.capacity") == 1 + young


def day(start: str, share: float) -> dict[str, Any]:
    """Of what stopped on a day, the share that preemption ended."""
    return {"interval": {"startTime": f"{start}T08:00:00Z"}, "preemptionRate": share}


def price(start: str, nanos: int, end: str = "") -> dict[str, Any]:
    """A price from a day on, up to another."""
    ends = {"endTime": f"{end}T00:00:00Z"} if end else {}
    listed = {"currencyCode": "USD", "units": "0", "nanos": nanos}
    return {"interval": {"startTime": f"{start}T00:00:00Z", **ends}, "listPrice": listed}


def test_prices_and_preemptions_are_told_by_zone(site: tuple[Gke, Mapping[str, str]]) -> None:
    """Of the last week: what spot costs there, and the least rate that the share of its stops leaves open."""
    today = datetime.now(UTC).date()
    ago = [str(today - timedelta(days=n)) for n in range(40)]
    site[0].spot[TYPE] = [price(ago[3], 300_000_000), price(ago[30], 100_000_000, ago[3]), price(ago[39], 1, ago[30])]
    site[0].preempted[TYPE, A] = [day(ago[2], 0.9), day(ago[1], 0.7), day(ago[20], 0.0)]
    site[0].preempted[TYPE, B] = [day(ago[1], 1.0)]
    found = told(site, A, B, "europe-west4-c")
    assert found is not None
    assert found.zones[f"{TYPE}/{A}"] == SpotPrices(now=Decimal("0.3"), least=Decimal("0.1"), most=Decimal("0.3"))
    assert found.taken == pytest.approx({f"{TYPE}/{A}": log(5) / 24, f"{TYPE}/{B}": log(100) / 24})
    assert set(found.zones) == {f"{TYPE}/{zone}" for zone in (A, B, "europe-west4-c")}


def test_without_the_right_to_history_odds_are_told(site: tuple[Gke, Mapping[str, str]]) -> None:
    """The right is named once, and no further zone is asked for."""
    site[0].granted = {"compute.advice.capacity"}
    site[0].uptimes = {(TYPE, A): "600s"}
    found = told(site, A, B)
    assert found is not None
    assert (found.zones, found.taken, found.soon_taken, len(found.refused)) == ({}, {}, (f"{TYPE}/{A}",), 1)


def test_an_interface_that_does_not_answer_is_asked_again_later(site: tuple[Gke, Mapping[str, str]]) -> None:
    """No zone is taken for a good one."""
    site[0].faults = [Fault((503, error(503, "backendError", "try again")), method="capacity")]
    with pytest.raises(Unavailable):
        told(site, A)
