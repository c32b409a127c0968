"""Google Pub/Sub as the topics ``<prefix>-alerts``, ``<prefix>-capacity`` and ``<prefix>-dead-letter``.

The package is heavy, so it is imported when something is published. Messages of one pool keep their order.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from pilotlight.codec.events import encode_outgoing
from pilotlight.errors import BadInput, BadRequest, Forbidden, Throttled, Unavailable
from pilotlight.facts.messages import Outgoing
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from google.cloud.pubsub_v1 import PublisherClient
    from google.cloud.pubsub_v1.publisher.futures import Future

CONFIRMED_WITHIN_S: Seconds = 20
"""All messages of one publication: the library gives no connection to cut."""
LETTERS, MOST_LETTERS = "dead-letter", 10_000
"""Dead letters whose ids a process remembers."""


class PubSubOutbox:
    """Publishes, and returns when the service has every message."""

    def __init__(self, project: str, prefix: str) -> None:
        if not project or not prefix:
            raise BadInput("PILOTLIGHT_OUTBOX: name project and prefix, as in pubsub:acme/pilotlight")
        self._path = f"projects/{project}/topics/{prefix}-"
        self._client: PublisherClient | None = None
        self._letters = dict[str, None]()
        self._lock = Lock()

    def publish(self, messages: Sequence[Outgoing]) -> None:
        messages = [message for message in messages if not self._repeated(message)]
        if not messages:
            return
        client = self._connected()
        with _explained(self._path):
            try:
                ends = time.monotonic() + CONFIRMED_WITHIN_S
                for future in [self._send(client, message) for message in messages]:
                    future.result(timeout=max(0.0, ends - time.monotonic()))
            except Exception:
                for message in messages:
                    with suppress(RuntimeError):  # Only a key whose message failed is held back.
                        client.resume_publish(self._path + message.topic, message.key)
                raise
        self._letters |= dict.fromkeys(message.id for message in messages if message.topic == LETTERS)

    def _repeated(self, message: Outgoing) -> bool:
        """True where this process sent the same dead letter already: it lies there, and once is enough."""
        if len(self._letters) > MOST_LETTERS:
            self._letters.clear()
        return message.topic == LETTERS and message.id in self._letters

    def _send(self, client: "PublisherClient", message: Outgoing) -> "Future":
        topic, body = self._path + message.topic, encode_outgoing(message)
        return client.publish(topic, body, message.key, **_attributes(message))

    def _connected(self) -> "PublisherClient":
        with self._lock:
            if self._client is None:
                with _explained(self._path):
                    self._client = _client()
            return self._client


def _client() -> "PublisherClient":
    from google.api_core.retry import Retry
    from google.cloud.pubsub_v1 import PublisherClient
    from google.cloud.pubsub_v1.types import BatchSettings, PublisherOptions

    return PublisherClient(
        # What one decision publishes goes out at once: nothing is gained by waiting for more.
        batch_settings=BatchSettings(max_latency=0.005),
        publisher_options=PublisherOptions(
            enable_message_ordering=True,
            timeout=CONFIRMED_WITHIN_S / 2,
            retry=Retry(timeout=CONFIRMED_WITHIN_S),
        ),
    )


def _attributes(message: Outgoing) -> dict[str, str]:
    """For filters of subscriptions. An id begins with its decision's."""
    return {"id": message.id, "type": message.type, "decision": message.id.partition(".")[0]}


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Google's errors in our tree."""
    try:
        from google.api_core import exceptions as google
        from google.auth.exceptions import GoogleAuthError, TransportError
    except ImportError as error:
        raise BadInput(f"pubsub needs the package {error.name}; run pip install 'pilotlight[gcp]'") from None
    try:
        yield
    except google.NotFound:
        raise BadRequest(f"Pub/Sub: a topic of {where}* is not there; run the Terraform that makes them") from None
    except (google.Forbidden, google.Unauthorized, GoogleAuthError) as error:
        if isinstance(error, TransportError):
            raise Unavailable(f"Pub/Sub {where}*: the token service does not answer") from None
        raise Forbidden(f"Pub/Sub {where}*: may not publish ({type(error).__name__})") from None
    except google.ResourceExhausted:
        raise Throttled(f"Pub/Sub {where}*: too much is published", 10.0) from None
    except (google.GoogleAPIError, TimeoutError) as error:
        raise Unavailable(f"Pub/Sub {where}*: not confirmed ({type(error).__name__})") from None
