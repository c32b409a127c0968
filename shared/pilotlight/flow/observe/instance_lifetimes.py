"""Lives of instances that are known to have stopped: so the meter knows to the second when, also of one it never saw.

An instance that stops by itself and is told of by nobody is over at the first look that misses it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pilotlight.facts.decisions import NodeVerdict, Record
from pilotlight.facts.money.bill import Life
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import call_steps
from pilotlight.state_schema.billing_records import LIVES

LATE = timedelta(hours=1)
"""A life may be written so long after a look that should have known of it began."""


def note_ended(deps: Deps, *lives: Life) -> None:
    """Note that instances have stopped."""
    LIVES.add(deps.state, f"{deps.name}/{_hour(deps.state.now())}", {life.instance: life for life in lives})


LONG = timedelta(minutes=10)
"""A look that comes so long after a call knows less of its end than the call's own time does."""


def note_released(deps: Deps, record: Record, *, later: bool = False) -> None:
    """Note the instances that a decision has given back: they ended by now. ``later``: by a look that found out; where
    none came for long, they ended when the call may have landed."""
    now, lives = deps.now(), list[Life]()
    for node, step in record.calls_with_steps:
        if isinstance(node, NodeVerdict) and step.state == "done" and step.since is not None:
            sent_at = step.sent_at if later else None
            ended_at = sent_at + call_steps.LANDS if sent_at is not None and now > sent_at + LONG else now
            instance = node.instance or node.node
            life = Life(
                instance=instance,
                node=node.node,
                pool=node.pool,
                since=step.since,
                ended_at=ended_at,
                seen_at=record.at,
            )
            lives.append(life)
    if lives:
        note_ended(deps, *lives)


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
