"""Article 002's exercise, whole, on the world: spot nodes, four jobs, one that preempts, its victim's return, zero.

The scheduler's part, to stop the pod of the lowest priority and bind the one that waits, is played by the test: the
world's scheduler does not preempt.
"""

from decimal import Decimal

import pytest
from stage import Stage

from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import PodDemand
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

SPOT, ON_DEMAND = Decimal("0.25"), Decimal(1)
JOBS, RUN_S = 4, 2 * HOUR
HIGH, LOW = 100_000, 10_000
"""The article's PriorityClasses: production training, and experiments."""


@pytest.fixture(scope="module")
def lab() -> "Lab":
    """The exercise, played once."""
    return Lab()


class Lab:
    """A quota of four spot nodes, four experiments, and one job of a higher priority an hour later."""

    def __init__(self) -> None:
        self.on = on = Stage(
            pools={"one": PoolPolicy(instance_type="one", capacity_type="spot", max=JOBS)},
            classes={
                "batch": ClassPolicy(capacity_types=("spot",), fallback="deny", gpu_models="any", idle_timeout=300)
            },
            faults=Faults(reclaim=False, checkpoint_s=600.0, restore_s=60.0),
        )
        self.low = [on.submit(f"experiment-{n}", run_s=RUN_S, priority=LOW, checkpoint_s=600.0) for n in range(JOBS)]
        on.event(self.low[-1])
        on.minutes(60)
        self.lit = [(node.machine.pool.capacity_type, len(node.jobs)) for node in on.world.nodes.values()]
        self.high = on.submit("production", run_s=HOUR, priority=HIGH, checkpoint_s=600.0)
        self.refused = on.event(self.high)
        self.launched = on.world.launches
        self._preempt(self.low[-1])
        on.minutes(1)
        self.after = {name: on.world.running[name].starts for name in sorted(on.world.running)}
        self.waits = sorted(job.id for job in on.world.pending.values())
        on.minutes(180)

    def _preempt(self, victim: PodDemand) -> None:
        """What kube-scheduler does: the room is kept for the pod that preempts; the victim's new pod comes after."""
        job = self.on.world.running[victim.uid]
        self.on.world.rest(job)
        self.on.wait(1)
        self.on.world.wake(job)

    @property
    def jobs(self) -> dict[str, float]:
        """Seconds that each job finished later than a run at its submit would have."""
        return {job.id: job.delay_s for job in self.on.world.finished}


def test_four_jobs_get_four_spot_nodes(lab: Lab) -> None:
    """One node each, at spot's price, and none more while they boot."""
    assert lab.lit == [("spot", 1)] * JOBS


def test_at_quota_nothing_is_bought_for_the_fifth(lab: Lab) -> None:
    """The pool's limit holds, whatever the priority: the answer names it."""
    assert lab.launched == JOBS
    assert lab.refused.outcome in ("done", "seen")
    assert lab.refused.released == ()


def test_the_higher_priority_runs_in_the_place_of_its_victim(lab: Lab) -> None:
    """The victim's GPU is the other's within a minute; the victim waits, and nothing was bought for it."""
    assert "uid-production" in lab.after
    assert lab.waits == ["uid-experiment-3"]


def test_the_victim_comes_back_and_keeps_its_checkpoint(lab: Lab) -> None:
    """Everybody finishes. What it lost is the work since its last checkpoint and a restore, not its first hour."""
    assert set(lab.jobs) == {"uid-production", *(f"uid-experiment-{n}" for n in range(JOBS))}
    assert lab.on.world.interruptions == 1
    assert 0 < lab.on.world.lost_gpu_seconds <= 600 + 60
    assert max(lab.jobs, key=lab.jobs.__getitem__) == "uid-experiment-3"


def test_the_pool_is_at_zero_in_the_end(lab: Lab) -> None:
    """No node is left, and every one that was bought was given back once."""
    assert lab.on.world.nodes == {}
    assert lab.on.world.terminations == lab.on.world.launches


def test_a_gpu_hour_of_work_costs_little_more_than_spot(lab: Lab) -> None:
    """The unit cost counts boots, idle minutes and work done again; on demand it could not be under $1."""
    worked_h = (JOBS * RUN_S + HOUR) / HOUR
    unit = lab.on.world.cost() / Decimal(worked_h)
    assert SPOT < unit < SPOT * Decimal("1.2") < ON_DEMAND
