"""Rules on what scales: KEDA, HPA, Karpenter, Kueue and cluster-autoscaler's priorities."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import yaml

from pilotlight.codec.bounded_yaml import load_all
from pilotlight.tools.lint.fault import Lint, Site
from pilotlight.tools.lint.manifest_objects import Found, gpus, items, number, pod_spec, value_at
from pilotlight.units import count_of

_SPOT = re.compile(r"spot|preempt", re.IGNORECASE)
_KARPENTER_NOW = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")


def autoscaler_rules(found: Sequence[Found], site: Site) -> Iterator[Lint]:
    """All of them, over all objects of a folder."""
    for each in found:
        yield from _keda(each)
        yield from _karpenter(each)
        yield from _kueue(each)
        yield from _priorities(each)
        yield from _minimum(each, site)
    yield from _weights([each for each in found if each.kind == "NodePool" and each.api.startswith("karpenter.sh/")])
    yield from _targets(found)
    yield from _replicas(found, site)


def _keda(found: Found) -> Iterator[Lint]:
    if found.kind not in ("ScaledObject", "ScaledJob"):
        return
    if not found.api.startswith("keda.sh/"):
        yield found.fault("keda-api", f"apiVersion {found.api} is not KEDA's", "write apiVersion: keda.sh/v1alpha1")
    most = number(found.spec("maxReplicaCount"))
    for trigger in items(found.spec("triggers")):
        if trigger.get("type") != "cron":
            continue
        wanted = number(value_at(trigger, "metadata", "desiredReplicas"))
        if not value_at(trigger, "metadata", "timezone"):
            yield found.fault("keda-cron", "a cron trigger names no timezone", "add timezone: as Europe/Berlin")
        if wanted is not None and most is not None and wanted > most:
            what = f"a cron trigger wants {wanted} replicas, and maxReplicaCount is {most}"
            yield found.fault("keda-cron", what, f"raise maxReplicaCount to {wanted}, or lower desiredReplicas")


def _karpenter(found: Found) -> Iterator[Lint]:
    if not found.api.startswith("karpenter.") or found.kind not in ("NodePool", "Provisioner", "EC2NodeClass"):
        return
    if found.api.endswith(("/v1beta1", "/v1alpha5")):
        yield found.fault("karpenter-api", f"apiVersion {found.api} is not served any more", "write it for v1")
    if found.kind != "NodePool":
        return
    policy = found.spec("disruption", "consolidationPolicy")
    if policy is not None and policy not in _KARPENTER_NOW:
        fix = (
            "write WhenEmptyOrUnderutilized" if policy == "WhenUnderutilized" else f"one of {', '.join(_KARPENTER_NOW)}"
        )
        yield found.fault("karpenter-consolidation", f"consolidationPolicy {policy} is unknown to v1", fix)
    if found.spec("disruption", "expireAfter") is not None:
        fix = "move it to spec.template.spec.expireAfter"
        yield found.fault("karpenter-expiry", "disruption.expireAfter is no field of v1", fix)
    ref = found.spec("template", "spec", "nodeClassRef")
    if ref is not None and not (value_at(ref, "group") and value_at(ref, "kind")):
        fix = "name group and kind too, as karpenter.k8s.aws and EC2NodeClass"
        yield found.fault("karpenter-class", "nodeClassRef names no group or kind", fix)
    if _takes_gpus(found) and not _capped(found):
        fix = 'add spec.limits, as nvidia.com/gpu: "8"'
        yield found.warning("karpenter-limit", "nothing limits how many GPUs it may buy", fix)


def _takes_gpus(found: Found) -> bool:
    taints = items(found.spec("template", "spec", "taints"))
    keys = [str(each.get("key", "")) for each in (*taints, *items(found.spec("template", "spec", "requirements")))]
    return any("gpu" in key for key in keys)


def _capped(found: Found) -> bool:
    limits = found.spec("limits")
    return isinstance(limits, dict) and any("gpu" in str(key) or key == "nodes" for key in limits)


def _weights(pools: Sequence[Found]) -> Iterator[Lint]:
    """A weight chooses among NodePools that one pod fits; it puts no pod before another."""

    def taints(found: Found) -> frozenset[str]:
        return frozenset(str(each.get("key")) for each in items(found.spec("template", "spec", "taints")))

    for pool in pools:
        if number(pool.spec("weight")) and not any(o is not pool and taints(o) == taints(pool) for o in pools):
            what = "its weight decides nothing: it ranks NodePools that the same pod fits, and no other here is like it"
            fix = "leave it out; which pods go first is said by a PriorityClass on them"
            yield pool.warning("karpenter-weight", what, fix)


def _kueue(found: Found) -> Iterator[Lint]:
    if not found.api.startswith("kueue.x-k8s.io/"):
        return
    if found.api.endswith("/v1beta1"):
        yield found.warning("kueue-api", "v1beta1 is deprecated", "write it for kueue.x-k8s.io/v1beta2")
    elif found.kind == "ClusterQueue" and found.spec("cohort") is not None:
        yield found.fault("kueue-cohort", "cohort is no field of v1beta2", "write cohortName")


def _priorities(found: Found) -> Iterator[Lint]:
    """Cluster-autoscaler's priority expander: the highest number wins; what no pattern names is never grown."""
    if found.kind != "ConfigMap" or found.name != "cluster-autoscaler-priority-expander":
        return
    patterns = _patterns(str(value_at(found.value, "data", "priorities") or "{}"))
    if not patterns:
        yield found.fault(
            "ca-priorities", "data.priorities cannot be read", "write numbers, each with a list of patterns"
        )
        return
    top = max(patterns)
    if len(patterns) > 1 and any(_SPOT.search(pattern) for pattern in patterns[top]):
        what = f"the highest number wins: {', '.join(patterns[top])} ({top}) is tried first, on spot"
        fix = "where on-demand should come first, give it the highest number"
        yield found.warning("ca-priorities", what, fix)
    if not any(pattern in (".*", ".+") for values in patterns.values() for pattern in values):
        yield found.warning("ca-catch-all", "a node group that no pattern names is never grown", 'add 1: [".*"]')


def _patterns(priorities: str) -> dict[int, list[str]]:
    """Patterns by their number; empty where the text cannot be read."""
    try:
        [read] = load_all(priorities)
    except (yaml.YAMLError, ValueError):
        return {}
    ranks = read.items() if isinstance(read, dict) else ()
    listed = {
        rank: named if isinstance(named, list) else [named] for key, named in ranks if (rank := number(key)) is not None
    }
    return {rank: [str(pattern) for pattern in named] for rank, named in listed.items()}


def _minimum(found: Found, site: Site) -> Iterator[Lint]:
    """Node pools with GPUs that never go to zero, as eksctl and Config Connector write them."""
    pools: list[tuple[str, int | None, bool]] = []
    if found.kind == "ClusterConfig":
        for each in (*items(found.value.get("managedNodeGroups")), *items(found.value.get("nodeGroups"))):
            kinds = [each.get("instanceType"), *(each.get("instanceTypes") or [])]
            has = any(site.gpus_of.get(str(kind)) for kind in kinds)
            pools.append((str(each.get("name", "")), number(each.get("minSize")), has))
    if found.kind == "ContainerNodePool":
        least = number(found.spec("autoscaling", "minNodeCount"))
        pools.append((found.name, least, bool(found.spec("nodeConfig", "guestAccelerator"))))
    for name, least, has in pools:
        if has and least:
            what = f"node pool {name} with GPUs keeps at least {count_of(least, 'node')}, idle or not"
            yield found.warning("pool-minimum", what, "set its minimum to 0, unless they are kept warm on purpose")


def _targets(found: Sequence[Found]) -> Iterator[Lint]:
    """KEDA makes an HPA of its own for what it scales."""
    scaled = {(o.namespace, str(o.spec("scaleTargetRef", "name"))): o for o in found if o.kind == "ScaledObject"}
    for each in found:
        if each.kind != "HorizontalPodAutoscaler":
            continue
        keda = scaled.get((each.namespace, str(each.spec("scaleTargetRef", "name"))))
        if keda is not None:
            what = f"scales what ScaledObject {keda.name} scales, for which KEDA makes an HPA of its own"
            yield each.fault("two-scalers", what, "delete one of the two")


def _replicas(found: Sequence[Found], site: Site) -> Iterator[Lint]:
    """More replicas than there can be GPUs."""
    asks: dict[tuple[str, str], int] = defaultdict(int)
    for each in found:
        if each.kind in ("Deployment", "StatefulSet"):
            asks[each.namespace, each.name] = gpus(pod_spec(each))
    for each in found:
        key = {"ScaledObject": "maxReplicaCount", "HorizontalPodAutoscaler": "maxReplicas"}.get(each.kind)
        if key is None or site.most_gpus is None:
            continue
        most, per_pod = number(each.spec(key)), asks[each.namespace, str(each.spec("scaleTargetRef", "name"))]
        if most and per_pod and most * per_pod > site.most_gpus:
            what = (
                f"{key} {most} x {per_pod} GPUs is more than the {site.most_gpus} GPUs that the policy's pools may have"
            )
            yield each.fault("replicas", what, f"set {key} to {site.most_gpus // per_pod}, or raise the pools' max")
