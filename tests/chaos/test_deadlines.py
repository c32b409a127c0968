"""The judge of deadlines: it knows when each job was due and when it ended, and nothing of what was reckoned."""

from random import Random

from harness.judges.deadlines import SPARE_S, late, with_deadlines
from harness.scene import CATALOG, Scene
from harness.setting import drawn

from pilotlight.world.simulation import World


def _scene() -> Scene:
    """A setting of a seed whose jobs have deadlines."""
    return with_deadlines(drawn(7, 40)[1], Random("deadlines/7"))


def test_a_job_that_nobody_buys_for_is_late_once_its_deadline_is_over() -> None:
    """Not before; and jobs without a deadline never are."""
    scene = _scene()
    due = {job.demands[0].uid for job in scene.jobs if job.demands[0].shape.due}
    assert 0 < len(due) < len(scene.jobs)
    world = World(CATALOG, scene.pools)
    for job in scene.jobs:
        world.submit(job.demands, job.run_s)
    world.advance(SPARE_S)
    assert not list(late(scene, world))
    world.advance(2 * SPARE_S)
    assert {words.partition(" ")[0] for words in late(scene, world)} == due


def test_a_job_that_ended_in_time_is_not_late_however_long_the_run_goes_on() -> None:
    """What counts is when it ended."""
    scene = _scene()
    job = next(job for job in scene.jobs if job.demands[0].shape.due and len(job.demands) == 1)
    world = World(CATALOG, scene.pools)
    world.submit(job.demands, job.run_s)
    for pool in scene.pools:
        world.launch(pool.name)
    world.advance(2 * SPARE_S)
    assert not [words for words in late(scene, world) if words.startswith(f"{job.demands[0].uid} ")]


def test_a_job_that_never_came_is_not_late() -> None:
    """A run may be over before its last jobs are created."""
    scene = _scene()
    world = World(CATALOG, scene.pools)
    world.advance(3 * SPARE_S)
    assert list(late(scene, world)) == []


def test_nobody_has_a_deadline_where_budgets_may_run_out() -> None:
    """What a budget keeps from being bought is late by its owner's wish."""
    scenes = [drawn(seed, 40)[1] for seed in range(30)]
    assert all(with_deadlines(s, Random(0)) is s for s in scenes if s.policy.budgets)
