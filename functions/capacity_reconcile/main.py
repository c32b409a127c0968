"""A schedule tick, one a minute -> settle boots, scale down, catch demand whose event was lost."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def capacity_reconcile(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes ticks; answers what was decided and why."""
    return app().respond("capacity_reconcile", request)
