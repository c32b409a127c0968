"""A schedule tick or a bill's export -> what a cloud billed read file by file, and its days replaced."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def billing_import(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes ticks of bills and bill exports; answers what was read, and how much is left."""
    return app().respond("billing_import", request)
