"""Alerts as Slack takes them: Block Kit.

Limits: header 150 characters, section 3,000, field 2,000, 10 fields, 50 blocks. Text of ours and text of an alert stand
in ``mrkdwn`` with ``verbatim``, so that Slack makes no links and mentions of it; the three characters of its markup are
escaped, and the signs that set type, for which it knows no escape, become their likes. What people copy stands in a
``rich_text`` block, where text is only text.
"""

from typing import Any

from pilotlight.codec.alert_text import alert_parts, clean, cut, links, strip_formatting
from pilotlight.facts.messages import Alert

HEADER, SECTION, FIELD = 150, 3000, 2000


def slack(alert: Alert) -> dict[str, Any]:
    """A message: blocks, and the text that notifications show."""
    said = alert_parts(alert)
    facts = [("where", said.where), ("cost", said.cost)]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": cut(said.title, HEADER, str), "emoji": False}},
        {"type": "section", "fields": [_mrkdwn(f"*{name}*\n", text, FIELD) for name, text in facts if text]},
    ]
    for name, text in (("why", said.why), ("next", said.next)):
        if text:
            blocks.append({"type": "section", "text": _mrkdwn(f"*{name}*\n", text, SECTION)})
    if said.how:
        blocks.append(_literal("how", cut(said.how, SECTION, str)))
    if found := links(alert):
        blocks.append(_linked(found))
    blocks.append(
        {"type": "context", "elements": [_mrkdwn("", f"{clean(alert.kind)} | {clean(alert.fingerprint)}", FIELD)]}
    )
    text = cut(strip_formatting(said.title), SECTION, _escaped)
    return {"text": text, "mrkdwn": False, "parse": "none", "unfurl_links": False, "unfurl_media": False} | {
        "blocks": blocks
    }


def _mrkdwn(head: str, text: str, limit: int) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": head + cut(strip_formatting(text), limit - len(head), _escaped), "verbatim": True}


def _literal(name: str, text: str) -> dict[str, Any]:
    elements = [
        {"type": "text", "text": f"{name}\n", "style": {"bold": True}},
        {"type": "text", "text": text, "style": {"code": True}},
    ]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _linked(found: list[tuple[str, str]]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for name, url in found:
        elements += [{"type": "link", "url": url, "text": name}, {"type": "text", "text": "  "}]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
