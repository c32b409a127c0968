"""Our admission check on Kueue's ClusterQueues: put there by a person, and taken out again, for good or for a while.

A queue whose check nobody answers admits nothing: taking it out is what hands the queue back. Kueue's own fields of a
queue stay as they are; a queue that lists its checks in the older way is left alone.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from pilotlight.adapters.cluster.kubernetes.kueue_check_status import APPLY_PATCH
from pilotlight.adapters.cluster.kubernetes.listing import KUEUES
from pilotlight.adapters.cluster.kubernetes.queue_stop_policy import BEFORE, stop
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.kueue_objects import CHECK
from pilotlight.errors import BadInput

CONTROLLER = "pilotlight.dev/admission"
_ANY = msgspec.json.Decoder(dict[str, Any])


class Queue(NamedTuple):
    """A queue, and whether our check stands on it after what was done; ``opened``: its stopPolicy was put back."""

    name: str
    ours: bool
    changed: bool
    opened: bool = False


def take(api: Api, names: Iterable[str], now: datetime, *, dry_run: bool) -> Iterator[Queue]:
    """Make our check, say that it is answered, and put it on these queues. Raises ``BadInput``."""
    kueue, queues = _queues(api)
    names = list(names)
    if missing := sorted(set(names) - queues.keys()):
        raise BadInput(f"there is no ClusterQueue {missing[0]}: this cluster has {', '.join(sorted(queues)) or 'none'}")
    if older := [name for name in names if queues[name]["spec"].get("admissionChecks")]:
        raise BadInput(
            f"ClusterQueue {older[0]} lists spec.admissionChecks: move them to admissionChecksStrategy first"
        )
    if not dry_run:
        _make(api, kueue, now)
    for name in names:
        rules = _rules(queues[name])
        there = any(rule.get("name") == CHECK for rule in rules)
        if not there and not dry_run:
            _put(api, kueue, queues[name], [*rules, {"name": CHECK}])
        yield Queue(name, True, not there)


def hand_back(api: Api, *, dry_run: bool) -> Iterator[Queue]:
    """Take our check off every queue, and open what a budget stopped; other checks stay. Raises ``BadInput`` where
    there is no Kueue."""
    kueue, queues = _queues(api)
    for name, queue in sorted(queues.items()):
        rules = _rules(queue)
        left = [rule for rule in rules if rule.get("name") != CHECK]
        if len(left) < len(rules):
            if not dry_run:
                _put(api, kueue, queue, left)
            yield Queue(name, False, True)
    for name in _open_all(api, dry_run=dry_run):
        yield Queue(name, False, True, opened=True)


def _open_all(api: Api, *, dry_run: bool) -> Iterator[str]:
    """Put back every queue that we stopped, by its name as ``stop`` takes it; none where there is no Kueue."""
    for kueue in KUEUES:
        try:
            queues = [each for kind in ("clusterqueues", "localqueues") for each in _stopped(api, f"{kueue}/{kind}")]
        except Missing:
            continue
        for name in queues:
            if not dry_run:
                stop(api, name, "")
            yield name
        return


def _stopped(api: Api, path: str) -> Iterator[str]:
    for each in api.get(path, _ANY).get("items") or ():
        meta = each["metadata"]
        if BEFORE in (meta.get("annotations") or {}):
            yield f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


def _queues(api: Api) -> tuple[str, dict[str, dict[str, Any]]]:
    for kueue in KUEUES:
        try:
            found = api.get(f"{kueue}/clusterqueues", _ANY)
        except Missing:
            continue
        return kueue, {queue["metadata"]["name"]: queue for queue in found.get("items") or ()}
    raise BadInput("this cluster serves no Kueue of kueue.x-k8s.io: install it first")


def _rules(queue: dict[str, Any]) -> list[dict[str, Any]]:
    return list((queue["spec"].get("admissionChecksStrategy") or {}).get("admissionChecks") or ())


def _put(api: Api, kueue: str, queue: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    """Over the version that was read: a queue that others change at that moment is not overwritten."""
    meta = {"resourceVersion": queue["metadata"].get("resourceVersion")}
    strategy = {"admissionChecks": rules} if rules else None
    patch = {"metadata": meta, "spec": {"admissionChecksStrategy": strategy}}
    api.ask("PATCH", f"{kueue}/clusterqueues/{queue['metadata']['name']}", NOTHING, patch, MERGE_PATCH)


def _make(api: Api, kueue: str, now: datetime) -> None:
    """The check, and its condition Active: without it Kueue stops the queues that name it."""
    base = {"apiVersion": kueue.removeprefix("/apis/"), "kind": "AdmissionCheck", "metadata": {"name": CHECK}}
    path, query = f"{kueue}/admissionchecks/{CHECK}", "?fieldManager=pilotlight-admission&force=true"
    api.ask("PATCH", f"{path}{query}", NOTHING, {**base, "spec": {"controllerName": CONTROLLER}}, APPLY_PATCH)
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "Pilotlight answers at every look",
        "lastTransitionTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    api.ask("PATCH", f"{path}/status{query}", NOTHING, {**base, "status": {"conditions": [active]}}, APPLY_PATCH)
