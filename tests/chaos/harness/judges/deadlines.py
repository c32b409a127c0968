"""Jobs with a deadline in chaos, and a judge of its own: whoever ended after it was late, whatever was reckoned.

Only jobs that on-demand of one pool can hold, where no budget runs out: nothing but Pilotlight could make them late.
The time they are given bears all faults and everybody else's work before them, so that none of that is an excuse.
"""

from collections.abc import Iterator
from datetime import timedelta
from math import inf
from random import Random

import msgspec

from harness.scene import START, Job, Scene, holds
from pilotlight.facts.workload import Due, PodDemand, PodShape, shape
from pilotlight.units import HOUR, Seconds
from pilotlight.world.simulation import World

SHARE = 0.4
"""So many of the jobs that may have a deadline have one."""

SPARE_S: Seconds = 24 * HOUR
"""What they are given beyond their run."""

SAVES_S: Seconds = 120.0

NEAR_S, OFTEN_S = 8 * HOUR, 300.0
"""So long before a deadline ticks come so often."""


def with_deadlines(scene: Scene, rng: Random) -> Scene:
    """The setting with deadlines on some of its jobs."""
    if scene.policy.budgets:
        return scene
    jobs = tuple(_due(job) if _sure(scene, job) and rng.random() < SHARE else job for job in scene.jobs)
    return scene._replace(jobs=jobs)


def late(scene: Scene, world: World) -> Iterator[str]:
    """The jobs that ended after their deadline, or have not ended by it."""
    ended = {job.id: job.finish_s for job in world.finished}
    created = {*ended, *world.pending, *world.running}  # A run may be over before its last jobs come.
    for job in scene.jobs:
        name, due = job.demands[0].uid, job.demands[0].shape.due
        if due is None or name not in created:
            continue
        by_s = (due.by - START).total_seconds()
        at_s = ended.get(name)
        if by_s < (world.now_s if at_s is None else at_s):
            yield f"{name} was due at {by_s:.0f} s, " + (f"ended at {at_s:.0f} s" if at_s else "and has not ended")


def calm_s(scene: Scene, world: World) -> Seconds:
    """For how long nobody has to look for a deadline's sake: a deployment's ticks come every minute, those after the
    faults as seldom as every few hours."""
    ended = {job.id for job in world.finished}
    waiting = ((job.demands[0].uid, job.demands[0].shape.due) for job in scene.jobs)
    there = {*world.pending, *world.running} - ended
    at_s = [(due.by - START).total_seconds() for name, due in waiting if due is not None and name in there]
    return max(OFTEN_S, min(at_s, default=inf) - NEAR_S - world.now_s)


def _sure(scene: Scene, job: Job) -> bool:
    pools = scene.policy.pools
    on_demand = [name for name, pool in pools.items() if pool.capacity_type == "on-demand"]
    first = job.demands[0].shape
    return any(holds(scene.policy, name, first, len(job.demands)) for name in on_demand)


def _due(job: Job) -> Job:
    first = job.demands[0].shape
    by = START + timedelta(seconds=job.at_s + job.run_s + SPARE_S)
    due = Due(job=job.demands[0].uid, by=by, work_s=max(60.0, job.run_s))
    made = _with(first, due)
    return job._replace(demands=tuple(_made(demand, made) for demand in job.demands))


def _with(bare: PodShape, due: Due) -> PodShape:
    fields = {name: getattr(bare, name) for name in PodShape.__struct_fields__}
    return shape(**{**fields, "due": due, "checkpoint_s": SAVES_S, "key": ""})


def _made(demand: PodDemand, made: PodShape) -> PodDemand:
    return msgspec.structs.replace(demand, shape=made)
