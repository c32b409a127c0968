"""Alerts posted as structured CloudEvents to any web hook.

Answers are read as the CloudEvents web hook specification has them: 2xx took it, 429 and 503 say when to come back,
410 and other 4xx never will.
"""

import http.client
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from pilotlight.codec.events import encode
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Throttled
from pilotlight.facts.messages import Alert
from pilotlight.ports import Clock
from pilotlight.units import Seconds

ATTEMPTS = 3
PAUSE_S = 1.0
"""Before the second attempt where the receiver names no time; doubles after each."""
LONGEST_PAUSE_S = 10.0
"""A function waits this long itself; for longer the whole delivery comes back."""
TIMEOUT_S = 10.0


class WebhookChannel:
    """Posts each alert; tries again within bounds. The URL may be a secret: errors name only its host."""

    def __init__(self, url: str, clock: Clock, sleep: Callable[[Seconds], None] = time.sleep) -> None:
        self._url = _checked(url)
        self._clock = clock
        self._sleep = sleep

    def deliver(self, alert: Alert) -> None:
        body = encode(alert, id=alert.fingerprint)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._post(body, PAUSE_S * 2 ** (attempt - 1))
            except Throttled as later:
                if attempt == ATTEMPTS or later.after_s > LONGEST_PAUSE_S:
                    raise
                self._sleep(later.after_s)

    def _post(self, body: bytes, pause_s: Seconds) -> None:
        """One attempt. Raises ``Throttled`` with the pause where another may work."""
        url = self._url
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc.rpartition("@")[2], timeout=TIMEOUT_S)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            connection.request("POST", target, body, {"Content-Type": "application/cloudevents+json"})
            answer = connection.getresponse()
            answer.read(1024)
        except (OSError, http.client.HTTPException) as error:
            raise Throttled(f"web hook at {url.hostname}: {error or type(error).__name__}", pause_s) from None
        finally:
            connection.close()
        if answer.status >= 300:
            asked = answer.getheader("Retry-After", "")
            raise self._refusal(answer.status, _after_s(asked, self._clock.now(), pause_s))

    def _refusal(self, status: int, pause_s: Seconds) -> PilotlightError:
        said = f"web hook at {self._url.hostname} answered {status}"
        if status in (408, 425, 429) or status >= 500:
            return Throttled(said, pause_s)
        if status in (401, 403):
            return Forbidden(f"{said}; check its URL")
        return BadRequest(f"{said}; check its URL")


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        # What http.client refuses, it quotes whole.
        clean = url.isascii() and url.isprintable() and " " not in url
        known = clean and parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        # The text itself may be a secret that landed in the wrong place.
        raise BadInput("a web hook's URL must begin with https:// or http://, name a host and hold no spaces")
    return parts


def _after_s(text: str, now: datetime, otherwise: Seconds) -> Seconds:
    """Retry-After as seconds: a count, or a date (RFC 9110, 10.2.3)."""
    if text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return otherwise
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
