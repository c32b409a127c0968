"""Jobs of a trace as pods."""

from datetime import timedelta

import pytest
from small_cloud import CATALOG, START, gang, world

from pilotlight.facts.workload import PodDemand
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.world.scheduling.scheduler import Scheduler
from pilotlight.world.world_nodes import WorldNode


def test_a_job_may_use_large_enough_nodes_of_its_models() -> None:
    """A job's pod is allowed on types of an allowed model with enough GPUs, and on no other."""
    here = world()
    (demand,) = demands_of(Job(job_id="j", submit_s=7, duration_s=1, gpus=2, models=("T4", "V100")), CATALOG)
    need = here.need(demand.shape)
    allowed = [name for name in here.fleet.pools if need.allows(here.fleet.machine(name))]
    assert allowed == ["four"]
    assert demand.created_at == START + timedelta(seconds=7)


def test_a_job_over_eight_gpus_is_a_gang_of_whole_nodes() -> None:
    """Sixteen GPUs are two pods of eight that start together."""
    pods = demands_of(Job(job_id="j", submit_s=0, duration_s=1, gpus=16), CATALOG)
    assert [(d.name, d.shape.gpu.count) for d in pods] == [("j-0", 8), ("j-1", 8)]
    assert {d.shape.gang.size for d in pods if d.shape.gang} == {2}


def test_a_large_gang_is_placed_pod_by_pod_only_once_its_nodes_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As each of forty nodes comes the gang is looked at as a whole: its pods ask for nodes once, at the last."""
    asked: list[PodDemand] = []
    choose = Scheduler.choose

    def counted(self: Scheduler, pod: PodDemand) -> WorldNode | None:
        asked.append(pod)
        return choose(self, pod)

    monkeypatch.setattr(Scheduler, "choose", counted)
    here = world()
    job = here.submit(tuple(gang("g", 40)), 600)
    for _ in range(40):
        here.launch("eight")
    here.advance(10_000)
    assert here.finished == [job]
    assert len(asked) == 40


def test_a_pinned_job_may_use_one_type() -> None:
    """Pinning narrows what a job may use to the types named."""
    here = world()
    (demand,) = demands_of(Job(job_id="j", submit_s=0, duration_s=1, gpus=1), CATALOG, pinned="four")
    need = here.need(demand.shape)
    assert [n for n in here.fleet.pools if need.allows(here.fleet.machine(n))] == ["four"]


def test_equal_jobs_share_a_shape() -> None:
    """Jobs that differ only in their times have one shape, so that plans group them."""
    first, second = (demands_of(Job(job_id=n, submit_s=0, duration_s=1, gpus=1), CATALOG)[0] for n in "ab")
    assert first.shape is second.shape
