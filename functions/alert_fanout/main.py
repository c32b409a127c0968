"""An alert -> the channels that want it, each told once."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def alert_fanout(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes alerts; answers who was told."""
    return app().respond("alert_fanout", request)
