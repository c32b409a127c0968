"""A GPU pod cannot be scheduled -> the cheapest capacity allowed, bought once."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def pod_pending(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes events of pods that wait; answers what was decided and why."""
    dryrun = request.args.get("dryrun") in ("1", "true")
    return app().receive("pod_pending", request.get_data(), dict(request.headers), dryrun=dryrun).http()
