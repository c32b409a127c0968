"""Lives of instances that are known to have stopped: so the meter knows to the second when, also of one it never saw.

An instance that stops by itself and is told of by nobody is over at the first look that misses it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pilotlight.decide.money.holds import lit_instances
from pilotlight.facts.decisions import NodeVerdict, Record
from pilotlight.facts.money.bill import Life
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import LIVES

LATE = timedelta(hours=1)
"""A life may be written so long after a look that should have known of it began."""


def note_ended(deps: Deps, *lives: Life) -> None:
    """Note that instances have stopped."""
    LIVES.add(deps.state, f"{deps.name}/{_hour(deps.state.now())}", {life.instance: life for life in lives})


def note_released(deps: Deps, snapshot: Snapshot, record: Record) -> None:
    """Note the instances that a decision has just given back."""
    gone = [node for node, step in record.calls_with_steps if isinstance(node, NodeVerdict) and step.state == "done"]
    if not gone:
        return
    now = deps.now()
    named = [(node, node.instance or node.node) for node in gone]
    names = {name for _, name in named}
    nodes = [node for node in snapshot.view.nodes if (node.instance or node.name) in names]
    since = {one.instance: one.since for one in lit_instances(nodes, snapshot.pools)}
    note_ended(
        deps,
        *(
            Life(
                instance=instance,
                node=node.node,
                pool=node.pool,
                since=since[instance],
                ended_at=now,
                seen_at=snapshot.now,
            )
            for node, instance in named
            if instance in since
        ),
    )


def ended_since(deps: Deps, seen: datetime | None) -> list[Life]:
    """The lives that a meter which has looked up to ``seen`` may not know; all that are kept where it never has."""
    after = f"{deps.name}/{_hour(seen - LATE)}" if seen is not None else ""
    return _latest(entry.value.items for entry in LIVES.table.scan(deps.state, f"{deps.name}/", after=after))


def _latest(parts: Iterable[dict[str, Life]]) -> list[Life]:
    found: dict[str, Life] = {}
    for part in parts:
        found |= part
    return list(found.values())


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H}"
