"""Alerts as Telegram takes them: sendMessage with ``parse_mode`` HTML, 4,096 UTF-16 units after entities are read.

What an alert says stands in ``code``: anywhere else Telegram makes links, mentions, tags and commands of plain text.
"""

from html import escape

from pilotlight.codec.alert_text import alert_parts, clean, cut, links, named_parts
from pilotlight.facts.messages import Alert

_UNITS = {"title": 300, "where": 200, "cost": 100, "why": 2000, "next": 500, "how": 500, "mark": 200}
"""UTF-16 units of each part; with their names and line breaks less than 4,096 in all."""


def telegram(alert: Alert) -> str:
    """The text of sendMessage."""
    said = alert_parts(alert)
    level, _, what = said.title.partition(": ")
    lines = [f"<b>{level}</b> {_code(what, 'title')}"]
    lines += [f"<b>{name}</b>: {_code(text, name)}" for name, text in named_parts(said) if text]
    lines += [" ".join(f'<a href="{escape(url)}">{escape(name)}</a>' for name, url in links(alert))]
    return "\n".join([*filter(None, lines), _code(clean(alert.fingerprint), "mark")])


def _code(text: str, part: str) -> str:
    escaped = cut(text, _UNITS[part], lambda raw: escape(raw, quote=False), lambda c: 1 + (ord(c) > 0xFFFF))
    return f"<code>{escaped}</code>" if escaped else ""
