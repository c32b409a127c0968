"""Files of objects that kubectl printed: a List, a PodList of the raw API, or a single object.

Errors are ``BadInput`` naming the file and the path: "pods.json: items[3].spec.containers: ...".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.codec.kubernetes.companions import (
    CsiDriver,
    CsiNode,
    DaemonSet,
    DisruptionBudget,
    LeaderWorkerSet,
    Namespace,
    Objects,
    PersistentVolume,
    PodGroup,
    StorageCapacity,
    StorageClass,
    VolumeClaim,
)
from pilotlight.codec.kubernetes.kueue_objects import GROUP, ResourceFlavor, Workload
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Pod
from pilotlight.errors import BadInput

if TYPE_CHECKING:
    from pilotlight.codec.kubernetes.device_objects import Devices

T = TypeVar("T")
N = TypeVar("N", Pod, KubeNode)


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


_OTHER_KINDS: dict[str, tuple[str, type[Any]]] = {
    "PersistentVolumeClaim": ("claims", VolumeClaim),
    "PersistentVolume": ("volumes", PersistentVolume),
    "StorageClass": ("storage_classes", StorageClass),
    "CSINode": ("csi_nodes", CsiNode),
    "CSIDriver": ("csi_drivers", CsiDriver),
    "CSIStorageCapacity": ("capacities", StorageCapacity),
    "PodDisruptionBudget": ("budgets", DisruptionBudget),
    "PodGroup": ("pod_groups", PodGroup),
    "LeaderWorkerSet": ("leader_worker_sets", LeaderWorkerSet),
    "Namespace": ("namespaces", Namespace),
    "Workload": ("workloads", Workload),
    "ResourceFlavor": ("flavors", ResourceFlavor),
    "DaemonSet": ("daemon_sets", DaemonSet),
}
_CLUSTER_SCOPED = ("volumes", "storage_classes", "csi_nodes", "csi_drivers", "namespaces", "flavors")
_KUEUES = ("Workload", "ResourceFlavor")
_OF_DEVICES = ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")


def read_pods(text: bytes, where: str) -> tuple[Pod, ...]:
    """The pods of ``kubectl get pods -A -o json``. Raises BadInput."""
    return _all_of("Pod", Pod, text, where)


def read_nodes(text: bytes, where: str) -> tuple[KubeNode, ...]:
    """The nodes of ``kubectl get nodes -o json``. Raises BadInput."""
    return _all_of("Node", KubeNode, text, where)


def read_objects(files: Sequence[tuple[bytes, str]]) -> Objects:
    """Claims, volumes, storage classes, budgets, pod groups, namespaces and Kueue's objects of ``(text, where)`` files.

    Other kinds are skipped. Raises BadInput.
    """
    found: dict[str, dict[str, object]] = {field: {} for field, _ in _OTHER_KINDS.values()}
    storage_known = False
    claimed: list[tuple[str, msgspec.Raw, str, str]] = []
    for text, where in files:
        members = list(_members(text, where))
        storage_known = storage_known or not members
        for kind, raw, path in members:
            if kind in _OF_DEVICES:
                claimed.append((kind, raw, where, path))
            if kind not in _OTHER_KINDS:
                continue
            field, model = _OTHER_KINDS[kind]
            value: Any = _decode(raw, model, where, path)
            meta: Metadata = value.metadata
            name = meta.name if field in _CLUSTER_SCOPED else f"{meta.namespace}/{meta.name}"
            found[field][name] = value
            storage_known = storage_known or field == "claims"
    devices = _devices(claimed) if claimed else None
    return Objects(**found, storage_known=storage_known, devices=devices)  # type: ignore[arg-type]


def _devices(found: Sequence[tuple[str, msgspec.Raw, str, str]]) -> "Devices":
    from pilotlight.codec.kubernetes import device_objects

    models: Mapping[str, tuple[str, type[Any], bool]] = {
        "ResourceSlice": ("slices", device_objects.ResourceSlice, False),
        "DeviceClass": ("classes", device_objects.DeviceClass, False),
        "ResourceClaim": ("claims", device_objects.ResourceClaim, True),
        "ResourceClaimTemplate": ("templates", device_objects.ResourceClaimTemplate, True),
    }
    out: dict[str, Any] = {field: {} for field, *_ in models.values()}
    for kind, raw, where, path in found:
        field, model, spaced = models[kind]
        value = _decode(raw, model, where, path)
        meta: Metadata = value.metadata
        out[field][f"{meta.namespace}/{meta.name}" if spaced else meta.name] = value
    return device_objects.Devices(**out)


def _all_of(kind: str, model: type[N], text: bytes, where: str) -> tuple[N, ...]:
    found: dict[tuple[str, str], N] = {}
    for raw, path in _of_kind(kind, text, where):
        value = _decode(raw, model, where, path)
        name = (value.metadata.namespace, value.metadata.name)
        if name in found:
            raise BadInput(f"{where}: {path}: {kind} {value.metadata.name} is there twice; list it once")
        found[name] = value
    return tuple(found.values())


def _of_kind(kind: str, text: bytes, where: str) -> Iterator[tuple[msgspec.Raw, str]]:
    for found, raw, path in _members(text, where):
        if found != kind:
            at = f"{path}: " if path else ""
            article = "an object without kind" if not found else f"a {found}"
            raise BadInput(
                f"{where}: {at}{article} where a {kind} should be; give `kubectl get {kind.lower()}s -A -o json`"
            )
        yield raw, path


def _members(text: bytes, where: str) -> Iterator[tuple[str, msgspec.Raw, str]]:
    """Kind, object and path of each object in a file."""
    if encoding := next((name for mark, name in _MARKS.items() if text.startswith(mark)), ""):
        raise BadInput(
            f"{where}: is not plain UTF-8 but {encoding}, as PowerShell writes it; write by cmd or another shell what "
            "`kubectl get ... -o json` prints"
        )
    if not text.strip():
        raise BadInput(f"{where}: is empty; give what `kubectl get ... -o json` prints")
    head = _decode(msgspec.Raw(text), _Head, where, "")
    if head.items is None:
        yield _kind(head.kind, head.api_version), msgspec.Raw(text), ""
        return
    common = head.kind.removesuffix("List")
    for i, raw in enumerate(head.items):
        path = f"items[{i}]"
        item = _decode(raw, _Head, where, path)
        yield _kind(item.kind or common, item.api_version or (head.api_version if common else "")), raw, path


def _kind(kind: str, api_version: str) -> str:
    """An object's kind; one that has only the name of one of Kueue's is another."""
    foreign = kind in _KUEUES and api_version and not api_version.startswith(GROUP)
    return f"{kind}.{api_version}" if foreign else kind


def _decode(raw: msgspec.Raw, model: type[T], where: str, path: str) -> T:
    try:
        return typed_json.decode(raw, model)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        place = (path + inner.rstrip("`")).lstrip(".") or "the top"
        raise BadInput(f"{where}: {place}: {_plain(reason)}; give what `kubectl get ... -o json` prints") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{where}: is not JSON ({error}); give what `kubectl get ... -o json` prints") from None


def _plain(reason: str) -> str:
    reason = re.sub(r"Object missing required field `(\w+)`", r"\1 is missing", reason)
    found = re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", reason)
    if not found:
        return reason
    wanted, got = (" or ".join(_TYPES.get(one, one) for one in text.split(" | ")) for text in found.groups())
    return f"is {got}, not {wanted}"


_MARKS = {b"\xef\xbb\xbf": "UTF-8 with a byte order mark", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""First bytes of a text that is not plain UTF-8, and its encoding."""

_TYPES = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
    "null": "null",
}
"""Types of JSON, as a person names them."""
