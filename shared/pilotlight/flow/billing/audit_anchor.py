"""Once a day: the audit chain's count and head are told, so that they lie where nobody who can write the state can; and
what is older than a year leaves it behind a checkpoint.
"""

from datetime import datetime, timedelta

from pilotlight.facts.decisions import Link
from pilotlight.facts.messages import Alert
from pilotlight.flow.alerts.decision_messages import by_fingerprint
from pilotlight.flow.alerts.told_once import was_noticed
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import audit_chain
from pilotlight.state_schema.marks import NOTICED
from pilotlight.state_schema.table import Mark

STILL = timedelta(days=2)
"""A chain to which nothing was added for so long has its anchor already."""


def anchor(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Tell the anchor of a day, once; a line on it.

    A message's name has the count in it: two ticks at once, or one after a crash, may send two, and people are told of
    one fingerprint once.
    """
    day = f"audit-anchor/{now:%Y-%m-%d}"
    if was_noticed(deps, day):
        return ()
    audit_chain.retain(deps.state, deps.name, now)
    head = audit_chain.head(deps.state, deps.name)
    told = head is not None and head.at > now - STILL
    if head is not None and told:
        deps.outbox.publish([by_fingerprint(_alert(deps.name, day, head), f"-{head.seq}")])
    NOTICED.put(deps.state, f"{deps.name}/{day}", Mark())
    return (f"anchored the audit chain at {head.seq}",) if head is not None and told else ()


def _alert(cluster: str, day: str, head: Link) -> Alert:
    return Alert(
        cluster=cluster,
        kind="audit-anchor",
        severity="info",
        fingerprint=day,
        what=f"the audit chain has {head.seq} records",
        why=f"its head is {head.hash}: a chain that was cut or made anew has another",
        next="told again tomorrow, where something was decided",
        how=f"pilotlight audit verify --anchor {head.seq}:{head.hash}",
        at=head.at,
    )
