"""A node pool of GKE as the port tells it, from its groups and its queue; and which names in it are ours."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pilotlight.adapters.pools.gke.closed import Closed, surges
from pilotlight.adapters.pools.gke.groups import RECREATES, Managed, Seen
from pilotlight.adapters.pools.gke.node_pools import NodePool
from pilotlight.adapters.pools.gke.own_names import is_own, own_name
from pilotlight.adapters.pools.gke.refusals import Missing, reason_of
from pilotlight.errors import PilotlightError, Retry
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, LateRefusal, PoolRules, PoolState

if TYPE_CHECKING:
    from pilotlight.adapters.pools.gke.queue import Queue

GOES = ("STOPPING", "PENDING_STOP", "SUSPENDING", "DEPROVISIONING", "TERMINATED", "STOPPED", "SUSPENDED")
"""States of an instance that goes, or has gone."""


class PoolLook(NamedTuple):
    """A pool as it is: its queue where it has one, why that cannot be asked, its groups, and why others are unread."""

    queue: "Queue | None"
    unasked: str
    every: Sequence[Seen]
    unread: Sequence[PilotlightError] = ()

    @property
    def whole(self) -> bool:
        """True where nothing is unread, and no list lags behind its group's size."""
        return not self.unread and all(len(seen.instances) >= seen.size for seen in self.every)


def state_at(name: str, pool: NodePool, look: PoolLook, no: Closed | None, now: datetime, where: str) -> PoolState:
    """A pool at a moment, by the policy's name of it; ``no`` is why nothing is bought in it, ``where`` for gcloud."""
    queue, every, unread = look.queue, look.every, look.unread
    refused = [(seen, called) for seen in every for called in seen.refused]
    ours = tuple(called for seen, called in refused if is_own(seen.base, called))
    state = PoolState(
        name=name,
        desired=sum(seen.size for seen in every),
        booting=tuple(
            _booting(seen, one, now) for seen in every for one in seen.instances if one.called not in seen.refused
        ),
        owed=len(refused) - len(ours),
        leaves=tuple(name for seen in every for name in seen.leaves),
        refusal=_refusal(*refused[0]) if refused else None,
        refused=ours,
        lagging=sum(max(0, seen.size - len(seen.instances)) for seen in every),
        unread=next((str(one) for one in unread), ""),
        hidden=not all(isinstance(one, Missing) for one in unread),
        rules=_rules(pool, look, no, where),
    )
    return _with_given(queue.join_to(state) if queue else state, no, every)


def _rules(pool: NodePool, look: PoolLook, no: Closed | None, where: str) -> PoolRules:
    zones = tuple(dict.fromkeys(seen.group.zone for seen in look.every))
    return PoolRules(
        group=pool.name,
        zones=zones,
        closed=no.why if no else "",
        starves=no is not None and not no.shared,
        silent=no is not None and no.cause is not None and all(isinstance(one, Retry) for one in look.unread),
        names_zone=len(zones) > 1 and look.queue is None,
        kind=pool.config.kind,
        surges=surges(pool, where),
        queues=pool.queued_provisioning.enabled,
        most=pool.most if look.queue is not None else None,
    )


def _with_given(state: PoolState, no: Closed | None, every: Sequence[Seen]) -> PoolState:
    """The pool with what goes back of it where nothing is bought, or may not be for want of a zone's name."""
    gives = _gives(no, state, every) if no or len(every) > 1 else ()
    return replace(state, rules=replace(state.rules, gives=gives)) if state.rules and gives else state


def _booting(seen: Seen, one: Managed, now: datetime) -> Booting:
    doubt = "another hand asked for it" if one.costs_nothing and not is_own(seen.base, one.called) else ""
    at = seen.made.get(one.called) or now
    return Booting(instance=one.called, requested_at=at, unmade=one.costs_nothing, doubt=doubt)


def _gives(no: Closed | None, state: PoolState, every: Sequence[Seen]) -> tuple[str, ...]:
    """What goes back of a pool in which nothing is bought: nothing while GKE works on it, of one that another scales
    too what is of our names."""
    if no is not None and no.passes:
        return ()
    named = (*(one.instance for one in (*state.booting, *state.queued)), *state.refused)
    shared = no is not None and no.shared
    return tuple(name for name in named if not shared or any(is_own(seen.base, name) for seen in every))


def instance_state(one: Managed, seen: Seen) -> InstanceState:
    """An instance of a group, as the port tells it."""
    goes = one.current_action == RECREATES or one.instance_status in GOES
    ends = one.scheduling.termination_timestamp
    return InstanceState(
        there=True,
        created_at=seen.made.get(one.called),
        going=True if goes or ends else None,
        deadline=None if goes else ends,
        runs=one.instance_status == "RUNNING" and not goes,
    )


def _refusal(seen: Seen, name: str) -> LateRefusal:
    """Why an instance could not be made, as its group has it now."""
    told = seen.refused[name]
    return LateRefusal(
        identity=f"{name}/{told.code}",
        reason=reason_of(told.code, told.message),
        message=f"{told.code}: {told.message}"[:240],
        zone=seen.group.zone,
    )


def names(seen: Seen, step: str, numbers: range) -> list[str]:
    """Names of a step's instances."""
    return [own_name(seen.base, f"{step}/{n}") for n in numbers]
