"""Our answer to Kueue's admission check, on a Workload's status.

Server-side apply under a field manager of our own: of the list of checks only ours is written, and over the version
that was read: work that was evicted since is not answered. ``requeueAfterSeconds`` is dropped by a Kueue that does not
know it. Sources: the Workload CRD of Kueue v0.20; kubernetes-sigs/kueue#3543 for why an evicted Workload is left alone.
"""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.facts.workload import CheckAnswer

APPLY_PATCH = "application/apply-patch+yaml"
LONGEST_MESSAGE = 1024


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
    if said.retry_s:
        check["requeueAfterSeconds"] = round(said.retry_s)
    meta = {"name": said.of.name, "namespace": said.of.namespace}
    meta |= {"resourceVersion": said.of.version} if said.of.version else {}
    version = kueue.removeprefix("/apis/")
    body = {"apiVersion": version, "kind": "Workload", "metadata": meta, "status": {"admissionChecks": [check]}}
    path = f"{kueue}/namespaces/{quote(said.of.namespace)}/workloads/{quote(said.of.name)}/status"
    query = "?fieldManager=pilotlight-admission&force=true&fieldValidation=Ignore"
    api.ask("PATCH", f"{path}{query}", NOTHING, body, APPLY_PATCH)
