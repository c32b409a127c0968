"""Alerts to Microsoft Teams, by the web hook of a workflow ("Post to a channel when a webhook request is received").

It answers 202 without a body: there is no message id, its request id is the proof. 429 says Retry-After.
"""

import msgspec

from pilotlight.adapters.webhook_post import Poster
from pilotlight.codec.alert_bodies.teams import teams
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds


class TeamsChannel:
    """Posts each alert. The URL is the secret."""

    def __init__(self, url: str, clock: Clock, *, timeout_s: Seconds = 10.0, allow_private: bool = False) -> None:
        self._poster = Poster(url, "Teams", timeout_s=timeout_s, allow_private=allow_private)
        self._clock = clock

    def deliver(self, alert: Alert) -> str:
        reply = self._poster.post(msgspec.json.encode(teams(alert)), {"Content-Type": "application/json"})
        if not 200 <= reply.status < 300:
            raise self._poster.refusal(reply, self._clock.now(), "check the workflow's web hook")
        return reply.headers.get("x-ms-workflow-run-id", "") or reply.headers.get("x-ms-request-id", "")
