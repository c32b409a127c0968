"""Pages of a list, read object by object where one of them is not what its kind is: that one costs only itself."""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import force_setattr as put

from pilotlight import typed_json
from pilotlight.codec.kubernetes.pods.requests import RESIZE, UNREAD
from pilotlight.codec.kubernetes.typed_objects import (
    Condition,
    KubeNode,
    Metadata,
    NodeSpec,
    Pod,
    PodSpec,
    PodStatus,
    Wire,
)
from pilotlight.facts.workload import Finding
from pilotlight.units import one_line

T = TypeVar("T")


class _ListMeta(msgspec.Struct, frozen=True):
    next: str = msgspec.field(default="", name="continue")


class ListOf(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; ``unread`` tells of the objects that could not be read."""

    items: list[T] | None = None
    metadata: _ListMeta = _ListMeta()
    unread: tuple[Finding, ...] = ()


class _Conditions(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _StatusOnNode(PodStatus, frozen=True):
    conditions: msgspec.Raw = msgspec.Raw()  # type: ignore[assignment]  # ``read_resizes`` makes what it is of it.


class PodOnNode(Pod, frozen=True):
    """A pod as a list of pods on nodes has it, before ``read_resizes``: its conditions are the bytes of its page."""

    status: _StatusOnNode = _StatusOnNode()


def read_resizes(pod: Pod) -> None:
    """Read of the conditions of a pod on a node those of a resize: the others only tell why a pod waits."""
    found = pod.status.conditions
    if isinstance(found, msgspec.Raw):
        sent = bytes(found)
        try:
            found = _CONDITIONS.decode(b'{"conditions":%b}' % sent).conditions if _may_tell(sent) else ()
        except msgspec.ValidationError as error:
            found = ()
            put(pod, "unread", f"status.{_told(error)}")
    put(pod.status, "conditions", tuple([c for c in found if c.type == RESIZE]) if found else ())


def _may_tell(conditions: bytes) -> bool:
    """True where one of them may be of a resize."""
    return _RESIZE in conditions or b"\\" in conditions


class _HuskMetadata(Wire, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: Any = None


class _HuskSpec(Wire, frozen=True):
    node_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class _HuskStatus(Wire, frozen=True):
    phase: str = "Pending"


class _Husk(Wire, frozen=True):
    """Head of any object: its kind, name and namespace."""

    metadata: _HuskMetadata
    spec: _HuskSpec = _HuskSpec()
    status: _HuskStatus = _HuskStatus()


def _pod(husk: _Husk, why: str) -> Pod:
    """It holds its node: nobody knows what of it."""
    meta = husk.metadata
    return Pod(
        metadata=Metadata(name=meta.name, namespace=meta.namespace or "default", uid=meta.uid),
        spec=PodSpec(node_name=husk.spec.node_name),
        status=PodStatus(phase=husk.status.phase),
        unread=why,
    )


def _node(husk: _Husk, why: str) -> KubeNode:
    meta = Metadata(name=husk.metadata.name, uid=husk.metadata.uid)
    return KubeNode(metadata=meta, spec=NodeSpec(provider_id=husk.spec.provider_id), unread=why)


def _labels(husk: _Husk) -> dict[str, str]:
    told = husk.metadata.labels
    return {key: value for key, value in told.items() if isinstance(value, str)} if isinstance(told, dict) else {}


_STAND_INS: dict[type[Any], Callable[[_Husk, str], Any]] = {Pod: _pod, PodOnNode: _pod, KubeNode: _node}
_RESIZE, _CONDITIONS = RESIZE.encode(), typed_json.decoder(_Conditions)
_RAW, _HUSK = typed_json.decoder(ListOf[msgspec.Raw]), typed_json.decoder(_Husk)


class Listing(Generic[T]):
    """Reads pages of objects of one kind."""

    def __init__(self, model: type[T]) -> None:
        self._model = model
        self._whole = typed_json.decoder(ListOf[model])  # type: ignore[valid-type]
        self._one = typed_json.decoder(model)

    def decode(self, body: bytes) -> ListOf[T]:
        """A page. Raises ``msgspec.DecodeError`` for what is no list of objects that have names."""
        try:
            return self._whole.decode(body)
        except msgspec.ValidationError:
            page = _RAW.decode(body)
        found: list[T] = []
        told: list[Finding] = []
        for raw in page.items or ():
            try:
                found.append(self._one.decode(raw))
            except msgspec.ValidationError as error:
                husk, why = _HUSK.decode(raw), _told(error)
                if self._model in _STAND_INS:
                    found.append(_STAND_INS[self._model](husk, why))
                elif (made := getattr(self._model, "husk", None)) is not None:
                    found.append(made(husk.metadata.name, husk.metadata.uid, _labels(husk), why))
                else:
                    told.append(self._finding(husk, why))
        return ListOf(items=found, metadata=page.metadata, unread=tuple(told))

    def _finding(self, husk: _Husk, why: str) -> Finding:
        meta = husk.metadata
        subject = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        message = f"{self._model.__name__} cannot be read and counts as not there: {why}; mend it"
        return Finding(subject=subject, code=UNREAD, message=message, uid=meta.uid)


_KNOWN: dict[type[Any], Listing[Any]] = {}


def listing(model: type[T]) -> Listing[T]:
    """The reader of a kind's pages, made once."""
    if model not in _KNOWN:
        _KNOWN[model] = Listing(model)
    return _KNOWN[model]


def _told(error: msgspec.ValidationError) -> str:
    """Where it is wrong, and what is there."""
    reason, _, at = str(error).partition(" - at `$.")
    reason = re.sub(r"Expected `([^`]+)`, got `([^`]+)`", r"is \2, not \1", reason)
    return f"{one_line(at.rstrip('`') or 'it', 200)}: {reason[:120]}"
