"""An alert -> the channels that want it, each told once."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def alert_fanout(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes alerts; answers who was told."""
    dryrun = request.args.get("dryrun") in ("1", "true")
    return app().receive("alert_fanout", request.get_data(), dict(request.headers), dryrun=dryrun).http()
