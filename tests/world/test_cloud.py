"""What the cloud charges, refuses and takes back."""

from decimal import Decimal

import msgspec
import pytest
from small_cloud import CATALOG, POOLS, SPOT, pod, world

from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import NoCapacity, QuotaExceeded, Unavailable
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.world.cloud import billed_micros
from pilotlight.world.machines import Machine, WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_pools import WorldPools


@pytest.mark.parametrize(
    ("minimum_s", "increment_s", "kept_s", "paid_s"),
    [
        (60, 1, 10, 60),
        (60, 1, 61, 61),
        (60, 1, 61.5, 62),
        (3600, 3600, 1, 3600),
        (3600, 3600, 3601, 7200),
        (0, 0, 1.25, 1.25),
    ],
    ids=[
        "a short life pays the minimum",
        "then every second",
        "a begun second is paid",
        "by the hour the first is whole",
        "and so is the second",
        "without steps every instant is exact",
    ],
)
def test_billing_steps(minimum_s: float, increment_s: float, kept_s: float, paid_s: float) -> None:
    """A node is paid for its minimum, then by whole increments."""
    kind = msgspec.structs.replace(CATALOG.instance_types["one"], minimum_s=minimum_s, increment_s=increment_s)
    machine = Machine.from_pool(POOLS[0], kind, "")
    assert billed_micros(machine, kept_s) == paid_s * 1_000_000


def test_a_node_has_the_room_that_a_plan_predicts() -> None:
    """Pods may have the same of a node in the plan and in the world, system and DaemonSets taken off."""
    kind = msgspec.structs.replace(CATALOG.instance_types["four"], cpu="16", memory="64Gi", ephemeral="100Gi", pods=58)
    policy = Policy(
        version=1,
        pools={
            "whole": PoolPolicy(instance_type="four", daemonsets={"cpu": "250m", "nvidia.com/gpu": "1"}),
            "cut": PoolPolicy(instance_type="four", slices={"nvidia.com/mig-1g.5gb": 8, "rdma/hca": 2}),
        },
    )
    catalog = msgspec.structs.replace(CATALOG, instance_types={"four": kind})
    offered, _ = offerings(policy, catalog)
    for offering, pool in zip(offered, WorldPool.every(policy, catalog), strict=True):
        made = Machine.from_pool(pool, kind, "")
        planned = (offering.resources, offering.whole_gpus, offering.slices)
        assert (made.resources, made.whole_gpus, made.slices) == planned
        assert made.resources.cpu_milli < 16_000


def test_a_node_is_paid_from_its_request_to_its_end() -> None:
    """An hour of a $12 node and half an hour of a $1 node cost $12.50, boot included."""
    here = world()
    here.launch("four")
    here.advance(1800)
    here.launch("one")
    here.advance(3600)
    here.terminate("n1", "idle")
    assert here.cost() == Decimal("12.5")
    assert here.fleet.gpu_seconds(here.now_s) == 4 * 3600 + 1800


def test_spot_lives_are_drawn_by_type_and_count() -> None:
    """The n-th launch of a type lives equally long whatever else is launched between."""
    ends: list[float] = []
    for others in (0, 3):
        here = world(SPOT, seed=7)
        here.launch("eight", others)
        here.launch("one")
        while "n1" in here.nodes if not others else f"n{others + 1}" in here.nodes:
            here.advance(here.next_event_s() or 0)
        ends.append(here.now_s)
    assert ends[0] == ends[1]


def test_a_reclaimed_node_takes_its_jobs_along() -> None:
    """When spot capacity goes, its job is queued again and the node's desired size falls."""
    records: list[dict[str, object]] = []
    here = world(SPOT, seed=1, log=records.append)
    here.launch("one")
    here.submit(pod("a"), 1e9)
    while here.nodes:
        here.advance(here.next_event_s() or 0)
    assert list(here.pending) == ["a"]
    assert here.interruptions == 1
    assert here.fleet.desired["one"] == 0
    assert [r["event"] for r in records] == ["launch", "ready", "start", "stop", "terminate"]
    assert records[3]["reason"] == records[4]["reason"] == "reclaimed"


def test_a_notice_comes_before_the_end() -> None:
    """Listeners hear of a reclaim so many seconds before it."""
    heard: list[tuple[str, float]] = []
    here = world(SPOT, seed=1, faults={"notice_s": 120.0})
    here.on_change.append(lambda change: heard.append((change.what, change.t)))
    here.launch("one")
    while here.nodes:
        here.advance(here.next_event_s() or 0)
    moments = dict(heard)
    assert moments["lost"] - moments["notice"] == pytest.approx(120)


def test_a_pool_that_replaces_its_lost_nodes_stays_at_its_size() -> None:
    """Where the cloud's group replaces what was taken, the desired size stays and a new node boots."""
    here = world(SPOT, seed=1, faults={"replace_lost": True})
    here.launch("one")
    while "n1" in here.nodes:
        here.advance(here.next_event_s() or 0)
    assert list(here.nodes) == ["n2"]
    assert here.fleet.desired["one"] == 1


def test_a_shortage_lasts_whole_hours_and_spares_running_nodes() -> None:
    """In a dry hour every launch of the type fails at once, in another it succeeds."""
    here = world(seed=3, faults={"shortage": 0.5})
    outcomes = [(h, _sold(here, h * 3600.0 + m)) for h in range(40) for m in (0, 1800)]
    by_hour = [{sold for hour, sold in outcomes if hour == h} for h in range(40)]
    assert all(len(sold) == 1 for sold in by_hour)
    assert 10 < sum(sold == {True} for sold in by_hour) < 30
    assert len(here.nodes) == sum(sold for _, sold in outcomes)


def _sold(here: World, at_s: float) -> bool:
    here.advance(at_s)
    try:
        here.launch("one")
    except NoCapacity:
        return False
    return True


@pytest.mark.parametrize(
    ("pools", "faults", "says"),
    [
        (POOLS, {"quota_nodes": 2}, "quota is 2 nodes"),
        ((WorldPool(name="one", instance_type="one", max=2),), {}, "at its maximum of 2 nodes"),
    ],
    ids=["the account's quota", "the pool's maximum"],
)
def test_limits_let_through_what_is_below_them(
    pools: tuple[WorldPool, ...], faults: dict[str, object], says: str
) -> None:
    """Growing past a limit raises QuotaExceeded, and the nodes below it stay."""
    here = world(pools, faults=faults)
    with pytest.raises(QuotaExceeded, match=says):
        WorldPools(here).grow("one", 3)
    assert len(here.nodes) == here.fleet.desired["one"] == 2


def test_scripted_errors_come_once_and_in_order() -> None:
    """A scripted API error is raised by the call it names, once, and nothing is launched by it."""
    here = world(faults={"api_errors": (("grow", Unavailable("the cloud does not answer")),)})
    pools = WorldPools(here)
    pools.describe()
    with pytest.raises(Unavailable):
        pools.grow("one", 1)
    assert pools.grow("one", 1).desired == 1
