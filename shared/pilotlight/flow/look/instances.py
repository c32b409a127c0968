"""Which pool and node each instance was: for notices that come when the cluster does not show it any more.

Written by a reconcile's look, where something is new in it. What it reads each time is no more than is there: what
looks miss lies apart, for two days from then, because log sinks and queues deliver late.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from pilotlight.errors import Conflict
from pilotlight.facts.interruption import Instance
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.interruptions import GONE, INSTANCES

if TYPE_CHECKING:
    from pilotlight.flow.look.snapshot import Snapshot

REFRESH = timedelta(hours=1)
"""How old "last seen" may become before it is written again."""


def learn(deps: Deps, snapshot: "Snapshot") -> None:
    """Remember what this look shows. Where another look is at it, that one's will do."""
    was = INSTANCES.read(deps.state, deps.name)
    known = was.values if was.parts else _of_one_record(deps)
    seen = {b.instance: (p.name, "") for p in snapshot.pools for b in p.booting}
    seen |= {n.instance: n.place for n in snapshot.view.nodes if n.instance}
    now, old = snapshot.now, snapshot.now - REFRESH
    new = {
        name: Instance(pool=pool, node=node, seen_at=now)
        for name, (pool, node) in seen.items()
        if (one := known.get(name)) is None or one.seen_at <= old or one.node != node or one.pool != pool
    }
    gone = {name: one for name, one in known.items() if name not in seen} if known.keys() - seen.keys() else {}
    if not new and not gone and was.parts:
        return
    with suppress(Conflict):
        GONE.add(deps.state, f"{deps.name}/{now:%Y-%m-%dT%H}", gone)
        if was.parts:
            INSTANCES.change(deps.state, deps.name, was, new, gone)
        else:
            INSTANCES.write(deps.state, deps.name, was, {name: new.get(name) or known[name] for name in seen})
            INSTANCES.table.delete(deps.state, deps.name)


def where(deps: Deps, instance: str) -> Instance | None:
    """Where an instance was last seen; its node's name will do too."""
    was = INSTANCES.read(deps.state, deps.name)
    known: dict[str, Instance] = {}
    for entry in GONE.table.scan(deps.state, f"{deps.name}/"):
        known |= entry.value.items
    known |= was.values if was.parts else _of_one_record(deps)
    return known.get(instance) or next((one for one in known.values() if one.node == instance), None)


def _of_one_record(deps: Deps) -> Mapping[str, Instance]:
    """As it was kept before there were parts."""
    found = INSTANCES.table.get(deps.state, deps.name)
    return found.value.items if found else {}
