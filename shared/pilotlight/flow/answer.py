"""Answers of flows, and alerts on their way out: nothing of decisions is opened for these."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.state_schema.marks import NOTICED, Mark
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.facts.decisions import Plan
    from pilotlight.flow.deps import Deps

ALERT = "dev.pilotlight.alert.v1"

Outcome = Literal["done", "seen", "stopped", "nothing", "at-work", "known", "dry-run"]
"""``done``: a decision was recorded. ``seen``: there is demand, and nothing new to do or tell of it. ``stopped``:
brakes hold all that would be done. ``nothing``: there was nothing to do. ``at-work``: another delivery looks after this
one. ``known``: this event was handled before, or is of no use.
"""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A function's answer: the decision's id (empty when none was needed), what it did, and why in one line.

    ``outcome`` is for code, ``why`` for people. ``released`` are the nodes that were given back. ``plan`` is there on a
    dry run. ``look_again_at`` is when a look could change something without a new event.
    """

    decision: str
    did: tuple[str, ...]
    why: str
    outcome: Outcome = "done"
    released: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    plan: "Plan | None" = None


def alert_out(alert: Alert, id: str) -> Outgoing:
    """An alert on its way out, told once by its fingerprint."""
    data = msgspec.Raw(msgspec.json.encode(alert))
    return Outgoing(id=id, topic="alerts", type=ALERT, key=alert.fingerprint, data=data)


def by_fingerprint(alert: Alert, more: str = "") -> Outgoing:
    """The same under an id of its cluster and fingerprint: two clusters may tell the same."""
    return alert_out(alert, f"{alert.cluster}-{alert.fingerprint.replace('/', '-')}{more}")


def tell_once(deps: "Deps", alert: Alert, again_s: Seconds | None = None) -> bool:
    """Send an alert that was not sent lately, by default in the last 40 days.

    Marked after: a crash in between tells twice rather than never.
    """
    if was_noticed(deps, alert.fingerprint):
        return False
    deps.outbox.publish([by_fingerprint(alert)])
    NOTICED.put(deps.state, f"{deps.name}/{alert.fingerprint}", Mark(), ttl_s=again_s)
    return True


def was_noticed(deps: "Deps", what: str) -> bool:
    """True where people were told of it lately."""
    return NOTICED.get(deps.state, f"{deps.name}/{what}") is not None
