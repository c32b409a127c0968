"""A run's points over time, for charts."""

from collections.abc import Callable, Sequence

from pilotlight.facts.trace import Job, Point
from pilotlight.units import MILLI_PER_GPU, Seconds
from pilotlight.world.world import World

SAMPLES = 1900
"""About how many points of a run are told: as many as a chart can show."""
LEAST_STEP_S = 60.0

Sample = Callable[[Point], None]


def step_s(jobs: Sequence[Job]) -> Seconds:
    """The time between two points of a trace's run."""
    return max(LEAST_STEP_S, max((job.submit_s + job.duration_s for job in jobs), default=0.0) / SAMPLES)


class Sampler:
    """Tells a run's points to ``sample``, evenly over the time the trace must take at least."""

    def __init__(self, world: World, jobs: Sequence[Job], sample: Sample | None) -> None:
        self._world = world
        self._sample = sample
        self._step_s = step_s(jobs)
        self._next_s = 0.0

    def until(self, to_s: Seconds) -> None:
        """Tell every point before ``to_s``, up to which nothing else happens."""
        while self._sample and self._next_s < to_s:
            self._world.advance(self._next_s)
            self._sample(self._point())
            self._next_s += self._step_s

    def _point(self) -> Point:
        world = self._world
        return Point(
            t=world.now_s,
            gpus_paid=world.fleet.gpus_paid,
            gpus_used=world.used_milli / MILLI_PER_GPU,
            usd=world.cost(),
            waiting=len(world.pending),
        )
