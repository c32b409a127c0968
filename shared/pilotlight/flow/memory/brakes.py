"""Brakes that people set: a pause, and purchases so large that a person must approve them.

Keys: ``pause/<cluster>/<pool or *>``, ``approved/<cluster>/<decision>``.
"""

from datetime import datetime, timedelta

import msgspec

from pilotlight.errors import BadInput, Conflict
from pilotlight.facts.brakes import ALL, APPROVAL_S, Approval, Brakes, Pause
from pilotlight.facts.decisions import Record
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import ApproveOver
from pilotlight.flow.deps import Deps
from pilotlight.flow.memory import ledger
from pilotlight.ports import ABSENT, State
from pilotlight.state_schema.cluster import APPROVED, PAUSE


def pause(state: State, cluster: str, pool: str, reason: str, now: datetime) -> None:
    """Stop every effect from the next call on."""
    PAUSE.put(state, f"{cluster}/{pool or ALL}", Pause(reason=reason, at=now))


def resume(state: State, cluster: str, pool: str) -> bool:
    """Take a pause back; whether there was one."""
    there = PAUSE.get(state, f"{cluster}/{pool or ALL}") is not None
    PAUSE.delete(state, f"{cluster}/{pool or ALL}")
    return there


def paused(state: State, cluster: str, pool: str) -> str:
    """Why the effects of a pool are stopped, or nothing. The last guard: read before each call."""
    for name in (ALL, pool):
        found = PAUSE.get(state, f"{cluster}/{name}")
        if found is not None:
            return _said(found.value)
    return ""


def read(deps: Deps, memory: Memory, now: datetime) -> Brakes:
    """Every brake, as one look decides by it."""
    within = f"{deps.name}/"
    pauses = {found.name.removeprefix(within): _said(found.value) for found in PAUSE.scan(deps.state, within)}
    return Brakes(
        modes={pool: deps.mode_of(pool) for pool in deps.policy.pools},
        advice=deps.advice,
        paused=pauses,
        approvals=_approvals(deps, now),
        turns=memory.turns,
    )


def approve(state: State, cluster: str, decision: str, nodes: dict[str, int], now: datetime) -> None:
    """Allow one decision's purchases beyond ``approve_over``, once. Raises ``BadInput`` where it was allowed before."""
    grant = Approval(decision=decision, nodes=nodes, granted_at=now)
    try:
        APPROVED.put(state, f"{cluster}/{decision}", grant, if_version=ABSENT)
    except Conflict:
        found = APPROVED.get(state, f"{cluster}/{decision}")
        was = found.value if found else grant
        spent = f", and decision {was.spent_by} bought by it" if was.spent_by else ""
        raise BadInput(
            f"decision {decision} was approved at {was.granted_at:%Y-%m-%d %H:%M} UTC already{spent}: "
            "an approval is given once; wait for the next decision's alert"
        ) from None


def spend_approvals(deps: Deps, record: Record) -> None:
    """Use up the approvals that a decision buys by, before its first call: whatever becomes of it, the next asks again.

    Raises ``Conflict`` where another has used one meanwhile.
    """
    for decision in {buy.approval for buy in record.plan.buys if buy.approval}:
        found = APPROVED.get(deps.state, f"{deps.name}/{decision}")
        if found is None or found.value.spent_by:
            raise Conflict(f"the approval of decision {decision} was used meanwhile")
        spent = msgspec.structs.replace(found.value, spent_by=record.id)
        APPROVED.put(deps.state, found.name, spent, if_version=found.version)
        for pool in {buy.pool for buy in record.plan.buys if buy.approval == decision}:
            ledger.approval_spent(deps.state, deps.name, pool, decision)


def _approvals(deps: Deps, now: datetime) -> dict[str, tuple[str, int]]:
    """What may still be bought by approvals: by pool the decision and its nodes; the newest counts."""
    if deps.policy.approve_over == ApproveOver():
        return {}
    found: dict[str, tuple[str, int]] = {}
    for entry in APPROVED.scan(deps.state, f"{deps.name}/"):
        grant = entry.value
        if not grant.spent_by and now - grant.granted_at < timedelta(seconds=APPROVAL_S):
            found |= {pool: (grant.decision, nodes) for pool, nodes in grant.nodes.items()}
    return found


def _said(found: Pause) -> str:
    return f"paused since {found.at:%Y-%m-%d %H:%M} UTC: {found.reason}"
