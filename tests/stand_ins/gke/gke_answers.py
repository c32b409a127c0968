"""Answers of GKE and Compute Engine as they are written: errors of calls, of instances, and of a group's attempts."""

import json
from datetime import datetime
from typing import Any

from pilotlight.errors import NoCapacity, PilotlightError, QuotaExceeded

PROJECT, ZONE, CLUSTER = "acme-ml", "europe-west4-a", "prod"
WHERE = f"{PROJECT}/{ZONE}/{CLUSTER}"
SITE = "https://www.googleapis.com/compute/v1"
CODES: dict[type[PilotlightError], str] = {
    NoCapacity: "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    QuotaExceeded: "QUOTA_EXCEEDED",
}
TYPES: list[dict[str, Any]] = [
    {
        "name": "g2-standard-4",
        "guestCpus": 4,
        "memoryMb": 16384,
        "zone": ZONE,
        "accelerators": [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}],
    },
    {"name": "g2-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": "us-central1-a"},
]
"""Machine types, by zone."""
WORDS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED"}


class Refused(Exception):
    """An error answer, with the code that Compute Engine calls a reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def attempt(code: str, no: PilotlightError) -> dict[str, str]:
    """An error of an instance's last attempt."""
    return {"code": code or CODES.get(type(no), "INTERNAL_ERROR"), "message": str(no)}


def stamp(at: datetime) -> str:
    """A moment as both write it."""
    return at.isoformat(timespec="milliseconds")


def told(name: str, code: str, at: datetime, action: str = "CREATING") -> dict[str, Any]:
    """An error of an instance as listErrors has it."""
    url = f"{SITE}/projects/{PROJECT}/zones/{ZONE}/instances/{name}"
    return {
        "error": {"code": code, "message": f"{code} of {name}"},
        "instanceActionDetails": {"action": action, "instance": url},
        "timestamp": stamp(at),
    }


def error(status: int, reason: str, message: str) -> bytes:
    """An error as both interfaces answer it."""
    told = {"code": status, "message": message, "status": WORDS.get(status, "INVALID_ARGUMENT")}
    return json.dumps(
        {"error": {**told, "errors": [{"reason": reason, "message": message, "domain": "global"}]}}
    ).encode()
