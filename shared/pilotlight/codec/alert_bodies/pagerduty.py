"""Alerts as PagerDuty's Events API v2 takes them. All of it is plain text there, and addresses are not made links of.

One fingerprint is one incident: what is over resolves it. Limits: summary 1,024 characters, ``dedup_key`` 255, 512 KB.
"""

from hashlib import sha256
from typing import Any

from pilotlight.codec.alert_text import alert_parts, clean, cut, links, named_parts, strip_links
from pilotlight.facts.messages import Alert

SUMMARY, DETAIL = 1024, 4000


def pagerduty(alert: Alert, routing_key: str) -> dict[str, Any]:
    """The body of ``/v2/enqueue``."""
    event = {"routing_key": routing_key, "dedup_key": incident(alert)}
    if alert.resolved:
        return event | {"event_action": "resolve"}
    said = alert_parts(alert)
    payload: dict[str, Any] = {
        "summary": _text(said.title, SUMMARY),
        "source": _text(clean(f"pilotlight {alert.cluster}"), SUMMARY),
        "severity": alert.severity,
        "component": _text(clean(alert.subject), SUMMARY),
        "group": _text(clean(alert.team), SUMMARY),
        "class": _text(clean(alert.kind), SUMMARY),
        "custom_details": {name: _text(text, DETAIL) for name, text in named_parts(said) if text},
    }
    if alert.at is not None:
        payload["timestamp"] = alert.at.isoformat()
    payload["custom_details"]["fingerprint"] = _text(clean(alert.fingerprint), SUMMARY)
    found = [{"href": url, "text": name} for name, url in links(alert)]
    return event | {"event_action": "trigger", "client": "Pilotlight", "payload": payload, "links": found}


def incident(alert: Alert) -> str:
    """The incident of a cluster's fingerprint, within what PagerDuty takes."""
    named = f"{alert.cluster}\0{alert.fingerprint}".encode(errors="replace")
    return f"pilotlight/{sha256(named).hexdigest()}"


def _text(text: str, limit: int) -> str:
    return cut(strip_links(text), limit, str)
