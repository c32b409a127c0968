"""What of a cluster needs a person, each in one line with what to do. A pause is somebody's wish and needs nobody."""

from collections.abc import Iterator

from pilotlight.facts.glance import Glance
from pilotlight.units import Seconds, human

LATE_S: Seconds = 300.0
"""A function that ticks every minute and has not for so long is not at work."""


def needs(seen: Glance) -> Iterator[str]:
    """One line each, the most urgent first."""
    if seen.unseen:
        yield f"cluster and cloud cannot be looked at: {seen.unseen}; see pilotlight doctor"
    for tick in seen.ticks:
        if tick.age_s is None:
            yield f"{tick.function} has never ticked: let a schedule call it once a minute, as pilotlight serve does"
        elif tick.age_s > LATE_S:
            yield f"{tick.function} has not ticked for {human(tick.age_s)}: see its log and its schedule"
    for one in seen.approvals:
        what = f"pilotlight approve {one.decision}" if one.decision else "the alert names the decision to approve"
        yield f"{one.nodes} of pool {one.pool} wait for approval ({one.why}): {what}"
    for group in seen.waiting:
        if group.verdict in ("refused", "finding"):
            more = f" and {group.pods - 1} more" if group.pods > 1 else ""
            yield f"{group.first}{more} will get no node: {group.why}; see pilotlight why {group.first}"
    for finding in seen.findings:
        yield f"{finding.subject}: {finding.message}"
    if seen.letters:
        yield f"{seen.letters} events were refused and lie in dead letters: see the outbox, and mend or drop them"
    if seen.alerts_given_up:
        yield f"{seen.alerts_given_up} alerts reached nobody: see pilotlight alerts"
    if seen.prices_stale and seen.prices_age_s is not None:
        yield f"prices are {human(seen.prices_age_s)} old, more than prices.max_age_days: see pilotlight prices"
