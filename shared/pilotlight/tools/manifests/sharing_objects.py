"""Objects that make pods share devices: configs of device plugin and MIG manager, patches of requests, the way back.

Fields: NVIDIA k8s-device-plugin README ("Shared Access to GPUs", "With CUDA MPS"; renameByDefault,
failRequestsGreaterThanOne, resources[].name and replicas; a memory limit is not among them), mig-parted's config, and
the GPU Operator's ClusterPolicy (devicePlugin.config, migManager.config); parts of a device by KAI and HAMi as
advice/ways_to_share says.
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
FRACTION = "gpu-fraction"
PARTS = {
    "kai": "KAI's scheduler runs with gpuSharing; QUEUE stands for a queue of it",
    "hami": "HAMi's device plugin runs in place of NVIDIA's on these nodes, and its webhook names the scheduler",
}
"""Ways by a part for each pod, without objects of ours, and what they need."""


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
    if needs := PARTS.get(way):
        yield f"# {needs}"
    elif way == "mig":
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
    elif way not in PARTS:
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
    had, have = _form(before), _form(after)
    asked = {**dict.fromkeys(had.resources), **have.resources}
    container = {"name": target.container, "resources": {"limits": asked, "requests": asked}}
    template: dict[str, Any] = {"spec": {"containers": [container]}}
    if had.scheduler != have.scheduler:
        template["spec"]["schedulerName"] = have.scheduler
        template["metadata"] = {key: {**dict.fromkeys(had.told[key]), **have.told[key]} for key in have.told}
    patch = {"spec": {"template": template}}
    return f"kubectl -n {target.namespace} patch {target.kind} {target.name} --type=strategic -p '{json.dumps(patch)}'"


class _Form(NamedTuple):
    resources: Mapping[str, str]
    scheduler: str | None
    """None: the cluster's own."""
    told: Mapping[str, Mapping[str, str]]
    """Annotations and labels."""


def _form(asked: str) -> _Form:
    """What pods have for ``nvidia.com/gpu``, ``gpu-fraction=0.35`` (KAI) or ``resource=count,...``."""
    pairs = {name: count or "1" for name, _, count in (one.partition("=") for one in asked.split(","))}
    if FRACTION in pairs:
        told = {"annotations": pairs, "labels": {"kai.scheduler/queue": "QUEUE"}}
        return _Form({}, "kai-scheduler", told)
    return _Form(pairs, None, {"annotations": {}, "labels": {}})


def _config(name: str, namespace: str, configs: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "data": {key: yaml.safe_dump(config, sort_keys=False) for key, config in configs.items()},
    }
