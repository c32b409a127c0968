"""Room of homes that a plan leaves: who is next in line, who tries it, and who keeps none that comes too late."""

from datetime import timedelta

import msgspec
import pytest
from small_fleet import A100, FLEET, NOW, SAME_SPEED, T4, V100X4, bought, in_flight, node, offering, pod
from test_homes_planned import ACTS, HOME, HOMED, born_closed, given_homes, homed

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView, Resources
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import Due, GpuRequest, PodDemand, shape


def test_a_pod_at_a_cap_is_next_in_line() -> None:
    """A pod that waits at a cap is given a full node where it belongs: its room is taken as it frees, not at a look."""
    rules = born_closed(V100X4, A100, caps=Caps(nodes=1))
    full = node("n", A100, used=8, home=HOME)
    assert given_homes(homed([pod("p", gpus=8)], [full], rules=rules)) == {"p": HOME}
    held = msgspec.structs.replace(pod("p", gpus=8), homes=(HOME,))
    assert given_homes(homed([held], [full], rules=rules)) == {}


def test_pods_without_gpus_get_what_the_plan_leaves() -> None:
    """Each gets a node that has room for it after the plan; one that two cannot share is given to one alone."""
    room = Resources(cpu_milli=4000, memory=8 << 30, pods=10)
    nodes = [node(name, A100, home=f"h-{name}", free=room) for name in ("a", "b")]
    asks = shape(gpu=GpuRequest(count=0), cpu_milli=3000)
    others = tuple(PodDemand(uid=f"u{n}", namespace="ml", name=f"cpu{n}", shape=asks, created_at=NOW) for n in range(3))
    lit = [PoolState(name="a100", desired=2)]
    view = ClusterView(nodes=tuple(nodes), others=others)
    made = plan_cluster(
        Look(view, lit, FLEET, HOMED, Memory(), NOW, brakes=ACTS, throughput=SAME_SPEED, releases=False)
    )
    assert sorted(one.home for one in made.homes.tolerate) == ["h-a", "h-b"]


@pytest.mark.parametrize("tried", [7, 8])
def test_a_pod_without_gpus_tries_some_nodes_and_no_more(tried: int) -> None:
    """What is bound to none of eight homes is kept off for a reason of its own: it is given no ninth."""
    room = Resources(cpu_milli=4000, memory=8 << 30, pods=10)
    nodes = [node(f"n{n}", A100, home=f"h-{n}", free=room) for n in range(9)]
    asks = shape(gpu=GpuRequest(count=0), cpu_milli=3000)
    homes = tuple(f"h-{n}" for n in range(tried))
    waits = PodDemand(uid="u", namespace="ml", name="cpu", shape=asks, created_at=NOW, homes=homes)
    look = Look(
        ClusterView(nodes=tuple(nodes), others=(waits,)),
        [PoolState(name="a100", desired=9)],
        FLEET, HOMED, Memory(), NOW, brakes=ACTS, throughput=SAME_SPEED, releases=False,
    )  # fmt: skip
    assert len(plan_cluster(look).homes.tolerate) == 8 - tried


@pytest.mark.parametrize(("slack_s", "buys"), [(900, {"t4": 1}), (36_000, {})], ids=["no time", "time enough"])
def test_spot_that_comes_too_late_keeps_no_job_with_a_deadline(slack_s: float, buys: dict[str, int]) -> None:
    """A pod has the home of a spot node on its way; once only on-demand is in time, that is bought all the same."""
    spot = offering("spot", "T4", 1, "0.3", capacity_type="spot")
    own = {"batch": ClassPolicy(gpu_models="any", capacity_types=("on-demand", "spot"))}
    rules = born_closed(spot, T4, of=(T4, spot), classes=own)
    due = Due(job="ml/p", by=NOW + timedelta(seconds=3600 + slack_s), work_s=3600)
    waits = msgspec.structs.replace(pod("p", due=due, checkpoint_s=600), homes=(HOME,))
    entry = msgspec.structs.replace(in_flight(spot, [waits]), homes=(0,))
    made = homed([waits], rules=rules, offerings=(T4, spot), booting={"spot": 1}, memory=Memory(in_flight=(entry,)))
    assert bought(made) == buys


def test_a_pod_of_a_node_that_may_be_dead_gets_a_ready_one_too() -> None:
    """Where its node is seen and not ready, free ready room of the pool is its own as well."""
    waits = msgspec.structs.replace(pod("p", gpus=8), homes=(HOME,))
    dead = node("dead", A100, ready=False, devices=(), home=HOME, idle_since=None, created_at=NOW)
    made = homed([waits], [dead, node("free", A100, home="h-free")])
    assert given_homes(made) == {"p": "h-free"}
