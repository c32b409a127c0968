"""Owners of nodes that are cut into MIG profiles: whose part is how large, and what waits for which profile."""

from decimal import Decimal

import pytest
from msgspec.structs import replace
from owners_stage import STOPS, launches, stopped, totals
from stage import Stage

from pilotlight.decide.money.gpu_shares import measure, pod_parts
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.units import HOUR

SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
CUT = {SMALL: 32, LARGE: 8}
"""Eight GPUs, each a profile of three compute slices and four of one."""


def sliced(usd: dict[str, str]) -> Stage:
    """A pool of at most one node at $32 an hour, of eight GPUs cut alike, and teams with so many dollars a day."""
    budgets = tuple(
        Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(limit), period="day") for team, limit in usd.items()
    )
    pools = {"eight": PoolPolicy(instance_type="eight", max=1, slices=CUT)}
    return Stage(pools=pools, budgets=budgets, classes={"batch": STOPS}, on_cloud={"slices": CUT})


def submit(on: Stage, team: str, resource: str, count: int) -> PodDemand:
    """A pod of three hours that asks for so many of a profile."""
    made = shape(gpu=GpuRequest(count=count, resource=resource), team=team)
    pod = PodDemand(uid=f"uid-{team}", namespace="ml", name=team, shape=made, created_at=on.world.clock.now())
    on.world.submit(pod, 3 * HOUR)
    return pod


@pytest.mark.parametrize(("mine", "theirs"), [((SMALL, 32), (LARGE, 8)), ((LARGE, 8), (SMALL, 32))])
@pytest.mark.parametrize("usd", ["0", "8", "30"])
def test_a_team_without_money_for_its_profiles_leaves_once(
    usd: str, mine: tuple[str, int], theirs: tuple[str, int]
) -> None:
    """Its part is by compute slices also while it waits: the node does not open for what it cannot pay."""
    on = sliced({"rich": "5000", "poor": usd})
    on.event(submit(on, "rich", *mine))
    on.event(submit(on, "poor", *theirs))
    on.hours(4)
    assert (launches(on), dict(stopped(on))) == (1, {"uid-poor": 1})
    assert totals(on)["poor"] <= Decimal(usd)
    assert sum(totals(on).values()) == on.world.cost().quantize(Decimal("0.01"))


def test_what_waits_is_measured_as_what_runs() -> None:
    """By whole devices, by profiles and by both, GPUs that are advertised several times among them."""
    asks = [(SMALL, 5), (LARGE, 2), ("nvidia.com/gpu", 1)]
    pods = tuple(
        BoundPod(uid=name, namespace="ml", name=name, gpu=GpuRequest(count=count, resource=name))
        for name, count in asks
    )
    for devices in ((), (1000,) * 4, (1000,) * 16):
        on = sliced({})
        on.event(submit(on, "rich", SMALL, 1))
        on.minutes(5)
        (node,) = on.deps.cluster.observe().nodes
        there = pods if devices else pods[:2]
        node = replace(node, devices=devices, pods=there)
        held, parts = pod_parts(node, 8)
        found = measure(node, 8)
        assert {pod.uid: round(Decimal(own) / parts, 9) for pod, own in held} == {
            pod.uid: round(found(pod.gpu), 9) for pod in there if pod.gpu is not None
        }
