"""``stopPolicy`` of Kueue's queues: set to Hold, with the earlier value in an annotation, and put back from it.

Hold lets what runs go on. A queue that somebody has stopped already is theirs, and so is a value that was changed
after ours. Source: the ClusterQueue and LocalQueue CRDs of Kueue v0.20, v1beta1 and v1beta2.
"""

from typing import Any
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import KUEUES
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing

BEFORE, WHY = "pilotlight.dev/stop-policy-before", "pilotlight.dev/stopped-because"
HELD, OPEN = "Hold", "None"
_ANY = typed_json.decoder(dict[str, Any])


def stop(api: Api, queue: str, why: str) -> bool:
    """Stop a queue, or with an empty ``why`` put back what was before; whether anything changed. Raises ``Missing``."""
    path, found = _found(api, queue)
    notes = found["metadata"].get("annotations") or {}
    now, before = found["spec"].get("stopPolicy") or OPEN, notes.get(BEFORE)
    if why and before is None and now == OPEN:
        _write(api, path, found, {BEFORE: now, WHY: why[:1024]}, HELD)
        return True
    if not why and before is not None:
        _write(api, path, found, {BEFORE: None, WHY: None}, before if now == HELD else now)
        return True
    return False


def _found(api: Api, queue: str) -> tuple[str, dict[str, Any]]:
    """The queue and its path, in the version of Kueue that is served."""
    space, _, name = queue.rpartition("/")
    part = f"namespaces/{quote(space)}/localqueues/{quote(name)}" if space else f"clusterqueues/{quote(name)}"
    *newer, oldest = (f"{kueue}/{part}" for kueue in KUEUES)
    for path in newer:
        try:
            return path, api.get(path, _ANY)
        except Missing:
            continue
    return oldest, api.get(oldest, _ANY)


def _write(api: Api, path: str, found: dict[str, Any], notes: dict[str, str | None], policy: str) -> None:
    """Over the version that was read."""
    meta = {"resourceVersion": found["metadata"].get("resourceVersion"), "annotations": notes}
    api.ask("PATCH", path, NOTHING, {"metadata": meta, "spec": {"stopPolicy": policy}}, MERGE_PATCH)
