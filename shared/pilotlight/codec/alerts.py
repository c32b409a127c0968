"""Alerts as people read them: what, where, dollars, why, what happens next, how to act. Pure.

Limits: Slack's Block Kit (header 150 characters, section 3,000, field 2,000, 10 fields, 50 blocks), Telegram's 4,096
UTF-16 units after entities are read (Bot API, sendMessage).
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from html import escape
from typing import Any, NamedTuple

from pilotlight.facts.messages import Alert

SLACK_HEADER, SLACK_SECTION, SLACK_FIELD = 150, 3000, 2000
_TELEGRAM = {"title": 300, "where": 200, "cost": 100, "why": 2000, "next": 500, "how": 500, "mark": 200}
"""UTF-16 units of each part; with their names and line breaks less than 4,096 in all."""
_MOST_DOLLARS = Decimal(10) ** 15
"""No bill is larger: such an amount is nonsense, and left out."""


class Words(NamedTuple):
    """The parts of an alert; those that are empty are left out."""

    title: str
    where: str
    cost: str
    why: str
    next: str
    how: str


def words(alert: Alert) -> Words:
    """What an alert says."""
    where = [f"cluster {alert.cluster}"]
    where += [f"team {alert.team}"] if alert.team else []
    where += [alert.subject] if alert.subject else []
    return Words(
        title=f"{'RESOLVED' if alert.resolved else alert.severity.upper()}: {clean(alert.what)}",
        where=clean(", ".join(where)),
        cost=_cost(alert),
        why=clean(alert.why),
        next=clean(alert.next),
        how=clean(alert.how),
    )


def plain(alert: Alert) -> tuple[str, str]:
    """Title and text, for a channel that knows no markup."""
    said = words(alert)
    lines = [f"{name}: {text}" for name, text in _named(said) if text]
    return said.title, "\n".join(lines)


def slack(alert: Alert) -> dict[str, Any]:
    """An incoming web hook's body: blocks, and the text that notifications show."""
    said = words(alert)
    facts = [("where", said.where), ("cost", said.cost)]
    fields = [_mrkdwn(f"*{name}*\n", text, SLACK_FIELD) for name, text in facts if text]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(said.title, SLACK_HEADER, str)}},
        {"type": "section", "fields": fields},
    ]
    for name, text in (("why", said.why), ("next", said.next), ("how", said.how)):
        if text:
            blocks.append({"type": "section", "text": _mrkdwn(f"*{name}*\n", text, SLACK_SECTION)})
    mark = f"{clean(alert.kind)} | {clean(alert.fingerprint)}"
    blocks.append({"type": "context", "elements": [_mrkdwn("", mark, SLACK_FIELD)]})
    return {"text": _cut(said.title, SLACK_SECTION, _slack_escaped), "blocks": blocks}


def telegram(alert: Alert) -> str:
    """The text of sendMessage with ``parse_mode`` HTML."""
    said = words(alert)
    lines = [f"<b>{_html(said.title, 'title')}</b>"]
    lines += [f"<b>{name}</b>: {_html(text, name)}" for name, text in _named(said) if text]
    return "\n".join([*lines, f"<i>{_html(clean(alert.fingerprint), 'mark')}</i>"])


def clean(text: str) -> str:
    """Text without what no terminal or chat should be sent: control characters, lone surrogates."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()


def _named(said: Words) -> list[tuple[str, str]]:
    names = ("where", "cost", "why", "next", "how")
    return [(name, getattr(said, name)) for name in names]


def _cost(alert: Alert) -> str:
    rate, whole = _dollars(alert.usd_per_hour), _dollars(alert.usd)
    return ", ".join([f"{rate} an hour"] * bool(rate) + [f"{whole} in all"] * bool(whole))


def _dollars(amount: str) -> str:
    """An amount to the cent; a smaller price with the digits it has, four at most."""
    try:
        usd = Decimal(amount)
    except InvalidOperation:
        return ""
    if not usd.is_finite() or abs(usd) > _MOST_DOLLARS:
        return ""
    if abs(usd) < 10:
        usd = usd.quantize(Decimal("0.0001"))
    return f"${usd:,.2f}" if usd == usd.quantize(Decimal("0.01")) or abs(usd) >= 10 else f"${usd.normalize():f}"


def _mrkdwn(head: str, text: str, limit: int) -> dict[str, str]:
    return {"type": "mrkdwn", "text": head + _cut(text, limit - len(head), _slack_escaped)}


def _slack_escaped(text: str) -> str:
    """The three characters that Slack's markup gives a meaning: so no text can mention or link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _html(text: str, part: str) -> str:
    return _cut(text, _TELEGRAM[part], lambda raw: escape(raw, quote=False), lambda c: 1 + (ord(c) > 0xFFFF))


def _cut(text: str, limit: int, escaped: Callable[[str], str], size: Callable[[str], int] | None = None) -> str:
    """Text escaped, cut where it would pass the limit, never within an escape. ``size`` is of one raw character."""
    size = size or (lambda c: len(escaped(c)))
    sizes = [size(c) for c in text]
    if sum(sizes) <= limit:
        return escaped(text)
    room, kept = limit - 1, 0
    while kept < len(sizes) and sizes[kept] <= room:
        room -= sizes[kept]
        kept += 1
    return escaped(text[:kept]) + "…"
