"""Action items of a cluster, each a line with what a person is to do. A pause is somebody's wish and needs nobody."""

from collections.abc import Iterator
from typing import NamedTuple

from pilotlight.tools.glance.glance import Glance, Ticked
from pilotlight.units import Seconds, count_of, human

LATE_S: Seconds = 300.0
"""A function that ticks every minute and has not for so long is not at work."""


class ActionItem(NamedTuple):
    """A line that needs a person, ``how`` to mend it in words, and the words of the command where that is one."""

    what: str
    how: str
    command: tuple[str, ...] = ()


def action_lines(seen: Glance) -> Iterator[str]:
    """One line each, the most urgent first."""
    return (want.what + want.how for want in action_items(seen))


def action_items(seen: Glance) -> Iterator[ActionItem]:
    """The same, with their commands."""
    if seen.unseen:
        yield _see(f"cluster and cloud cannot be looked at: {seen.unseen}", "doctor")
    for tick in seen.ticks:
        if tick.scheduled:
            yield from _ticking(tick)
    for one in seen.approvals:
        what = f"{one.nodes} of pool {one.pool} wait for approval ({one.why})"
        if one.decision:
            yield ActionItem(what, f": pilotlight approve {one.decision}", ("pilotlight", "approve", one.decision))
        else:
            yield ActionItem(what, ": the alert names the decision to approve")
    for group in seen.waiting:
        if group.verdict in ("refused", "finding"):
            more = f" and {group.pods - 1} more" if group.pods > 1 else ""
            yield _see(f"{group.first}{more} will get no node: {group.why}", "why", group.first)
    for finding in seen.findings:
        yield ActionItem(f"{finding.subject}: {finding.message}", "")
    if seen.letters:
        what = f"dead letters hold {count_of(seen.letters, 'refused event')}"
        yield ActionItem(what, ": see the outbox, and mend or drop them")
    if seen.alerts_given_up:
        yield _see(f"{count_of(seen.alerts_given_up, 'alert')} reached nobody", "alerts", "list")
    if seen.prices_stale and seen.prices_age_s is not None:
        age = human(seen.prices_age_s)
        yield ActionItem(f"prices are {age} old, more than prices.max_age_days", ": see pilotlight prices")


def _ticking(tick: Ticked) -> Iterator[ActionItem]:
    if tick.age_s is None:
        yield ActionItem(
            f"{tick.function} has never ticked", ": let a schedule call it once a minute, as pilotlight serve does"
        )
    elif tick.age_s > LATE_S:
        yield ActionItem(f"{tick.function} has not ticked for {human(tick.age_s)}", ": see its log and its schedule")


def _see(what: str, *words: str) -> ActionItem:
    return ActionItem(what, f"; see pilotlight {' '.join(words)}", ("pilotlight", *words))
