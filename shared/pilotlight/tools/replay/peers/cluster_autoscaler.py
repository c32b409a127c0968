"""Cluster Autoscaler: one type for all that waits, the least wasteful or the cheapest, and empty nodes kept a while."""

from random import Random

from pilotlight.tools.replay.peers.base import Bin, FirstFit, Pod, Ticker, unmet_pods
from pilotlight.units import MILLI_PER_GPU, Seconds
from pilotlight.world.machines import Machine
from pilotlight.world.simulation import World

PERIOD_S, FREQUENT_S = 10.0, 1.0
"""Between looks; since frequent loops are its default a new pod, and a look that bought, begin the next at once, and a
look takes about a second (kubernetes/autoscaler, cluster-autoscaler/loop/trigger.go).
"""
IDLE_S = 600.0
DELAY_AFTER_ADD_S = 600.0


class ClusterAutoscaler(Ticker):
    """Every 10 s buys, for all pods that may use it, the type that wastes least; ties are random.

    An empty node goes after ``idle_s``, and not within 600 s of any purchase. The cluster's scheduler spreads. With
    ``priority`` it is today's, set up by a careful hand: it looks each second, the priority expander takes the type
    with the least dollars for a GPU, and the time after a purchase is ``idle_s`` too.
    """

    spread = True

    def __init__(
        self, name: str, seed: int, *, pinned: bool = False, idle_s: Seconds = IDLE_S, priority: bool = False
    ) -> None:
        super().__init__(name, FREQUENT_S if priority else PERIOD_S, idle_s, pinned=pinned)
        self._random, self._priority = Random(seed), priority
        self._delay_s = idle_s if priority else DELAY_AFTER_ADD_S
        self._bought_s = -self._delay_s

    def _release_s(self, world: World) -> Seconds:
        return max(super()._release_s(world), self._bought_s + self._delay_s)

    def _buy(self, world: World) -> bool:
        pods = unmet_pods(world)
        options = [(m, o) for m in map(world.fleet.machine, world.fleet.pools) if (o := _option(m, pods))]
        if not options:
            return True
        if self._priority:
            machine, bins = min(options, key=lambda o: (o[0].price / o[0].gpus, o[0].key))
        else:
            least = min(_waste(bins) for _, bins in options)
            machine, bins = self._random.choice([o for o in options if _waste(o[1]) == least])
        bought = [self.market.launch(world, machine) for _ in bins]
        if any(bought):
            self._bought_s = world.now_s
        return all(bought) and all(pod.need.allows(machine) for pod in pods)


def _option(machine: Machine, pods: list[Pod]) -> list[Bin]:
    """The nodes of one type that first-fit-decreasing needs for the pods that may use it."""
    packing = FirstFit()
    for pod in pods:
        if pod.need.allows(machine) and not packing.put(pod.need):
            packing.open(machine, pod.need)
    return packing.bins


def _waste(bins: list[Bin]) -> float:
    return 1 - sum(b.used for b in bins) / (MILLI_PER_GPU * sum(b.machine.gpus for b in bins))
