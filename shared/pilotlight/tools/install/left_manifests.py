"""Objects that ``pilotlight manifests`` wrote and people applied: they stay when the rest goes, and are named."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.typed_objects import Metadata, Wire
from pilotlight.errors import Forbidden
from pilotlight.tools.install.connect_account import ACCOUNT, LABEL, NAMESPACE, Step

MANAGED_BY, HELM = "app.kubernetes.io/managed-by", "Helm"


class _Place(NamedTuple):
    kind: str
    group: str
    plural: str
    namespaced: bool = False


_ADMISSION, _KUEUE = "admissionregistration.k8s.io/v1", "kueue.x-k8s.io/v1beta2"
PLACES = (
    _Place("MutatingAdmissionPolicy", _ADMISSION, "mutatingadmissionpolicies"),
    _Place("MutatingAdmissionPolicyBinding", _ADMISSION, "mutatingadmissionpolicybindings"),
    _Place("ValidatingAdmissionPolicy", _ADMISSION, "validatingadmissionpolicies"),
    _Place("ValidatingAdmissionPolicyBinding", _ADMISSION, "validatingadmissionpolicybindings"),
    _Place("ResourceQuota", "v1", "resourcequotas", namespaced=True),
    _Place("LimitRange", "v1", "limitranges", namespaced=True),
    _Place("ConfigMap", "v1", "configmaps", namespaced=True),
    _Place("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", namespaced=True),
    _Place("ScaledObject", "keda.sh/v1alpha1", "scaledobjects", namespaced=True),
    _Place("ResourceFlavor", _KUEUE, "resourceflavors"),
    _Place("ClusterQueue", _KUEUE, "clusterqueues"),
    _Place("LocalQueue", _KUEUE, "localqueues", namespaced=True),
    _Place("WorkloadPriorityClass", _KUEUE, "workloadpriorityclasses"),
    _Place("Queue", "scheduling.volcano.sh/v1beta1", "queues"),
    _Place("NodePool", "karpenter.sh/v1", "nodepools"),
)
"""Kinds that it writes, and where an API server lists them."""


class _Named(Wire, frozen=True):
    metadata: Metadata


_LIST = listing(_Named)


def manifests_left(api: Api, but: Collection[tuple[str, str]]) -> Iterator[Step]:
    """Each of them, with how it goes, but for those by kind and name that are ours to remove, a release's, and what
    lies in our namespace. A kind that is unknown there, or that we may not list, has none.
    """
    for kind, group, plural, namespaced in PLACES:
        path = f"{'/api' if group == 'v1' else '/apis'}/{group}/{plural}"
        try:
            found = api.get(path, _LIST, labelSelector=f"{LABEL}={ACCOUNT}").items
        except (Missing, Forbidden):
            continue
        for meta in (each.metadata for each in found or ()):
            space = meta.namespace if namespaced else ""
            if (kind, meta.name) in but or space == NAMESPACE or meta.labels.get(MANAGED_BY) == HELM:
                continue
            where = f" -n {space}" if space else ""
            why = f"`pilotlight manifests` wrote it; kubectl delete {plural} {meta.name}{where} takes it out"
            yield Step("keep", kind, f"{space}/{meta.name}" if space else meta.name, why)
