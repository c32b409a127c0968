"""Tolerations of homes on waiting pods, and proof that our account may change nothing else of a pod.

``spec.tolerations`` is one list to the API server. The patch tests the pod's uid and the list that was read, and adds
one entry to it: what others write to the pod meanwhile neither is lost nor stops it.
"""

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import pod_path
from pilotlight.adapters.cluster.kubernetes.transport import JSON_PATCH, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.cluster.kubernetes.writes import TRIES
from pilotlight.codec.kubernetes.typed_objects import Metadata, Pod
from pilotlight.errors import BadRequest, Conflict, PilotlightError, Retry
from pilotlight.facts.labels import HOME
from pilotlight.units import Seconds

LIMIT = "pilotlight-tolerations"
"""The admission policy that limits what our account changes of a pod (infra/kubernetes/admission/tolerations.yaml)."""
HOLDS_S: Seconds = 600
"""A proof of it is good for so long."""
TRIED = 3
"""So many pods are tried for a proof: one may be gone."""

_DRY_RUN = {"metadata": {"labels": {"pilotlight.dev/dry-run": "true"}}}
"""A change that the policy refuses."""

Json = dict[str, Any]


class _Meta(msgspec.Struct, frozen=True):
    uid: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    tolerations: list[Json] = msgspec.field(default_factory=list)


class _Pod(msgspec.Struct, frozen=True):
    """The tolerations of a pod with every field of theirs."""

    metadata: _Meta
    spec: _Spec = _Spec()


_POD = typed_json.decoder(_Pod)


def tolerate(api: Api, namespace: str, pod: str, uid: str, home: str) -> None:
    """Add the toleration of a home. A pod that is gone, bound or replaced, or that has it, is left as it is.

    Raises ``Forbidden`` without the right to, ``BadRequest`` where the API server refuses it, and ``Conflict`` where
    others change its tolerations again and again.
    """
    path, ours, tried, refused = pod_path(namespace, pod), toleration(home), None, None
    for _ in range(TRIES):
        try:
            there = api.get(path, _POD)
            if there.metadata.uid != uid or there.spec.node_name or ours in there.spec.tolerations:
                return
            if refused is not None and there == tried:
                raise refused  # It is as it was tested: the test is not what failed.
            tried = there
            api.ask("PATCH", path, NOTHING, _added(there, ours), JSON_PATCH)
        except Missing:
            return
        except Conflict as conflict:
            last: PilotlightError = conflict
        except BadRequest as no:
            if no is refused:
                raise
            last = refused = no
        else:
            return
    raise last if isinstance(last, Conflict) else Conflict(f"{namespace}/{pod}: its tolerations change all the time")


def toleration(home: str) -> Json:
    """The toleration of a home, as it stands in a pod."""
    return {"key": HOME, "operator": "Equal", "value": home, "effect": "NoSchedule"}


def try_toleration(api: Api, pod: Metadata, one: Json) -> None:
    """Add any toleration to a pod, by a dry run. Raises as the API server refuses it."""
    path = pod_path(pod.namespace, pod.name)
    api.ask("PATCH", f"{path}?dryRun=All", NOTHING, _added(api.get(path, _POD), one), JSON_PATCH)


def _added(there: _Pod, ours: Json) -> list[Json]:
    own = there.spec.tolerations
    test: list[Json] = [{"op": "test", "path": "/metadata/uid", "value": there.metadata.uid}]
    if not own:
        return [*test, {"op": "add", "path": "/spec/tolerations", "value": [ours]}]
    test.append({"op": "test", "path": "/spec/tolerations", "value": own})
    return [*test, {"op": "add", "path": "/spec/tolerations/-", "value": ours}]


class TolerationLimit:
    """Proof that the admission policy limits our account, by a dry run of what it refuses."""

    def __init__(self, api: Api) -> None:
        self._api, self._until = api, 0.0

    def holds(self, pods: Iterable[Pod]) -> bool | None:
        """True where it holds now, or did minutes ago; False where our account may change more, or nothing at all.

        None where nothing is known: no pod waits, or the API server did not answer.
        """
        if time.monotonic() < self._until:
            return True
        others: PilotlightError | None = None  # Refusal by who is no proof of ours, as a webhook of one namespace.
        for pod in list({pod.metadata.namespace: pod for pod in pods}.values())[:TRIED]:
            said = refusal(self._api, pod)
            if isinstance(said, PilotlightError) and LIMIT not in str(said):
                others = said
            elif said is not None:
                return self._noted(said)
        return self._noted(others) if others is not None else None

    def _noted(self, said: str | PilotlightError) -> bool | None:
        holds = LIMIT in str(said)
        self._until = time.monotonic() + HOLDS_S if holds else 0.0
        return None if not holds and isinstance(said, Retry) else holds


def refusal(api: Api, pod: Pod) -> PilotlightError | str | None:
    """Error that a dry run of a label on a pod is refused with; "" where it is allowed, None where the pod is gone."""
    try:
        path = pod_path(pod.metadata.namespace, pod.metadata.name)
        api.ask("PATCH", f"{path}?dryRun=All", NOTHING, _DRY_RUN, MERGE_PATCH)
    except Missing:
        return None
    except PilotlightError as no:
        return no
    return ""
