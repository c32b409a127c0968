"""Times that objects tell: what no clock of a cluster's says is a finding, and the moment of the look stands in for it.

All that is decided reckons with these times: year 1 is two thousand years of budget periods, with no room before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from pilotlight.codec.kubernetes.typed_objects import (
    Condition,
    ContainerState,
    ContainerStatus,
    KubeNode,
    Metadata,
    Pod,
    Terminated,
)
from pilotlight.facts.workload import Finding
from pilotlight.units import EPOCH

FIRST_YEAR, LAST_YEAR = 2000, 2200
SKEW = timedelta(days=1)
"""How far ahead of ours a cluster's clock may be."""


class Settled(NamedTuple):
    """Objects whose times can be reckoned with, and what was wrong with them."""

    pods: Sequence[Pod]
    nodes: Sequence[KubeNode]
    findings: tuple[Finding, ...]


def settle_times(pods: Sequence[Pod], nodes: Sequence[KubeNode], now: datetime) -> Settled:
    """The objects with ``now`` in place of times that cannot be."""
    findings = list[Finding]()
    clean_pods, clean_nodes = list(pods), list(nodes)
    for index, pod in enumerate(pods):
        if not _is_sound(pod, now) and (wrong := _wrong(_of_pod(pod), now)):
            clean_pods[index] = _mended_pod(pod, now)
            findings.append(_finding(pod.name, wrong, pod.metadata.uid))
    for index, node in enumerate(nodes):
        if wrong := _wrong(_of_node(node), now):
            clean_nodes[index] = _mended_node(node, now)
            findings.append(_finding(node.metadata.name, wrong, ""))
    return Settled(clean_pods, clean_nodes, tuple(findings))


def newest(pods: Iterable[Pod], nodes: Iterable[KubeNode]) -> datetime | None:
    """The newest moment that objects speak of, of those that can be."""
    objects: list[Pod | KubeNode] = [*pods, *nodes]
    told = [moment for each in objects for _, moment in _of_object(each)]
    return max((moment for moment in told if moment is not None and in_range(moment)), default=None)


def plausible(moment: datetime, now: datetime) -> bool:
    """True where a cluster's clock can say so."""
    return in_range(moment) and moment <= now + SKEW


def in_range(moment: datetime) -> bool:
    """True where a moment leaves room on both sides."""
    return moment.tzinfo is not None and (moment == EPOCH or FIRST_YEAR <= moment.year <= LAST_YEAR)


def _is_sound(pod: Pod, now: datetime) -> bool:
    """True where every time of a pod is in UTC and of 2000 to now, as nearly all are; false says nothing."""
    meta, status = pod.metadata, pod.status
    told = [meta.creation_timestamp, status.start_time, meta.deletion_timestamp]
    for condition in status.conditions:
        told.append(condition.last_transition_time)
    for each in status.container_statuses:
        if each.state.terminated:
            told.append(each.state.terminated.finished_at)
    return not [at for at in told if at is not None and (at.tzinfo is not UTC or not _FIRST <= at <= now)]


_FIRST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
Told = Iterator[tuple[str, datetime | None]]
"""Fields of an object, each with the moment that it says."""


def _wrong(fields: Told, now: datetime) -> str:
    """The first field that cannot be, with what it says; "" where all can."""
    told = ((field, moment) for field, moment in fields if moment is not None and not plausible(moment, now))
    return next((f"{field} is {moment.isoformat()}" for field, moment in told), "")


def _of_object(each: Pod | KubeNode) -> Told:
    yield "metadata.creationTimestamp", each.metadata.creation_timestamp
    for condition in each.status.conditions:
        yield "lastTransitionTime of a condition in status", condition.last_transition_time


def _of_node(node: KubeNode) -> Told:
    yield "metadata.deletionTimestamp", node.metadata.deletion_timestamp
    yield from _of_object(node)


def _of_pod(pod: Pod) -> Told:
    yield "metadata.deletionTimestamp", pod.metadata.deletion_timestamp
    yield "status.startTime", pod.status.start_time
    for status in pod.status.container_statuses:
        if status.state.terminated:
            yield "finishedAt of a container in status", status.state.terminated.finished_at
    yield from _of_object(pod)


def _mended(moment: datetime | None, now: datetime) -> datetime | None:
    return moment if moment is None or plausible(moment, now) else now


def _metadata(found: Metadata, now: datetime) -> Metadata:
    return msgspec.structs.replace(
        found,
        creation_timestamp=_mended(found.creation_timestamp, now),
        deletion_timestamp=_mended(found.deletion_timestamp, now),
    )


def _conditions(found: Iterable[Condition], now: datetime) -> tuple[Condition, ...]:
    return tuple(msgspec.structs.replace(c, last_transition_time=_mended(c.last_transition_time, now)) for c in found)


def _mended_pod(pod: Pod, now: datetime) -> Pod:
    status = msgspec.structs.replace(
        pod.status,
        start_time=_mended(pod.status.start_time, now),
        conditions=_conditions(pod.status.conditions, now),
        container_statuses=tuple(_container(each, now) for each in pod.status.container_statuses),
    )
    return msgspec.structs.replace(pod, metadata=_metadata(pod.metadata, now), status=status)


def _container(status: ContainerStatus, now: datetime) -> ContainerStatus:
    if status.state.terminated is None:
        return status
    return ContainerStatus(
        state=ContainerState(terminated=Terminated(finished_at=_mended(status.state.terminated.finished_at, now)))
    )


def _mended_node(node: KubeNode, now: datetime) -> KubeNode:
    status = msgspec.structs.replace(node.status, conditions=_conditions(node.status.conditions, now))
    return msgspec.structs.replace(node, metadata=_metadata(node.metadata, now), status=status)


def _finding(subject: str, wrong: str, uid: str) -> Finding:
    message = f"{wrong}, which no clock says: the moment of the look is taken; look at who wrote the object"
    return Finding(subject=subject, code="implausible-time", message=message, uid=uid)
