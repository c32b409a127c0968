"""A schedule tick or a cloud's budget notice -> count what nodes cost, see where budgets stand."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def billing_tick(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes billing ticks and budget notices; answers what was counted and where budgets stand."""
    return app().respond("billing_tick", request)
