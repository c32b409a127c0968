"""Laws of the flows over drawn days: events lost, doubled and late; jobs short and long; ticks now and then."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from stage import MINUTE, Stage

from pilotlight.facts.workload import PodDemand


class Step(NamedTuple):
    """A pod is submitted; so many events of it or of an older pod arrive; time passes; perhaps a tick."""

    gpus: int
    run_s: float
    events: tuple[int, ...]
    wait_s: float
    tick: bool


steps = st.lists(
    st.builds(
        Step,
        gpus=st.sampled_from([1, 1, 1, 4, 8]),
        run_s=st.sampled_from([30.0, 600.0, 7200.0]),
        events=st.lists(st.integers(0, 11), max_size=3).map(tuple),
        wait_s=st.sampled_from([0.0, 5.0, 45.0, 400.0]),
        tick=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def played(script: list[Step], stage: Stage) -> None:
    """A day by the script, then quiet hours with a tick a minute."""
    pods: list[PodDemand] = []
    for number, step in enumerate(script):
        pods.append(stage.submit(f"p{number}", step.gpus, step.run_s))
        for back in step.events:
            stage.event(pods[-1 - back % len(pods)])
        stage.wait(step.wait_s)
        if step.tick:
            stage.tick()
    stage.minutes(4 * 60)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_whatever_events_do_every_job_runs_once_and_all_goes_out(script: list[Step]) -> None:
    """Every job starts exactly once and ends, no more nodes are lit than jobs came, and none is left at night."""
    stage = Stage()
    played(script, stage)
    assert len(stage.events("start")) == len(stage.world.finished) == len(script)
    assert stage.world.launches <= len(script)
    assert not stage.world.nodes


@settings(max_examples=40, deadline=None)
@given(steps, st.sampled_from([MINUTE, 10 * MINUTE, 30 * MINUTE]))
def test_a_slow_boot_buys_no_more(script: list[Step], boot_s: float) -> None:
    """However long nodes boot, what is bought is bounded by the jobs, and no job's node is taken from it."""
    stage = Stage(boot_s=boot_s, gpu_ready_deadline=60 * MINUTE)
    played(script, stage)
    assert stage.world.launches <= len(script)
    assert stage.world.interruptions == 0
