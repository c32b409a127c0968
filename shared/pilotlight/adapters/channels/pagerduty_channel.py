"""Alerts to PagerDuty's Events API v2: an incident a fingerprint, resolved when it is over.

202 took it, and ``dedup_key`` is the proof: the same key again makes no second incident, so a lost answer is harmless.
400 is for good; 429 and 5xx are for later.
"""

import msgspec

from pilotlight.adapters.webhook_post import Poster
from pilotlight.codec.alert_bodies.pagerduty import incident, pagerduty
from pilotlight.errors import BadInput
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

PUBLIC = "https://events.pagerduty.com"


class PagerDutyChannel:
    """Sends each alert under an integration's key, which is the secret."""

    def __init__(
        self, key: str, clock: Clock, *, server: str = PUBLIC, timeout_s: Seconds = 10.0, allow_private: bool = False
    ) -> None:
        if not key.isalnum():
            raise BadInput("a PagerDuty routing key has letters and digits; take it from an Events API v2 integration")
        url = f"{server.rstrip('/')}/v2/enqueue"
        self._poster = Poster(url, "PagerDuty", timeout_s=timeout_s, allow_private=allow_private)
        self._key, self._clock = key, clock

    def deliver(self, alert: Alert) -> str:
        body = msgspec.json.encode(pagerduty(alert, self._key))
        reply = self._poster.post(body, {"Content-Type": "application/json"})
        if reply.status != 202:
            raise self._poster.refusal(reply, self._clock.now(), "check the integration's key")
        return incident(alert)
