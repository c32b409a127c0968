"""Our admission check on Kueue's ClusterQueues: put there by a person, and taken out again, for good or for a while.

A queue whose check nobody answers admits nothing: taking it out is what hands the queue back. Kueue's own fields of a
queue stay as they are; a queue that lists its checks in the older way is left alone. Each write is over the version
that was read, and is tried again where Kueue has written meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import KUEUES
from pilotlight.adapters.cluster.kubernetes.queue_stop_policy import BEFORE, HELD, OPEN, WHY
from pilotlight.adapters.cluster.kubernetes.transport import APPLY_PATCH, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.kueue_objects import CHECK, PARKED, is_ours
from pilotlight.errors import BadInput, Conflict, Denied, Retry

CONTROLLER = "pilotlight.dev/admission"
TRIES = 5
"""A write over an object that Kueue changes at the same time is tried so often."""
_ANY = typed_json.decoder(dict[str, Any])
_Json = dict[str, Any]


class Queue(NamedTuple):
    """A queue or a Workload (``kind``), and whether our check stands on it after what was done.

    ``opened``: its stopPolicy was put back; of a Workload, that it is active again. ``freed``: it waits for no time of
    ours any more. ``failed`` is why it could not be changed.
    """

    name: str
    ours: bool
    changed: bool
    opened: bool = False
    kind: str = "ClusterQueue"
    freed: bool = False
    failed: str = ""


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
        there = _with_check(queues[name]) is None
        if not there and not dry_run:
            _change(api, f"{kueue}/clusterqueues/{name}", _with_check)
        yield Queue(name, True, not there)


def hand_back(api: Api, *, dry_run: bool) -> Iterator[Queue]:
    """Take our check off every queue and Workload, and open what a budget stopped; other checks stay.

    What waits for a time that an answer of ours named is freed first: until then Kueue looks at nothing else of it. One
    object that cannot be changed stops no other. Raises ``BadInput`` where there is no Kueue.
    """
    kueue, queues = _queues(api)
    works = {_named(work): work for work in _all(api, f"{kueue}/workloads")}
    for name, work in sorted(works.items()):
        if _without_time(work) is not None:
            path = f"{_path(kueue, work)}/status"
            yield _tried(api, path, _without_time, Queue(name, True, True, kind="Workload", freed=True), dry_run)
    for name, queue in sorted(queues.items()):
        if _without_check(queue) is not None:
            yield _tried(api, f"{kueue}/clusterqueues/{name}", _without_check, Queue(name, False, True), dry_run)
    for name, work in sorted(works.items()):
        if _checks(work)[1]:
            done = Queue(name, False, True, kind="Workload")
            yield _tried(api, f"{_path(kueue, work)}/status", _unchecked, done, dry_run)
        if _active(work) is not None:
            done = Queue(name, False, True, opened=True, kind="Workload")
            yield _tried(api, _path(kueue, work), _active, done, dry_run)
    for kind, plural, found in (
        ("ClusterQueue", "clusterqueues", queues.values()),
        ("LocalQueue", "localqueues", _all(api, f"{kueue}/localqueues")),
    ):
        for queue in found:
            if _reopened(queue) is not None:
                done = Queue(_named(queue), False, True, opened=True, kind=kind)
                yield _tried(api, _path(kueue, queue, plural), _reopened, done, dry_run)


def names_with_check(api: Api) -> list[str]:
    """The ClusterQueues that our check is on. Raises ``BadInput`` where there is no Kueue."""
    return sorted(name for name, queue in _queues(api)[1].items() if _without_check(queue) is not None)


_Change = Callable[[_Json], _Json | None]
"""The merge patch that an object needs; None where it needs none."""


def _tried(api: Api, path: str, change: _Change, done: Queue, dry_run: bool) -> Queue:
    if dry_run:
        return done
    try:
        _change(api, path, change)
    except Missing:
        return done
    except (Denied, Retry) as error:
        return done._replace(ours=True, changed=False, failed=str(error))
    return done


def _change(api: Api, path: str, change: _Change) -> None:
    """Over the version that is read: what others change at that moment is not overwritten. Raises ``Conflict``."""
    for left in range(TRIES, 0, -1):
        found = api.get(path.removesuffix("/status"), _ANY)
        patch = change(found)
        if patch is None:
            return
        meta = {**patch.get("metadata", {}), "resourceVersion": found["metadata"].get("resourceVersion")}
        try:
            api.ask("PATCH", path, NOTHING, {**patch, "metadata": meta}, MERGE_PATCH)
        except Conflict:
            if left == 1:
                raise
        else:
            return


def _all(api: Api, path: str) -> list[_Json]:
    try:
        return list(api.get(path, _ANY).get("items") or ())
    except Missing:
        return []


def _named(found: _Json) -> str:
    space = found["metadata"].get("namespace", "")
    return f"{space}/{found['metadata']['name']}" if space else str(found["metadata"]["name"])


def _path(kueue: str, found: _Json, plural: str = "workloads") -> str:
    space = found["metadata"].get("namespace", "")
    return f"{kueue}/{f'namespaces/{space}/' if space else ''}{plural}/{found['metadata']['name']}"


def _checks(work: _Json) -> tuple[list[_Json], list[_Json]]:
    """Others' checks of a Workload, and ours."""
    found = (work.get("status") or {}).get("admissionChecks") or []
    return [each for each in found if not is_ours(each["name"])], [each for each in found if is_ours(each["name"])]


def _without_time(work: _Json) -> _Json | None:
    """Without the time that an answer of ours named: Kueue keeps that on the check, and in ``requeueState``."""
    others, ours = _checks(work)
    if not any(each.get("requeueAfterSeconds") or each.get("state") == "Retry" for each in ours):
        return None
    fresh = [
        {
            "name": each["name"],
            "state": "Pending",
            "message": "handed back to Kueue",
            "lastTransitionTime": each.get("lastTransitionTime"),
        }
        for each in ours
    ]
    status: _Json = {"admissionChecks": [*others, *fresh]}
    if (work["status"].get("requeueState") or {}).get("requeueAt"):
        status["requeueState"] = {"requeueAt": None}
    return {"status": status}


def _unchecked(work: _Json) -> _Json | None:
    """Without our checks, and what they added to its pods."""
    others, ours = _checks(work)
    return {"status": {"admissionChecks": others}} if ours else None


def _active(work: _Json) -> _Json | None:
    """Back in its queue, where we took it out."""
    if PARKED not in (work["metadata"].get("annotations") or {}):
        return None
    return {"metadata": {"annotations": {PARKED: None}}, "spec": {"active": True}}


def _reopened(queue: _Json) -> _Json | None:
    """As it was before a budget stopped it; a value that somebody changed since stays."""
    notes, now = queue["metadata"].get("annotations") or {}, queue["spec"].get("stopPolicy") or OPEN
    if BEFORE not in notes:
        return None
    policy = notes[BEFORE] if now == HELD else now
    return {"metadata": {"annotations": {BEFORE: None, WHY: None}}, "spec": {"stopPolicy": policy}}


def _with_check(queue: _Json) -> _Json | None:
    rules = _rules(queue)
    return None if any(rule.get("name") == CHECK for rule in rules) else _ruled([*rules, {"name": CHECK}])


def _without_check(queue: _Json) -> _Json | None:
    left = [rule for rule in _rules(queue) if not is_ours(str(rule.get("name")))]
    return _ruled(left) if len(left) < len(_rules(queue)) else None


def _ruled(rules: list[_Json]) -> _Json:
    return {"spec": {"admissionChecksStrategy": {"admissionChecks": rules} if rules else None}}


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
