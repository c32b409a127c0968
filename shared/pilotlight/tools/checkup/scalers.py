"""Whoever scales nodes or pods of a cluster, and the nodes themselves, as a check-up sees them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from pilotlight.codec.kubernetes.bounds import Unreadable
from pilotlight.codec.kubernetes.karpenter_objects import GatedNodePool, NodeClaim, gate_state, surges
from pilotlight.codec.kubernetes.nodes.gpu_models import capacity_type
from pilotlight.codec.kubernetes.nodes.nodes import pool_of
from pilotlight.codec.kubernetes.pods.pod_placement import NOWHERE, Terms, homes, pod_terms, tolerations
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Pod, PodSpec, Wire
from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import WHOLE_DEVICES, part_of_gpu
from pilotlight.tools.checkup.survey_facts import SeenClaim, SeenNode, SeenNodePool, SeenScaledObject, SeenSet
from pilotlight.units import quantity


class _Template(Wire, frozen=True):
    spec: PodSpec = PodSpec()


class _SetSpec(Wire, frozen=True):
    replicas: int = 1
    template: _Template = _Template()


class _SetStatus(Wire, frozen=True):
    desired_number_scheduled: int = 0
    number_ready: int = 0
    ready_replicas: int = 0


class SetOfPods(Wire, frozen=True):
    """A DaemonSet or Deployment."""

    metadata: Metadata
    spec: _SetSpec = _SetSpec()
    status: _SetStatus = _SetStatus()


class _Target(Wire, frozen=True):
    name: str = ""
    kind: str = "Deployment"


class _ScaledSpec(Wire, frozen=True):
    scale_target_ref: _Target = _Target()
    min_replica_count: int = 0
    max_replica_count: int = 100


class ScaledObject(Wire, frozen=True):
    """A KEDA ScaledObject."""

    metadata: Metadata
    spec: _ScaledSpec = _ScaledSpec()


def seen_node(node: KubeNode, policy: Policy) -> SeenNode:
    """A node, by the policy's name of its pool."""
    meta = node.metadata
    return SeenNode(
        name=meta.name,
        pool=pool_of(meta.labels, policy),
        gpus=_gpus(node.status.allocatable),
        slices={n: _count(a) for n, a in node.status.allocatable.items() if part_of_gpu(n) and _count(a)},
        created_at=meta.created_at,
        ready=any(c.type == "Ready" and c.status == "True" for c in node.status.conditions),
        instance_type=meta.labels.get(INSTANCE_TYPE, ""),
        capacity_type=capacity_type(meta.labels),
        labels=meta.labels,
        taints=node.spec.taints,
    )


def seen_daemonset(each: SetOfPods) -> SeenSet:
    """A DaemonSet: as many pods as there are nodes for it."""
    return _set(each, each.status.desired_number_scheduled, each.status.number_ready)


def seen_deployment(each: SetOfPods) -> SeenSet:
    """A Deployment."""
    return _set(each, each.spec.replicas, each.status.ready_replicas)


def _set(each: SetOfPods, replicas: int, ready: int) -> SeenSet:
    spec = each.spec.template.spec
    containers = spec.containers
    return SeenSet(
        namespace=each.metadata.namespace,
        name=each.metadata.name,
        images=tuple(c.image for c in containers),
        command=tuple(word for c in containers for word in (*c.command, *c.args)),
        replicas=replicas,
        ready=ready,
        gpus=sum(_gpus({**c.resources.requests, **c.resources.limits}) for c in containers),
        terms=_terms(Pod(metadata=each.metadata, spec=spec)),
        bears=tolerations(spec.tolerations),
        homes=homes(spec.tolerations),
    )


def _terms(pod: Pod) -> Terms:
    """Where pods of a template may run; nowhere where that is too much to be read."""
    try:
        return pod_terms(pod)
    except Unreadable:
        return NOWHERE


def seen_nodepool(each: GatedNodePool) -> SeenNodePool:
    """A NodePool; a GPU is one that its requirements, taints or limits name."""
    spec = each.spec.template.spec
    keys = [requirement.key for requirement in spec.requirements] + [str(t.get("key", "")) for t in spec.taints]
    return SeenNodePool(
        name=each.metadata.name,
        gpu=any("gpu" in key.lower() for key in (*keys, *each.spec.limits)),
        limited=any("gpu" in key.lower() for key in each.spec.limits),
        replicas=each.spec.replicas,
        gate=gate_state(each, ()),
        replaces=any(reason.at_once(1) for reason in surges(each.spec.disruption)),
        azure=spec.node_class_ref.group == "karpenter.azure.com",
    )


def waiting_claims(read: Callable[[], Iterable[NodeClaim]], policy: Policy) -> Iterator[SeenClaim]:
    """What was asked for by gated NodePools and is not launched; nothing is read where there are none."""
    gated = set(policy.gates.values())
    for claim in read() if gated else ():
        why, meta = claim.unlaunched, claim.metadata
        if why is not None and claim.nodepool in gated and meta.deletion_timestamp is None:
            yield SeenClaim(name=meta.name, nodepool=claim.nodepool, since=meta.created_at, why=why[:240])


def seen_scaled(each: ScaledObject) -> SeenScaledObject:
    """A ScaledObject; only Deployments are followed."""
    target = each.spec.scale_target_ref
    return SeenScaledObject(
        namespace=each.metadata.namespace,
        name=each.metadata.name,
        target=f"{each.metadata.namespace}/{target.name}" if target.kind == "Deployment" else "",
        least=each.spec.min_replica_count,
        most=each.spec.max_replica_count,
        paused=each.metadata.annotations.get("autoscaling.keda.sh/paused") == "true",
    )


def _gpus(amounts: Mapping[str, object]) -> int:
    """Whole GPUs."""
    return sum(_count(amounts.get(name, 0)) for name in WHOLE_DEVICES)


def _count(amount: object) -> int:
    """A number of devices; what is no quantity counts as none."""
    try:
        return int(quantity(str(amount)))
    except ValueError:
        return 0
