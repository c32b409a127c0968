"""The topics of a Pub/Sub emulator, wired to a served deployment as Terraform wires the real ones.

Ticks are left out: serve makes its own, and the emulator keeps filters without applying them. Over the emulator's REST:
workers are forked after this, and gRPC does not survive a fork.
"""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from pilotlight.doorway import RECEIVES
from pilotlight.errors import Failed

EMULATOR = "PUBSUB_EMULATOR_HOST"

LISTENS: Mapping[str, tuple[str, ...]] = {
    "pod_pending": ("pod-events",),
    "kueue_admission": ("workload-events",),
    "capacity_reconcile": ("capacity-failures",),
    "billing_tick": ("billing",),
    "billing_import": ("bills",),
    "spot_interruption": ("interruptions",),
    "alert_fanout": ("alerts",),
}
"""Which topics push to a function, by their names after the prefix."""

ATTEMPTS = 5
"""What Pub/Sub tries at least before it gives a message to the dead letters."""
ACK_S, BACKOFF, LONGEST_BACKOFF = 60, "1s", "10s"


def wire(address: str, url: str, emulator: str) -> bool:
    """Make the topics of ``pubsub:PROJECT/PREFIX`` with push subscriptions to ``url``, where an ``emulator``
    (host and port) is named.

    Whether there was one. What is there already stays. Raises ``Failed``.
    """
    kind, _, where = address.partition(":")
    if kind != "pubsub" or not emulator:
        return False
    project, _, prefix = where.partition("/")

    def make(what: str, name: str, body: dict[str, Any]) -> str:
        path = f"projects/{project}/{what}/{prefix}-{name}"
        _put(emulator, path, body)
        return path

    dead = make("topics", "dead-letter", {})
    make("topics", "capacity", {})
    for function in RECEIVES:
        for name in LISTENS.get(function, ()):
            topic = make("topics", name, {})
            subscription = {
                "topic": topic,
                "pushConfig": {"pushEndpoint": f"{url}/{function}"},
                "ackDeadlineSeconds": ACK_S,
                "enableMessageOrdering": name == "alerts",
                "retryPolicy": {"minimumBackoff": BACKOFF, "maximumBackoff": LONGEST_BACKOFF},
                "deadLetterPolicy": {"deadLetterTopic": dead, "maxDeliveryAttempts": ATTEMPTS},
            }
            make("subscriptions", f"{name}-{function.replace('_', '-')}", subscription)
    return True


def _put(emulator: str, path: str, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection(emulator, timeout=30)
    try:
        connection.request("PUT", f"/v1/{path}", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read(1000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"the Pub/Sub emulator at {emulator} does not answer ({error}); start it") from None
    finally:
        connection.close()
    if answer.status not in (200, 409):
        raise Failed(f"the Pub/Sub emulator refuses {path}: {answer.status} {said}")
