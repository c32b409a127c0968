"""A trace's job as the pods it would be in a cluster."""

from datetime import datetime, timedelta
from functools import lru_cache

from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, PodShape, Requirement, Toleration, shape
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import Seconds

GANG_NODE_GPUS = 8
"""A gang holds whole nodes of so many GPUs."""


def demands_of(
    job: Job,
    catalog: Catalog,
    *,
    pinned: str | tuple[str, ...] | None = None,
    start: datetime | None = None,
    checkpoint_s: Seconds = 0.0,
    tolerations: tuple[Toleration, ...] = (),
) -> tuple[PodDemand, ...]:
    """The job's pods, created at its submit: one, or a gang of whole 8-GPU nodes.

    They may run on types with min(gpus, 8) GPUs of an allowed model, narrowed to the ``pinned`` ones.
    ``start`` is the trace's second 0: the catalogue's date where it is not given. ``checkpoint_s`` is what they tell of
    their checkpoints, ``tolerations`` are theirs.
    """
    created = (start or catalog.as_of) + timedelta(seconds=job.submit_s)
    nodes = -(-job.gpus // GANG_NODE_GPUS)
    gang = Gang(key=job.job_id, size=nodes) if nodes > 1 else None
    each = GpuRequest(count=job.gpus if gang is None else GANG_NODE_GPUS, milli=job.gpu_milli)
    chosen = (pinned,) if isinstance(pinned, str) else pinned
    able = tuple(name for name, kind in catalog.instance_types.items() if kind.gpus >= each.count)
    types = able if chosen is None else tuple(t for t in able if t in chosen)
    made = _shape(each, types, job.models, job.team, gang, checkpoint_s, tolerations, job.class_priority)
    names = (job.job_id,) if gang is None else tuple(f"{job.job_id}-{n}" for n in range(nodes))
    return tuple(_pod(job, name, made, created) for name in names)


@lru_cache(maxsize=4096)
def _shape(
    gpu: GpuRequest,
    types: tuple[str, ...],
    models: tuple[str, ...],
    team: str,
    gang: Gang | None,
    checkpoint_s: Seconds,
    tolerations: tuple[Toleration, ...],
    priority: int,
) -> PodShape:
    by_model = (Requirement(key=GPU_MODEL, operator="In", values=models),) if models else ()
    return shape(
        gpu=gpu,
        terms=((*by_model, Requirement(key=INSTANCE_TYPE, operator="In", values=types)),),
        workload_class="training" if gpu.count > 1 else "batch",
        team=team,
        priority=priority,
        gang=gang,
        checkpoint_s=checkpoint_s,
        tolerations=tolerations,
    )


def _pod(job: Job, name: str, made: PodShape, created: datetime) -> PodDemand:
    owner = f"Job/{job.group or job.job_id}"
    return PodDemand(
        uid=name,
        namespace=job.team or "default",
        name=name,
        shape=made,
        created_at=created,
        owner=owner,
        image=job.image,
        checkpoint_takes_s=job.saves_s,
    )
