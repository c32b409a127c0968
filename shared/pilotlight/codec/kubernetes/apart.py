"""Objects that are set apart, before they are read: their names, and where they are."""

from collections.abc import Sequence

from msgspec.structs import replace

from pilotlight.codec.kubernetes.lists import Objects
from pilotlight.codec.kubernetes.models import POOL_LABELS
from pilotlight.codec.kubernetes.objects import KubeNode, Metadata, NodeSpec, Pod, PodSpec, PodStatus
from pilotlight.facts.isolation import SetApart


def without_contents(
    pods: Sequence[Pod], nodes: Sequence[KubeNode], objects: Objects, apart: Sequence[SetApart]
) -> tuple[list[Pod], list[KubeNode], Objects]:
    """The same objects; of those that are set apart what says which they are. Workloads of them are left out."""
    names = {(one.kind, one.name): one for one in apart}
    kept = {key: w for key, w in objects.workloads.items() if ("workload", key) not in names}
    return (
        [_pod(pod, one) if (one := names.get(("pod", pod.metadata.uid or pod.name))) else pod for pod in pods],
        [_node(node) if ("node", node.metadata.name) in names else node for node in nodes],
        replace(objects, workloads=kept) if len(kept) < len(objects.workloads) else objects,
    )


def _pod(pod: Pod, one: SetApart) -> Pod:
    meta = pod.metadata
    return Pod(
        metadata=Metadata(name=meta.name, namespace=meta.namespace, uid=meta.uid),
        spec=PodSpec(node_name=pod.spec.node_name),
        status=PodStatus(phase=pod.status.phase),
        unread=f"reading it raised {one.error}",
    )


def _node(node: KubeNode) -> KubeNode:
    meta = node.metadata
    labels = {name: meta.labels[name] for name in POOL_LABELS if name in meta.labels}
    made_at = meta.creation_timestamp
    return KubeNode(
        metadata=Metadata(name=meta.name, uid=meta.uid, labels=labels, creation_timestamp=made_at),
        spec=NodeSpec(provider_id=node.spec.provider_id, unschedulable=True),
    )
