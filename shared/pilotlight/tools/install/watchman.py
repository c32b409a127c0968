"""The watchman's round: home taints come off every node where nobody renews the Lease of placement."""

from collections.abc import Iterator
from datetime import datetime

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.closing_lease import LEASE, lease_time
from pilotlight.adapters.cluster.kubernetes.listing import NODES, Lists
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Wire
from pilotlight.facts.labels import HOME, WATCHED_AT
from pilotlight.units import Seconds


class _LeaseSpec(Wire, frozen=True):
    renew_time: datetime | None = None


class _Lease(Wire, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


_LEASE = typed_json.decoder(_Lease)


def last_renewal(api: Api) -> datetime | None:
    """When we last renewed it; None where never, or at a time without a zone. Raises ``Missing`` without a Lease."""
    at = api.get(LEASE, _LEASE).spec.renew_time
    return at if at is not None and at.tzinfo is not None else None


def lift(api: Api, now: datetime, *, silent_s: Seconds = 0, dry_run: bool = False) -> Iterator[str]:
    """Open every node, and name each. With ``silent_s`` it is the watchman's round: it notes that it looked, and opens
    only where the Lease is so old, or dated so far ahead. It raises ``Missing`` where there is no Lease.
    """
    if silent_s:
        beaten = last_renewal(api)
        if not dry_run:
            api.ask("PATCH", LEASE, NOTHING, {"metadata": {"annotations": {WATCHED_AT: lease_time(now)}}}, MERGE_PATCH)
        if beaten is not None and abs(now - beaten).total_seconds() < silent_s:
            return
    for node in Lists(api).all(NODES, listing(KubeNode), _closed):
        if not dry_run:
            writes.open(api, node.metadata.name)
        yield node.metadata.name


def _closed(node: KubeNode) -> KubeNode | None:
    return node if any(taint.key == HOME for taint in node.spec.taints) else None
