"""Makers of the world's pods, each job its own owner, and the telemetry of their GPUs."""

from collections.abc import Iterator
from itertools import chain
from math import nan

from pilotlight.errors import BadRequest, Conflict
from pilotlight.facts.utilisation.reclaim_steps import OwnerKind, OwnerState, PodOwner
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import Seconds, count_of
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import Binding, WorldJob

KINDS: dict[str, OwnerKind] = {"notebook": "Notebook", "serving": "Deployment"}
"""Of workload classes; a pod of any other is a Job's."""


def of_pod(world: World, uid: str) -> OwnerState | None:
    """The owner of a pod that runs or waits."""
    return next((_state(world, job) for job in _jobs(world) if any(d.uid == uid for d in job.demands)), None)


def now(world: World, owner: PodOwner) -> OwnerState | None:
    """An owner as it is; None where its job is gone, or has ended."""
    job = _job(world, owner)
    return _state(world, job) if job else None


def rest(world: World, owner: PodOwner, count: int) -> None:
    """Put a job to rest. One that rests is no error; raises ``Conflict`` where it has another count of pods."""
    job = _there(world, owner)
    if job.id in world.resting:
        return
    if len(job.demands) != count:
        raise Conflict(f"{owner} has {count_of(len(job.demands), 'pod')}, not {count}")
    world.rest(job)


def wake(world: World, owner: PodOwner) -> int:
    """Wake a job; its pods then. Repeating it is harmless."""
    job = _there(world, owner)
    if job.id in world.resting:
        world.wake(job)
    return len(job.demands)


def activity(world: World, start_s: float, end_s: float, step_s: Seconds) -> Telemetry:
    """A series for each device of a running pod: 1 while its job is busy, then 0; nan before it ran."""
    begin = world.moment(0).timestamp()
    moments = [start_s + n * step_s - begin for n in range(int((end_s - start_s) / step_s) + 1)]
    series = [
        GpuSeries(
            pod=binding.demand.full_name,
            device=device,
            activity=[_at(job, t) if t <= world.now_s else nan for t in moments],
            memory=[nan] * len(moments),
        )
        for job in world.running.values()
        for binding in job.placement
        for device in _devices(binding)
    ]
    return Telemetry(start_s=start_s, step_s=step_s, metric="the world's activity", series=tuple(series))


def _at(job: WorldJob, t: Seconds) -> float:
    if t < job.start_s:
        return nan
    return 1.0 if job.busy_s is None or t < job.start_s + job.busy_s else 0.0


def _devices(binding: Binding) -> Iterator[str]:
    for n in binding.devices or ("slice",):
        yield f"{binding.node.id}/{n}"


def _jobs(world: World) -> Iterator[WorldJob]:
    return chain(world.running.values(), world.pending.values(), world.resting.values())


def _owner(job: WorldJob) -> PodOwner:
    first = job.original[0]
    kind = KINDS.get(first.shape.workload_class, "Job")
    return PodOwner(kind=kind, namespace=first.namespace, name=first.name)


def _job(world: World, owner: PodOwner) -> WorldJob | None:
    return next((job for job in _jobs(world) if _owner(job) == owner), None)


def _there(world: World, owner: PodOwner) -> WorldJob:
    job = _job(world, owner)
    if job is None:
        raise BadRequest(f"{owner} is not there")
    return job


def _state(world: World, job: WorldJob) -> OwnerState:
    resting = job.id in world.resting
    count = len(job.demands)
    before = count if resting else None
    return OwnerState(owner=_owner(job), count=0 if resting else count, before=before, opted=True)
