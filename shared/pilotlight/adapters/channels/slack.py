"""Alerts to a Slack incoming web hook, as blocks.

Slack answers 200 with the text ``ok``; 429 with Retry-After; 400 (``invalid_blocks``), 403 (``action_prohibited``), 404
(``no_service``) and 410 (``channel_is_archived``) for good. There is no message id: its request id is the proof.
"""

import msgspec

from pilotlight.adapters.http import HttpAnswer
from pilotlight.adapters.post import Poster
from pilotlight.codec.alerts import clean, slack
from pilotlight.errors import BadRequest
from pilotlight.facts.messages import Alert
from pilotlight.ports import Clock
from pilotlight.units import Seconds


class SlackChannel:
    """Posts each alert. The URL is the secret."""

    def __init__(self, url: str, clock: Clock, *, timeout_s: Seconds = 10.0, allow_private: bool = False) -> None:
        self._poster = Poster(url, "Slack", timeout_s=timeout_s, allow_private=allow_private)
        self._clock = clock

    def deliver(self, alert: Alert) -> str:
        body = msgspec.json.encode(slack(alert))
        reply = self._poster.post(body, {"Content-Type": "application/json; charset=utf-8"})
        if reply.status != 200:
            raise self._poster.refusal(reply, self._clock.now(), f"{_said(reply)}: check the web hook")
        if reply.body.strip() not in (b"ok", b'{"ok":true}'):
            raise BadRequest(f"{self._poster.name} answered 200 without ok: check that this is an incoming web hook")
        return reply.headers.get("x-slack-req-id", "")


def _said(reply: HttpAnswer) -> str:
    """Slack's word for an error, where the body is one."""
    word = clean(reply.body[:64].decode(errors="replace"))
    return word if word.replace("_", "").isalpha() else "no reason given"
