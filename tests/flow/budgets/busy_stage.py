"""A stage on which short jobs come without end, on nodes at $1 an hour."""

from typing import Any

from stage import Stage

from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.units import HOUR


class Busy(Stage):
    """Up to twenty nodes of one pool; jobs of a quarter of an hour come for as long as is asked."""

    jobs = 3
    """So many at once, unless it is said."""

    def __init__(self, **rules: Any) -> None:
        batch = ClassPolicy(gpu_models=("T4",), idle_timeout=60, max_runtime=HOUR)
        pools = {"one": PoolPolicy(instance_type="one", max=20)}
        self._came = 0
        super().__init__(pools=pools, classes={"batch": batch}, **rules)

    def busy(self, minutes: int, jobs: int = 0) -> None:
        """Every ten minutes some jobs come."""
        for minute in range(minutes):
            if minute % 10 == 0:
                for _ in range(jobs or self.jobs):
                    self._came += 1
                    self.event(self.submit(f"job{self._came}", run_s=900))
            self.minutes(1)

    def quiet(self) -> None:
        """Until all jobs are done and all nodes are out."""
        while self.world.nodes or self.world.pending:
            self.minutes(1)
