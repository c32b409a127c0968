"""The manifests of infra/kubernetes as data, and what their RBAC allows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "infra" / "kubernetes"
FILES = sorted(HERE.rglob("*.yaml"))

Json = dict[str, Any]


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
