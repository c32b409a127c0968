"""Pilotlight beside its peers on one trace: each policy in a process of its own, results in the order asked for."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import resource_tracker

from pilotlight.facts.catalog import Catalog
from pilotlight.facts.trace import Bounds, Job
from pilotlight.replay.measure import Outcome
from pilotlight.replay.peers.run import run_peer
from pilotlight.replay.run import Scenario

ENDS = (signal.SIGINT, signal.SIGTERM)

Done = Callable[[str], None]
"""Told the name of each policy that has finished."""


def run_peers(
    names: Sequence[str],
    jobs: Sequence[Job],
    catalog: Catalog,
    scenario: Scenario,
    *,
    trace: str,
    bound: Bounds,
    meanwhile: Callable[[], Outcome],
    on_done: Done,
) -> list[Outcome]:
    """What ``meanwhile`` (Pilotlight, in this process) and every peer came to, Pilotlight first."""
    if not names:
        return [meanwhile()]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(len(names), os.cpu_count() or 1), mp_context=context) as pool:
        # The tracker unblocks signals when it begins, so it begins before.
        resource_tracker.ensure_running()
        with _signals_wait():
            futures: dict[Future[Outcome], str] = {
                pool.submit(_one, name, jobs, catalog, scenario, trace, bound): name for name in names
            }
        ours = meanwhile()
        left = set(futures)
        while left:
            finished, left = wait(left, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                on_done(futures[future])
        return [ours, *(future.result() for future in futures)]


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Ctrl-C and SIGTERM are answered when this is left: a process half begun could not be ended.

    Processes begun in it keep Ctrl-C blocked: it is this one's to answer. Other threads may get a signal meanwhile,
    and the main one then answers it, blocked or not; so what answers is changed too.
    """
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in ENDS}
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        for each in came:
            signal.raise_signal(each)


def _one(name: str, jobs: Sequence[Job], catalog: Catalog, scenario: Scenario, trace: str, bound: Bounds) -> Outcome:
    return run_peer(
        name,
        jobs,
        catalog,
        trace=trace,
        seed=scenario.seed,
        capacity_type=scenario.capacity_type,
        faults=scenario.faults(),
        bound=bound,
        sample_s=scenario.sample_s or None,
    )
