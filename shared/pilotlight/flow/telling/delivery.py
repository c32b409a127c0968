"""One alert on one channel: claim -> deliver -> told, so that it is shown once however often its deliverer dies.

=====================================  =================================================================================
``waiting/<cluster>/<channel>/<id>``   what is claimed or waits; the claim lapses when its deliverer dies
``proof/<cluster>/<channel>/<id>``     what was told, or given up: it keeps the same fingerprint from being told again
``burst/<cluster>/<channel>/<id>``     how many of a kind came in this window
``rest/<channel>``                     a channel that fails, and is left alone for a while
=====================================  =================================================================================

The proof is written before the claim goes, and looked for after each claim: so nobody tells what another has told.
Twice is shown only what a provider took although the connection broke, or whose deliverer died between: ``unsure``
counts it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from pilotlight.codec.events import encode
from pilotlight.codec.records import Format
from pilotlight.decide.routing import grouped, pause_s
from pilotlight.errors import Conflict, Denied, Reject, Retry, Throttled, Unsure
from pilotlight.facts.messages import Alert, DeadLetter, Outgoing
from pilotlight.facts.policy import Alerts
from pilotlight.facts.policy import Channel as Rules
from pilotlight.facts.telling import Rest, Telling
from pilotlight.ports import ABSENT, Channel, Clock, Outbox, State
from pilotlight.units import HOUR, Seconds

CLAIM_S: Seconds = 120
"""Longer than a channel may take with one attempt."""
LOOK_AGAIN_S: Seconds = 30.0
"""That something is over waits so long for the telling that it began."""
MOST_ATTEMPTS = 12
"""With the pauses between them about three quarters of an hour; then a person has to look."""
RESTS_AFTER = 3
"""A channel that failed so often in a row is left alone; at once where it named a time."""
KEEP_RESTS_S: Seconds = HOUR
KEEP_PROOFS_S: Seconds = 40 * 24 * HOUR
"""How long it is known what was told, so that its end is told too, and what was given up can be redelivered: longer
than a budget's month."""

TELLING, REST = Format(Telling), Format(Rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What alerts are told with: the channels by the policy's names, and the ports."""

    channels: Mapping[str, Channel]
    policy: Alerts
    state: State
    outbox: Outbox
    clock: Clock

    def rules(self, channel: str) -> Rules:
        """A channel's rules; one that the policy no longer names has those of any."""
        return self.policy.channels.get(channel) or Rules(kind="console")


class Claim(NamedTuple):
    """A telling that is ours until its claim lapses: its key, the version we wrote, and itself."""

    key: str
    version: int
    telling: Telling


class Entry(NamedTuple):
    """A telling as it lies in the state."""

    key: str
    version: int
    telling: Telling


def waiting_key(channel: str, alert: Alert) -> str:
    """Where an alert waits. That it is over waits beside it."""
    return _key("waiting", channel, alert, alert.fingerprint + ("\0resolved" if alert.resolved else ""))


def proof_key(channel: str, alert: Alert) -> str:
    """Where its proof lies: one for a fingerprint, whether begun or over."""
    return _key("proof", channel, alert, alert.fingerprint)


def _key(room: str, channel: str, alert: Alert, what: str) -> str:
    return f"{room}/{alert.cluster}/{channel}/{blake2b(what.encode(), digest_size=16).hexdigest()}"


def proof(state: State, channel: str, alert: Alert) -> Telling | None:
    """What is known of an alert's fingerprint on a channel."""
    key = proof_key(channel, alert)
    stored = state.get(key)
    return TELLING.read(key, stored.value) if stored else None


def known(proof: Telling | None, alert: Alert, now: datetime, again_s: Seconds) -> str:
    """Why an alert need not be told on a channel, or empty. What was told is told again after ``again_s``."""
    if proof is None:
        return "never told: nothing to resolve" if alert.resolved else ""
    told = proof.status in ("told", "over")
    if alert.resolved:
        if later_end(proof, alert):
            return "never told: nothing to resolve"  # It ends what began again since.
        if proof.alert.resolved:
            return {"told": "told before", "over": "over before it was told"}.get(proof.status, "")
        return "" if told else "never told: nothing to resolve"
    if proof.alert.resolved:
        stale = alert.at is not None and proof.alert.at is not None and alert.at <= proof.alert.at
        return "over already" if stale else ""
    return "told before" if told and now - proof.at < timedelta(seconds=again_s) else ""


def end_came_first(desk: Desk, channel: str, alert: Alert) -> None:
    """Note the end of what nobody has told: a beginning that is still on its way is not to be told after it."""
    key, now = proof_key(channel, alert), desk.clock.now()
    stored = desk.state.get(key)
    if stored is not None and not later_end(TELLING.read(key, stored.value), alert):
        return
    version = stored.version if stored else ABSENT
    over = Telling(channel=channel, alert=alert, status="over", since=now, at=now)
    with suppress(Conflict):
        desk.state.put(key, TELLING.write(over), if_version=version, ttl_s=KEEP_PROOFS_S)


def later_end(proof: Telling | None, alert: Alert) -> bool:
    """Whether an end is one that nothing is known of: not of what was told, nor of what was over already."""
    if proof is None:
        return True
    ours, theirs = alert.at, proof.alert.at
    return proof.alert.resolved and ours is not None and theirs is not None and ours > theirs


def claim(desk: Desk, key: str, telling: Telling, version: int = ABSENT) -> Claim:
    """Make a telling ours. Raises ``Conflict`` where another was quicker."""
    now = desk.clock.now()
    ours = msgspec.structs.replace(telling, status="claimed", at=now, due=now + timedelta(seconds=CLAIM_S))
    return Claim(key, desk.state.put(key, TELLING.write(ours), if_version=version), ours)


def begun(state: State, channel: str, alert: Alert) -> Entry | None:
    """The telling of what an alert says is over, where that is not done: its key, version and itself."""
    key = waiting_key(channel, msgspec.structs.replace(alert, resolved=False))
    stored = state.get(key)
    return Entry(key, stored.version, TELLING.read(key, stored.value)) if stored else None


def drop(desk: Desk, claim: Claim) -> None:
    """A telling that is done. One that another works on by now stays with it."""
    with suppress(Conflict, Retry):
        desk.state.delete(claim.key, if_version=claim.version)


def wait(desk: Desk, claim: Claim, due: datetime, why: str, *, held: bool = False) -> None:
    """Leave a telling until then."""
    later = msgspec.structs.replace(
        claim.telling, status="waits", at=desk.clock.now(), due=due, why=why, held=held or claim.telling.held
    )
    with suppress(Conflict):
        desk.state.put(claim.key, TELLING.write(later), if_version=claim.version)


def deliver(desk: Desk, channel: str, claims: Sequence[Claim]) -> str:
    """Show one alert, or several as one; a word on what became of them."""
    alerts = [claim.telling.alert for claim in claims]
    try:
        receipt = desk.channels[channel].deliver(alerts[0] if len(alerts) == 1 else grouped(alerts))
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
        desk.state.delete(f"rest/{channel}")
    return "told" if len(claims) == 1 else f"told {len(claims)} as one"


def resting(desk: Desk, channel: str) -> datetime | None:
    """Until when a channel is left alone."""
    stored = desk.state.get(f"rest/{channel}")
    rest = REST.read(f"rest/{channel}", stored.value) if stored else None
    return rest.until if rest is not None and rest.until > desk.clock.now() else None


def _told(desk: Desk, claim: Claim, receipt: str, together: int) -> None:
    done = msgspec.structs.replace(
        claim.telling, status="told", at=desk.clock.now(), due=None, receipt=receipt, grouped=together, why=""
    )
    for _ in range(2):  # It was shown: a claim that lapses for want of this would show it again.
        with suppress(Retry):
            _prove(desk, done)
            return drop(desk, claim)


def _prove(desk: Desk, done: Telling) -> None:
    if done.alert.resolved:  # One proof is for both: without what began, people could not look it up any more.
        before = proof(desk.state, done.channel, done.alert)
        told = before is not None and before.status == "told" and not before.alert.resolved
        done = msgspec.structs.replace(done, began=before if told else before and before.began)
    desk.state.put(proof_key(done.channel, done.alert), TELLING.write(done), ttl_s=KEEP_PROOFS_S)


def _again(desk: Desk, claim: Claim, error: Retry, due: datetime) -> None:
    """Another attempt later, within bounds."""
    old = claim.telling
    tried = msgspec.structs.replace(
        old, attempts=old.attempts + 1, unsure=old.unsure + isinstance(error, Unsure), why=str(error)
    )
    claim = claim._replace(telling=tried)
    if tried.attempts >= MOST_ATTEMPTS:
        return give_up(desk, claim, f"{error}; tried {tried.attempts} times")
    pause = timedelta(seconds=max(error.after_s, pause_s(tried.attempts)))
    wait(desk, claim, max(due, desk.clock.now() + pause), str(error))


def give_up(desk: Desk, claim: Claim, why: str) -> None:
    """A dead letter with the channel and the reason; then a proof from which it can be redelivered."""
    now = desk.clock.now()
    dead = msgspec.structs.replace(claim.telling, status="gave up", at=now, due=None, why=why)
    try:
        desk.outbox.publish([_letter(dead, now)])
        _prove(desk, dead)
    except Retry as error:
        return wait(desk, claim, now + timedelta(seconds=max(error.after_s, pause_s(4))), why)
    drop(desk, claim)


def _letter(dead: Telling, now: datetime) -> Outgoing:
    """Its id is that of the telling: given up twice for want of an answer, it is one letter."""
    id = blake2b(f"{waiting_key(dead.channel, dead.alert)} {dead.since}".encode(), digest_size=12).hexdigest()
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
    key, now = f"rest/{channel}", desk.clock.now()
    try:
        stored = desk.state.get(key)
        fails = (REST.read(key, stored.value).fails if stored else 0) + 1
        rests_s = max(error.after_s, pause_s(fails - RESTS_AFTER)) if fails >= RESTS_AFTER else 0.0
        if isinstance(error, Throttled):
            rests_s = max(rests_s, error.after_s)
        until = now + timedelta(seconds=rests_s)
        desk.state.put(key, REST.write(Rest(until=until, fails=fails)), ttl_s=rests_s + KEEP_RESTS_S)
    except Retry:
        return now
    return until
