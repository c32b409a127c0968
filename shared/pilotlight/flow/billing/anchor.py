"""Once a day: the audit chain's count and head are told, so that they lie where nobody who can write the state can; and
what is older than a year leaves it behind a checkpoint.
"""

from datetime import datetime, timedelta

from pilotlight.codec.records import Mark
from pilotlight.errors import Conflict
from pilotlight.facts.messages import Alert
from pilotlight.flow.alerts.once import was_noticed
from pilotlight.flow.alerts.tell import by_fingerprint
from pilotlight.flow.deps import Deps
from pilotlight.flow.memory import audit_chain
from pilotlight.ports import ABSENT
from pilotlight.state_schema.marks import NOTICED

STILL = timedelta(days=2)
"""A chain to which nothing was added for so long has its anchor already."""


def anchor(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Tell the anchor of a day, once; a line on it.

    What is told is written first: two ticks at once, or one after a crash, tell the same.
    """
    day = f"audit-anchor/{now:%Y-%m-%d}"
    if was_noticed(deps, f"{day}/told"):
        return ()
    found = NOTICED.get(deps.state, f"{deps.name}/{day}")
    if found is None:
        audit_chain.retain(deps.state, deps.name, now)
        head = audit_chain.head(deps.state, deps.name)
        note = f"{head.seq}:{head.hash} {now.isoformat()}" if head is not None and head.at > now - STILL else ""
        try:
            NOTICED.put(deps.state, f"{deps.name}/{day}", Mark(note=note), if_version=ABSENT)
        except Conflict:
            return ()  # Whoever was faster tells it, and the next tick if that one dies.
    else:
        note = found.value.note
    head_then, _, at = note.partition(" ")
    if head_then:
        deps.outbox.publish([by_fingerprint(_alert(deps.name, day, head_then, datetime.fromisoformat(at)))])
    NOTICED.put(deps.state, f"{deps.name}/{day}/told", Mark())
    return (f"anchored the audit chain at {head_then.partition(':')[0]}",) if head_then else ()


def _alert(cluster: str, day: str, head: str, at: datetime) -> Alert:
    count, _, digest = head.partition(":")
    return Alert(
        cluster=cluster,
        kind="audit-anchor",
        severity="info",
        fingerprint=day,
        what=f"the audit chain has {count} records",
        why=f"its head is {digest}: a chain that was cut or made anew has another",
        next="told again tomorrow, where something was decided",
        how=f"pilotlight audit verify --anchor {head}",
        at=at,
    )
