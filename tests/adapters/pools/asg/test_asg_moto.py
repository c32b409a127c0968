"""Auto Scaling groups on moto's server, which others wrote: what it has of Auto Scaling, EC2 and STS."""

from collections.abc import Iterator

import pytest
from aws_server import Aws, serving
from moto_groups import REGION, Here, at_moto
from small_cloud import world

from pilotlight.adapters.pools import asg
from pilotlight.errors import BadRequest, LastNode, QuotaExceeded
from pilotlight.ports.clouds import CloudAccount, SpotShop

G, P = "Running On-Demand G and VT instances", "Running On-Demand P instances"
G_SPOT, P5_SPOT = "All G and VT Spot Instance Requests", "All P5 Spot Instance Requests"
QUOTAS = {G: 64, P: 0, G_SPOT: 32, P5_SPOT: 384, "All P4, P3 and P2 Spot Instance Requests": 96}


@pytest.fixture
def here(dynamodb_server: str) -> Iterator[Here]:
    """One group of one zone."""
    with at_moto(dynamodb_server, ["t4"]) as found:
        yield found


def test_a_group_grows_and_its_named_instance_goes(here: Here) -> None:
    """Raised once however often it is asked for, told with its instances' age, and lowered by the one named."""
    assert [here.pools.grow("t4", to).desired for to in (2, 2, 1)] == [2, 2, 2]
    first, second = here.instances
    (pool,) = here.pools.describe()
    assert {b.instance for b in pool.booting} == {first, second}
    seen = here.pools.instance("t4", first)
    assert seen is not None
    assert seen.created_at == next(b.requested_at for b in pool.booting if b.instance == first)
    for name in (first, first, "i-00000000000000000"):
        here.pools.release("t4", name)
    assert (here.instances, here.desired) == ([second], 1)


def test_a_group_by_its_own_name(here: Here, dynamodb_server: str) -> None:
    """A region alone, or a cluster with a pool that is none of its node groups."""
    environ = {"AWS_ENDPOINT_URL": dynamodb_server, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    for where in (REGION, f"{REGION}/another"):
        pools = asg.open_pools(where, CloudAccount({"t4": here.group}, world().clock, lambda: "", environ))
        assert pools is not None
        assert [(p.name, p.desired) for p in pools.describe()] == [("t4", 0)]


def test_what_moto_refuses_is_our_error(here: Here) -> None:
    """Over its max, below its min, and a pool without a group: each says what to do."""
    with pytest.raises(QuotaExceeded, match="at most 3"):
        here.pools.grow("t4", 4)
    here.pools.grow("t4", 1)
    here.client.update_auto_scaling_group(AutoScalingGroupName=here.group, MinSize=1)
    with pytest.raises(LastNode):
        here.pools.release("t4", here.instances[0])
    with pytest.raises(BadRequest, match="is called other; create it"):
        here.pools.grow("other", 1)
    here.client.update_auto_scaling_group(AutoScalingGroupName=here.group, MinSize=0)


def test_a_gate_that_raises_changes_nothing(here: Here) -> None:
    """Neither a launch nor a release is sent."""

    def no(size: int = 0) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        here.pools.grow("t4", 1, gate=no)
    here.pools.grow("t4", 1)
    with pytest.raises(KeyboardInterrupt):
        here.pools.release("t4", here.instances[0], gate=no)
    assert (len(here.instances), here.desired) == (1, 1)


def test_a_region_rents_types_with_their_gpus_and_zones(dynamodb_server: str) -> None:
    """Named types with what one has and takes of the account's quotas; what the region does not have is not there."""
    aws = Aws(world())
    aws.quotas = QUOTAS
    with serving(aws) as others:  # moto has no quotas of EC2.
        urls = {"AWS_ENDPOINT_URL": dynamodb_server, "AWS_ENDPOINT_URL_SERVICE_QUOTAS": others["AWS_ENDPOINT_URL"]}
        shop = asg.open_shop(f"{REGION}/any", CloudAccount({}, world().clock, lambda: "", {**others, **urls}))
        found = shop.assortment(["g5.12xlarge", "p5.48xlarge", "g99.xlarge"])
        aws.quotas = None
        assert shop.assortment(["g5.12xlarge"]).quota == {}
    told = {name: (s.gpus, s.gpu_model, s.cores, s.memory_mib, s.sold) for name, s in found.sizes.items()}
    assert told == {
        "g5.12xlarge": (4, "A10G", 48, 196_608, True),
        "p5.48xlarge": (8, "H100", 192, 2_097_152, True),
    }
    assert all(zone.startswith(REGION) for size in found.sizes.values() for zone in size.zones)
    assert found.sizes["p5.48xlarge"].takes == {"on-demand": {P: 192}, "spot": {P5_SPOT: 192}}
    assert found.sizes["g5.12xlarge"].takes == {"on-demand": {G: 48}, "spot": {G_SPOT: 48}}
    assert {name: limit for name, (limit, _) in found.quota.items()} == QUOTAS


def test_spot_prices_are_told_with_their_zone_and_day(dynamodb_server: str) -> None:
    """As EC2 has them now; of what it does not know there is no price, and never 0."""
    aws = Aws(world())
    aws.listed = {"g5.xlarge": "1.006"}
    with serving(aws) as lists:  # moto has no Price List.
        urls = {"AWS_ENDPOINT_URL": dynamodb_server, "AWS_ENDPOINT_URL_PRICING": lists["AWS_ENDPOINT_URL"]}
        shop = asg.open_shop(REGION, CloudAccount({}, world().clock, lambda: "", {**lists, **urls}))
        found = shop.prices(["g5.xlarge", "g99.xlarge"]).prices
        assert list(found) == ["g5.xlarge"]
        price = found["g5.xlarge"]["spot"]
        assert price.usd_per_hour > 0
        assert price.source.startswith(f"EC2 {REGION}")
        assert str(found["g5.xlarge"]["on-demand"].usd_per_hour) == "1.006"
        assert shop.prices([]).prices == {}
        assert isinstance(shop, SpotShop)
        week = shop.spot_prices(["g5.xlarge", "g99.xlarge"], world().clock.now())
        assert {name.partition("/")[0] for name in week} == {"g5.xlarge"}
        assert all(0 < each.least <= each.now <= each.most for each in week.values())
