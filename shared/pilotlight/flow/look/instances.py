"""Which pool and node each instance was: for notices that come when the cluster does not show it any more.

Written by a reconcile's look, where something is new in it.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from pilotlight.errors import Conflict
from pilotlight.facts.interruption import Instance
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.interruptions import INSTANCES

if TYPE_CHECKING:
    from pilotlight.flow.look.snapshot import Snapshot

KEEP = timedelta(days=2)
"""An instance is remembered so long after it was last seen: log sinks and queues deliver late."""

REFRESH = timedelta(hours=1)
"""How old "last seen" may become before it is written again."""


def learn(deps: Deps, snapshot: "Snapshot") -> None:
    """Remember what this look shows. Where another look is at it, that one's will do."""
    was = INSTANCES.read(deps.state, deps.name)
    known = was.values if was.parts else _of_one_record(deps)
    seen = {b.instance: Instance(pool=p.name, seen_at=snapshot.now) for p in snapshot.pools for b in p.booting}
    seen |= {
        n.instance: Instance(pool=n.pool, node=n.name, seen_at=snapshot.now) for n in snapshot.view.nodes if n.instance
    }
    new = {name: now for name, now in seen.items() if not _fresh(known.get(name), now)}
    kept = {name: one for name, one in known.items() if name in seen or snapshot.now - one.seen_at < KEEP}
    if not new and was.parts and len(kept) == len(known):
        return
    with suppress(Conflict):
        INSTANCES.write(deps.state, deps.name, was, kept | new)
        if not was.parts:
            INSTANCES.table.delete(deps.state, deps.name)


def where(deps: Deps, instance: str) -> Instance | None:
    """Where an instance was last seen; its node's name will do too."""
    was = INSTANCES.read(deps.state, deps.name)
    known = was.values if was.parts else _of_one_record(deps)
    return known.get(instance) or next((one for one in known.values() if one.node == instance), None)


def _fresh(was: Instance | None, now: Instance) -> bool:
    return was is not None and (was.pool, was.node) == (now.pool, now.node) and now.seen_at - was.seen_at < REFRESH


def _of_one_record(deps: Deps) -> Mapping[str, Instance]:
    """As it was kept before there were parts."""
    found = INSTANCES.table.get(deps.state, deps.name)
    return found.value.items if found else {}
