"""Which capacity a job with a deadline runs on now: spot, on-demand, or none while it waits for spot to come back.

A dynamic program over work left, slack (time left less work left), where the job runs, what is left of its start, and
whether spot is up. Spot goes and comes as a Markov chain (``Chances``). Times are whole ticks, costs are in ticks of
on-demand. A job saves its work; each start on other capacity costs ``restart`` ticks, which are paid and yield nothing.

Never late, whatever spot does: no step is taken after which a new start on on-demand would not end in time. The
estimates decide what a plan costs, never whether it holds.

The setting is that of Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024, whose
own rule (uniform progress) stands beside this one in ``bench/replays/deadline.py``.
"""

from math import inf, nan
from typing import Literal, NamedTuple

from pilotlight.units import Seconds

Capacity = Literal["spot", "on-demand", "none"]
_SPOT, _ON_DEMAND, _NONE = range(3)
_NAMES: tuple[Capacity, ...] = ("spot", "on-demand", "none")

UP_S: Seconds = 4 * 3600.0
DOWN_S: Seconds = 2 * 3600.0
"""How long spot is taken to stay, and to stay away, where nothing is known."""

PRIOR = 2.0
"""What is taken weighs as much as so many changes seen."""


class Chances(NamedTuple):
    """Of one tick: that spot which a job runs on is lost, that the last zone that is up goes, and that one comes back.

    ``elsewhere``: that another zone is up when the job's own is lost.
    """

    lost: float
    back: float
    gone: float = nan
    elsewhere: float = 0.0

    @property
    def none_left(self) -> float:
        """That no zone is up a tick later, where one is."""
        return self.lost if self.gone != self.gone else self.gone


class _Layer(NamedTuple):
    """Expected costs at one slack, by work left.

    Of a job that runs nowhere or on on-demand (by what is left of its start), with spot down and up, and on spot.
    """

    down: list[float]
    up: list[float]
    paid_down: list[list[float]]
    paid_up: list[list[float]]
    spot: list[list[float]]


class DeadlinePlan:
    """The capacity to run on in every state of a job of ``work`` ticks with up to ``slack`` more until its deadline.

    ``spot_price``: of a tick, where on-demand is 1. ``restart`` is at least one tick.
    """

    def __init__(self, work: int, slack: int, restart: int, spot_price: float, chances: Chances) -> None:
        self.work, self.slack, self.restart = work, slack, max(1, restart)
        self._price, self._chances = spot_price, chances
        self._steps: list[list[bytearray]] = []
        self._cost: list[tuple[list[float], list[float]]] = []
        below: _Layer | None = None
        for slack_left in range(slack + 1):
            below = self._layer(slack_left, below)
            self._cost.append((below.down, below.up))

    def cost(self, spot_up: bool, work: int | None = None, slack: int | None = None) -> float:
        """Expected cost of a job that runs nowhere yet, in ticks of on-demand; infinite where it cannot end in time."""
        at = self._cost[self.slack if slack is None else slack]
        return at[spot_up][self.work if work is None else work]

    def step(self, work: int, time: int, where: Capacity, restart_left: int, spot_up: bool) -> Capacity:
        """The capacity for the next tick, with ``work`` and ``time`` left. Spot that is down runs nothing: "none".

        Too late for any choice it is on-demand; more slack than was planned for is that much at most.
        """
        slack = min(time - work, self.slack)
        if slack < 0:
            return "on-demand"
        steps = self._steps[slack]
        if where == "spot" and spot_up:
            kind = 2 + 3 * restart_left + 2
        elif where == "on-demand":
            kind = 2 + 3 * restart_left + int(spot_up)
        else:
            kind = int(spot_up)
        return _NAMES[steps[kind][work]]

    def _layer(self, slack: int, below: _Layer | None) -> _Layer:
        """One slack: work goes on within it, waiting and starts come from the slack below."""
        size, starts = self.work + 1, range(self.restart)
        steps = [bytearray([_ON_DEMAND]) * size for _ in range(2 + 3 * self.restart)]
        new = _Layer(
            [0.0] * size,
            [0.0] * size,
            [[0.0] * size for _ in starts],
            [[0.0] * size for _ in starts],
            [[0.0] * size for _ in starts],
        )
        for work in range(1, size):
            self._anew(work, slack, below, new, steps)
            for left in starts:
                self._going_on(work, slack, left, below, new, steps)
        self._steps.append(steps)
        return new

    def _anew(self, work: int, slack: int, below: _Layer | None, new: _Layer, steps: list[bytearray]) -> None:
        """A job that runs nowhere: start on on-demand or spot, or wait."""
        down = up = inf
        if below is not None and slack >= self.restart:
            none_left, back, first = self._chances.none_left, self._chances.back, self.restart - 1
            paid_down, paid_up = below.paid_down[first][work], below.paid_up[first][work]
            down = 1 + (1 - back) * paid_down + back * paid_up
            up = 1 + (1 - none_left) * paid_up + none_left * paid_down
            if slack > self.restart:
                wait = (1 - back) * below.down[work] + back * below.up[work]
                if wait < down:
                    down, steps[0][work] = wait, _NONE
                wait = (1 - none_left) * below.up[work] + none_left * below.down[work]
                if wait < up:
                    up, steps[1][work] = wait, _NONE
                spot = self._on_spot(below.spot[first][work], below, work)
                if spot < up:
                    up, steps[1][work] = spot, _SPOT
        new.down[work], new.up[work] = down, up

    def _going_on(
        self, work: int, slack: int, left: int, below: _Layer | None, new: _Layer, steps: list[bytearray]
    ) -> None:
        """A job that runs: go on, or do as one that runs nowhere would."""
        down = up = spot = inf
        at, rest, then = (new, work - 1, 0) if left == 0 else (below, work, left - 1)
        if at is not None and slack >= left:
            none_left, back = self._chances.none_left, self._chances.back
            paid_down, paid_up = at.paid_down[then][rest], at.paid_up[then][rest]
            down = 1 + (1 - back) * paid_down + back * paid_up
            up = 1 + (1 - none_left) * paid_up + none_left * paid_down
            if slack - (left > 0) >= self.restart or rest == 0:
                spot = self._on_spot(at.spot[then][rest], at, rest)
        for n, found, as_new, own in ((0, down, 0, _ON_DEMAND), (1, up, 1, _ON_DEMAND), (2, spot, 1, _SPOT)):
            steps[2 + 3 * left + n][work] = own if found <= (new.down, new.up)[as_new][work] else steps[as_new][work]
        new.paid_down[left][work] = min(down, new.down[work])
        new.paid_up[left][work] = min(up, new.up[work])
        new.spot[left][work] = min(spot, new.up[work])

    def _on_spot(self, kept: float, at: _Layer, work: int) -> float:
        """A tick on spot, and what follows where it stays, is lost to another zone, or to none."""
        lost, elsewhere = self._chances.lost, self._chances.elsewhere
        return self._price + (1 - lost) * kept + lost * (elsewhere * at.up[work] + (1 - elsewhere) * at.down[work])
