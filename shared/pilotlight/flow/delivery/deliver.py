"""One alert on one channel: claim -> deliver -> told, so that it is shown once however often its deliverer dies.

The proof is written before the claim goes, and looked for after each claim: so nobody tells what another has told.
Twice is shown only what a provider took although the connection broke, or whose deliverer died between: ``unsure``
counts it.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import blake2b
from urllib.parse import quote

import msgspec

from pilotlight.codec.events import encode
from pilotlight.decide.alerts.alert_routing import GROUP, group_alerts, link_alert, link_signature, pause_s
from pilotlight.errors import Conflict, Denied, Reject, Retry, Throttled, Unsure
from pilotlight.facts.alerts.delivery_records import Rest, Telling
from pilotlight.facts.messages import Alert, DeadLetter, Outgoing
from pilotlight.flow.delivery.desk import (
    Desk,
    ack_name,
    acknowledged_by,
    matters_for,
    proof,
    proof_name,
    raise_elsewhere,
    waiting_name,
)
from pilotlight.ports.delivery import ThreadedChannel
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.alert_records import PROOF, REST, WAITING
from pilotlight.state_schema.table import Entry
from pilotlight.units import HOUR, Seconds

CLAIM_S: Seconds = 120
"""Longer than a channel may take with one attempt."""
LEFT_S: Seconds = 85.0
"""Nothing is shown with less of a claim left: a call's deadline, and a minute to write down that it was shown."""
LOOK_AGAIN_S: Seconds = 30.0
"""That something is over waits so long for the telling that it began."""
MOST_ATTEMPTS = 12
"""With the pauses between them about three quarters of an hour; then a person has to look."""
LATE_S: Seconds = HOUR
"""What was given up is tried again so often."""
RESTS_AFTER = 3
"""A channel that failed so often in a row is left alone; at once where it named a time."""
KEEP_RESTS_S: Seconds = HOUR
"""After its rest a channel's failures in a row are remembered for so long."""

Claim = Entry[Telling]
"""A telling that is ours until its claim lapses, under the version that we wrote."""


def claim(desk: Desk, name: str, telling: Telling, version: int = ABSENT) -> Claim:
    """Make a telling ours. Raises ``Conflict`` where another was quicker."""
    now = desk.now()
    ours = msgspec.structs.replace(telling, status="claimed", at=now, due=now + timedelta(seconds=CLAIM_S))
    return Entry(name, WAITING.put(desk.state, name, ours, if_version=version), ours)


def drop(desk: Desk, claim: Claim) -> None:
    """A telling that is done. One that another works on by now stays with it."""
    with suppress(Conflict, Retry):
        WAITING.delete(desk.state, claim.name, if_version=claim.version)


def wait(desk: Desk, claim: Claim, due: datetime, why: str, *, held: bool = False) -> None:
    """Leave a telling until then."""
    later = msgspec.structs.replace(
        claim.value, status="waits", at=desk.now(), due=due, why=why, held=held or claim.value.held
    )
    with suppress(Conflict):
        WAITING.put(desk.state, claim.name, later, if_version=claim.version)


def deliver(desk: Desk, channel: str, claims: Sequence[Claim]) -> str:
    """Show one alert, or several as one; a word on what became of them. A claim that has lapsed is another's by now."""
    claims = [ours for claim in claims if (ours := _still_ours(desk, claim)) is not None]
    if not claims:
        return "left to whoever claims it next: this worker stood still"
    alerts = [claim.value.alert for claim in claims]
    try:
        receipt = _show(desk, channel, alerts[0] if len(alerts) == 1 else group_alerts(alerts))
    except (Denied, Reject) as error:
        for claim in claims:
            give_up(desk, claim, str(error))
        return f"gave up: {error}"
    except Retry as error:
        due = _rested(desk, channel, error)
        for claim in claims:
            _again(desk, claim, error, due)
        return f"later: {error}"
    for claim in claims:
        _told(desk, claim, receipt, len(claims) if len(claims) > 1 else 0)
    with suppress(Retry):
        REST.delete(desk.state, channel)
    return "told" if len(claims) == 1 else f"told {len(claims)} as one"


def _still_ours(desk: Desk, held: Claim) -> Claim | None:
    """A claim that lasts long enough to show the alert and write that down: one that soon ends is made anew."""
    due, now = held.value.due, desk.now()
    if due is None or now < due - timedelta(seconds=LEFT_S):
        return held
    if now >= due:
        return None
    try:
        return claim(desk, held.name, held.value, held.version)
    except Conflict:
        return None


def _show(desk: Desk, channel: str, alert: Alert) -> str:
    """In one attempt; beside what was told before of the same thing, where a channel has threads."""
    shown, alert = desk.channels[channel], link_alert(desk.policy, alert, _ack_link(desk, alert))
    if not isinstance(shown, ThreadedChannel):
        return shown.deliver(alert)
    before = proof(desk.state, channel, alert)
    receipt = before.receipt if before is not None and before.status == "told" and not before.grouped else ""
    return shown.follow(alert, receipt) if receipt else shown.deliver(alert)


def _ack_link(desk: Desk, alert: Alert) -> str:
    """The alert's part of a link to the page: its name, and the signature behind a #, which no unfurler sends on."""
    if not desk.policy.page or alert.resolved or alert.severity == "info" or alert.fingerprint.startswith(GROUP):
        return ""
    name = ack_name(alert)
    if not desk.link_key:
        return quote(name)
    return f"{quote(name)}#{link_signature(desk.link_key, name)}"


def resting(desk: Desk, channel: str) -> datetime | None:
    """Until when a channel is left alone."""
    rest = REST.get(desk.state, channel)
    return rest.value.until if rest is not None and rest.value.until > desk.now() else None


def _told(desk: Desk, claim: Claim, receipt: str, together: int) -> None:
    done = msgspec.structs.replace(claim.value, status="told", due=None, receipt=receipt, grouped=together, why="")
    for _ in range(2):  # It was shown: a claim that lapses for want of this would show it again.
        with suppress(Retry):
            now = desk.now()
            late = claim.value.due is not None and now >= claim.value.due
            over = _ended_meanwhile(desk, done) if late else None
            _prove(desk, msgspec.structs.replace(done, at=now))
            if over is not None:
                _wait_again(desk, over, now)
            return drop(desk, claim)


def _ended_meanwhile(desk: Desk, done: Telling) -> Telling | None:
    """The end of what this worker showed after it stood still, where another has told that meanwhile."""
    before, began = proof(desk.state, done.channel, done.alert), done.alert
    if before is None or before.status != "told" or began.resolved or not before.alert.resolved:
        return None
    return before if began.at and before.alert.at and began.at <= before.alert.at else None


def _wait_again(desk: Desk, over: Telling, now: datetime) -> None:
    """Have an end told once more: what it ends was shown last."""
    again = Telling(
        channel=over.channel, alert=over.alert, status="waits", since=now, at=now, due=now, why="shown late"
    )
    with suppress(Conflict):
        WAITING.put(desk.state, waiting_name(over.channel, over.alert), again, if_version=ABSENT)


def _prove(desk: Desk, done: Telling) -> None:
    if done.alert.resolved:  # One proof is for both: without what began, people could not look it up any more.
        before = proof(desk.state, done.channel, done.alert)
        told = before is not None and before.status == "told" and not before.alert.resolved
        done = msgspec.structs.replace(done, began=before if told else before and before.began)
    PROOF.put(desk.state, proof_name(done.channel, done.alert), done)


def _again(desk: Desk, claim: Claim, error: Retry, due: datetime) -> None:
    """Another attempt later, within bounds."""
    old = claim.value
    tried = msgspec.structs.replace(
        old, attempts=old.attempts + 1, unsure=old.unsure + isinstance(error, Unsure), why=str(error)
    )
    claim = claim._replace(value=tried)
    if tried.late:
        return try_later(desk, claim, str(error))
    if tried.attempts >= MOST_ATTEMPTS:
        return give_up(desk, claim, f"{error}; tried {tried.attempts} times", goes_on=True)
    pause = timedelta(seconds=max(error.after_s, pause_s(tried.attempts)))
    wait(desk, claim, max(due, desk.now() + pause), str(error))


def give_up(desk: Desk, claim: Claim, why: str, *, goes_on: bool = False) -> None:
    """A dead letter with the channel and the reason; then a proof from which it can be redelivered. Other channels hear
    of it. ``goes_on``: later may work, so it is tried now and then."""
    now = desk.now()
    dead = msgspec.structs.replace(claim.value, status="gave up", at=now, due=None, why=why)
    try:
        desk.outbox.publish([_letter(dead, now)])
        raise_elsewhere(desk, dead.channel, dead.alert, why)
        _prove(desk, dead)
    except Retry as error:
        return wait(desk, claim, now + timedelta(seconds=max(error.after_s, pause_s(4))), why)
    if goes_on:
        return try_later(desk, claim, why)
    drop(desk, claim)


def try_later(desk: Desk, claim: Claim, why: str) -> None:
    """Another attempt in an hour at what was given up, while it matters and nobody has acknowledged it."""
    old, due = claim.value, desk.now() + timedelta(seconds=LATE_S)
    if due - old.since > matters_for(old.alert) or acknowledged_by(desk.state, old.alert):
        return drop(desk, claim)
    wait(desk, claim._replace(value=msgspec.structs.replace(old, late=True)), due, why)


def _letter(dead: Telling, now: datetime) -> Outgoing:
    """Its id is that of the telling: given up twice for want of an answer, it is one letter."""
    waited = WAITING.key(waiting_name(dead.channel, dead.alert))
    id = blake2b(f"{waited} {dead.since}".encode(), digest_size=12).hexdigest()
    letter = DeadLetter(
        reason=dead.why,
        path=f"alerts.channels.{dead.channel}",
        function="alert_fanout",
        body=encode(dead.alert, id=dead.alert.fingerprint).decode(),
        at=now,
    )
    return Outgoing(
        id=f"dead-{id}",
        topic="dead-letter",
        type="dev.pilotlight.dead-letter.v1",
        key=dead.channel,
        data=msgspec.Raw(msgspec.json.encode(letter)),
    )


def _rested(desk: Desk, channel: str, error: Retry) -> datetime:
    """Note a failure; until when the channel is left alone, now where it is not."""
    now = desk.now()
    try:
        found = REST.get(desk.state, channel)
        fails = (found.value.fails if found else 0) + 1
        rests_s = max(error.after_s, pause_s(fails - RESTS_AFTER)) if fails >= RESTS_AFTER else 0.0
        if isinstance(error, Throttled):
            rests_s = max(rests_s, error.after_s)
        until = now + timedelta(seconds=rests_s)
        REST.put(desk.state, channel, Rest(until=until, fails=fails), ttl_s=rests_s + KEEP_RESTS_S)
    except Retry:
        return now
    return until
