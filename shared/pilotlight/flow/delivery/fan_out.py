"""Alert -> the channels that want it, each told once, none waiting for another.

What cannot be told now waits in the state: until a quiet time or a burst's window ends, or a channel works again.
``flush`` tells it then.
"""

from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.alerts.alert_routing import count_alert, quiet_until, wants
from pilotlight.errors import Conflict, Retry, Throttled
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.flow.abreast import abreast
from pilotlight.flow.answer import Answer
from pilotlight.flow.delivery.deliver import CLAIM_S, LOOK_AGAIN_S, Claim, claim, deliver, drop, resting, wait
from pilotlight.flow.delivery.desk import (
    Desk,
    earlier,
    end_came_first,
    escalate,
    forget_acknowledged,
    goes_on,
    later_end,
    proof,
    reason_not_to_tell,
    unfinished_beginning,
    waiting_name,
)
from pilotlight.flow.delivery.flush import flush_now_and_then
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.alert_records import BURST, WAITING
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds

MOST_COUNTS = 50
"""A count that others change meanwhile is tried again so often."""


class Word(NamedTuple):
    """The outcome of an alert on one channel, and when it is tried again, if it is."""

    text: str
    due: datetime | None = None


BURST_S = 60.0
"""Seconds in which alerts of one kind count as one burst."""


def fan_out(desk: Desk, alert: Alert, *, dry_run: bool = False) -> Answer:
    """Tell one alert, and what is due besides. Raises ``Throttled`` where the store could not keep it."""
    # An end goes where its beginning was told, however severe it is itself.
    wanted = [
        name for name, rules in desk.policy.channels.items() if alert.resolved or (rules.direct and wants(rules, alert))
    ]
    why = f"{alert.severity} alerts go to {', '.join(wanted) or 'no channel'}" + (" if they were told" * alert.resolved)
    if dry_run:
        return Answer(decision="", did=(), why=why)
    words = abreast({name: partial(_arrive, desk, name, alert) for name in wanted}, CLAIM_S)
    _raise(words)
    if alert.resolved:
        forget_acknowledged(desk, alert)
    flush_now_and_then(desk)
    found = {name: word for name, word in words.items() if isinstance(word, Word)}
    return Answer(
        decision="",
        did=tuple(f"{name}: {word.text}" for name, word in found.items()),
        why=why,
        look_again_at=min((word.due for word in found.values() if word.due), default=None),
    )


def _raise(words: dict[str, Word | Exception]) -> None:
    """Raise what no channel's fault explains, as it is; for what the store did not keep the sender comes again."""
    failed = {name: word for name, word in words.items() if isinstance(word, Exception)}
    for error in failed.values():
        if not isinstance(error, Retry):
            raise error
    if failed:
        reasons = "; ".join(f"{name}: {error}" for name, error in failed.items())
        raise Throttled(f"not delivered to {reasons}", max(getattr(error, "after_s", 5.0) for error in failed.values()))


def _arrive(desk: Desk, name: str, alert: Alert) -> Word:
    """Tell one channel, now or later. Raises ``Retry`` where the store does not take it: it must come again."""
    rules, now = desk.rules(name), desk.now()
    quiet = quiet_until(rules.quiet_hours, alert, now)
    before, first = _looked(desk, name, alert)
    if alert.resolved and first is None and later_end(before, alert):
        end_came_first(desk, name, alert)
        before, first = _looked(desk, name, alert)  # A beginning that came meanwhile is told, and then this.
        if first is None and later_end(before, alert):
            raise Conflict("that an end came first is not written down: it has to come again")
    if said := _settled(desk, name, alert, before, first) or _given_up(before, alert, now, rules.again_after):
        if not alert.resolved:
            goes_on(desk, name, alert)
        return Word(said)
    if rules.escalate_to:
        escalate(desk, name, alert, quiet or now)
    fresh = Telling(channel=name, alert=alert, status="claimed", since=now, at=now)
    waits = waiting_name(name, alert)
    try:
        ours = claim(desk, waits, fresh)
    except Conflict:
        under_way = WAITING.get(desk.state, waits)
        if under_way is None or not _joins(desk, under_way, alert):
            raise  # Whoever it was is done, or there was nobody: it has to come again.
        return Word("under way already")
    # Another may have told it between our look and our claim.
    if said := _settled(desk, name, alert, *_looked(desk, name, alert)):
        drop(desk, ours)
        return Word(said)
    return _told_or_held(desk, name, ours, quiet)


def _joins(desk: Desk, under_way: Entry[Telling], alert: Alert) -> bool:
    """Have the telling under way stand for this alert; False where it cannot. An earlier end that waits becomes this
    one. An earlier end at work cannot: it began again since, so that end is not told."""
    entry = under_way.value
    if not alert.resolved or not earlier(entry.alert, alert):
        return True
    if entry.status != "waits":
        return False
    WAITING.put(desk.state, under_way.name, replace(entry, alert=alert), if_version=under_way.version)
    return True


def _looked(desk: Desk, name: str, alert: Alert) -> tuple[Telling | None, Entry[Telling] | None]:
    """The proof of an alert, and of an end the telling of its beginning: looked for first, for it goes after its proof
    is written."""
    first = unfinished_beginning(desk.state, name, alert) if alert.resolved else None
    return proof(desk.state, name, alert), first


def _told_or_held(desk: Desk, name: str, ours: Claim, quiet: datetime | None) -> Word:
    alert, now = ours.value.alert, desk.now()
    if alert.resolved and unfinished_beginning(desk.state, name, alert):
        return _held(desk, ours, now + timedelta(seconds=LOOK_AGAIN_S), "its beginning is still being told")
    if quiet is not None:
        return _held(desk, ours, quiet, f"quiet hours until {quiet:%H:%M} UTC")
    if (end := _burst_end(desk, name, alert)) is not None:
        return _held(desk, ours, end, "a burst is told as one", burst=True)
    if (rest := resting(desk, name)) is not None:
        return _held(desk, ours, rest, "the channel rests after failures")
    return Word(deliver(desk, name, [ours]))


def _held(desk: Desk, ours: Claim, until: datetime, why: str, *, burst: bool = False) -> Word:
    wait(desk, ours, until, why, held=burst)
    return Word(f"held back: {why}", until)


def _settled(desk: Desk, name: str, alert: Alert, before: Telling | None, first: Entry[Telling] | None) -> str:
    """Why an alert need not be told. What is over before it was told is not told at all."""
    said = reason_not_to_tell(before, alert, desk.now(), desk.rules(name).again_after)
    if first is None or not said or said == "told before":
        return said
    waits, version, entry = first
    if entry.status != "waits" or entry.unsure:
        return ""  # People may know of it: they hear that it is over once that is sure.
    try:
        WAITING.delete(desk.state, waits, if_version=version)
    except Conflict:
        return ""
    end_came_first(desk, name, alert)
    return "over before it was told"


def _given_up(before: Telling | None, alert: Alert, now: datetime, again_s: Seconds) -> str:
    """Not again so soon: ``redeliver`` is for that."""
    if before is None or before.status != "gave up" or before.alert.resolved != alert.resolved:
        return ""
    return "gave up on it before" if (now - before.at).total_seconds() < again_s else ""


def _burst_end(desk: Desk, name: str, alert: Alert) -> datetime | None:
    """Count an alert of its kind; where it is one too many, the end of the window."""
    rules, now = desk.policy, desk.now()
    if not rules.group_after:
        return None
    kind = blake2b(f"{alert.kind}\0{alert.resolved}".encode(), digest_size=8).hexdigest()
    of_kind, window = f"{alert.cluster}/{name}/{kind}", timedelta(seconds=BURST_S)
    for _ in range(MOST_COUNTS):
        old = BURST.get(desk.state, of_kind)
        burst = count_alert(old.value if old else None, now, rules.group_after, BURST_S)
        version = old.version if old else ABSENT
        try:
            BURST.put(desk.state, of_kind, burst, if_version=version, ttl_s=2 * BURST_S)
        except Conflict:
            continue
        return burst.begun + window if burst.count > rules.group_after else None
    return now + window
