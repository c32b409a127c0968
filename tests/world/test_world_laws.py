"""Laws of the world under any mix of jobs and any policy."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, get_args

import pytest
from audit import Audit
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cloud import POOLS, SPOT, gang, pod, world

from pilotlight.world.scheduling.scoring import Scoring
from pilotlight.world.simulation import World


class Arrival(NamedTuple):
    """A job: how long after the one before it comes, how long it runs, and its size."""

    after_s: float
    run_s: float
    gpus: int
    milli: int
    gang: int


ARRIVALS = st.builds(
    lambda after_s, run_s, size: Arrival(after_s, run_s, *size),
    st.one_of(st.just(0.0), st.integers(0, 900).map(float)),
    st.one_of(st.integers(0, 9000).map(float), st.floats(0, 500).map(lambda s: round(s, 3))),
    st.sampled_from([(1, 1000, 1), (1, 300, 1), (1, 550, 1), (2, 1000, 1), (4, 1000, 1), (8, 1000, 1), (8, 1000, 2)]),
)
STEPS = st.lists(st.tuples(ARRIVALS, st.sampled_from(["one", "four", "eight"]), st.booleans()), max_size=25)
SCORINGS = st.sampled_from(get_args(Scoring))
Steps = list[tuple[Arrival, str, bool]]


def run(
    steps: Steps,
    *,
    spot: bool,
    scoring: Scoring = "most-allocated",
    seed: int = 0,
    wait: Callable[[World, float], None],
) -> Any:
    """Play arrivals, with a launch at each and idle nodes given back at some; the world and its log."""
    records: list[dict[str, Any]] = []
    here = world(SPOT if spot else POOLS, seed=seed, scoring=scoring, log=records.append)
    at_s = 0.0
    for number, (arrival, pool, release) in enumerate(steps):
        at_s += arrival.after_s
        wait(here, at_s)
        name = f"j{number}"
        big = arrival.gang > 1
        demands = gang(name, arrival.gang) if big else [pod(name, arrival.gpus, arrival.milli)]
        here.submit(demands, arrival.run_s, job=name)
        here.launch("eight" if arrival.gpus == 8 else pool, arrival.gang)
        if release:
            for node in list(here.idle):
                here.terminate(node, "idle")
    wait(here, at_s + 40_000)
    return here, records


def jump(here: World, to_s: float) -> None:
    """Let time pass at once."""
    here.advance(to_s)


def crawl(here: World, to_s: float) -> None:
    """Let time pass from event to event, and a little between."""
    while (at_s := here.next_event_s()) is not None and at_s <= to_s:
        here.advance((here.now_s + at_s) / 2)
        here.advance(at_s)
    here.advance(to_s)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans(), SCORINGS, st.integers(0, 5))
def test_the_log_tells_all(steps: Steps, spot: bool, scoring: Scoring, seed: int) -> None:
    """From the log alone follow the cost, the waits, the ends and what was lost; no device is ever over-full."""
    here, records = run(steps, spot=spot, scoring=scoring, seed=seed, wait=jump)
    audit = Audit(records, {f"j{n}": arrival.run_s for n, (arrival, _, _) in enumerate(steps)})
    assert abs(audit.cost(here.now_s) - here.cost()) < Decimal("1e-9")
    assert audit.done == {job.id: job.finish_s for job in here.finished}
    assert all(audit.starts[job.id] == job.submit_s + job.wait_s for job in here.finished)
    assert audit.lost_gpu_s == pytest.approx(here.lost_gpu_seconds)
    assert len(here.finished) + len(here.running) + len(here.pending) == len(steps)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans(), st.integers(0, 5))
def test_one_jump_is_many_small_steps(steps: Steps, spot: bool, seed: int) -> None:
    """How finely time passes changes nothing, and the same seed gives the same run."""
    _, jumped = run(steps, spot=spot, seed=seed, wait=jump)
    _, crawled = run(steps, spot=spot, seed=seed, wait=crawl)
    assert jumped == crawled


@settings(max_examples=60, deadline=None)
@given(STEPS, SCORINGS)
def test_nothing_waits_beside_room_for_it(steps: Steps, scoring: Scoring) -> None:
    """At the end of time, a single pod that waits fits no ready node."""
    here, _ = run(steps, spot=False, scoring=scoring, wait=jump)
    for job in here.pending.values():
        need = here.need(job.demands[0].shape)
        assert len(job.demands) > 1 or not any(n.ready and need.fits(n.room) for n in here.nodes.values())
    assert here.used_milli == sum(node.used_milli for node in here.nodes.values())
    assert here.idle.keys() == {n.id for n in here.nodes.values() if n.ready and not n.jobs}


def test_another_seed_gives_other_lives() -> None:
    """Spot lives depend on the seed."""
    ends = set()
    for seed in range(5):
        here = world(SPOT, seed=seed)
        here.launch("one")
        while here.nodes:
            here.advance(here.next_event_s() or 0)
        ends.add(here.now_s)
    assert len(ends) == 5
