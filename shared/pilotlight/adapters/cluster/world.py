"""The cluster of a served world."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.world_client import WorldClient
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner
from pilotlight.units import Seconds

_view = typed_json.decoder(ClusterView)
_owner: msgspec.json.Decoder[OwnerState | None] = typed_json.decoder(OwnerState | None)
_count = typed_json.decoder(int)
_moment: msgspec.json.Decoder[datetime | None] = typed_json.decoder(datetime | None)
_bound = typed_json.decoder(tuple[BoundPod, ...])


class ServedCluster:
    """The Cluster port over a world's HTTP."""

    def __init__(self, client: WorldClient) -> None:
        self._client = client

    def observe(self) -> ClusterView:
        return _view.decode(self._client.call("cluster/observe"))

    def cordon(self, node: str, by: str = "") -> None:
        self._client.call("cluster/cordon", node=node, by=by)

    def uncordon(self, node: str) -> None:
        self._client.call("cluster/uncordon", node=node)

    def forget_opened(self, node: str) -> None:
        self._client.call("cluster/forget_opened", node=node)

    def open(self, node: str) -> None:
        self._client.call("cluster/open", node=node)

    def name_home(self, node: str, home: str) -> None:
        self._client.call("cluster/name_home", node=node, home=home)

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        self._client.call("cluster/tolerate", namespace=namespace, pod=pod, uid=uid, home=home)

    def beat(self) -> None:
        self._client.call("cluster/beat")

    def scheduler_beat(self) -> datetime | None:
        return _moment.decode(self._client.call("cluster/scheduler_beat"))

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        return _bound.decode(self._client.call("cluster/bound_pods", node=node))

    def drain(self, node: str) -> None:
        self._client.call("cluster/drain", node=node)

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        self._client.call("cluster/evict", namespace=namespace, pod=pod, uid=uid, grace_s=grace_s)

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        self._client.call("cluster/delete", namespace=namespace, pod=pod, uid=uid, grace_s=grace_s)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        self._client.call("cluster/tell", namespace=namespace, name=name, reason=reason, message=message, change=change)

    def owner_of(self, namespace: str, pod: str, uid: str) -> OwnerState | None:
        return _owner.decode(self._client.call("cluster/owner_of", namespace=namespace, pod=pod, uid=uid))

    def owner_now(self, owner: PodOwner) -> OwnerState | None:
        return _owner.decode(self._client.call("cluster/owner_now", owner=owner))

    def rest(self, owner: PodOwner, count: int) -> None:
        self._client.call("cluster/rest", owner=owner, count=count)

    def wake(self, owner: PodOwner) -> int:
        return _count.decode(self._client.call("cluster/wake", owner=owner))
