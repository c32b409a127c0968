"""Every field of the objects that a tenant writes, by the API server's own OpenAPI.

``api_fields.txt`` has a line a definition: its name and its fields, as "name:type", a required one as "name!:type".
"[T]" is a list and "{T}" a map of T. Written from the schemas of Kubernetes 1.36 in the package kubernetes-validate by
``python tests/adapters/cluster/api_fields.py``; Kueue's own are below, from the Workload CRD of v0.20 (v1beta2).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).with_name("api_fields.txt")
ROOTS = (
    "core.v1.Pod",
    "core.v1.PodTemplateSpec",
    "core.v1.Node",
    "resource.v1.ResourceClaim",
    "resource.v1.ResourceClaimTemplate",
)
RENAMED = {"io.k8s.api.core.v1.ResourceClaim": "ClaimOfContainer"}
OF_SERVER = {"Quantity": "quantity", "Time": "date-time", "MicroTime": "date-time", "IntOrString": "int-or-string"}
KUEUE = """\
Admission clusterQueue!:string podSetAssignments!:[PodSetAssignment]
AdmissionCheckState lastTransitionTime:date-time message:string name!:string podSetUpdates:[PodSetUpdate]\
 requeueAfterSeconds:int32 retryCount:int32 state!:string
PodSet count!:int32 minCount:int32 name!:string template!:PodTemplateSpec topologyRequest:TopologyRequest
PodSetAssignment count:int32 flavors:{string} name!:string resourceUsage:{quantity}
PodSetUpdate annotations:{string} labels:{string} name!:string nodeSelector:{string} tolerations:[Toleration]
RequeueState count:int32 requeueAt:date-time
TopologyRequest podIndexLabel:string podSetGroupName:string podSetSliceSize:int32 preferred:string required:string\
 subGroupCount:int32 unconstrained:boolean
Workload metadata:ObjectMeta spec:WorkloadSpec status:WorkloadStatus
WorkloadSpec active:boolean maximumExecutionTimeSeconds:int32 podSets:[PodSet] priority:int32 queueName:string
WorkloadStatus accumulatedPastExecutionTimeSeconds:int32 admission:Admission admissionChecks:[AdmissionCheckState]\
 conditions:[Condition] requeueState:RequeueState
"""


class Field(NamedTuple):
    """A field of a definition."""

    type: str
    required: bool


def main() -> None:
    """Write the file anew."""
    HERE.write_text("\n".join(extracted()) + "\n")


def extracted() -> list[str]:
    """The lines, from the package's schemas."""
    import kubernetes_validate

    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / "v1.36.0-local"
    known = json.loads((folder / "_definitions.json").read_text())["$defs"]
    by_name: dict[str, str] = {}
    wanted = [f"io.k8s.api.{root}" for root in ROOTS]
    while wanted:
        full = wanted.pop()
        short = _short(full)
        if short in by_name:
            continue
        needed = set(known[full].get("required", ()))
        fields = []
        for name, schema in sorted(known[full].get("properties", {}).items()):
            if name not in ("apiVersion", "kind", "managedFields"):
                fields.append(f"{name}{'!' if name in needed else ''}:{_type(schema, wanted)}")
        by_name[short] = " ".join([short, *fields])
    return [by_name[name] for name in sorted(by_name)]


def _short(full: str) -> str:
    return RENAMED.get(full) or full.rpartition(".")[2]


def _type(schema: Mapping[str, Any], wanted: list[str]) -> str:
    """A schema's type in short; what it refers to is wanted too."""
    if "$ref" in schema:
        full = schema["$ref"].rpartition("/")[2]
        short = _short(full)
        if short in OF_SERVER:
            return OF_SERVER[short]
        wanted.append(full)
        return short
    plain = schema.get("type")
    plain = next(t for t in plain if t != "null") if isinstance(plain, list) else plain
    if plain == "array":
        return f"[{_type(schema['items'], wanted)}]"
    if plain == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{{{_type(schema['additionalProperties'], wanted)}}}"
    return str(schema.get("format") or plain) if plain in ("integer", "string") else str(plain)


def definitions() -> dict[str, dict[str, Field]]:
    """Every definition with its fields."""
    found: dict[str, dict[str, Field]] = {}
    for line in (*HERE.read_text().splitlines(), *KUEUE.splitlines()):
        name, *fields = line.split(" ")
        parts = (each.partition(":") for each in fields)
        found[name] = {key.rstrip("!"): Field(type, key.endswith("!")) for key, _, type in parts}
    return found


def leaves(kind: str, known: Mapping[str, Mapping[str, Field]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Paths of a kind's values with their types. "[]" is any entry of a list, "{}" any of a map."""
    for name, field in known[kind].items():
        for path, type in _within(field.type, known):
            yield (name, *path), type


def _within(type: str, known: Mapping[str, Mapping[str, Field]]) -> Iterator[tuple[tuple[str, ...], str]]:
    if type[0] in "[{":
        yield (), type
        for path, inner in _within(type[1:-1], known):
            yield (f"{type[0]}{type[-1]}", *path), inner
    elif type in known:
        yield from leaves(type, known)
    else:
        yield (), type


if __name__ == "__main__":
    main()
