"""GKE's queue over the project's stand-in: requests in an API server, and what Google's autoscaler makes of them.

Written from its source: a request has no conditions at first, then ``Accepted``; its nodes come together by names of
their group's, and it is ``Provisioned``; or it is ``Failed``, by a reason. ``validUntilSeconds`` is kept to.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from api_server import ApiServer, api_server
from api_store import Json
from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api, Patience
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import CloudAccount, Pools
from pilotlight.world.simulation import World

QUEUED: dict[str, Any] = {
    "queuedProvisioning": {"enabled": True},
    "autoscaling": {"enabled": True, "locationPolicy": "ANY"},
    "config": {
        "machineType": "one",
        "flexStart": True,
        "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "8"}],
    },
}
"""A node pool of the queue."""


class QueueSite(NamedTuple):
    """The project, the API server with its queue, and the port."""

    gke: Gke
    server: ApiServer
    pools: Pools

    def pool(self, name: str = "one") -> PoolState:
        """A pool, as the port tells it."""
        return next(state for state in self.pools.describe() if state.name == name)

    def requests(self) -> list[Json]:
        """Every ProvisioningRequest."""
        return self.server.store.list(self.server.store.resource("provisioningrequests"), "", "", "")

    def posted(self, plural: str) -> list[Json]:
        """What was posted of a kind, as it came."""
        return [
            asked.json() for asked in self.server.requests if asked.line.startswith("POST") and plural in asked.path
        ]

    def says(self, name: str, *kinds: str, reason: str = "", message: str = "") -> None:
        """Conditions that a request gets, in order, beside those that it has."""
        store = self.server.store
        found = store.get("provisioningrequests", name, "pilotlight")
        stamp = self.gke.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        fresh = [
            {"type": k, "status": "True", "reason": reason or k, "message": message, "lastTransitionTime": stamp}
            for k in kinds
        ]
        had = found.get("status", {}).get("conditions", [])
        store.patch(
            store.resource("provisioningrequests"), ("pilotlight", name), {"status": {"conditions": [*had, *fresh]}}
        )

    def provision(self, name: str, pool: str = "one") -> None:
        """All its nodes come, and it is told so."""
        (asked,) = [one for one in self.requests() if one["metadata"]["name"] == name]
        self.gke.another_hand(pool, asked["spec"]["podSets"][0]["count"])
        self.says(name, "Accepted", "Provisioned")


@contextmanager
def queue_site(world: World) -> Iterator[QueueSite]:
    """A world whose pool ``one`` is of the queue."""
    gke = Gke(world)
    gke.extra["one"] = QUEUED
    with ExitStack() as stack:
        environ = stack.enter_context(serving(gke))
        server = stack.enter_context(api_server())
        server.store.serve("gke-queue")
        source = source_of("kubeconfig-env:TEST", {"TEST": server.kubeconfig()})
        api = Api(source, patience=Patience(tries=1), pause=lambda _: None)
        pools = gke_cloud.open_pools(WHERE, CloudAccount(gke.names(), world.clock, str, environ, api=api))
        assert pools is not None
        yield QueueSite(gke, server, pools)
