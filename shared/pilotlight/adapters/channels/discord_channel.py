"""Alerts to a Discord web hook, each as an embed.

With ``wait=true`` Discord answers 200 with the message, whose id is the proof. 429 has ``retry_after`` in seconds in
its body; 404 (unknown web hook) and other 4xx are for good.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.webhook_post import LONGEST_WAIT_S, Poster, check_url
from pilotlight.codec.alert_bodies.discord import discord
from pilotlight.errors import Throttled
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds


class _Said(msgspec.Struct, frozen=True):
    id: str = ""
    retry_after: float | None = None


class DiscordChannel:
    """Posts each alert. The URL is the secret."""

    def __init__(self, url: str, clock: Clock, *, timeout_s: Seconds = 10.0, allow_private: bool = False) -> None:
        parts = check_url(url, "Discord")
        waited = urlencode({**dict(parse_qsl(parts.query)), "wait": "true"})
        url = urlsplit(parts._replace(query=waited).geturl()).geturl()
        self._poster = Poster(url, "Discord", timeout_s=timeout_s, allow_private=allow_private)
        self._clock = clock

    def deliver(self, alert: Alert) -> str:
        reply = self._poster.post(msgspec.json.encode(discord(alert)), {"Content-Type": "application/json"})
        try:
            said = typed_json.decode(reply.body, _Said)
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = _Said()
        if reply.status == 429 and said.retry_after is not None and said.retry_after >= 0:
            raise Throttled(f"{self._poster.name} answered 429", min(said.retry_after, LONGEST_WAIT_S))
        if not 200 <= reply.status < 300:
            raise self._poster.refusal(reply, self._clock.now(), "check the web hook")
        return said.id
