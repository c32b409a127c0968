"""Objects that make pods share devices: configs of device plugin and MIG manager, patches of requests, the way back.

Fields: NVIDIA k8s-device-plugin README ("Shared Access to GPUs", "With CUDA MPS"; renameByDefault,
failRequestsGreaterThanOne, resources[].name and replicas; a memory limit is not among them), mig-parted's config, and
the GPU Operator's ClusterPolicy (devicePlugin.config, migManager.config).
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from pilotlight.tools.manifests.pools_on_sale import LABELS, Object

WHOLE = "nvidia.com/gpu"
CUT = r"{.metadata.labels.nvidia\.com/mig\.config\.state}"
OFF = "all-disabled"


class Target(NamedTuple):
    """Owner that made the pods: deployment, statefulset, or a pod alone."""

    kind: str
    namespace: str
    name: str
    container: str


Asks = tuple[Target, str]
"""A target and what its pods ask for instead of a whole GPU."""


def device_plugin(name: str, shares: Mapping[str, tuple[str, int]], namespace: str) -> Object:
    """The device plugin's configs by name, each a way and how many ``nvidia.com/gpu.shared`` a GPU is told as."""
    configs = {}
    for key, (way, replicas) in shares.items():
        told: dict[str, Any] = {"renameByDefault": True, "failRequestsGreaterThanOne": True}
        told["resources"] = [{"name": WHOLE, "replicas": replicas}]
        configs[key] = {"version": "v1", "sharing": {"timeSlicing" if way == "time-slicing" else "mps": told}}
    return _config(name, namespace, configs)


def mig_manager(name: str, layouts: Mapping[str, Sequence[str]], namespace: str) -> Object:
    """MIG manager's config: every device of a node that is labelled with a layout's name is cut so."""
    made = {
        layout: [{"devices": "all", "mig-enabled": True, "mig-devices": dict(sorted(Counter(profiles).items()))}]
        for layout, profiles in layouts.items()
    }
    off = {OFF: [{"devices": "all", "mig-enabled": False}]}
    return _config(name, namespace, {"config.yaml": {"version": "v1", "mig-configs": {**off, **made}}})


def forth(way: str, name: str, configs: Sequence[str], asks: Sequence[Asks]) -> Iterator[str]:
    """The commands, in order, once the ConfigMap ``name`` is applied. ``NODE`` stands for each node of the pool."""
    if way == "mig":
        yield _policy({"migManager": {"config": {"name": name}}, "mig": {"strategy": "mixed"}})
        for config in configs:
            yield from _cut(config)
    else:
        yield _policy({"devicePlugin": {"config": {"name": name}}})
        yield f"kubectl label node NODE nvidia.com/device-plugin.config={configs[0]} --overwrite"
    yield from (_patch(target, WHOLE, after) for target, after in asks)


def back(way: str, asks: Sequence[Asks]) -> Iterator[str]:
    """The commands that undo it, in order: pods ask for whole devices first, so none is left without a place."""
    yield from (_patch(target, after, WHOLE) for target, after in asks)
    if way == "mig":
        yield from _cut(OFF)
    else:
        yield "kubectl label node NODE nvidia.com/device-plugin.config-"


def _cut(config: str) -> Iterator[str]:
    yield "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data"
    yield f"kubectl label node NODE nvidia.com/mig.config={config} --overwrite"
    yield f"kubectl wait node NODE --for=jsonpath='{CUT}'=success --timeout=10m"
    yield "kubectl uncordon NODE"


def _policy(spec: Mapping[str, Any]) -> str:
    return f"kubectl patch clusterpolicies.nvidia.com/cluster-policy --type=merge -p '{json.dumps({'spec': spec})}'"


def _patch(target: Target, before: str, after: str) -> str:
    """The command that asks for one resource in place of another."""
    if target.kind == "pod":
        return f"# {target.namespace}/{target.name}: write {after} for {before} in what makes it, and make it again"
    asked = {before: None, after: "1"}
    container = {"name": target.container, "resources": {"limits": asked, "requests": asked}}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return f"kubectl -n {target.namespace} patch {target.kind} {target.name} --type=strategic -p '{json.dumps(patch)}'"


def _config(name: str, namespace: str, configs: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "data": {key: yaml.safe_dump(config, sort_keys=False) for key, config in configs.items()},
    }
