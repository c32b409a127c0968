"""Kueue's queues stopped while a budget's step says that nothing more is bought, and opened again after it.

A queue that admits no more keeps work from waiting with quota that no dollars follow. What runs is left alone. The
value from before is kept on the queue itself, so that it is found again whatever becomes of our state.
"""

import logging

from pilotlight.errors import Denied, Retry
from pilotlight.flow.budgets import ladder_steps
from pilotlight.flow.deps import Deps
from pilotlight.ports.cluster import StoppableQueues

_log = logging.getLogger("pilotlight.queues")


def stop_queues(deps: Deps) -> tuple[str, ...]:
    """Bring every queue that a budget names to where the budget's step puts it. What changed, a line each."""
    named = {queue: budget.name for budget in deps.policy.budgets for queue in budget.queues}
    cluster = deps.cluster
    if not named or not deps.acts or not isinstance(cluster, StoppableQueues):
        return ()
    stops = {step.budget: step.why for step in ladder_steps.steps(deps.state, deps.name) if step.do == "no-new-buys"}
    stopped = {queue: stops[b.name] for b in deps.policy.budgets if b.name in stops for queue in b.queues}
    done: list[str] = []
    for queue in sorted(named):
        try:
            changed = cluster.stop_queue(queue, stopped.get(queue, ""))
        except (Denied, Retry) as error:
            _log.warning("queue left as it is", extra={"data": {"queue": queue, "why": str(error)}})
            done.append(f"queue {queue} could not be {'stopped' if queue in stopped else 'opened'}: {error}")
            continue
        if changed and queue in stopped:
            done.append(f"queue {queue} admits no more: {stopped[queue]}")
        elif changed:
            done.append(f"queue {queue} is as it was before budget {named[queue]} stopped it")
    return tuple(done)
