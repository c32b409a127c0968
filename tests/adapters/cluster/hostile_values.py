"""Extreme values for every field that the API server's schema has: what a tenant may write, and a broken list hold."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec
from api_fields import Field, definitions, leaves
from api_store import Json

from pilotlight.codec.kubernetes.kueue_workloads import MAX_EXEC
from pilotlight.codec.kubernetes.pods import eviction_blocks, pod_groups
from pilotlight.codec.kubernetes.pods.pod_deadline import INDEX
from pilotlight.facts import labels

KNOWN = definitions()
LARGE = "\x1b[31m‮" + "x" * 200_000
TEXTS = ("", "9E", "-1", "1e999", "NaN", "true", "\x00", "ü‮/%s{0}", "z" * 300, "9" * 5_000, LARGE)
AMOUNTS = ("9E", "-1", "0", "1n", "1e999", "NaN", "", "9223372036854775807", "0.3", "9" * 5_000, 2**63 - 1, 1e308)
TIMES = (
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999999-14:00",
    "",
    None,
)
VALUES: Mapping[str, Sequence[Any]] = {
    "string": TEXTS,
    "date-time": TIMES,
    "quantity": AMOUNTS,
    "int-or-string": (*AMOUNTS, 0, -1),
    "int32": (0, -1, 2**31 - 1, -(2**31), 2**64),
    "int64": (0, -1, 10**12, 2**63 - 1, -(2**63), 10**400),
    "number": (0, -1, 1e308, 1e-308),
    "boolean": (True, False),
    "object": ({}, {"a": {"b": []}}),
}
NAMES = (
    *sorted(
        value
        for value in vars(labels).values()
        if isinstance(value, str) and "/" in value and value.rpartition("/")[0].count(".")
    ),
    *pod_groups.GANG_ANNOTATIONS,
    *pod_groups._LABELS,
    *pod_groups._SIZES,
    *(f"{pod_groups._LWS}{name}" for name in ("name", "group-index", "worker-index")),
    *labels.TEAM,
    *labels.WORKLOAD_CLASS,
    eviction_blocks.SAFE_TO_EVICT,
    INDEX,
    MAX_EXEC,
    "kubernetes.io/config.mirror",
    "kueue.x-k8s.io/workload",
)
RESOURCES = (
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-1Gi",
    "pods",
    "nvidia.com/gpu",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "rdma/hca",
    "deviceclass.resource.kubernetes.io/gpus",
    "attachable-volumes-csi-disks",
)
MANY = 10_000


class Case(NamedTuple):
    """A value at a path; ``read`` says whether Pilotlight reads that field."""

    path: tuple[str, ...]
    value: Any
    read: bool

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} = {self.value!r:.60}"


def cases(kind: str, model: type[msgspec.Struct]) -> Iterator[Case]:
    """Every field of a kind with every extreme value; names by which an object is found stay."""
    read = set(_read(model))
    for path, type in leaves(kind, KNOWN):
        if path in (("metadata", "name"), ("metadata", "namespace"), ("spec", "nodeName")):
            continue
        plain = tuple(part for part in path if part not in ("[]", "{}"))
        ours = any(plain[: len(one)] == one for one in read)
        for value in _values(path, type):
            yield Case(path, value, ours)


def _values(path: tuple[str, ...], kind: str) -> Iterator[Any]:
    if kind == "{string}":
        yield {f"k{n}": "v" for n in range(MANY)}
        if path[-1] in ("annotations", "labels") and path[0] == "metadata":
            yield from ({name: text} for name in dict.fromkeys(NAMES) for text in TEXTS)
    elif kind == "{quantity}":
        yield {f"a.b/k{n}": "1" for n in range(MANY)}
        yield from ({name: amount} for name in RESOURCES for amount in AMOUNTS)
    elif kind[0] == "{":
        yield from ({}, {str(n): filler(kind[1:-1]) for n in range(100)})
    elif kind[0] == "[":
        yield from ([], [filler(kind[1:-1])] * MANY, [None])
    else:
        yield from VALUES[kind]


def filler(type: str) -> Any:
    """A small value of a type, with what it requires."""
    if type[0] in "[{":
        return [] if type[0] == "[" else {}
    if type in KNOWN:
        needed = {name: filler(field.type) for name, field in KNOWN[type].items() if field.required}
        return needed | ({"operator": "Exists"} if "operator" in needed else {})
    plain = {"date-time": "2026-07-01T00:00:00Z", "quantity": "1", "int-or-string": 1, "boolean": False, "object": {}}
    return plain.get(type, "x" if type == "string" else 1)


def written(kind: str, base: Json, case: Case) -> Json:
    """A copy of an object with a value at its path; what is on the way there and missing is made."""
    made: Json = _placed(copy.deepcopy(base), kind, case.path, case.value)
    return made


def _placed(there: Any, type: str, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        merges = isinstance(value, dict) and isinstance(there, dict) and type[0] == "{"
        return {**there, **value} if merges else value
    head, *rest = path
    if head == "[]":
        first, *others = there or [None]
        return [_placed(first, type[1:-1], tuple(rest), value), *others]
    if head == "{}":
        found = dict(there or {})
        key = next(iter(found), "rude")
        return {**found, key: _placed(found.get(key), type[1:-1], tuple(rest), value)}
    found = dict(there or {})
    fields: Mapping[str, Field] = KNOWN[type]
    found = {**filler(type), **found}
    return {**found, head: _placed(found.get(head), fields[head].type, tuple(rest), value)}


def _read(model: Any) -> Iterator[tuple[str, ...]]:
    """The paths that a model reads, without lists and maps."""
    for field in msgspec.structs.fields(model):
        inner = next(_structs(field.type), None)
        if inner is None:
            yield (field.encode_name,)
        else:
            yield from ((field.encode_name, *path) for path in _read(inner))


def _structs(found: Any) -> Iterator[Any]:
    if get_origin(found) in (Union, UnionType, tuple, dict, list):
        for one in get_args(found):
            yield from _structs(one)
    elif isinstance(found, type) and issubclass(found, msgspec.Struct):
        yield found
