"""A cluster's audit chain: once a day its count and head are told, and what is older than a year leaves it.

So they lie where nobody who can write the state can; a checkpoint stands for what was dropped.
"""

from datetime import datetime, timedelta

from pilotlight.facts.decisions import Chain, Link
from pilotlight.facts.messages import Alert
from pilotlight.flow.answer import by_fingerprint, was_noticed
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.decision_records import HEAD, LINKS
from pilotlight.state_schema.marks import NOTICED, Mark
from pilotlight.state_schema.table import Entry
from pilotlight.units import count_of

STILL = timedelta(days=2)
"""A chain to which nothing was added for so long has its anchor already."""

DROPPED_AFTER = timedelta(days=370)
"""Links of so long ago go, before their own time ends them without a word."""


def anchor(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Tell the anchor of a day, once; a line on it.

    A message's name has the count in it: two ticks at once, or one after a crash, may send two, and people are told of
    one fingerprint once.
    """
    day = f"audit-anchor/{now:%Y-%m-%d}"
    if was_noticed(deps, day):
        return ()
    retain(deps.state, deps.name, now)
    last = head(deps.state, deps.name)
    told = last is not None and last.at > now - STILL
    if last is not None and told:
        deps.outbox.publish([by_fingerprint(_alert(deps.name, day, last), f"-{last.seq}")])
    NOTICED.put(deps.state, f"{deps.name}/{day}", Mark())
    return (f"anchored the audit chain at {last.seq}",) if last is not None and told else ()


def _alert(cluster: str, day: str, head: Link) -> Alert:
    return Alert(
        cluster=cluster,
        kind="audit-anchor",
        severity="info",
        fingerprint=day,
        what=f"the audit chain has {count_of(head.seq, 'record')}",
        why=f"its head is {head.hash}: a chain that was cut or made anew has another",
        next="told again tomorrow, where something was decided",
        how=f"pilotlight audit verify --anchor {head.seq}:{head.hash}",
        at=head.at,
    )


def retain(state: State, cluster: str, now: datetime) -> int:
    """Drop the links that are older than a year, behind a checkpoint that says so in the chain; how many records."""
    old = list[Entry[Chain]]()
    for entry in LINKS.scan(state, f"{cluster}/"):
        if not entry.value.links or entry.value.links[-1].at > now - DROPPED_AFTER:
            break
        old.append(entry)
    if old:
        last = old[-1].value.links[-1]
        ledger.chain(state, cluster, "checkpoint", str(last.seq), now, last.hash)
    for entry in old:
        LINKS.delete(state, entry.name)
    return len(old)


def head(state: State, cluster: str) -> Link | None:
    """The last link."""
    found = HEAD.get(state, cluster)
    return found.value.links[-1] if found and found.value.links else None
