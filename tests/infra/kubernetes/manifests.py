"""The manifests of infra/kubernetes as data, and what their RBAC allows."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate.utils
import yaml

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / "infra" / "kubernetes"
FILES = sorted(HERE.rglob("*.yaml"))

Json = dict[str, Any]

VERSIONS = tuple(f"1.{minor}" for minor in range(30, 37))
"""Of Kubernetes: what admission policies need, to the newest that is served."""

# It reads some megabytes of schemas for every object, which are the same for all of a version.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


def strictly(each: Json, version: str) -> None:
    """Raises where a version of Kubernetes does not know the object's kind or one of its fields."""
    kubernetes_validate.validate(each, version, strict=True)


def objects(path: Path) -> list[Json]:
    """The objects in a file."""
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]


def role(name: str) -> Json:
    """The ClusterRole of a file in rbac/."""
    return next(o for o in objects(HERE / "rbac" / f"{name}.yaml") if o["kind"] == "ClusterRole")


def grants(roles: Iterable[Json]) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """(verb, group, resource with subresource, names) that roles allow."""
    for each in roles:
        for rule in each["rules"]:
            names = tuple(rule.get("resourceNames", ()))
            for group in rule["apiGroups"]:
                yield from ((verb, group, what, names) for what in rule["resources"] for verb in rule["verbs"])


def allows(roles: Iterable[Json], verb: str, group: str, resource: str, name: str = "") -> bool:
    """As the API server evaluates RBAC: any rule of any role is enough, and none takes away."""
    return any((verb, group, resource) == g[:3] and (not g[3] or name in g[3]) for g in grants(roles))
