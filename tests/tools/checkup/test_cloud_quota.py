"""What the check-up says of a cloud's sizes and quota."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from pilotlight.facts.capacity import Offering
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.cloud_shop import Assortment, Size
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.cloud_quota import shop_checks

TAKES = {"cpu_core": 12, "ram_mb": 98304, "disk_gb": 100, "instance_count": 1}
SIZE = Size(name="g4g.kube.small", gpus=1, gpu_model="A100", takes={"on-demand": TAKES})
POLICY = Policy(version=1, pools={"gpu": PoolPolicy(instance_type=SIZE.name, max=2)})
ENOUGH = {"ram_mb": (200_000, 0), "cpu_core": (24, 0), "disk_gb": (200, 0), "instance_count": (16, 14)}


def said(
    size: Size = SIZE, quota: dict[str, tuple[int, int]] = ENOUGH, *, policy: Policy = POLICY, desired: int = 0
) -> list[tuple[str, str, str]]:
    """Verdict, subject and words of each check, over an account that rents one size."""
    offered = [
        Offering(
            pool="gpu",
            instance_type=SIZE.name,
            capacity_type="on-demand",
            gpu_model="A100",
            gpus=1,
            usd_per_hour=Decimal(1),
        )
    ]
    shop = Assortment(sizes={size.name: size}, quota=quota)
    clouds = {"gpu": PoolState(name="gpu", desired=desired)}
    return [(c.verdict, c.subject, c.what) for c in shop_checks(policy, offered, shop, clouds)]


def test_what_is_sold_within_the_quota_is_well() -> None:
    """Exactly enough is enough."""
    assert said() == [
        ("ok", "pool gpu", "g4g.kube.small is sold here; GPUs: 1"),
        ("ok", "quota", "is enough for all pools at their max"),
    ]


def _size(**changes: Any) -> Size:
    return msgspec.structs.replace(SIZE, **changes)


@pytest.mark.parametrize(
    ("size", "verdict", "what"),
    [
        (_size(name="g4g.kube.large"), "fault", "g4g.kube.small is no size of the region"),
        (_size(gpus=8), "fault", "g4g.kube.small has 8 GPUs at the cloud, 1 in the catalogue"),
        (_size(sold=False), "warning", "g4g.kube.small cannot be chosen now"),
    ],
)
def test_a_size_that_is_not_as_we_count_on_is_told(size: Size, verdict: str, what: str) -> None:
    """Not there, other GPUs, not to be chosen."""
    assert said(size)[0] == (verdict, "pool gpu", what)


def test_a_quota_below_the_pools_max_is_a_warning() -> None:
    """The resource, what is asked and what is left are named."""
    assert said(quota={**ENOUGH, "ram_mb": (200_000, 4_096)})[1:] == [
        ("warning", "quota", "ram_mb: all pools at their max take 196,608 more, and 195,904 are left")
    ]


def test_a_quota_below_one_node_is_a_fault() -> None:
    """A default account's memory is less than one GPU node's: every purchase would be refused."""
    assert said(quota={**ENOUGH, "ram_mb": (64_000, 0)})[1:] == [
        ("fault", "pool gpu", "not one more g4g.kube.small is within the quota: ram_mb 98,304, and 64,000 are left"),
        ("warning", "quota", "ram_mb: all pools at their max take 196,608 more, and 64,000 are left"),
    ]


def test_nodes_that_are_there_are_in_the_quota_already() -> None:
    """A pool at its max asks for nothing more."""
    assert said(quota={"ram_mb": (196_608, 196_608)}, desired=2)[1:] == []


def test_a_quota_of_another_capacity_type_is_not_asked() -> None:
    """Spot and on-demand have quotas of their own: a pool takes from that of its nodes."""
    spot = msgspec.structs.replace(SIZE, takes={"on-demand": {"od": 96}, "spot": {"spot": 96}})
    assert said(spot, {"od": (192, 0), "spot": (0, 0)})[1:] == [("ok", "quota", "is enough for all pools at their max")]
