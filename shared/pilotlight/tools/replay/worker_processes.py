"""Worker processes that end with the command that began them."""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from typing import TypeVar

T = TypeVar("T")

ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def workers(most: int, begin: Callable[[ProcessPoolExecutor], T]) -> Iterator[T]:
    """Results of ``begin``, which submits all the work there is to at most so many processes.

    They are begun by it. They leave Ctrl-C to the process that began them, which ends them.
    """
    with ProcessPoolExecutor(most, mp_context=get_context("spawn")) as pool:
        # The tracker unblocks signals when it begins, so it begins before.
        resource_tracker.ensure_running()
        with _signals_wait():
            begun = begin(pool)
        yield begun


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Ctrl-C and SIGTERM are answered when this is left: nobody could end a process that is not yet known.

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
