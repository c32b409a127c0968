"""Kueue has reserved quota for a Workload -> its dollars held, its nodes bought once, its admission check answered."""

import functions_framework
from flask import Request

from pilotlight.wiring import app


@functions_framework.http
def kueue_admission(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Takes events of Workloads that have their quota; answers what was decided and why."""
    return app().respond("kueue_admission", request)
