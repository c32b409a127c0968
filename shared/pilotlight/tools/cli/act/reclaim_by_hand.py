"""Commands of a person about an idle owner: leave it alone for a while, or wake it."""

from datetime import datetime, timedelta

import msgspec

from pilotlight.errors import Conflict, Failed
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.flow.deps import Deps
from pilotlight.flow.reclaim.reclaim_owners import file
from pilotlight.ports.cluster import RestingCluster
from pilotlight.state_schema.alert_records import RECLAIM
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds


def snooze(deps: Deps, entry: Entry[Reclaim], for_s: Seconds, by: str, *, dry_run: bool = False) -> datetime:
    """Leave it alone for so long; until when. Raises ``Failed`` where it rests, or changed meanwhile."""
    one, now = entry.value, deps.now()
    if one.stage in ("going", "resting"):
        raise Failed(f"{one.owner} rests already: wake it with `pilotlight reclaim wake {one.owner.key}`")
    until = now + timedelta(seconds=for_s)
    if dry_run:
        return until
    later = msgspec.structs.replace(one, snoozed_until=until, due_at=max(one.due_at, until), at=now)
    try:
        RECLAIM.put(deps.state, entry.name, later, if_version=entry.version)
    except Conflict:
        raise Failed(f"{one.owner} changed meanwhile: look at it again and repeat this") from None
    file(deps, "snoozed", later, f"left alone until {until:%Y-%m-%d %H:%M} UTC by {by}", now, by)
    return until


def wake(deps: Deps, entry: Entry[Reclaim], by: str, *, dry_run: bool = False) -> int:
    """Give it the pods that it had; how many. Raises ``Failed`` where it does not rest."""
    one, now = entry.value, deps.now()
    if one.stage not in ("going", "resting"):
        raise Failed(f"{one.owner} does not rest: it is {one.stage}, and nothing was done to it")
    if dry_run:
        return one.count
    if not isinstance(deps.cluster, RestingCluster):
        raise Failed(f"cluster {deps.name} is read from files: wake {one.owner} where its API server can be asked")
    count = deps.cluster.wake(one.owner)
    file(deps, "woken", one, f"woken by {by}: it has {count}", now, by)
    RECLAIM.delete(deps.state, entry.name)
    return count
