"""Alerts of a fact that is told once in so long, whoever finds it."""

from pilotlight.facts.messages import Alert
from pilotlight.flow.alerts.decision_messages import by_fingerprint
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.marks import NOTICED
from pilotlight.state_schema.table import Mark
from pilotlight.units import Seconds


def tell_once(deps: Deps, alert: Alert, again_s: Seconds | None = None) -> bool:
    """Send an alert that was not sent lately, by default in the last 40 days.

    Marked after: a crash in between tells twice rather than never.
    """
    if was_noticed(deps, alert.fingerprint):
        return False
    deps.outbox.publish([by_fingerprint(alert)])
    NOTICED.put(deps.state, f"{deps.name}/{alert.fingerprint}", Mark(), ttl_s=again_s)
    return True


def was_noticed(deps: Deps, what: str) -> bool:
    """True where people were told of it lately."""
    return NOTICED.get(deps.state, f"{deps.name}/{what}") is not None
