"""The polling loop that started it all: a node for each new pending job, and all empty ones away when none waits."""

from pilotlight.tools.replay.peers.base import Pod, Ticker, holders, waiting
from pilotlight.units import Seconds
from pilotlight.world.simulation import World

PERIOD_S = 5.0
COOLDOWN_S = 10.0


class S0Loop(Ticker):
    """Every 5 s, if over 10 s since its last action: buys for what it has not asked for yet.

    With nothing pending, empty nodes go.
    It never takes a node with a job on it, as the original would.
    """

    def __init__(self) -> None:
        super().__init__("s0-loop", PERIOD_S, 0.0)
        self._asked: set[str] = set()
        self._acted_s = -COOLDOWN_S - PERIOD_S

    def wake_s(self, world: World) -> Seconds | None:
        if world.pending and not self._stirred:
            return None
        due = super().wake_s(world)
        # Strictly over the cooldown: so the tick after it.
        return None if due is None else max(due, self._acted_s + COOLDOWN_S + PERIOD_S)

    def _buy(self, world: World) -> bool:
        new = [pod for pod in waiting(world) if pod.uid not in self._asked]
        if new:
            self._acted_s = world.now_s
        bought = [self._ask(world, pod) for pod in new]
        return all(bought)

    def _ask(self, world: World, pod: Pod) -> bool:
        machines = holders(world, pod.need)
        if machines and not self.market.launch(world, machines[0]):
            return False
        self._asked.add(pod.uid)
        return True

    def _release(self, world: World) -> None:
        if not world.pending:
            super()._release(world)
            self._acted_s = world.now_s
