"""Our answer to Kueue's admission check on a Workload's status, and its ``spec.active``, with the reason beside it.

The answer goes by server-side apply under a field manager of our own: of the list of checks only ours is written, and
over the version that was read: work that was evicted since is not answered. ``requeueAfterSeconds`` is never written:
until that time Kueue's reconcile returns before it evicts, and the quota stays taken. Sources: the Workload CRD of
Kueue v0.20; ``WorkloadReconciler.Reconcile`` of Kueue 0.15 to 0.19; kubernetes-sigs/kueue#3543 for why an evicted
Workload is left alone.
"""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.transport import APPLY_PATCH, MERGE_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.kueue_objects import PARKED
from pilotlight.codec.kubernetes.typed_objects import Metadata
from pilotlight.errors import Retry
from pilotlight.facts.workload import CheckAnswer, QueuedWork

LONGEST_MESSAGE = 1024
_ANY = typed_json.decoder(dict[str, Any])


def answer(api: Api, kueue: str, said: CheckAnswer, now: datetime) -> None:
    """Write it. Raises ``Conflict`` where the Workload has changed since it was read, ``Forbidden``, ``Missing``."""
    check: dict[str, Any] = {
        "name": said.of.check,
        "state": said.state,
        "message": said.message[:LONGEST_MESSAGE],
        "lastTransitionTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if said.selectors:
        check["podSetUpdates"] = [{"name": n, "nodeSelector": labels} for n, labels in said.selectors.items()]
    meta = {"name": said.of.name, "namespace": said.of.namespace}
    meta |= {"resourceVersion": said.of.version} if said.of.version else {}
    version = kueue.removeprefix("/apis/")
    body = {"apiVersion": version, "kind": "Workload", "metadata": meta, "status": {"admissionChecks": [check]}}
    query = "?fieldManager=pilotlight-admission&force=true&fieldValidation=Ignore"
    api.ask("PATCH", f"{path(kueue, said.of)}/status{query}", NOTHING, body, APPLY_PATCH)


def set_active(api: Api, kueue: str, of: QueuedWork, why: str) -> None:
    """Take it out of its queue because of ``why``, or with an empty one put it back. Raises as ``answer`` does.

    An answer that is lost is looked for: what was done is told of.
    """
    notes, spec = {PARKED: why[:LONGEST_MESSAGE] or None}, {"active": not why}
    meta: dict[str, Any] = {"annotations": notes}
    meta |= {"resourceVersion": of.version} if of.version else {}
    try:
        api.ask("PATCH", path(kueue, of), NOTHING, {"metadata": meta, "spec": spec}, MERGE_PATCH)
    except Retry:  # A second try conflicts with what the first did.
        found = api.get(path(kueue, of), _ANY)
        noted = {PARKED: (found["metadata"].get("annotations") or {}).get(PARKED)}
        if noted != notes or {"active": found["spec"].get("active", True)} != spec:
            raise


def tell(api: Api, kueue: str, of: QueuedWork, reason: str, message: str, change: str, now: datetime) -> None:
    """An Event on it, one a reason and change."""
    about = Metadata(name=of.name, namespace=of.namespace, uid=of.uid)
    kind = writes.Kind(kueue.removeprefix("/apis/"), "Workload")
    writes.tell(api, about, reason, message, now, change, kind=kind)


def path(kueue: str, of: QueuedWork) -> str:
    """Where it is."""
    return f"{kueue}/namespaces/{quote(of.namespace)}/workloads/{quote(of.name)}"


def is_strict(api: Api, kueue: str, queue: str) -> bool:
    """True where a ClusterQueue lets nothing pass its head. Raises ``Forbidden``, ``Missing``."""
    found = api.get(f"{kueue}/clusterqueues/{quote(queue)}", _ANY)
    return bool((found.get("spec") or {}).get("queueingStrategy") == "StrictFIFO")
