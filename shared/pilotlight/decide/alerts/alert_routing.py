"""Alerts: which channel wants which, when one is quiet, how a burst of them is told as one, and what signs a link."""

import hmac
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from hashlib import blake2b

import msgspec

from pilotlight.decide.limits.policy_schedule import in_window
from pilotlight.facts.alerts.channel_policy import Alerts, Channel
from pilotlight.facts.alerts.delivery_records import Burst
from pilotlight.facts.limits.rule_policy import RuleTime
from pilotlight.facts.messages import Alert
from pilotlight.units import Seconds, count_of

RANK = {"info": 0, "warning": 1, "critical": 2}
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 600.0
MOST_NAMED = 10

GROUP = "group/"
"""How the fingerprint of many alerts told as one begins."""
"""Different alerts that a grouped one names."""


def wants(channel: Channel, alert: Alert) -> bool:
    """True for an alert that a channel wants: severe enough, of its teams, of its kinds. No team named is for all."""
    team = not channel.teams or not alert.team or alert.team in channel.teams
    kind = not channel.kinds or any(_is_kind(alert.kind, wanted) for wanted in channel.kinds)
    return team and kind and RANK[alert.severity] >= RANK[channel.min_severity]


def _is_kind(kind: str, wanted: str) -> bool:
    return kind.startswith(wanted[:-1]) if wanted.endswith("*") else kind == wanted


def quiet_until(quiet: RuleTime | None, alert: Alert, now: datetime) -> datetime | None:
    """When the quiet time that holds an alert back ends; None where nothing does, as for one that is critical."""
    if quiet is None or alert.severity == "critical" or not in_window(quiet, now):
        return None
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(quiet.timezone)
    today, end = now.astimezone(zone).date(), time.fromisoformat(quiet.end)
    ends = (datetime.combine(today + timedelta(days=day), end, zone).astimezone(UTC) for day in range(9))
    return next((moment for moment in ends if moment > now and not in_window(quiet, moment)), None)


def count_alert(burst: Burst | None, now: datetime, after: int, window_s: Seconds) -> Burst:
    """The count with one more. A window that follows on a full one is full from its beginning."""
    window = timedelta(seconds=window_s)
    if burst is None or now >= burst.begun + 2 * window:
        return Burst(begun=now, count=1)
    if now >= burst.begun + window:
        return Burst(begun=now, count=after + 1 if burst.count > after else 1)
    return Burst(begun=burst.begun, count=burst.count + 1)


def pause_s(failures: int) -> Seconds:
    """Seconds to wait after so many failures in a row: twice as long each time, within bounds."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(max(0, failures - 1), 16))


def group_alerts(alerts: Sequence[Alert]) -> Alert:
    """Many alerts of one kind and cluster as one: their count, what they say, and dollars added up."""
    first = alerts[0]
    said = Counter(alert.what for alert in alerts)
    lines = [f"{what} ({times} times)" if times > 1 else what for what, times in said.most_common(MOST_NAMED)]
    if len(said) > MOST_NAMED:
        lines.append(f"and {count_of(len(said) - MOST_NAMED, 'other')}")
    grouped = blake2b("\n".join(sorted(alert.fingerprint for alert in alerts)).encode(), digest_size=8)
    return Alert(
        cluster=first.cluster,
        kind=first.kind,
        severity=max((alert.severity for alert in alerts), key=RANK.__getitem__),
        fingerprint=f"{GROUP}{first.kind}/{grouped.hexdigest()}",
        what=f"{len(alerts)} {first.kind} alerts",
        why="\n".join(lines),
        next=_same([alert.next for alert in alerts]),
        how="pilotlight alerts list",
        usd_per_hour=_sum([alert.usd_per_hour for alert in alerts]),
        usd=_sum([alert.usd for alert in alerts]),
        resolved=first.resolved,
        team=_same([alert.team for alert in alerts]),
        at=max((alert.at for alert in alerts if alert.at is not None), default=None),
    )


def link_alert(policy: Alerts, alert: Alert, ack: str = "") -> Alert:
    """An alert with links to the home's page, to why its decision was made, and to its own page, by ``ack``."""
    if not policy.page:
        return alert
    page = policy.page.rstrip("/")
    ours = {"acknowledge": f"{page}/ack?alert={ack}"} if ack else {}
    ours |= {"page": f"{page}/"} | ({"why": f"{page}/?why={alert.decision}"} if alert.decision else {})
    return msgspec.structs.replace(alert, links={**ours, **alert.links})


def _same(texts: Sequence[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ""


def _sum(amounts: Sequence[str]) -> str:
    """The sum of decimal texts, those that are empty left out; empty where nothing can be added."""
    try:
        known = [Decimal(amount) for amount in amounts if amount]
        return str(sum(known)) if known else ""
    except InvalidOperation:
        return ""


def link_signature(key: str, alert: str) -> str:
    """The signature behind the # of an alert's link: whoever has it may acknowledge this alert, and no other."""
    return hmac.digest(key.encode(), b"acknowledge " + alert.encode("utf-8", "surrogateescape"), "sha256").hex()
