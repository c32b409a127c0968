"""A small world sold by GKE, with the port to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving
from small_cloud import world

from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import CloudAccount, Pools
from pilotlight.world.faults import Faults


class Project(NamedTuple):
    """Google's side and ours."""

    gke: Gke
    pools: Pools

    def pool(self, name: str = "one") -> PoolState:
        """A pool, as the port tells it."""
        return next(state for state in self.pools.describe() if state.name == name)

    def sent(self, verb: str) -> list[Any]:
        """The bodies of a verb's calls."""
        return [body for each, body in self.gke.changes() if each == verb]

    def short(self, pool: str = "one") -> str:
        """The name of one that is asked for while its zone has none."""
        self.gke.world.set_faults(Faults(shortage=1.0))
        self.pools.grow(pool, 1, token="step-1")
        self.gke.world.set_faults(Faults())
        (name,) = self.gke.tried
        return name


@contextmanager
def project() -> Iterator[Project]:
    """The project, while it is used."""
    gke = Gke(world())
    with serving(gke) as environ:
        pools = gke_cloud.open_pools(WHERE, CloudAccount(gke.names(), gke.world.clock, str, environ))
        assert pools is not None
        yield Project(gke, pools)
