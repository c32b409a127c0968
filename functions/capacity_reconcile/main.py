"""A schedule tick, one a minute -> settle boots, scale down, catch demand whose event was lost."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def capacity_reconcile(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes ticks; answers what was decided and why."""
    dryrun = request.args.get("dryrun") in ("1", "true")
    return app().receive("capacity_reconcile", request.get_data(), dict(request.headers), dryrun=dryrun).http()
