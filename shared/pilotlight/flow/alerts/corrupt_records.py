"""A record of the state that cannot be read: whoever finds it stops, and people are told, once a day a record."""

import hashlib

from pilotlight.errors import Corrupt
from pilotlight.facts.messages import Alert
from pilotlight.flow.alerts.decision_messages import by_fingerprint, send
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger


def tell_corrupt(deps: Deps, problem: Corrupt) -> None:
    """Send the alert, unless it was told already."""
    digest = hashlib.blake2b(str(problem).encode(), digest_size=8).hexdigest()
    fingerprint = f"corrupt/{digest}"
    if ledger.was_told(deps.state, deps.name, fingerprint):
        return
    alert = Alert(
        cluster=deps.name,
        kind="corrupt-state",
        severity="critical",
        fingerprint=fingerprint,
        what=f"a record of cluster {deps.name}'s state cannot be read",
        why=str(problem),
        next="nothing is bought or released until a person mends it",
        how="pilotlight state export, mend the record, pilotlight state import --replace",
        at=deps.clock.now(),
    )
    send(deps, (by_fingerprint(alert),))
