"""Where a gang goes: one type in one zone that can hold all of it, the fewest dollars first."""

import pytest
from small_fleet import FLEET, NOW, bought, gang, offering, plan, policy

from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL, ZONE

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


def test_a_gang_may_mix_types_of_one_zone() -> None:
    """Where no single type holds it all, two of the same zone do, and none of another zone is added."""
    near = offering("near", "A100", 8, "34", zone="a", labels={ZONE: "a"})
    sold = (EAST, near, WEST)
    pools = {o.pool: policy((o,)).pools[o.pool].__class__(instance_type=o.instance_type, max=1) for o in sold}
    assert bought(plan(gang("g", 2), offerings=sold, rules=policy(sold, pools=pools))) == {"east": 1, "near": 1}


def test_sixteen_gpus_of_smaller_pods_stay_on_one_type() -> None:
    """A gang of eight pods of 2 GPUs is not spread over types where one can hold it."""
    assert len(bought(plan(gang("g", 8, gpus=2), offerings=FLEET))) == 1
