"""Work side by side: on several clusters, so that none that fails or hangs delays another; calls of one, in rows."""

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from pilotlight.errors import Unavailable
from pilotlight.units import Seconds

T = TypeVar("T")


def rows(items: Iterable[T], at_once: int) -> Iterator[list[T]]:
    """The items in rows of so many."""
    left = iter(items)
    while row := list(islice(left, at_once)):
        yield row


def together(row: Sequence[Callable[[], T]]) -> list[T]:
    """What calls give that are made at once, in their order; the first error is raised once all are over."""
    if len(row) == 1:
        return [row[0]()]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(row)) as crew:
        made = [crew.submit(contextvars.copy_context().run, do) for do in row]
    return [each.result() for each in made]


def abreast(work: Mapping[str, Callable[[], T]], bound_s: Seconds) -> dict[str, T | Exception]:
    """Result or error of each piece of work, by its name and in that order.

    Each has a thread of its own, with this one's logging context. One that is not done after ``bound_s`` is left to
    itself, and counts as ``Unavailable``; its ports bound every call, and its cluster's lease keeps others off. What
    ends a thread and is no ``Exception`` is raised here.
    """
    done: queue.SimpleQueue[tuple[str, T | BaseException]] = queue.SimpleQueue()
    for name, do in work.items():
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(_run, done, name, do), name=f"cluster-{name}", daemon=True).start()
    found: dict[str, T | Exception] = {}
    until = time.monotonic() + bound_s
    while len(found) < len(work):
        try:
            name, outcome = done.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        found[name] = outcome
    late = Unavailable(f"not done after {bound_s:g} s; it goes on by itself")
    return {name: found.get(name, late) for name in work}


def _run(done: "queue.SimpleQueue[tuple[str, T | BaseException]]", name: str, do: Callable[[], T]) -> None:
    try:
        done.put((name, do()))
    except BaseException as error:  # Whatever it is, the caller answers for it.
        done.put((name, error))
