"""A site of Kueue's queues over the API stand-in, and the Kueue of ``kueue_reconcile`` that moves it."""

from api_server import ApiServer
from kueue_reconcile import Kueue
from queue_site import QueueSite

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api


class Played:
    """The site over the stand-in, and the Kueue on it."""

    def __init__(self, server: ApiServer) -> None:
        for name in ("kueue", "kueue-flavors", "kueue-queues", "kueue-local-queues", "kueue-checks"):
            server.store.serve(name)
        self.server = server
        self.api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        self.kueue: Kueue | None = None

    def site(self, teams: dict[str, str], **options: object) -> QueueSite:
        """Queues and budgets; Kueue's clock is the world's."""
        site = QueueSite(self.api, self.settle, teams, **options)  # type: ignore[arg-type]
        self.kueue = Kueue(self.server.store, site.deps.clock.now)
        return site

    def settle(self) -> None:
        """Kueue goes on until nothing changes."""
        if self.kueue is not None:
            self.kueue.settle()

    def evictions(self, name: str) -> int:
        """How often Kueue evicted a Workload."""
        assert self.kueue is not None
        return len(self.kueue.evictions.get(name, ()))
