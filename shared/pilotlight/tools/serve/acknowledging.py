"""Acknowledging over HTTP: ``/ack``, the page that an alert's link opens, and ``/alert``, which shows one alert and
takes the POST that acknowledges it.

Chats fetch the links they show, so a GET changes nothing. ``alert=<cluster>/<digest>`` names the alert, as in its link.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from pilotlight import typed_json
from pilotlight.codec.alert_text import alert_parts, clean, links
from pilotlight.errors import Conflict
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.tools.serve import request_gate
from pilotlight.tools.serve.live import live_page

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from pilotlight.facts.messages import Alert
    from pilotlight.ports.state import State
    from pilotlight.wiring import App

MOST_BODY, MOST_NAME = 10_000, 80


class Said(msgspec.Struct, frozen=True):
    """The body that is posted: who sees to it."""

    by: str = ""


def pages(app: "App") -> "dict[str, WSGIApplication]":
    """Both by their paths."""
    return {"/ack": _page, "/alert": lambda environ, start: _alert(app, environ, start)}


def _page(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    body, headers = live_page.page("acknowledge.html")
    start("200 OK", [*headers, ("Content-Length", str(len(body)))])
    return [body]


def _alert(app: "App", environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    tellings = _tellings(app, request_gate.alert_of(environ))
    if not tellings:
        return request_gate.answer(start, 404, {"error": "no such alert is told or waits; see pilotlight alerts list"})
    if environ["REQUEST_METHOD"] == "POST":
        return _acknowledge(app, tellings[0], environ, start)
    private = (("Cache-Control", "no-store"), *live_page.PRIVATE)
    return request_gate.answer(start, 200, _shown(app, tellings), *private)


def _acknowledge(app: "App", telling: Telling, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    from pilotlight.flow.delivery.desk import acknowledged_by

    try:
        said = typed_json.decode(request_gate.bounded_stream(environ, MOST_BODY) or b"{}", Said)
    except (msgspec.DecodeError, UnicodeError) as error:
        return request_gate.answer(start, 400, {"error": f'{error}; send {{"by": "your name"}}'})
    if telling.alert.resolved:
        return request_gate.answer(start, 409, {"error": "it is over: there is nothing to see to"})
    who = clean(said.by)[:MOST_NAME] or "somebody"
    new = acknowledge(app.alerts, telling.alert, who)
    return request_gate.answer(
        start, 200, {"new": new, "by": who if new else acknowledged_by(app.alerts, telling.alert)}
    )


def acknowledge(state: "State", alert: "Alert", by: str) -> bool:
    """Note that somebody sees to it, until it is over; True where nobody had before."""
    from pilotlight.flow.delivery.desk import ack_name
    from pilotlight.ports.state import ABSENT
    from pilotlight.state_schema.alert_records import ACK
    from pilotlight.state_schema.marks import Mark

    try:
        ACK.put(state, ack_name(alert), Mark(note=by), if_version=ABSENT)
    except Conflict:
        return False
    return True


def _tellings(app: "App", asked: str) -> list[Telling]:
    """Tellings of an alert that the channels know: what goes on before what is over, the newest first."""
    from pilotlight.state_schema.alert_records import PROOF, WAITING

    cluster, _, digest = asked.rpartition("/")
    if not cluster or not digest:
        return []
    names = [f"{cluster}/{channel}/{digest}" for channel in app.policy.alerts.channels]
    found = [entry.value for name in names for table in (PROOF, WAITING) if (entry := table.get(app.alerts, name))]
    return sorted(found, key=lambda telling: (not telling.alert.resolved, telling.at), reverse=True)


def _shown(app: "App", tellings: list[Telling]) -> dict[str, Any]:
    from pilotlight.flow.delivery.desk import acknowledged_by

    alert = tellings[0].alert
    return {
        **alert_parts(alert)._asdict(),
        "severity": alert.severity,
        "resolved": alert.resolved,
        "at": alert.at.isoformat() if alert.at else "",
        "fingerprint": alert.fingerprint,
        "by": clean(acknowledged_by(app.alerts, alert)),
        "told": [f"{each.channel}: {each.status}, {each.at:%Y-%m-%d %H:%M} UTC" for each in tellings],
        "links": dict(links(alert)),
    }
