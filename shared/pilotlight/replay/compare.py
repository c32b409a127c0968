"""Pilotlight beside its peers on one trace: each policy in a process of its own, results in the order asked for."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TypeVar, cast

from pilotlight.errors import BadInput
from pilotlight.facts.catalog import Catalog
from pilotlight.facts.trace import Bounds, Job
from pilotlight.replay.measure import Outcome
from pilotlight.replay.peers.run import run_peer
from pilotlight.replay.run import Scenario
from pilotlight.world.journal import Log

M = TypeVar("M")
T = TypeVar("T")

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
    tasks = {name: partial(one_peer, name, jobs, catalog, scenario, trace, bound) for name in names}
    ours, others = apart(tasks, meanwhile=meanwhile, on_done=on_done)
    return [ours, *others]


def apart(
    tasks: Mapping[str, Callable[[], T]], *, meanwhile: Callable[[], M], on_done: Done, processes: int | None = None
) -> tuple[M, list[T]]:
    """What ``meanwhile`` gave in this process, and each task in one of its own, in their order.

    At most so many ``processes`` at once: one for each processor where it is not said.
    """
    if not tasks:
        return meanwhile(), []
    context = multiprocessing.get_context("spawn")
    workers = min(len(tasks), processes or os.cpu_count() or 1)
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        # The tracker unblocks signals when it begins, so it begins before.
        resource_tracker.ensure_running()
        with _signals_wait():
            futures: dict[Future[T], str] = {pool.submit(task): name for name, task in tasks.items()}
        own = meanwhile()
        left = set(futures)
        while left:
            finished, left = wait(left, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                on_done(futures[future])
        return own, [future.result() for future in futures]


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


def one_peer(
    name: str,
    jobs: Sequence[Job],
    catalog: Catalog,
    scenario: Scenario,
    trace: str,
    bound: Bounds,
    log: Path | None = None,
) -> Outcome:
    """One peer's run; its log is written to ``log``, where that is given."""
    with log_to(log) as write:
        return run_peer(
            name,
            jobs,
            catalog,
            trace=trace,
            seed=scenario.seed,
            capacity_type=scenario.capacity_type,
            zones=scenario.zones,
            falls_back=scenario.falls_back,
            faults=scenario.faults(),
            bound=bound,
            sample_s=scenario.sample_s or None,
            log=write,
        )


@contextmanager
def log_to(path: Path | None) -> Iterator[Log | None]:
    """What writes a run's records to a file as JSON lines; nothing where no file is named."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a file that can be written") from None
    with file:
        yield lambda entry: cast("None", file.write(json.dumps(entry, separators=(",", ":")) + "\n"))
