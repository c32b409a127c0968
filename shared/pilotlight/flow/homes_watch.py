"""Nodes that join after a tick's look: each gets its home within seconds, where no event tells of it."""

from pilotlight.facts.messages import Tick
from pilotlight.flow.answer import Answer
from pilotlight.flow.cycle.cycle import join_answers
from pilotlight.flow.deps import Deps
from pilotlight.flow.reconcile import reconcile
from pilotlight.flow.records import flight_log
from pilotlight.ports.cluster import HomingCluster
from pilotlight.units import Seconds

POLL_S: Seconds = 2.0
"""How often the cluster is asked whether a node waits for its home; no more than a quarter of the time goes there."""

LOOK_S: Seconds = 10.0
"""How often there is a whole look meanwhile, whether a node joined or not."""


def watch(deps: Deps, tick: Tick, answer: Answer, for_s: Seconds) -> Answer:
    """The tick's answer with those of the looks that joining nodes lead to, for as long as purchases are on their way.

    It ends where the clock is led by hand: whoever leads it ticks. Raises what ``reconcile`` does.
    """
    deps, ran = deps.whole, deps.clock.stopwatch()
    looked, rest, seen = 0.0, POLL_S, set[str]()
    while ran() + rest < for_s and flight_log.in_flight(deps.state, deps.name):
        began = ran()
        deps.pause(rest)
        asked = ran()
        if asked == began:
            break
        born = set(deps.cluster.without_home()) if isinstance(deps.cluster, HomingCluster) else seen
        rest = max(POLL_S, 3 * (ran() - asked))
        if born - seen or asked - looked >= LOOK_S:
            answer = join_answers(answer, reconcile(deps, tick))
            looked, seen = ran(), born
    return answer
