"""Owners of pods, put to rest and woken: the Deployment, StatefulSet, Job or Kubeflow Notebook behind them.

One that is itself made by something else is left alone, but for a Notebook's StatefulSet and a CronJob's Job, and so is
a Job that Kueue suspends: two would write the same field. An HPA stands still while its target has no replicas (its
controller, unless ``minReplicas`` is 0); what KEDA scales is paused in its ScaledObject. A Notebook rests while it has
the annotation ``kubeflow-resource-stopped`` (Kubeflow's notebook controller, culling). Each write is over the version
that was read.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes import keda_pause
from pilotlight.adapters.cluster.kubernetes.listing import pod_path
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.cluster.kubernetes.writes import TRIES
from pilotlight.codec.kubernetes.typed_objects import Metadata
from pilotlight.errors import BadRequest, Conflict
from pilotlight.facts.labels import COUNT_BEFORE, RECLAIM, SNOOZE_UNTIL
from pilotlight.facts.utilisation.reclaim_steps import OwnerKind, OwnerState, PodOwner
from pilotlight.units import count_of

STOPPED = "kubeflow-resource-stopped"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
PATHS: Mapping[str, str] = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets/{}",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/{}",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    "Job": "/apis/batch/v1/namespaces/{}/jobs/{}",
    "Notebook": "/apis/kubeflow.org/v1/namespaces/{}/notebooks/{}",
}
MAKERS: Mapping[str, tuple[str, ...]] = {
    "ReplicaSet": ("Deployment",),
    "Deployment": (),
    "StatefulSet": ("Notebook",),
    "Job": (),
    "Notebook": (),
}
"""Who may stand behind each kind, and is the owner then. A CronJob behind a Job makes the next one whatever rests."""


class _Meta(Metadata, frozen=True):
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    suspend: bool = False


class _Found(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


_decoder = typed_json.decoder(_Found)


def of_pod(api: Api, namespace: str, pod: str, uid: str) -> OwnerState | None:
    """Owner that makes a pod; None where it is gone, or whoever makes it is not ours to put to rest."""
    try:
        found = api.get(pod_path(namespace, pod), _decoder)
        if found.metadata.uid != uid:
            return None
        kind = "Pod"
        allowed: tuple[str, ...] = ("ReplicaSet", "StatefulSet", "Job")
        while (maker := found.metadata.owner) is not None and not (kind == "Job" and maker.kind == "CronJob"):
            if maker.kind not in allowed:
                return None
            kind, allowed = maker.kind, MAKERS[maker.kind]
            found = api.get(_path(kind, namespace, maker.name), _decoder)
    except Missing:
        return None
    if kind not in get_args(OwnerKind) or KUEUE_QUEUE in found.metadata.labels:
        return None
    return _state(PodOwner(kind=kind, namespace=namespace, name=found.metadata.name), found)  # type: ignore[arg-type]


def now(api: Api, owner: PodOwner) -> OwnerState | None:
    """An owner as it is; None where it is gone."""
    try:
        return _state(owner, _read(api, owner))
    except Missing:
        return None


def rest(api: Api, owner: PodOwner, count: int, at: datetime) -> None:
    """Put it to rest, where it asks for ``count`` pods, and keep that count on it. Raises ``Conflict``, ``Missing``.

    What KEDA scales is paused there first, or KEDA would undo it; the count is on it before, for KEDA may be faster.
    """
    if not keda_pause.scales(api, owner):
        _brought(api, owner, count, 0, at)
    elif _brought(api, owner, count, count, at):
        keda_pause.pause(api, owner)
        try:
            _brought(api, owner, count, 0, at)
        except Conflict:
            keda_pause.resume(api, owner)
            raise


def _brought(api: Api, owner: PodOwner, count: int, to: int, at: datetime) -> bool:
    """Bring it from ``count`` to another, and keep ``count`` on it; whether it had any."""
    for _ in range(TRIES):
        found = _read(api, owner)
        has = _count(owner, found)
        if not has:
            return False
        if has != count:
            raise Conflict(f"{owner} asks for {count_of(has, 'pod')} now, not {count}: it is left as it is")
        if _written(api, owner, found, to, {COUNT_BEFORE: str(count)}, at):
            return True
    raise Conflict(f"{owner} is changed by others all the time: tried {TRIES} times")


def wake(api: Api, owner: PodOwner, at: datetime) -> int:
    """Give it back the count that it had; what it asks for then. Raises ``Missing``, ``Conflict``, ``BadRequest``.

    KEDA goes on first: whoever dies in between leaves an owner that KEDA scales, or one that can be woken again.
    """
    keda_pause.resume(api, owner)
    for _ in range(TRIES):
        found = _read(api, owner)
        if has := _count(owner, found):
            return has
        before = _before(found)
        if before is None:
            raise BadRequest(f"{owner} rests, and has no {COUNT_BEFORE}: it was not put to rest by Pilotlight")
        if _written(api, owner, found, before, {COUNT_BEFORE: None}, at):
            return before
    raise Conflict(f"{owner} is changed by others all the time: tried {TRIES} times")


def _written(api: Api, owner: PodOwner, found: _Found, count: int, notes: dict[str, str | None], at: datetime) -> bool:
    """Write over the version that was read; whether nobody was faster."""
    spec: dict[str, Any] = {}
    match owner.kind:
        case "Job":
            spec = {"spec": {"suspend": count == 0}}
        case "Notebook":
            notes = {**notes, STOPPED: None if count else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        case _:
            spec = {"spec": {"replicas": count}}
    meta = {"resourceVersion": found.metadata.resource_version, "annotations": notes}
    try:
        api.ask(
            "PATCH", _path(owner.kind, owner.namespace, owner.name), NOTHING, {"metadata": meta, **spec}, MERGE_PATCH
        )
    except Conflict:
        return False
    return True


def _path(kind: str, namespace: str, name: str) -> str:
    return PATHS[kind].format(quote(namespace), quote(name))


def _read(api: Api, owner: PodOwner) -> _Found:
    return api.get(_path(owner.kind, owner.namespace, owner.name), _decoder)


def _count(owner: PodOwner, found: _Found) -> int:
    match owner.kind:
        case "Job":
            return 0 if found.spec.suspend else (1 if found.spec.parallelism is None else found.spec.parallelism)
        case "Notebook":
            return 0 if STOPPED in found.metadata.annotations else 1
        case _:
            return 1 if found.spec.replicas is None else found.spec.replicas


def _before(found: _Found) -> int | None:
    said = found.metadata.annotations.get(COUNT_BEFORE, "")
    return int(said) if said.isdecimal() and 0 < len(said) < 6 else None


def _state(owner: PodOwner, found: _Found) -> OwnerState:
    notes = found.metadata.annotations
    return OwnerState(
        owner=owner,
        count=_count(owner, found),
        before=_before(found),
        opted={"true": True, "false": False}.get(notes.get(RECLAIM, "").lower()),
        snoozed_until=_moment(notes.get(SNOOZE_UNTIL, "")),
    )


def _moment(text: str) -> datetime | None:
    """An annotation's moment; one without a zone is UTC. What is no moment snoozes nothing."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
