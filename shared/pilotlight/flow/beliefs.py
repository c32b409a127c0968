"""What a plan believes of pods that wait beside nodes with room, and when that is given up.

Key: ``belief/<cluster>/<part>``.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from pilotlight.decide.capacity.misfits import beliefs, findings, given_up, misfits
from pilotlight.errors import Busy, Conflict
from pilotlight.facts.decisions import Plan
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps
from pilotlight.flow.lease import LOST
from pilotlight.flow.sight import Sight
from pilotlight.state_schema.decisions import BELIEFS


def doubt(deps: Deps, sight: Sight, plan: Plan, refused: Mapping[str, datetime]) -> Sight:
    """The look without what is believed no longer: then it is to be decided anew. The same look where all stays.

    ``refused`` says by pod uid when the scheduler last said that it fits nowhere.
    """
    if not sight.view.pending:
        return sight
    was = BELIEFS.read(deps.state, deps.name)
    now = beliefs(plan, sight.view.nodes, was.values, sight.now)
    found = misfits(now, sight.view.pending, sight.view.nodes, refused, sight.now)
    if now != was.values:
        try:
            BELIEFS.write(deps.state, deps.name, was, now)
        except Conflict:
            raise Busy(LOST) from None
    if not found:
        return sight
    memory = given_up(sight.memory, found, sight.now)
    remembered = ledger.remember(deps.state, deps.name, sight.was, memory)
    told = (*sight.findings, *findings(found, sight.view.pending))
    return replace(sight, memory=memory, was=remembered, findings=told)
