"""Alerts as Microsoft Teams takes them: a message with one Adaptive Card, at most 28 KB.

What an alert says stands in TextRuns, which know no markdown; TextBlocks and FactSets would read it. Somebody is
mentioned only by ``msteams.entities``, which no card of ours has.
"""

from typing import Any

from pilotlight.codec.alert_text import alert_parts, clean, cut, links, named_parts, strip_links
from pilotlight.facts.messages import Alert

_COLOURS = {"info": "accent", "warning": "warning", "critical": "attention"}
_ROOM = {"title": 300, "where": 500, "cost": 200, "why": 3000, "next": 700, "how": 700, "mark": 300}


def teams(alert: Alert) -> dict[str, Any]:
    """The body that a workflow's web hook takes."""
    said = alert_parts(alert)
    colour = "good" if alert.resolved else _COLOURS[alert.severity]
    body = [_block(_run(said.title, "title", weight="bolder", size="large", color=colour))]
    for name, text in named_parts(said):
        if text:
            body.append(_block(_run(f"{name}: ", name, weight="bolder"), _run(text, name)))
    mark = f"{clean(alert.kind)} | {clean(alert.fingerprint)}"
    body.append(_block(_run(mark, "mark", isSubtle=True, size="small")))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in links(alert)],
        "msteams": {"width": "Full"},
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _block(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, part: str, **style: object) -> dict[str, Any]:
    return {"type": "TextRun", "text": cut(strip_links(text), _ROOM[part], str), **style}
