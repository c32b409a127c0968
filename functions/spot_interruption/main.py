"""A cloud takes an instance back, or may -> replace, save, drain and account for it before the deadline."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def spot_interruption(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes interruption notices, and ticks for those at work; answers what was done and why."""
    return app().respond("spot_interruption", request)
