"""KEDA on queue length: one node a pending job, empty nodes kept for five minutes."""

from pilotlight.tools.replay.peers.base import Ticker, holders, unmet_pods
from pilotlight.world.simulation import World

PERIOD_S = 30.0
IDLE_S = 300.0


class Keda(Ticker):
    """Every 30 s one node of the cheapest fitting type per pending job that nothing on its way will hold."""

    def __init__(self) -> None:
        super().__init__("keda", PERIOD_S, IDLE_S)

    def _buy(self, world: World) -> bool:
        able = [holders(world, pod.need) for pod in unmet_pods(world)]
        bought = [self.market.launch(world, machines[0]) for machines in able if machines]
        return all(bought)
