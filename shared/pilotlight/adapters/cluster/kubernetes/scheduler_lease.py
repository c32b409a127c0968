"""The Lease by which kube-scheduler shows that it lives: in ``kube-system``, renewed every two seconds by its leader.

Hosted control planes may keep it elsewhere, under another name or out of sight: then nothing is known by it.
"""

from datetime import datetime

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import AUTOSCALER_NAMESPACE, SCHEDULER_LEASE, LeaseOf
from pilotlight.errors import Forbidden

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{AUTOSCALER_NAMESPACE}/leases/{SCHEDULER_LEASE}"

_LEASE = typed_json.decoder(LeaseOf)


def last_renewal(api: Api) -> datetime | None:
    """When its leader last renewed it; None where that cannot be seen."""
    try:
        return api.get(LEASE, _LEASE).renewed_at
    except (Missing, Forbidden):
        return None
