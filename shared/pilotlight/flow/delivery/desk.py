"""Records of alerts on channels, by name: those that wait, those that were told, those that people see to.

=====================================  =================================================================================
``waiting/<cluster>/<channel>/<id>``   what is claimed or waits; the claim lapses when its deliverer dies
``proof/<cluster>/<channel>/<id>``     what was told, or given up: it keeps the same fingerprint from being told again
``burst/<cluster>/<channel>/<id>``     how many of a kind came in this window
``rest/<channel>``                     a channel that fails, and is left alone for a while
=====================================  =================================================================================

What nobody acknowledges, or what cannot be told, goes from one channel to another: it waits there from the beginning
(``waiting/<cluster>/<other channel>/<id>``), due once it is time, so that no worker's death loses it; once it is
acknowledged or over it is dropped.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import blake2b

import msgspec

from pilotlight.decide.alerts.alert_routing import RANK, wants
from pilotlight.errors import Conflict
from pilotlight.facts.alerts.channel_policy import Alerts
from pilotlight.facts.alerts.channel_policy import Channel as Rules
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.ports.delivery import AlertChannel, Outbox
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.alert_records import ACK, PROOF, WAITING
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds

UNDELIVERED = "undelivered"
"""The kind of alert that tells other channels of one that could not be told."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """The channels by the policy's names, and the ports, with which alerts are told. ``link_key`` signs their links."""

    channels: Mapping[str, AlertChannel]
    policy: Alerts
    state: State
    outbox: Outbox
    link_key: str = ""

    def now(self) -> datetime:
        """The store's time: a claim of one worker lapses for all of them at one moment."""
        return self.state.now()

    def rules(self, channel: str) -> Rules:
        """A channel's rules; one that the policy no longer names has those of any."""
        return self.policy.channels.get(channel) or Rules(kind="console")


def waiting_name(channel: str, alert: Alert) -> str:
    """Under which name an alert waits. That it is over waits beside it."""
    return _name(channel, alert, alert.fingerprint + ("\0resolved" if alert.resolved else ""))


def proof_name(channel: str, alert: Alert) -> str:
    """Under which name its proof lies: one for a fingerprint, whether begun or over."""
    return _name(channel, alert, alert.fingerprint)


def _name(channel: str, alert: Alert, what: str) -> str:
    return f"{alert.cluster}/{channel}/{blake2b(what.encode(), digest_size=16).hexdigest()}"


def ack_name(alert: Alert) -> str:
    """Under which name lies that it was acknowledged: on whatever channel."""
    return f"{alert.cluster}/{blake2b(alert.fingerprint.encode(), digest_size=16).hexdigest()}"


def acknowledged_by(state: State, alert: Alert) -> str:
    """The person who has said that they see to it; empty where nobody has."""
    found = ACK.get(state, ack_name(alert))
    return (found.value.note or "somebody") if found else ""


def proof(state: State, channel: str, alert: Alert) -> Telling | None:
    """The proof of an alert's fingerprint on a channel: told, given up, or over."""
    found = PROOF.get(state, proof_name(channel, alert))
    return found.value if found else None


def reason_not_to_tell(proof: Telling | None, alert: Alert, now: datetime, again_s: Seconds) -> str:
    """Why an alert need not be told on a channel, or empty. What was told is told again after ``again_s``."""
    if proof is None:
        return "never told: nothing to resolve" if alert.resolved else ""
    told = proof.status in ("told", "over")
    if alert.resolved:
        if later_end(proof, alert):
            return "never told: nothing to resolve"  # It ends what began again since.
        if proof.alert.resolved:
            return {"told": "told before", "over": "over before it was told"}.get(proof.status, "")
        if told and earlier(alert, proof.alert):
            return "it began again since"
        return "" if told else "never told: nothing to resolve"
    if proof.alert.resolved:
        stale = alert.at is not None and proof.alert.at is not None and alert.at <= proof.alert.at
        return "over already" if stale else ""
    return "told before" if told and now - proof.at < timedelta(seconds=again_s) else ""


def goes_on(desk: Desk, channel: str, alert: Alert) -> None:
    """Note that what was told lately is true still: an end from before that is not its end."""
    found = PROOF.get(desk.state, proof_name(channel, alert))
    if found is None or found.value.alert.resolved or not earlier(found.value.alert, alert):
        return
    later = msgspec.structs.replace(found.value.alert, at=alert.at)
    with suppress(Conflict):
        PROOF.put(desk.state, found.name, msgspec.structs.replace(found.value, alert=later), if_version=found.version)


def earlier(one: Alert, other: Alert) -> bool:
    """True where both are dated, and one is the earlier."""
    return one.at is not None and other.at is not None and one.at < other.at


def end_came_first(desk: Desk, channel: str, alert: Alert) -> None:
    """Note the end of what nobody has told: a beginning that is still on its way is not to be told after it."""
    name, now = proof_name(channel, alert), desk.now()
    found = PROOF.get(desk.state, name)
    if found is not None and not later_end(found.value, alert):
        return
    over = Telling(channel=channel, alert=alert, status="over", since=now, at=now)
    with suppress(Conflict):
        PROOF.put(desk.state, name, over, if_version=found.version if found else ABSENT)


def later_end(proof: Telling | None, alert: Alert) -> bool:
    """True for an end of which nothing is known: neither of what was told, nor of what was over already."""
    if proof is None:
        return True
    ours, theirs = alert.at, proof.alert.at
    return proof.alert.resolved and ours is not None and theirs is not None and ours > theirs


def unfinished_beginning(state: State, channel: str, alert: Alert) -> Entry[Telling] | None:
    """The telling of what an alert says is over, where that is not done."""
    return WAITING.get(state, waiting_name(channel, msgspec.structs.replace(alert, resolved=False)))


def escalate(desk: Desk, channel: str, alert: Alert, since: datetime) -> None:
    """Have the next channel wait for an acknowledgement that does not come, to the end of a minute: a burst is one."""
    rules = desk.rules(channel)
    if not rules.escalate_to or alert.resolved or alert.severity == "info":
        return
    if wants(desk.rules(rules.escalate_to), alert):
        due = (since + timedelta(seconds=rules.escalate_after + 59.999999)).replace(second=0, microsecond=0)
        _wait(desk, rules.escalate_to, alert, due, f"unless it is acknowledged, as {channel} tells it", channel)


def raise_elsewhere(desk: Desk, channel: str, alert: Alert, why: str) -> None:
    """Send an alert that could not be told to the fallback; the other channels hear that it could not be told."""
    now, rules = desk.now(), desk.rules(channel)
    if rules.fallback:
        _wait(desk, rules.fallback, alert, now, f"{channel} could not be told", channel)
    if alert.kind == UNDELIVERED:
        return
    told = Alert(
        cluster=alert.cluster,
        kind=UNDELIVERED,
        severity="critical" if alert.severity == "critical" else "warning",
        fingerprint=f"{UNDELIVERED}/{channel}",
        what=f"an alert could not be told on {channel}: {alert.what}",
        why=why,
        next=f"it goes to {rules.fallback}" if rules.fallback else "it is tried now and then while it matters",
        how=f"pilotlight alerts redeliver --channel {channel}",
        team=alert.team,
        subject=f"channel {channel}",
        at=now,
    )
    for name, other in desk.policy.channels.items():
        if name != channel and other.direct and wants(other, told):
            _wait(desk, name, told, now, f"{channel} could not be told", channel)


def forget_acknowledged(desk: Desk, alert: Alert) -> None:
    """It is over: where it begins again it is news."""
    if any(rules.escalate_to for rules in desk.policy.channels.values()):
        ACK.delete(desk.state, ack_name(alert))


def matters_for(alert: Alert) -> timedelta:
    """The time for which an alert that was given up is worth further tries."""
    return timedelta(hours=(0, 6, 24)[RANK[alert.severity]])


def _wait(desk: Desk, channel: str, alert: Alert, due: datetime, why: str, after: str) -> None:
    now = desk.now()
    telling = Telling(channel=channel, alert=alert, status="waits", since=now, at=now, due=due, why=why, after=after)
    with suppress(Conflict):  # It waits there already, or is being told.
        WAITING.put(desk.state, waiting_name(channel, alert), telling, if_version=ABSENT)
