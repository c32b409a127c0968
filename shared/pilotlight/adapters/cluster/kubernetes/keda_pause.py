"""A ScaledObject of KEDA behind an owner: paused at zero while the owner rests, and put back as it was.

KEDA brings its target to the number in ``autoscaling.keda.sh/paused-replicas`` and scales no more until the annotation
is gone (KEDA 2.7 and later: its controller takes the HPA away meanwhile). Without it KEDA undoes each scale to zero.
A pause at zero that somebody else set is theirs, and so is a value that was changed after ours.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.cluster.kubernetes.writes import TRIES
from pilotlight.errors import Conflict, Forbidden
from pilotlight.facts.labels import PAUSED_BEFORE
from pilotlight.facts.utilisation.reclaim_steps import PodOwner

GROUP = "keda.sh"
PAUSED = "autoscaling.keda.sh/paused-replicas"
ZERO = "0"
RIGHTS = "pilotlight show infra/kubernetes/rbac/reclaim.yaml | kubectl apply -f -"
SCALED = ("Deployment", "StatefulSet")
"""Of the kinds that rest, those that a ScaledObject scales; a ScaledJob's Jobs have it for a maker, and are left."""

_Notes = Mapping[str, str]
_ANY = typed_json.decoder(dict[str, Any])


def scales(api: Api, owner: PodOwner) -> bool:
    """True where KEDA scales it. Raises ``Forbidden`` where KEDA is there and nobody may look."""
    return bool(_behind(api, owner))


def pause(api: Api, owner: PodOwner) -> None:
    """Hold it at zero. Repeating it is harmless. Raises ``Forbidden``, ``Conflict``."""
    _write(api, owner, lambda n: {} if n.get(PAUSED) == ZERO else {PAUSED: ZERO, PAUSED_BEFORE: n.get(PAUSED, "")})


def resume(api: Api, owner: PodOwner) -> None:
    """Put back what was there before our pause, where there is one. Raises ``Forbidden``, ``Conflict``."""
    _write(api, owner, _resumed)


def _resumed(notes: _Notes) -> dict[str, str | None]:
    if PAUSED_BEFORE not in notes:
        return {}
    now = notes.get(PAUSED)
    return {PAUSED_BEFORE: None, PAUSED: (notes[PAUSED_BEFORE] or None) if now == ZERO else now}


def _write(api: Api, owner: PodOwner, change: Callable[[_Notes], Mapping[str, str | None]]) -> None:
    """Each over the version that was read."""
    for _ in range(TRIES):
        try:
            for one in _behind(api, owner):
                meta = one["metadata"]
                if notes := change(meta.get("annotations") or {}):
                    path = f"{_path(owner)}/{quote(meta['name'])}"
                    wanted = {"resourceVersion": meta.get("resourceVersion"), "annotations": notes}
                    api.ask("PATCH", path, NOTHING, {"metadata": wanted}, MERGE_PATCH)
            return
        except Conflict:
            continue
    raise Conflict(f"the ScaledObject of {owner} is changed by others all the time: tried {TRIES} times")


def _behind(api: Api, owner: PodOwner) -> list[dict[str, Any]]:
    """The ScaledObjects that target it; none where there is no KEDA."""
    if owner.kind not in SCALED:
        return []
    try:
        listed = api.get(_path(owner), _ANY).get("items") or ()
    except Missing:
        return []
    except Forbidden as no:
        if not _served(api):
            return []
        raise Forbidden(f"{no}; KEDA may scale {owner}: {RIGHTS}") from None
    return [one for one in listed if _target(one) == (owner.kind, owner.name)]


def _target(scaled: dict[str, Any]) -> tuple[str, str]:
    """Kind and name; where it names no kind that is a Deployment."""
    to = (scaled.get("spec") or {}).get("scaleTargetRef") or {}
    of_apps = (to.get("apiVersion") or "apps/v1").startswith("apps/")
    return (to.get("kind") or "Deployment") if of_apps else "", to.get("name", "")


def _served(api: Api) -> bool:
    """True where the server knows KEDA's kinds. It refuses what nobody may read whether that is there or not."""
    return any(group.get("name") == GROUP for group in api.get("/apis", _ANY).get("groups") or ())


def _path(owner: PodOwner) -> str:
    return f"/apis/{GROUP}/v1alpha1/namespaces/{quote(owner.namespace)}/scaledobjects"
