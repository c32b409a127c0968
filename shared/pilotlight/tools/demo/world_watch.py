"""Watches a world's cloud for what must never happen: a node bought twice, a cap passed."""

from collections import Counter

from pilotlight.codec.world_wire import Report
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.tools.serve.world_pods import statuses
from pilotlight.world.scheduling.scheduler import Scheduler
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode
from pilotlight.world.world_pools import WorldPools


class Watch(WorldPools):
    """The Pools port, which counts what each growth did. The counts are those of a ``Report``."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._resizes: Counter[str] = Counter()
        self._surplus = self._peak_nodes = self._peak_gpus = 0

    def resize(self, pool: str, to: int, zone: str) -> PoolState:
        world = self._world
        with world.call("watch"):
            wanted, had = _unserved(world), world.launches
            try:
                return super().resize(pool, to, zone)
            finally:
                came = world.launches - had
                self._resizes[pool] += came > 0
                self._surplus += max(0, came - wanted)
                self._peak_nodes = max(self._peak_nodes, len(world.nodes))
                self._peak_gpus = max(self._peak_gpus, world.fleet.gpus_paid)

    def report(self) -> Report:
        """The world so far."""
        world = self._world
        with world.call("report"):
            states = Counter(pod.state for pod in statuses(world))
            return Report(
                now=world.clock.now(),
                cost_usd=world.cost(),
                launches=world.launches,
                terminations=world.terminations,
                nodes=len(world.nodes),
                gpus=world.fleet.gpus_paid,
                peak_nodes=self._peak_nodes,
                peak_gpus=self._peak_gpus,
                surplus=self._surplus,
                resizes=dict(+self._resizes),
                pods={state: states[state] for state in ("pending", "running", "finished")},
            )


def _unserved(world: World) -> int:
    """Pods that wait and would find no room on the nodes that are on their way.

    Counted by the cluster's own scheduler on empty copies of those nodes. What it places can be placed, so a growth
    by more than the rest is surely too much.
    """
    coming = [WorldNode(node.seq, node.machine, 0.0, 0.0) for node in world.nodes.values() if not node.ready]
    there = [*coming, *(node for node in world.nodes.values() if node.ready)]
    trial = Scheduler(there=lambda: there)
    for node in coming:
        trial.add(node)
    waiting = (demand for job in world.pending.values() for demand in job.demands)
    return sum(trial.place([demand]) is None for demand in waiting)
