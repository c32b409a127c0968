"""Alerts posted as structured CloudEvents to any web hook, signed where a secret is given.

Answers are read as the CloudEvents web hook specification has them: 2xx took it, 429 and 503 say when to come back,
410 and other 4xx never will. Signatures are those of Standard Webhooks (standardwebhooks.com), ``v1``:
base64(HMAC-SHA256(secret, "id.timestamp.body")), with the id and the seconds in headers of their own, so that a
receiver can refuse what is old.
"""

import base64
import binascii
import hmac

from pilotlight.adapters.webhook_post import Poster
from pilotlight.codec.events import encode
from pilotlight.errors import BadInput
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds, clock_seconds

WHO = "web hook"
_PREFIX = "whsec_"


class WebhookChannel:
    """Posts each alert. The URL may be a secret."""

    def __init__(
        self, url: str, clock: Clock, secret: str = "", *, timeout_s: Seconds = 10.0, allow_private: bool = False
    ) -> None:
        self._poster = Poster(url, WHO, timeout_s=timeout_s, allow_private=allow_private)
        self._clock = clock
        self._key = _key(secret)

    def deliver(self, alert: Alert) -> str:
        id = event_id(alert)
        body = encode(alert, id=id)
        headers = {"Content-Type": "application/cloudevents+json", **self._signed(id, body)}
        reply = self._poster.post(body, headers)
        if not 200 <= reply.status < 300:
            raise self._poster.refusal(reply, self._clock.now())
        return reply.headers.get("x-request-id", "") or str(reply.status)

    def _signed(self, id: str, body: bytes) -> dict[str, str]:
        if not self._key:
            return {}
        # A header holds one line of plain text; what names an alert may be more.
        name = base64.urlsafe_b64encode(id.encode()).decode().rstrip("=")
        at = str(int(clock_seconds(self._clock.now())))
        made = hmac.digest(self._key, f"{name}.{at}.".encode() + body, "sha256")
        signature = f"v1,{base64.b64encode(made).decode()}"
        return {"webhook-id": name, "webhook-timestamp": at, "webhook-signature": signature}


def event_id(alert: Alert) -> str:
    """Equal for every attempt at one telling, and new when the same fingerprint is told again."""
    at = f"@{alert.at.isoformat()}" if alert.at else ""
    return alert.fingerprint + at + ("/resolved" if alert.resolved else "")


def _key(secret: str) -> bytes:
    """The bytes of a secret: base64 after ``whsec_``, else the text itself."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("a web hook's secret that begins with whsec_ must go on in base64") from None
