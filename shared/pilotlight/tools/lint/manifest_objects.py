"""Kubernetes objects as files have them: anything may be missing or of another kind, and is then passed by."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pilotlight.tools.lint.fault import Lint

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


class Found(NamedTuple):
    """An object, and the file that it stands in."""

    file: str
    value: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.value.get("kind", ""))

    @property
    def api(self) -> str:
        """Its apiVersion."""
        return str(self.value.get("apiVersion", ""))

    @property
    def name(self) -> str:
        """Its name."""
        return str(value_at(self.value, "metadata", "name") or "")

    @property
    def namespace(self) -> str:
        """Its namespace, as the API server takes it where none is named."""
        return str(value_at(self.value, "metadata", "namespace") or "default")

    @property
    def where(self) -> str:
        """The file, kind and name."""
        return f"{self.file}: {self.kind} {self.name}".rstrip(" :")

    def spec(self, *path: str) -> Any:
        """The value under a path of its spec; None where nothing does."""
        return value_at(self.value, "spec", *path)

    def fault(self, rule: str, what: str, fix: str) -> Lint:
        """A fault of it."""
        return Lint(rule=rule, level="fault", where=self.where, what=what, fix=fix)

    def warning(self, rule: str, what: str, fix: str) -> Lint:
        """A warning of it: it may be meant so."""
        return Lint(rule=rule, level="warning", where=self.where, what=what, fix=fix)


def value_at(value: Any, *path: str) -> Any:
    """The value under a path of keys; None where a step is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def items(value: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list; none of what is no list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def number(value: Any) -> int | None:
    """A whole number, also as text."""
    try:
        return None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        return None


def pod_spec(found: Found) -> Mapping[str, Any]:
    """The pod spec of what makes pods, or of a pod; empty for all else."""
    value = found.value
    for path in (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"), ("spec",)):
        spec = value_at(value, *path)
        if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
            return spec
    return {}


def pod_labels(found: Found) -> Mapping[str, Any]:
    """The labels of the pods that it makes."""
    template = found.spec("jobTemplate", "spec", "template") or found.spec("template") or found.value
    labels = value_at(template, "metadata", "labels")
    return labels if isinstance(labels, Mapping) else {}


def gpus(spec: Mapping[str, Any]) -> int:
    """Number of whole GPUs that a pod asks for."""
    asked = 0
    for each in items(spec.get("containers")):
        for resource in GPU_RESOURCES:
            counts = (number(value_at(each, "resources", half, resource)) for half in ("limits", "requests"))
            asked += next((count for count in counts if count), 0)
    return asked


def node_terms(spec: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Labels that a pod requires of its node: each key with the values that would do."""
    chosen = spec.get("nodeSelector")
    for key, value in chosen.items() if isinstance(chosen, Mapping) else ():
        yield str(key), (str(value),)
    required = value_at(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    for term in items(required):
        for each in items(term.get("matchExpressions")):
            if each.get("operator") == "In" and isinstance(each.get("values"), list):
                yield str(each.get("key")), tuple(map(str, each["values"]))
