"""Pods on nodes to facts: of pods of one template, whose parts are kept once, what they say alike is read once."""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.pods import pod_bounds
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.pod_groups import gang_key
from pilotlight.codec.kubernetes.pods.pods import (
    DAEMONS,
    image_of,
    is_mirror,
    names_deadline,
    of_template,
    owner_name,
    shape_elsewhere,
)
from pilotlight.codec.kubernetes.pods.requests import Asked
from pilotlight.codec.kubernetes.times import in_range
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts import labels
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.labels import CHECKPOINT_S, CHECKPOINT_TAKES_S
from pilotlight.facts.workload import GpuRequest

_OF_CHECKPOINTS = frozenset((CHECKPOINT_S, CHECKPOINT_TAKES_S, labels.CHECKPOINTED_AT))


def bound_pod(asked: Asked, objects: Objects, claims: Claimants, blocks: str, *, elsewhere: bool = False) -> BoundPod:
    """A pod on a node. ``elsewhere`` reads what it would need on another one too."""
    alike = None if elsewhere else of_template(asked)
    if alike is None:
        return _bound_pod(asked, objects, claims, blocks, elsewhere=elsewhere)
    _, known = claims.on_nodes.get(alike, (None, None))
    if known is None:
        known = _bound_pod(asked, objects, claims, blocks, elsewhere=False)
        if asked.gpu is None or not claims.settle(asked).refused:
            claims.on_nodes[alike] = asked, known
        return known
    pod, meta = asked.pod, asked.pod.metadata
    if asked.gpu:
        claims.grant(pod)
    return replace(
        known,
        uid=meta.uid or pod.name,
        name=meta.name,
        blocks=blocks,
        created_at=meta.creation_timestamp,
        started_at=pod.status.start_time,
        works_since=_works_since(pod, timed=False),
    )


def _bound_pod(asked: Asked, objects: Objects, claims: Claimants, blocks: str, *, elsewhere: bool) -> BoundPod:
    pod, meta, owner = asked.pod, asked.pod.metadata, asked.pod.metadata.owner
    gpu = asked.gpu or (GpuRequest(count=1) if asked.holds_gpu else None)
    said = claims.settle(asked) if gpu else None
    timed = names_deadline(pod)
    every, takes, last = _checkpoints(meta.annotations) if gpu else (0.0, 0.0, None)
    return BoundPod(
        uid=meta.uid or pod.name,
        namespace=meta.namespace,
        name=meta.name,
        owner=owner_name(owner) if gpu else "",
        gpu=gpu,
        daemonset=(owner is not None and owner.kind == DAEMONS) or is_mirror(pod),
        blocks=blocks,
        workload_class=said.workload_class if said else "",
        team=said.team if said else "",
        gang=gang_key(pod) if gpu else "",
        max_run_s=pod_bounds.run_s(pod.spec),
        grace_s=pod_bounds.grace_s(pod.spec),
        created_at=meta.creation_timestamp,
        started_at=pod.status.start_time,
        works_since=_works_since(pod, timed=timed),
        image=image_of(asked),
        checkpoint_s=every,
        checkpoint_takes_s=takes,
        checkpointed_at=last,
        priority=said.priority if said else pod.spec.priority,
        shape=shape_elsewhere(asked, objects, claims) if (elsewhere or timed) and asked.gpu else None,
    )


def _works_since(pod: Pod, *, timed: bool) -> datetime | None:
    """Since when all of its containers run; None while one does not: pulling images is no work."""
    last: datetime | None = None
    for each in pod.status.container_statuses:
        at = each.state.running.started_at if each.state.running else None
        if at is None or not in_range(at):
            return None
        last = at if last is None or at > last else last
    return last or (pod.status.start_time if timed and not pod.status.container_statuses else None)


def _checkpoints(annotations: Mapping[str, str]) -> tuple[float, float, datetime | None]:
    """Seconds between checkpoints, what one takes when asked for, and the last; a running pod's wrong ones are none."""
    if _OF_CHECKPOINTS.isdisjoint(annotations):
        return 0, 0, None
    every, takes = (pod_bounds.safe_seconds(annotations, name) for name in (CHECKPOINT_S, CHECKPOINT_TAKES_S))
    said = annotations.get(labels.CHECKPOINTED_AT)
    try:
        last = datetime.fromisoformat(said) if said else None
    except ValueError:
        last = None
    return every, takes, last if last is not None and in_range(last) else None
