"""Alerts as Discord takes them: one embed of at most 6,000 characters (title 256, description 4,096, field 1,024).

Every sign in it is escaped, so that its markdown is text, and ``allowed_mentions`` lets nothing mention anybody.
"""

from string import punctuation
from typing import Any

from pilotlight.codec.alert_text import alert_parts, clean, cut, links
from pilotlight.facts.messages import Alert

_COLOURS = {"info": 0x3B82F6, "warning": 0xF59E0B, "critical": 0xDC2626}
_OVER = 0x16A34A
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in punctuation})
_ROOM = {"title": 256, "why": 2000, "where": 500, "cost": 200, "next": 700, "how": 700, "mark": 300}


def discord(alert: Alert) -> dict[str, Any]:
    """A web hook's body."""
    said = alert_parts(alert)
    fields = [
        {"name": name, "value": _text(getattr(said, name), name), "inline": name in ("where", "cost")}
        for name in ("where", "cost", "next", "how")
        if getattr(said, name)
    ]
    if found := links(alert):
        fields.append({"name": "look", "value": _links(found), "inline": False})
    embed = {
        "title": _text(said.title, "title"),
        "description": _text(said.why, "why"),
        "color": _OVER if alert.resolved else _COLOURS[alert.severity],
        "fields": fields,
        "footer": {"text": cut(f"{clean(alert.kind)} | {clean(alert.fingerprint)}", _ROOM["mark"], str)},
    }
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _text(text: str, part: str) -> str:
    return cut(text, _ROOM[part], lambda raw: raw.translate(_SIGNS))


def _links(found: list[tuple[str, str]]) -> str:
    """As many as a field takes; an address holds no bracket, see ``links``."""
    lines, room = list[str](), 1024
    for name, url in found:
        line = f"[{name.translate(_SIGNS)}](<{url}>)"
        if len(line) < room:
            lines, room = [*lines, line], room - len(line) - 1
    return " ".join(lines) or "—"
