"""Changes to a cluster: our taints on a node, evictions, Events, and an annotation where asked for.

Each may be repeated: a lost answer is not a second effect. ``spec.taints`` is one list to the API server, so it is
read, changed and written over the version that was read.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import NODES, pod_path
from pilotlight.adapters.cluster.kubernetes.reads import OBJECT
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Metadata
from pilotlight.errors import BadRequest, Conflict, Forbidden
from pilotlight.facts.labels import ANNOTATE, CLOSED_BY, DRAINING, EVICTS, HOME, NEW_HOME, ON_NODE, STATUS, WARNINGS
from pilotlight.units import Seconds


class Kind(NamedTuple):
    """What an Event is about: a kind of objects and the version of its interface."""

    version: str
    name: str


TRIES = 5
"""A write over an object that others change at the same time is tried so often."""
MARKED = "marked"
"""The value of our taint."""
LONGEST_MESSAGE = 1024
EVENTS = "/apis/events.k8s.io/v1/namespaces"

Taint = dict[str, Any]

_log = logging.getLogger("pilotlight.kubernetes")


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, frozen=True):
    taints: list[Taint] = msgspec.field(default_factory=list)


class Marks(msgspec.Struct, frozen=True):
    """The taints of a node with every field of theirs and its annotations, at a version."""

    metadata: _Version
    spec: _Spec = _Spec()


MARKS = typed_json.decoder(Marks)


class _Uid(msgspec.Struct, frozen=True):
    uid: str = ""


class _On(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(msgspec.Struct, frozen=True):
    metadata: _Uid = _Uid()
    spec: _On = _On()


_BOUND = typed_json.decoder(_Bound)
"""Reads where a pod is and nothing else of it: whatever a tenant writes into the rest, it can be evicted."""


def cordon(api: Api, node: str, by: str = "") -> None:
    """Put our taint on, and note ``by`` whom; ``spec.unschedulable`` is never ours. Raises ``Missing``."""
    _mark(api, node, lambda m: m.spec.taints if _has(m, DRAINING) else with_ours(m), lambda m: by or _closed_by(m))


def uncordon(api: Api, node: str) -> None:
    """Take our taint off with its note; a node without it is left as it is, and so is a cordon. Raises ``Missing``."""
    _mark(api, node, lambda m: _others(m, DRAINING), lambda m: "" if _has(m, DRAINING) else _closed_by(m))


def forget_opened(api: Api, node: str) -> None:
    """Take the note off where our taint is not there any more. Raises ``Missing``."""
    _mark(api, node, lambda m: m.spec.taints, lambda m: _closed_by(m) if _has(m, DRAINING) else "")


def open(api: Api, node: str) -> None:
    """Take our home taint off; a node without it is left as it is. Raises ``Missing``."""
    _mark(api, node, lambda m: _others(m, HOME))


def name_home(api: Api, node: str, home: str) -> None:
    """Give a new home its value; a node that has one, or that is open, is left as it is. Raises ``Missing``."""
    _mark(api, node, lambda m: [{**t, "value": home} if _is_new_home(t) else t for t in m.spec.taints])


def _is_new_home(taint: Taint) -> bool:
    return taint.get("key") == HOME and taint.get("value", NEW_HOME) == NEW_HOME


def with_ours(marks: Marks) -> list[Taint]:
    """The taints with ours among them."""
    ours = [taint for taint in marks.spec.taints if taint.get("key") == DRAINING][:1]
    return _others(marks, DRAINING) + (ours or [{"key": DRAINING, "value": MARKED, "effect": "NoSchedule"}])


def _has(marks: Marks, key: str) -> bool:
    return any(taint.get("key") == key for taint in marks.spec.taints)


def _others(marks: Marks, key: str) -> list[Taint]:
    return [taint for taint in marks.spec.taints if taint.get("key") != key]


def _closed_by(marks: Marks) -> str:
    return marks.metadata.annotations.get(CLOSED_BY, "")


def _mark(
    api: Api, node: str, change: Callable[[Marks], list[Taint]], note: Callable[[Marks], str] = _closed_by
) -> None:
    """Change the taints of a node, and who closed it, in one write."""
    path = f"{NODES}/{quote(node)}"
    for _ in range(TRIES):
        marks = api.get(path, MARKS)
        wanted, by = change(marks), note(marks)
        if wanted == marks.spec.taints and by == _closed_by(marks):
            return
        meta: dict[str, Any] = {"resourceVersion": marks.metadata.resource_version}
        if by != _closed_by(marks):
            meta["annotations"] = {CLOSED_BY: by or None}
        patch = {"metadata": meta, "spec": {"taints": wanted or None}}
        try:
            api.ask("PATCH", path, NOTHING, patch, MERGE_PATCH)
        except Conflict as conflict:
            last = conflict
        else:
            return
    raise last


def node_of(api: Api, namespace: str, pod: str, uid: str) -> str:
    """The node that a pod is on; empty where it is gone, another, or nowhere."""
    try:
        found = api.get(pod_path(namespace, pod), _BOUND)
    except Missing:
        return ""
    return found.spec.node_name if found.metadata.uid == uid else ""


def evict(
    api: Api, namespace: str, pod: str, uid: str, node: str, grace_s: Seconds | None = None, *, only_ask: bool = False
) -> None:
    """Evict that pod and no other of its name, within ``grace_s`` or its own grace, off the ``node`` that it is on.

    Raises ``Busy`` while a PodDisruptionBudget does not allow it, and ``BadRequest`` off a node of no pool of ours.
    """
    options: dict[str, Any] = {"preconditions": {"uid": uid}}
    if grace_s is not None:
        options["gracePeriodSeconds"] = _whole_s(grace_s)
    if only_ask:
        options["dryRun"] = ["All"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "name": pod,
            "namespace": namespace,
            "labels": {EVICTS: "true"},
            "annotations": {ON_NODE: node},
        },
        "deleteOptions": options,
    }
    try:
        api.ask("POST", f"{pod_path(namespace, pod)}/eviction{'?dryRun=All' if only_ask else ''}", NOTHING, body)
    except Missing:
        return
    except Conflict:
        # Either another pod has its name now, or somebody changed this one at the same moment.
        if _uid(api, namespace, pod) == uid:
            raise


def delete(api: Api, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
    """Delete that pod and no other of its name, within its grace. No PodDisruptionBudget is asked."""
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": _whole_s(grace_s),
        "preconditions": {"uid": uid},
    }
    try:
        api.ask("DELETE", pod_path(namespace, pod), NOTHING, body)
    except Missing:
        return
    except Conflict:
        if _uid(api, namespace, pod) == uid:
            raise


def _whole_s(grace_s: Seconds) -> int:
    """A grace as the API server takes it. 0 would take the pod off its API at once, while it still runs."""
    return max(1, int(grace_s))


def _uid(api: Api, namespace: str, pod: str) -> str:
    try:
        return api.get(pod_path(namespace, pod), OBJECT).metadata.uid
    except Missing:
        return ""


POD, NODE = Kind("v1", "Pod"), Kind("v1", "Node")


def tell(api: Api, about: Metadata, reason: str, message: str, now: datetime, change: str, *, kind: Kind = POD) -> None:
    """An Event of events.k8s.io/v1 on an object: on a node they lie in ``default``.

    One a reason and change for as long as the server keeps it: its name is made of them.
    """
    namespace = "default" if kind == NODE else about.namespace
    regarding = {"apiVersion": kind.version, "kind": kind.name, "name": about.name, "uid": about.uid}
    regarding |= {} if kind == NODE else {"namespace": namespace}
    told = blake2b(f"{about.uid}/{reason}/{change}".encode(), digest_size=8).hexdigest()
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{about.name[:200]}.{told}", "namespace": namespace},
        "regarding": regarding,
        "reason": reason,
        "action": reason,
        "note": _at_most(message),
        "type": "Warning" if reason in WARNINGS else "Normal",
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": "pilotlight",
        "reportingInstance": "pilotlight",
    }
    try:
        api.ask("POST", f"{EVENTS}/{quote(namespace)}/events", NOTHING, body)
    except Conflict:
        return  # It is there already.


def _at_most(message: str) -> str:
    """A message as long as an Event's may be, in bytes."""
    return message.encode()[:LONGEST_MESSAGE].decode(errors="ignore")


def annotate(api: Api, pod: Metadata, reason: str, message: str) -> None:
    """The same as an annotation, on a pod that asks for it; without the right to, the Event is all there is."""
    if pod.annotations.get(ANNOTATE) != "true":
        return
    patch = {"metadata": {"uid": pod.uid, "annotations": {STATUS: f"{reason}: {message}"[:LONGEST_MESSAGE]}}}
    try:
        api.ask("PATCH", pod_path(pod.namespace, pod.name), NOTHING, patch, MERGE_PATCH)
    except (BadRequest, Conflict):
        return  # It is gone, or another has its name: an object's uid cannot be changed.
    except Forbidden as no:
        _log.warning("not annotated", extra={"data": {"pod": f"{pod.namespace}/{pod.name}", "why": str(no)}})
