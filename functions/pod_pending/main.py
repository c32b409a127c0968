"""A GPU pod cannot be scheduled -> the cheapest capacity allowed, bought once."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def pod_pending(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes events of pods that wait; answers what was decided and why."""
    return app().respond("pod_pending", request)
