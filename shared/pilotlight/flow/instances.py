"""Which pool and node each instance was: for notices that come when the cluster does not show it any more.

Key: ``instances/<cluster>``, one record, written by a reconcile's look where something is new in it.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from pilotlight.codec.records import Format
from pilotlight.facts.interruption import Instance, Instances
from pilotlight.flow.deps import Deps

if TYPE_CHECKING:
    from pilotlight.flow.sight import Sight

KEEP = timedelta(days=2)
"""An instance is remembered so long after it was last seen: log sinks and queues deliver late."""

REFRESH = timedelta(hours=1)
"""How old "last seen" may become before it is written again."""

MOST = 2000
"""Instances in the record, the last seen first: about 100 bytes each."""

INSTANCES = Format(Instances)


def learn(deps: Deps, sight: "Sight") -> None:
    """Remember what this look shows."""
    known = _known(deps)
    seen = {b.instance: Instance(pool=p.name, seen_at=sight.now) for p in sight.pools for b in p.booting}
    seen |= {n.instance: Instance(pool=n.pool, node=n.name, seen_at=sight.now) for n in sight.view.nodes if n.instance}
    if all(_fresh(known.get(name), now) for name, now in seen.items()):
        return
    kept = {name: one for name, one in known.items() if sight.now - one.seen_at < KEEP} | seen
    newest = sorted(kept, key=lambda name: (kept[name].seen_at, name), reverse=True)[:MOST]
    record = Instances(known={name: kept[name] for name in newest})
    deps.state.put(_key(deps), INSTANCES.write(record))


def where(deps: Deps, instance: str) -> Instance | None:
    """Where an instance was last seen; its node's name will do too."""
    known = _known(deps)
    return known.get(instance) or next((one for one in known.values() if one.node == instance), None)


def _fresh(was: Instance | None, now: Instance) -> bool:
    return was is not None and (was.pool, was.node) == (now.pool, now.node) and now.seen_at - was.seen_at < REFRESH


def _known(deps: Deps) -> dict[str, Instance]:
    stored = deps.state.get(_key(deps))
    return INSTANCES.read(_key(deps), stored.value).known if stored else {}


def _key(deps: Deps) -> str:
    return f"instances/{deps.name}"
