"""What pools can buy: offerings with price, labels and predicted allocatable."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.offers.offerings import (
    offerings,
    renewal,
    stale_prices,
    too_old,
)
from pilotlight.facts.capacity import CapacityType, Taint
from pilotlight.facts.money.money_policy import Prices
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price, empty_node
from pilotlight.facts.policy import CloudName, Policy, PoolPolicy
from pilotlight.tools.replay.run import catalog_pools

GIB = 2**30


def price(usd: str, day: str = "2026-07-01") -> Price:
    """A price read on a day."""
    return Price(usd_per_hour=Decimal(usd), source="test", date=day)


def machine(**fields: object) -> InstanceType:
    """A machine with one T4."""
    given_ = {"cloud": "eks", "gpu_model": "T4", "gpus": 1, "prices": {"on-demand": price("0.526")}, **fields}
    return InstanceType(**given_)  # type: ignore[arg-type]


CATALOG = Catalog(
    name="test",
    as_of=datetime(2026, 7, 1, tzinfo=UTC),
    instance_types={
        "g4dn.xlarge": machine(
            gpu_product="Tesla-T4",
            gpu_memory_gib=16,
            interruptions_per_hour=0.05,
            prices={"on-demand": price("0.526"), "spot": price("0.19", "2026-01-01")},
        ),
        "g4g.kube.small": machine(
            cloud="civo",
            extra_usd_per_hour=Decimal("0.01"),
            minimum_s=3600,
            increment_s=3600,
            prices={"on-demand": price("2.5")},
        ),
    },
)


def policy(prices: Prices | None = None, **pools: PoolPolicy) -> Policy:
    """A policy of pools."""
    return Policy(version=1, pools=pools, prices=prices or Prices())


def test_one_offering_for_each_zone() -> None:
    """A pool is offered once in each of its zones."""
    found, findings = offerings(policy(t4=PoolPolicy(instance_type="g4dn.xlarge", zones=("a", "b"))), CATALOG)
    assert [o.name for o in found] == ["t4/g4dn.xlarge/a/on-demand", "t4/g4dn.xlarge/b/on-demand"]
    assert findings == ()


def test_labels_of_feature_discovery_are_known_of_pools_at_zero() -> None:
    """A product that NVIDIA names tells that a GPU is there, and its memory in MiB; nothing is said of others."""
    given = policy(t4=PoolPolicy(instance_type="g4dn.xlarge"), civo=PoolPolicy(instance_type="g4g.kube.small"))
    known, other = (o.labels for o in offerings(given, CATALOG)[0])
    assert (known["nvidia.com/gpu.present"], known["nvidia.com/gpu.memory"]) == ("true", "15360")
    assert not other.keys() & {"nvidia.com/gpu.present", "nvidia.com/gpu.memory"}


def test_labels_and_taints_of_a_node_to_come() -> None:
    """An offering carries the well-known labels and the pool's own, which win; its name it has not yet."""
    pool = PoolPolicy(
        instance_type="g4dn.xlarge",
        zones=("a",),
        labels={"gpu": "on-demand", "nvidia.com/gpu.product": "Mine"},
        taints=(Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),),
    )
    (offering,), _ = offerings(policy(t4=pool), CATALOG)
    assert offering.labels == {
        "node.kubernetes.io/instance-type": "g4dn.xlarge",
        "topology.kubernetes.io/zone": "a",
        "nvidia.com/gpu.product": "Mine",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.memory": "15360",
        "pilotlight.dev/pool": "t4",
        "pilotlight.dev/gpu-model": "T4",
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "",
        "gpu": "on-demand",
    }
    assert offering.taints == pool.taints


def test_prices() -> None:
    """An override goes before the catalogue, disks and address come on top, billing steps are the cloud's."""
    overrides = Prices(overrides={"g4dn.xlarge/spot": Decimal("0.17")})
    found, _ = offerings(
        policy(
            overrides,
            spot=PoolPolicy(instance_type="g4dn.xlarge", capacity_type="spot"),
            civo=PoolPolicy(instance_type="g4g.kube.small"),
        ),
        CATALOG,
    )
    spot, civo = found
    assert (spot.usd_per_hour, spot.interruptions_per_hour) == (Decimal("0.17"), 0.05)
    assert (civo.usd_per_hour, civo.minimum_s, civo.increment_s) == (Decimal("2.51"), 3600, 3600)


UNBUYABLE: dict[str, tuple[str, CapacityType, str, str]] = {
    "a type no catalogue has": ("g4dn.xlrge", "on-demand", "unknown-instance-type", "did you mean g4dn.xlarge?"),
    "a price no catalogue has": ("g4g.kube.small", "spot", "unknown-price", 'prices.overrides["g4g.kube.small/spot"]'),
}


@pytest.mark.parametrize(("name", "kind", "code", "words"), UNBUYABLE.values(), ids=UNBUYABLE.keys())
def test_pools_that_cannot_be_bought(name: str, kind: CapacityType, code: str, words: str) -> None:
    """A pool of unknown type or price is a finding, never a node at $0."""
    found, (finding,) = offerings(policy(p=PoolPolicy(instance_type=name, capacity_type=kind)), CATALOG)
    assert found == ()
    assert (finding.subject, finding.code) == ("pool p", code)
    assert words in finding.message


ALLOCATABLE = {
    "4 cores and 16 GiB": (("4", "16Gi"), (3920, 16 * GIB - int(2.6 * GIB) - 100 * 2**20)),
    "1 core and 4 GiB": (("1", "4Gi"), (940, 3 * GIB - 100 * 2**20)),
    "96 cores and 1152 GiB": (("96", "1152Gi"), (95690, None)),
}


@pytest.mark.parametrize(("size", "expected"), ALLOCATABLE.values(), ids=ALLOCATABLE.keys())
def test_reserves_of_kubelet_and_system(size: tuple[str, str], expected: tuple[int, int | None]) -> None:
    """Reserves follow the published steps; the CPU figures are those of a real cluster's nodes."""
    room = empty_node(machine(cpu=size[0], memory=size[1]), {}).resources
    assert room.cpu_milli == expected[0]
    assert expected[1] is None or abs(room.memory - expected[1]) <= 1


def test_daemonsets_come_off() -> None:
    """What a pool's DaemonSets take is not offered."""
    bare = empty_node(machine(cpu="4", memory="16Gi"), {}).resources
    room = empty_node(machine(cpu="4", memory="16Gi"), {}, {"cpu": "250m", "memory": "1Gi", "pods": "6"}).resources
    assert (bare.cpu_milli - room.cpu_milli, bare.memory - room.memory, bare.pods - room.pods) == (250, GIB, 6)


@given(st.integers(1, 1_000_000), st.integers(0, 10_000))
def test_a_larger_machine_never_offers_less(cores: int, gib: int) -> None:
    """Allocatable grows with the machine and is never more than it."""
    room = empty_node(machine(cpu=str(cores), memory=f"{gib}Gi"), {}).resources
    more = empty_node(machine(cpu=str(cores + 1), memory=f"{gib + 1}Gi"), {}).resources
    assert 0 <= room.cpu_milli <= cores * 1000
    assert 0 <= room.memory <= gib * GIB
    assert room.cpu_milli <= more.cpu_milli
    assert room.memory <= more.memory


def test_stale_prices_are_found() -> None:
    """A price older than max_age_days is a finding; one the policy overrides is not."""
    today = datetime(2026, 7, 2, tzinfo=UTC)

    def stale(rules: Policy) -> list[str]:
        return [f.code for f in stale_prices(rules, offerings(rules, CATALOG)[0], today)]

    spot = PoolPolicy(instance_type="g4dn.xlarge", capacity_type="spot")
    assert stale(policy(spot=spot)) == ["stale-price"]
    assert stale(policy(t4=PoolPolicy(instance_type="g4dn.xlarge"))) == []
    assert stale(policy(Prices(overrides={"g4dn.xlarge/spot": Decimal("0.17")}), spot=spot)) == []


def test_nothing_is_bought_at_a_price_three_times_too_old() -> None:
    """At three times max_age_days a price is no price any more; a day before it still is."""
    rules = policy(spot=PoolPolicy(instance_type="g4dn.xlarge", capacity_type="spot"))
    (offered,) = offerings(rules, CATALOG)[0]
    assert offered.priced_at is not None
    last = offered.priced_at + timedelta(days=3 * rules.prices.max_age_days)
    assert not too_old(rules, offered, last)
    assert too_old(rules, offered, last + timedelta(days=1))


@pytest.mark.parametrize(
    ("cloud", "said"),
    [
        ("eks", "pilotlight prices FILE --region REGION"),
        ("civo", 'check it, then set prices.overrides: {"g4dn.xlarge/spot": YOUR-PRICE}'),
    ],
)
def test_an_old_price_says_how_it_is_renewed(cloud: CloudName, said: str) -> None:
    """A cloud that tells its prices is asked for them; of another a person knows them."""
    rules = policy(spot=PoolPolicy(cloud=cloud, instance_type="g4dn.xlarge", capacity_type="spot"))
    offered = offerings(rules, CATALOG)[0]
    (finding,) = stale_prices(rules, offered, datetime(2027, 7, 2, tzinfo=UTC))
    assert said in finding.message
    assert said in renewal(rules, offered[0])


def test_a_pool_for_each_type_of_a_catalogue() -> None:
    """Without a policy every type sold so is a pool without limits."""
    assert set(catalog_pools(CATALOG, "on-demand")) == {"g4dn.xlarge", "g4g.kube.small"}
    assert set(catalog_pools(CATALOG, "spot")) == {"g4dn.xlarge"}
