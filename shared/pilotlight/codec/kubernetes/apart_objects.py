"""Objects that are set apart, before they are read: their names, and where they are."""

from collections.abc import Sequence

from pilotlight.codec.kubernetes.kueue_objects import Workload
from pilotlight.codec.kubernetes.nodes.gpu_models import POOL_LABELS
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, NodeSpec, Pod, PodSpec, PodStatus
from pilotlight.facts.limits.isolated_objects import SetApart


def bare(apart: Sequence[SetApart], item: object) -> object:
    """An object as it is; of one that is set apart what says which it is, and nothing of a Workload."""
    if isinstance(item, Pod):
        name = item.metadata.uid or item.name
        one = next((one for one in apart if (one.kind, one.name) == ("pod", name)), None)
        return _pod(item, one) if one is not None else item
    if isinstance(item, KubeNode) and any((one.kind, one.name) == ("node", item.metadata.name) for one in apart):
        return _node(item)
    if isinstance(item, Workload):
        name = f"{item.metadata.namespace}/{item.metadata.name}"
        return None if any((one.kind, one.name) == ("workload", name) for one in apart) else item
    return item


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
