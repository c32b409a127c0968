"""Where a gang goes: one type in one zone that can hold all of it, the fewest dollars first."""

from datetime import timedelta

import pytest
from small_fleet import A100, FLEET, NOW, bought, gang, in_flight, offering, plan, policy

from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Due

EAST = offering("east", "A100", 8, "32", zone="a", labels={ZONE: "a"})
WEST = offering("west", "A100", 8, "33", zone="b", labels={ZONE: "b"})


def idle(name: str, of: Offering) -> Node:
    """An idle node of an offering."""
    labels = {POOL: of.pool, INSTANCE_TYPE: of.instance_type, GPU_MODEL: of.gpu_model, ZONE: of.zone}
    return Node(
        name=name,
        pool=of.pool,
        instance_type=of.instance_type,
        capacity_type="on-demand",
        created_at=NOW,
        ready=True,
        devices=(1000,) * of.gpus,
        labels=labels,
        zone=of.zone,
    )


@pytest.mark.parametrize(
    ("lit", "limits", "wanted"),
    [
        pytest.param((), {}, {"east": 2}, id="the cheaper zone takes the whole gang"),
        pytest.param(("west",), {}, {"west": 1}, id="an idle node draws the gang to its zone: one more there is less"),
        pytest.param((), {"east": 1}, {"west": 2}, id="a zone that cannot hold all of it holds none of it"),
        pytest.param((), {"east": 1, "west": 1}, {}, id="no single zone can: none of it is bought"),
    ],
)
def test_a_gang_goes_to_one_zone(lit: tuple[str, ...], limits: dict[str, int], wanted: dict[str, int]) -> None:
    """Two nodes for a gang of two come from one zone where one can hold both."""
    zones = {o.pool: o for o in (EAST, WEST)}
    rules = policy((EAST, WEST))
    pools = {
        n: p if n not in limits else type(p)(instance_type=p.instance_type, max=limits[n])
        for n, p in rules.pools.items()
    }
    nodes = [idle(f"n-{name}", zones[name]) for name in lit]
    made = plan(gang("g", 2), nodes, offerings=(EAST, WEST), rules=policy((EAST, WEST), pools=pools))
    assert bought(made) == wanted


def test_a_gang_that_only_two_zones_can_hold_hears_so() -> None:
    """Each of its pods could be had, and not beside the others."""
    pools = {o.pool: PoolPolicy(instance_type=o.instance_type, max=1) for o in (EAST, WEST)}
    (told,) = plan(gang("g", 2), offerings=(EAST, WEST), rules=policy((EAST, WEST), pools=pools)).pods
    assert told.why == "gang g: all 2 pods or none; no one zone can hold them all"


def test_a_gang_with_a_deadline_gets_the_spot_that_can_hold_it() -> None:
    """One node at most: the type that is cheapest by the pod cannot hold it, and on-demand elsewhere is its last."""
    small = offering("small", "A100", 1, "1", capacity_type="spot")
    big = offering("big", "A100", 8, "9", capacity_type="spot")
    sold = (small, big, offering("sure", "A100", 8, "32"))
    due = Due(job="g", by=NOW + timedelta(hours=24), work_s=3600)
    either = {"batch": ClassPolicy(gpu_models="any", capacity_types=("spot", "on-demand"))}
    rules = policy(sold, caps=Caps(nodes=1), classes=either)
    made = plan(gang("g", 4, gpus=1, due=due, checkpoint_s=600), offerings=sold, rules=rules)
    assert bought(made) == {"big": 1}


def test_a_gang_hears_that_its_own_node_is_ready() -> None:
    """It waits for the scheduler: that is said however often a place was tried for it."""
    waiting = gang("g", 2)
    entry = in_flight(A100, waiting, count=2)
    (told,) = plan(waiting, memory=Memory(came=(entry,))).pods
    assert (told.verdict, told.code) == ("waiting", "unbound")
    assert told.why.endswith("is ready and the pod not bound to it yet")


def test_a_gang_may_mix_types_of_one_zone() -> None:
    """Where no single type holds it all, two of the same zone do, and none of another zone is added."""
    near = offering("near", "A100", 8, "34", zone="a", labels={ZONE: "a"})
    sold = (EAST, near, WEST)
    pools = {o.pool: policy((o,)).pools[o.pool].__class__(instance_type=o.instance_type, max=1) for o in sold}
    assert bought(plan(gang("g", 2), offerings=sold, rules=policy(sold, pools=pools))) == {"east": 1, "near": 1}


def test_sixteen_gpus_of_smaller_pods_stay_on_one_type() -> None:
    """A gang of eight pods of 2 GPUs is not spread over types where one can hold it."""
    assert len(bought(plan(gang("g", 8, gpus=2), offerings=FLEET))) == 1
