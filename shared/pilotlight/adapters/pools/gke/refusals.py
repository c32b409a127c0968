"""Refusals of Google, as our errors: of a call by its status and codes, of an instance by those of its last attempt.

Codes: Compute Engine's "Troubleshooting resource availability errors", and the groups that cluster-autoscaler sorts
them into (its ``autoscaling_gce_client.go``): stock-outs, quotas, addresses, rights, reservations by their words.
"""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.http import HttpAnswer
from pilotlight.errors import (
    BadRequest,
    Busy,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from pilotlight.units import HOUR, Seconds

Reason = Literal["no-capacity", "quota", "other"]

SHORT = ("RESOURCE_POOL_EXHAUSTED", "INSUFFICIENT_CAPACITY", "RESERVATION_CAPACITY_EXCEEDED", "STOCKOUT")
"""Codes hold one of these where a zone, or a reservation, has none left."""
ADDRESSES = "IP_SPACE_EXHAUSTED"
NONE_LEFT = (
    "No available resources in specified reservations",
    "does not have available resources for the request",
    "does not have enough resources available to fulfill the request",
)
"""Words that say the same of a reservation or a zone, whatever the code."""
LIMITED = re.compile(
    r"\bquota\b.*\b(exceeded|exhausted)\b|\b(insufficient|exceeds?|exceeded)\b.*\bquota\b", re.I | re.S
)
"""Words that say so of a quota, whatever the code: "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region"."""
GRAVEST: tuple[Reason, ...] = ("quota", "no-capacity", "other")
"""What keeps most from being bought comes first: a quota binds a region, a stock-out a zone, any other this attempt."""
RATE = frozenset(("rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"))
AT_WORK = frozenset(("resourceNotReady", "resourceInUseByAnotherResource", "operationInProgress"))
THROTTLED_S: Seconds = 10.0
LONGEST_S: Seconds = HOUR
"""No longer is waited for than that, whatever an answer asks for."""
RIGHTS = "give its account the role of pilotlight show docs/guides/gke.md, or mend PROJECT in PILOTLIGHT_POOLS"
LOGIN = "the token is over or refused: run `gcloud auth application-default login`, or see that the account is enabled"


class Missing(BadRequest):
    """What was asked about is not there."""


class Problem(msgspec.Struct, frozen=True):
    """An error as Compute Engine tells it of an instance or an operation; ``reason`` is a call's code."""

    code: str = ""
    message: str = ""
    reason: str = ""


class Problems(msgspec.Struct, frozen=True):
    """Those of one attempt."""

    errors: tuple[Problem, ...] = ()


class _Told(msgspec.Struct, frozen=True):
    message: str = ""
    status: str = ""
    errors: tuple[Problem, ...] = ()


class _Body(msgspec.Struct, frozen=True):
    error: _Told = _Told()


def reason_of(code: str, message: str) -> Reason:
    """Why something was not launched, by its code, else by its words. Addresses that ran out are a shortage: another
    pool may have some."""
    if any(short in code for short in SHORT) or ADDRESSES in code:
        return "no-capacity"
    if "QUOTA" in code or LIMITED.search(message):
        return "quota"
    return "no-capacity" if any(words in message for words in NONE_LEFT) else "other"


def gravest(found: Sequence[Problem]) -> Problem:
    """The error of an attempt that it is judged by, the first of those that are as grave: a general one often leads."""
    return min(found, key=lambda one: (GRAVEST.index(reason_of(_code(one), one.message)), not _bars(_code(one))))


def _code(one: Problem) -> str:
    return (one.code or one.reason).upper()


def _bars(code: str) -> bool:
    return "PERMISSION" in code or "FORBIDDEN" in code


def error_of(what: str, found: Problems) -> PilotlightError:
    """An operation that ended with errors, or an answer with codes, as our error."""
    grave = gravest(found.errors)
    said = f"{what}: {grave.code or grave.reason} ({grave.message[:200]})"
    return _not_launched(_code(grave), grave.message, said, barred=_bars(_code(grave)))


def _not_launched(code: str, message: str, said: str, *, barred: bool) -> PilotlightError:
    match reason_of(code, message):
        case "no-capacity":
            return NoCapacity(said)
        case "quota":
            return QuotaExceeded(said)
    return Forbidden(f"{said}; {RIGHTS}") if barred else BadRequest(said)


def refusal(what: str, answer: HttpAnswer, lost: type[Unavailable]) -> PilotlightError:
    """An answer that is no success, as our error; ``lost`` where it does not say whether anything was done."""
    status, told = answer.status, _told(answer.body)
    codes = [*(one.reason for one in told.errors if one.reason), told.status]
    said = ": ".join(filter(None, (f"Google answers {what} with {status}", codes[0], told.message[:200])))
    if status == 429 or (status < 500 and not RATE.isdisjoint(codes)):
        after = answer.headers.get("retry-after", "")
        asked_s = float(after) if after.isascii() and after.isdigit() else THROTTLED_S
        return Throttled(said, min(asked_s, LONGEST_S))
    if not 400 <= status < 500 or status == 408:
        return lost(said)
    if status in (409, 412) or not AT_WORK.isdisjoint(codes):
        return Busy(said)
    if status == 404:
        return Missing(said)
    if status == 401:
        return Forbidden(f"{said}; {LOGIN}")
    grave = gravest([*told.errors, Problem(code=told.status, message=told.message)])
    return _not_launched(_code(grave), grave.message or told.message, said, barred=status == 403)


def _told(body: bytes) -> _Told:
    try:
        return typed_json.decode(body, _Body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Told()
