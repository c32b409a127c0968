"""Brakes that people set: a pause, and purchases so large that a person must approve them.

Keys: ``pause/<cluster>/<pool or *>``, ``approved/<cluster>/<decision>``.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from pilotlight.errors import BadInput, Conflict
from pilotlight.facts.decisions import Record
from pilotlight.facts.limits.brakes import ALL, APPROVAL_S, Approval, Brakes, Pause
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import ApproveOver
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.cluster_records import APPROVED, PAUSE


def pause(state: State, cluster: str, pool: str, reason: str, now: datetime, by: str = "") -> None:
    """Stop every effect from the next call on."""
    PAUSE.put(state, f"{cluster}/{pool or ALL}", Pause(reason=reason, at=now, by=by))


def resume(state: State, cluster: str, pool: str) -> bool:
    """Take a pause back; whether there was one."""
    there = PAUSE.get(state, f"{cluster}/{pool or ALL}") is not None
    PAUSE.delete(state, f"{cluster}/{pool or ALL}")
    return there


def pause_reason(state: State, cluster: str, pool: str) -> str:
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
    given = _given(deps)
    live = [grant for grant in given if not grant.spent_by and now - grant.granted_at < timedelta(seconds=APPROVAL_S)]
    return Brakes(
        modes={pool: deps.mode_of(pool) for pool in deps.policy.pools},
        advice=deps.advice,
        paused=pauses,
        approvals=_by_pool(live),
        used_up={pool: grant.decision for grant in given if grant not in live for pool in grant.nodes},
        turns=memory.turns,
    )


def approve(state: State, cluster: str, decision: str, nodes: dict[str, int], now: datetime, by: str = "") -> None:
    """Allow one decision's purchases beyond ``approve_over``, once. Raises ``BadInput`` where it was allowed before."""
    grant = Approval(decision=decision, nodes=nodes, granted_at=now, by=by)
    try:
        APPROVED.put(state, f"{cluster}/{decision}", grant, if_version=ABSENT)
    except Conflict:
        found = APPROVED.get(state, f"{cluster}/{decision}")
        was = found.value if found else grant
        spent = f", and decision {was.spent_by} bought by it" if was.spent_by else ""
        who = f" by {was.by}" if was.by else ""
        raise BadInput(
            f"decision {decision} was approved at {was.granted_at:%Y-%m-%d %H:%M} UTC already{who}{spent}: "
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


def _given(deps: Deps) -> list[Approval]:
    """Every approval that is known, the newest last."""
    if deps.policy.caps.approve_over == ApproveOver():
        return []
    found = (entry.value for entry in APPROVED.scan(deps.state, f"{deps.name}/"))
    return sorted(found, key=lambda grant: grant.granted_at)


def _by_pool(grants: Sequence[Approval]) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for grant in grants:
        for pool, nodes in grant.nodes.items():
            found[pool] = (*found.get(pool, ()), (grant.decision, nodes))
    return found


def _said(found: Pause) -> str:
    return f"paused since {found.at:%Y-%m-%d %H:%M} UTC: {found.reason}"
