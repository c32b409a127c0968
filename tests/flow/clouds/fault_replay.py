"""A morning whose answers are faulty: events delivered as a bus would, what each is answered, and every line logged."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from stage import Stage

from pilotlight.errors import PilotlightError
from pilotlight.facts.workload import PodDemand
from pilotlight.flow.answer import Answer


class Told(logging.Handler):
    """Every line of every library's log, with all that its record holds."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.said.append(f"{record.getMessage()} {record.__dict__!r}")


@contextmanager
def whole_log() -> Iterator[Told]:
    """What is logged at any level by anybody, until the end."""
    root, handler = logging.getLogger(), Told()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def deliver(stage: Stage, pods: Sequence[PodDemand]) -> list[str]:
    """The event of each pod that waits, twice, and a tick: as a bus would, whatever comes of them."""
    waiting = {demand.uid for job in stage.world.pending.values() for demand in job.demands}
    events = [partial(stage.event, pod) for pod in pods if pod.uid in waiting]
    calls: list[Callable[[], Answer]] = [*events, *events, stage.tick]
    return [answered(call) for call in calls]


def answered(call: Callable[[], Answer]) -> str:
    """What is answered, or the error with its cause."""
    try:
        return repr(call())
    except PilotlightError as error:
        return f"{error!r} {error.__cause__!r}"
