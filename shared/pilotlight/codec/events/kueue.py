"""Kueue's Workloads themselves, as what watches them sends them. Its Events are read with Kubernetes' own.

Source: the Workload CRD of Kueue v0.20, v1beta1 and v1beta2.
"""

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.codec.events.kubernetes import KUEUE, identity
from pilotlight.codec.kubernetes.kueue_objects import Workload
from pilotlight.facts.messages import QuotaReserved


def read_workload(envelope: Envelope) -> QuotaReserved | Ignored:
    """A Workload that has its quota and waits for our admission check; every other one asks for nothing.

    Without a time of its own: a check may wait for long, and each change of it is news.
    """
    if not str(envelope.data.get("apiVersion", "")).startswith(KUEUE):
        return Ignored(reason="a Workload that is not Kueue's asks for nothing here")
    workload = convert_shape(envelope.data, Workload, envelope.path)
    meta = workload.metadata
    if not workload.wants_nodes:
        return Ignored(reason=f"Workload {meta.namespace}/{meta.name} does not wait for our admission check")
    said = {
        "cluster": envelope.cluster,
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "identity": identity(meta.uid, meta.resource_version) or envelope.id,
        "at": envelope.at,
    }
    return convert_shape(said, QuotaReserved, envelope.step_into("metadata", None).path)
