"""From one channel to another: what nobody acknowledges, and what cannot be told.

What may have to be told elsewhere waits there from the beginning (``waiting/<cluster>/<other channel>/<id>``), due once
it is time, so that no worker's death loses it; once it is acknowledged or over it is dropped.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from pilotlight.decide.alerts.alert_routing import RANK, wants
from pilotlight.errors import Conflict
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.desk import Desk, ack_name, waiting_name
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.alert_records import ACK, WAITING
from pilotlight.state_schema.table import Mark

UNDELIVERED = "undelivered"
"""The kind of alert that tells other channels of one that could not be told."""


def escalate(desk: Desk, channel: str, alert: Alert, since: datetime) -> None:
    """Have the next channel wait for an acknowledgement that does not come."""
    rules = desk.rules(channel)
    if not rules.escalate_to or alert.resolved or alert.severity == "info":
        return
    if wants(desk.rules(rules.escalate_to), alert):
        due = since + timedelta(seconds=rules.escalate_after)
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


def acknowledge(state: State, alert: Alert, by: str) -> bool:
    """Note that somebody sees to it; whether nobody had before. It stays so until it is over."""
    try:
        ACK.put(state, ack_name(alert), Mark(note=by), if_version=ABSENT)
    except Conflict:
        return False
    return True


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
