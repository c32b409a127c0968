"""Beliefs of a plan about pods that wait beside nodes with room, and when they are given up.

Key: ``belief/<cluster>/<part>``.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from pilotlight.decide.fit.fit_mismatch import (
    Heard,
    believed_fits,
    findings,
    fit_mismatches,
    given_up,
    not_due,
    passed_over,
    turns,
    unbound_beside,
    untold,
)
from pilotlight.errors import Busy, Conflict
from pilotlight.facts.decisions import Plan
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.scheduler_heartbeat import last_heard
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.flow.records.lease import LOST
from pilotlight.state_schema.decision_records import BELIEFS


def drop_mismatches(
    deps: Deps, snapshot: Snapshot, plan: Plan, refused: Mapping[str, datetime]
) -> tuple[Snapshot, bool, frozenset[str]]:
    """The look without what is believed no longer, and whether that is anything: then it is to be decided anew.

    Then the pods (uid) that do not take their homes, whose room is free for others. ``refused`` says by pod uid when
    the scheduler last said that it fits nowhere.
    """
    was = BELIEFS.read(deps.state, deps.name)
    but = not_due(plan, snapshot.view.pending, snapshot.moving, snapshot.doubted)
    but |= untold(plan, snapshot.view.pending, snapshot.view.nodes)
    now = believed_fits(plan, snapshot.view.nodes, was.values, snapshot.now, but)
    now |= turns(now, was.values, snapshot.view, snapshot.now)
    pending, nodes = snapshot.view.pending, snapshot.view.nodes
    vain = unbound_beside(now, pending, snapshot.now)
    heard = last_heard(deps, nodes, snapshot.now) if any(pod.said for pod, _, _ in vain) else Heard()
    found = fit_mismatches(now, pending, nodes, refused, heard, snapshot.now)
    try:
        BELIEFS.write(deps.state, deps.name, was, now)
    except Conflict:
        raise Busy(LOST) from None
    memory = given_up(snapshot.memory, found, pending, snapshot.now) if found else snapshot.memory
    memory = replace(memory, believing=bool(now))
    remembered = ledger.remember(deps.state, deps.name, snapshot.was, memory)
    told = (*snapshot.findings, *findings(found, vain, pending))
    return (
        replace(snapshot, memory=memory, was=remembered, findings=told),
        bool(found),
        passed_over(now, snapshot.view, snapshot.now),
    )
