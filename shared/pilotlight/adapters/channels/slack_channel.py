"""Alerts to Slack, as blocks: by an incoming web hook, or by a bot's token to a channel, where what follows on an alert
goes into its thread.

A web hook answers 200 with the text ``ok``; 429 with Retry-After; 400 (``invalid_blocks``), 403
(``action_prohibited``), 404 (``no_service``) and 410 (``channel_is_archived``) for good. It has no message id: its
request id is the proof. ``chat.postMessage`` answers 200 with ``ok`` and the message's ``ts``, or with ``error``:
``ratelimited`` (beside 429), ``internal_error``, ``fatal_error``, ``service_unavailable`` and ``request_timeout`` are
for later, all else for good.
"""

from typing import Any

import msgspec

from pilotlight.adapters.http import HttpAnswer
from pilotlight.adapters.webhook_post import Poster
from pilotlight.codec.alert_bodies.slack import slack
from pilotlight.codec.alert_text import clean
from pilotlight.errors import BadInput, BadRequest, Forbidden, Unavailable
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

PUBLIC = "https://slack.com"
_LATER = ("ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout")
_RIGHTS = ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope")


class SlackChannel:
    """Posts each alert to a web hook. The URL is the secret."""

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


class SlackBot:
    """Posts each alert to one channel as a bot with the right ``chat:write``; what follows on one into its thread."""

    def __init__(
        self,
        token: str,
        chat: str,
        clock: Clock,
        *,
        server: str = PUBLIC,
        timeout_s: Seconds = 10.0,
        allow_private: bool = False,
    ) -> None:
        if not token.startswith("xox") or not token.replace("-", "").replace(".", "").isalnum():
            raise BadInput("a Slack bot's token begins with xoxb-; take it from the app's OAuth page")
        url = f"{server.rstrip('/')}/api/chat.postMessage"
        self._poster = Poster(url, "Slack", timeout_s=timeout_s, allow_private=allow_private)
        self._token, self._chat, self._clock = token, chat, clock

    def deliver(self, alert: Alert) -> str:
        return self.follow(alert, "")

    def follow(self, alert: Alert, receipt: str) -> str:
        """Show what goes on from a message that is shown; also in the channel, where it is over."""
        chat, _, ts = receipt.rpartition("/")
        body: dict[str, Any] = {"channel": chat or self._chat, **slack(alert)}
        if ts:
            body |= {"thread_ts": ts, "reply_broadcast": alert.resolved}
        headers = {"Content-Type": "application/json; charset=utf-8", "Authorization": f"Bearer {self._token}"}
        reply = self._poster.post(msgspec.json.encode(body), headers)
        said = _decoded(reply)
        if reply.status == 200 and said.get("ok") is True:
            # All of a thread hang on its first message.
            return f"{said.get('channel') or self._chat}/{ts or said.get('ts', '')}"
        error = clean(str(said.get("error", "")))[:64]
        if reply.status != 200:
            raise self._poster.refusal(reply, self._clock.now(), "check the token")
        said_so = f"{self._poster.name} says {error or 'no reason'}"
        if error in _LATER:
            raise Unavailable(said_so)
        raise (Forbidden if error in _RIGHTS else BadRequest)(f"{said_so}: check the token, its rights and the channel")


def _decoded(reply: HttpAnswer) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return said if isinstance(said, dict) else {}


def _said(reply: HttpAnswer) -> str:
    """Slack's word for an error, where the body is one."""
    word = clean(reply.body[:64].decode(errors="replace"))
    return word if word.replace("_", "").isalpha() else "no reason given"
