"""Lengths of the policy's queues, now and of late. One that cannot be read is told of, and holds nothing up."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pilotlight.decide.demand.queue_demand import YOUNG, remember_reading
from pilotlight.errors import Denied, Reject, Retry
from pilotlight.facts.demand.worker_queues import QueueHistory, QueueReading
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.cluster_records import QUEUE
from pilotlight.units import Seconds, human

READING_S: Seconds = 10.0
"""For all queues together: those that are left keep what was read of them before."""


class SeenQueues(NamedTuple):
    """Histories of each queue as they are known, and findings on those that could not be read."""

    histories: Mapping[str, QueueHistory]
    findings: tuple[Finding, ...] = ()


def look_at_queues(deps: Deps, names: Collection[str] = (), *, remember: bool = True) -> SeenQueues:
    """Read each queue, or those of these ``names``, once, and keep the reading. ``remember`` False keeps nothing."""
    if deps.queues is None:
        return SeenQueues({})
    histories: dict[str, QueueHistory] = {}
    findings: list[Finding] = []
    ran = deps.clock.stopwatch()
    for name in names or deps.policy.queues:
        entry = QUEUE.get(deps.state, f"{deps.name}/{name}")
        history = histories[name] = entry.value if entry else QueueHistory()
        if ran() > READING_S:
            continue
        try:
            reading = QueueReading(at=deps.now(), length=deps.queues.length(name))
        except (Denied, Reject, Retry) as error:
            message = (
                f"its length cannot be read: {error}; what was read last counts for {human(YOUNG.total_seconds())}"
            )
            findings.append(Finding(subject=f"queue {name}", code="queue-unread", message=message))
            continue
        keep_s = deps.policy.queues[name].keep
        histories[name] = remember_reading(history, reading, keep_s)
        if remember and histories[name] is not history:
            _keep(deps, name, reading, keep_s)
    return SeenQueues(histories, tuple(findings))


def _keep(deps: Deps, name: str, reading: QueueReading, keep_s: Seconds) -> None:
    QUEUE.change(
        deps.state, f"{deps.name}/{name}", lambda was: remember_reading(was or QueueHistory(), reading, keep_s)
    )
