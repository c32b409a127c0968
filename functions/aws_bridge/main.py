"""An event of EventBridge -> the same event on a Pub/Sub topic, under AWS's own identity. Runs as a Lambda."""

import os
from functools import cache, partial

from pilotlight.adapters.bridge import Bridge

bridge = cache(partial(Bridge, os.environ))


def aws_bridge(event: dict[str, object], context: object) -> dict[str, str]:
    """Publishes the event; answers the message's id. Whatever it raises, Lambda tries again, then keeps the event."""
    return {"published": bridge().forward(event)}
