"""Pods of the world by themselves: created once, and where each of them is."""

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from pilotlight.codec.world_wire import PodStatus
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldJob


def create(world: World, demands: Sequence[PodDemand], run_s: Seconds, busy_s: Seconds | None = None) -> list[str]:
    """Create pods that run so long; the names of those that were not there. The pods of a gang are one job.

    Their GPUs do something for ``busy_s`` after each start; None is always.
    """
    with world.call("create"):
        known = {pod.uid for job in _jobs(world) for pod in job.original}
        fresh = [demand for demand in demands if demand.uid not in known]
        for _, job in groupby(fresh, key=lambda demand: demand.shape.gang.key if demand.shape.gang else demand.uid):
            world.submit(tuple(job), run_s).busy_s = busy_s
    return [demand.full_name for demand in fresh]


def statuses(world: World) -> Iterator[PodStatus]:
    """Every pod there is, and those of finished jobs."""
    for job in _jobs(world):
        state = "pending" if job.id in world.pending else "running" if job.id in world.running else "finished"
        on = {placement.demand.uid: placement.node.id for placement in job.placement}
        if job.id in world.resting:
            continue
        for demand in job.demands:
            yield PodStatus(uid=demand.uid, name=demand.full_name, state=state, node=on.get(demand.uid, ""))


def _jobs(world: World) -> Iterator[WorldJob]:
    return chain(world.pending.values(), world.running.values(), world.finished, world.resting.values())
