"""Alerts of bills and the meter: what is odd of them, told once a day at most."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from pilotlight.facts.messages import Alert
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.units import HOUR

DAILY_S = 24 * HOUR
"""For so long people are not told again of what should be mended."""

NAMED = 5
"""So many of a list are named in an alert."""


def list_findings(findings: Sequence[Finding]) -> str:
    """The first of some findings in a line, and how many more there are."""
    more = f"; and {len(findings) - NAMED} more" if len(findings) > NAMED else ""
    return "; ".join(f"{one.subject}: {one.message}" for one in findings[:NAMED]) + more


def bill_alert(deps: Deps, kind: str, what: str, why: str, now: datetime) -> Alert:
    """A warning whose fingerprint is what it says."""
    digest = hashlib.blake2b(f"{what}\n{why}".encode(), digest_size=8).hexdigest()
    return Alert(
        cluster=deps.name,
        kind=kind,
        severity="warning",
        fingerprint=f"{kind}/{digest}",
        what=what,
        why=why,
        next="looked at again at every billing tick",
        how="pilotlight budget",
        at=now,
    )
