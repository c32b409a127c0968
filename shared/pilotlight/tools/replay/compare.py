"""Pilotlight beside its peers on one trace: each policy in a process of its own, results in the order asked for."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_job import Bounds, Job
from pilotlight.tools.replay.worker_processes import workers
from pilotlight.world.journal import Log

M = TypeVar("M")
T = TypeVar("T")

Done = Callable[[str], None]
"""Told the name of each policy that has finished."""


class Trial(NamedTuple):
    """Terms that all policies of a comparison run under."""

    trace: str  # The trace's name.
    jobs: Sequence[Job]  # Its jobs, in the order of their submits.
    catalog: Catalog  # Machines that may be bought.
    scenario: Scenario  # Assumptions beside the trace.
    bound: Bounds  # Least that it costs at all.


def run_peers(names: Sequence[str], trial: Trial, *, meanwhile: Callable[[], Outcome], on_done: Done) -> list[Outcome]:
    """Outcomes of ``meanwhile`` (Pilotlight, in this process) and of every peer, Pilotlight first."""
    tasks = {name: partial(one_peer, name, trial) for name in names}
    ours, others = apart(tasks, meanwhile=meanwhile, on_done=on_done)
    return [ours, *others]


def apart(
    tasks: Mapping[str, Callable[[], T]], *, meanwhile: Callable[[], M], on_done: Done, processes: int | None = None
) -> tuple[M, list[T]]:
    """Result of ``meanwhile`` in this process, and each task in one of its own, in their order.

    At most so many ``processes`` at once: one for each processor where it is not said.
    """
    if not tasks:
        return meanwhile(), []

    def begin(pool: ProcessPoolExecutor) -> dict[Future[T], str]:
        return {pool.submit(task): name for name, task in tasks.items()}

    with workers(min(len(tasks), processes or os.cpu_count() or 1), begin) as futures:
        own = meanwhile()
        left = set(futures)
        while left:
            finished, left = wait(left, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                on_done(futures[future])
        return own, [future.result() for future in futures]


def one_peer(name: str, trial: Trial, log: Path | None = None) -> Outcome:
    """One peer's run; its log is written to ``log``, where that is given."""
    trace, jobs, catalog, scenario, bound = trial
    with log_to(log) as write:
        return run_peer(name, jobs, catalog, scenario, trace=trace, bound=bound, log=write)


@contextmanager
def log_to(path: Path | None) -> Iterator[Log | None]:
    """Writer of a run's records to a file as JSON lines; nothing where no file is named."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a file that can be written") from None
    with file:
        yield lambda entry: cast("None", file.write(json.dumps(entry, separators=(",", ":")) + "\n"))
