"""Alertmanager's web hook: each alert of a group by itself, under the fingerprint that Alertmanager gave it."""

import re
from typing import Literal

import msgspec

from pilotlight.codec.events.envelope import Envelope, convert_shape
from pilotlight.facts.messages import Alert, Moment
from pilotlight.facts.nodes.gpu_faults import ALERTS, CODE_LABELS, NODE_LABELS, OF_PROGRAMS

_SEVERITIES: dict[str, Literal["info", "warning", "critical"]] = {
    "critical": "critical",
    "page": "critical",
    "error": "critical",
    "info": "info",
    "none": "info",
}


class _Alert(msgspec.Struct, frozen=True, kw_only=True):
    labels: dict[str, str]
    fingerprint: str
    startsAt: Moment
    endsAt: Moment | None = None
    status: Literal["firing", "resolved"] = "firing"
    annotations: dict[str, str] = {}
    generatorURL: str = ""


_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LINKS = {"runbook": "runbook_url", "dashboard": "dashboard_url"}
"""Where to look further, by the annotation that says so."""


def read(event: Envelope) -> Alert:
    """One alert. Without a severity it is a warning."""
    alert = convert_shape(event.data, _Alert, event.path)
    labels, notes = alert.labels, alert.annotations
    name = labels.get("alertname", "alert")
    resolved = alert.status == "resolved"
    found = {"source": alert.generatorURL, **{name: notes.get(key, "") for name, key in _LINKS.items()}}
    return Alert(
        cluster=labels.get("cluster") or event.cluster,
        kind=name,
        severity=_SEVERITIES.get(labels.get("severity", "").lower(), "warning"),
        fingerprint=alert.fingerprint,
        what=notes.get("summary") or name,
        why=notes.get("description") or notes.get("message") or "",
        how=notes.get("runbook_url", ""),
        resolved=resolved,
        team=labels.get("team", ""),
        subject=_sick_node(name, labels),
        at=(alert.endsAt if resolved else None) or alert.startsAt,
        links={name: url for name, url in found.items() if url},
    )


def _sick_node(name: str, labels: dict[str, str]) -> str:
    """The node whose GPUs an alert says are not well; empty of other alerts, and of XIDs that programs cause."""
    codes = {labels.get(key, "") for key in CODE_LABELS}
    if name not in ALERTS or codes & {str(code) for code in OF_PROGRAMS}:
        return ""
    found = next((labels[key] for key in NODE_LABELS if labels.get(key)), "")
    return found if _NODE_NAME.fullmatch(found) else ""
