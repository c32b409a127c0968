"""The small world behind its ports, both ways: in this process, and over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

from small_cloud import world

from pilotlight.adapters.clocks import ServedClock
from pilotlight.adapters.cluster.world import ServedCluster
from pilotlight.adapters.pools.world import ServedPools
from pilotlight.adapters.world_client import WorldClient
from pilotlight.ports.clouds import Pools
from pilotlight.ports.cluster import Cluster
from pilotlight.ports.state import Clock
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

WAYS = ("in process", "over HTTP")


class Ports(NamedTuple):
    """A world and the ports to it."""

    world: World
    cluster: Cluster
    pools: Pools
    clock: Clock


@contextmanager
def ports(way: str, **options: Any) -> Iterator[Ports]:
    """A small world of these options with its ports, while they are used."""
    here = world(**options)
    if way == "in process":
        yield Ports(here, WorldCluster(here), WorldPools(here), here.clock)
        return
    with served(here) as server:
        client = WorldClient(server.url)
        yield Ports(here, ServedCluster(client), ServedPools(client), ServedClock(client))


@contextmanager
def served(here: World) -> Iterator[WorldServer]:
    """A world's server, while it is used."""
    with WorldServer(here, 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
