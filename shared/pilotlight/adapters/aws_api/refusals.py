"""Refusals of AWS, as our errors. Codes: botocore's models, and Karpenter's list of EC2's capacity errors."""

from collections.abc import Callable, Mapping

import msgspec

from pilotlight import typed_json
from pilotlight.errors import (
    BadRequest,
    Busy,
    Denied,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from pilotlight.units import Seconds

SHORT: frozenset[str] = frozenset({
    "InsufficientInstanceCapacity",
    "InsufficientAddressCapacity",
    "InsufficientCapacity",
    "InsufficientCapacityOnHost",
    "InsufficientHostCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientFreeAddressesInSubnet",
    "UnfulfillableCapacity",
    "ReservationCapacityExceeded",
    "SpotMaxPriceTooLow",
    "Unsupported",  # The type is not to be had in this zone: another one may have it.
})  # fmt: skip
OVER_QUOTA: frozenset[str] = frozenset({
    "VcpuLimitExceeded",
    "InstanceLimitExceeded",
    "MaxSpotInstanceCountExceeded",
    "MaxFleetCountExceeded",
    "LimitExceeded",
})  # fmt: skip
THROTTLED: frozenset[str] = frozenset({
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
})  # fmt: skip
BUSY: frozenset[str] = frozenset({"ScalingActivityInProgress", "ResourceContention", "InstanceRefreshInProgress"})
RIGHTS = "give the role the statement of the guide: pilotlight show docs/guides/eks.md"
FORBIDDEN: Mapping[str, str] = {
    "AccessDenied": RIGHTS,
    "AccessDeniedException": RIGHTS,
    "AuthorizationError": "give the role the right",
    "UnauthorizedOperation": RIGHTS,
    "AuthFailure": "check the credential",
    "InvalidClientTokenId": "check the credential",
    "UnrecognizedClientException": "check the credential",
    "InvalidIdentityToken": "check the role's trust: it names another identity",
    "ExpiredToken": "the credential has ended: give a role, or new keys",
    "ExpiredTokenException": "the credential has ended: give a role, or new keys",
    "RequestExpired": "check the clock of this machine",
    "RequestInTheFuture": "check the clock of this machine",
    "RequestTimeTooSkewed": "check the clock of this machine",
    "InvalidSignatureException": "check the credential and the clock of this machine",
    "SignatureDoesNotMatch": "check the credential and the clock of this machine",
    "IncompleteSignature": "check the credential",
    "MissingAuthenticationToken": "give a credential",
    "OptInRequired": "the account is not signed up for this region",
}
PAUSE_S: Seconds = 5.0


class _InJson(msgspec.Struct, frozen=True):
    type: str = msgspec.field(name="__type", default="")
    message: str = ""
    Message: str = ""


def said_in_json(body: bytes) -> tuple[str, str]:
    """The code and the words of a JSON interface's refusal; both empty where the body is none."""
    try:
        found = typed_json.decode(body, _InJson)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""
    return found.type.rpartition("#")[2], found.message or found.Message


def problem(
    what: str, status: int, code: str, words: str, hidden: Callable[[str], str], lost: type[Unavailable]
) -> PilotlightError:
    """Error of an answer that refuses, of whichever interface; ``lost`` where it may have been done all the same.

    Words that may quote the request are left out where it was about the credential, which ``hidden`` takes out.
    """
    said = f"AWS answers {what} with {status}" + (f": {code[:80]}" if code else "")
    if words and code not in FORBIDDEN:
        said += f" ({' '.join(hidden(words).split())[:240]})"
    known = refusal(code, said)
    if known is not None:
        return known
    if status == 429:
        return Throttled(said, PAUSE_S)
    if status >= 500 or status < 400 or status == 408 or code == "IdempotentCallInProgress":
        return lost(said)
    return BadRequest(said)


def refusal(code: str, said: str) -> PilotlightError | None:
    """The error of one code; None where the code alone does not tell whether anything was done."""
    if code in THROTTLED:
        return Throttled(said, PAUSE_S)
    if code in BUSY:
        return Busy(said)
    if code in FORBIDDEN:
        return Forbidden(f"{said}; {FORBIDDEN[code]}")
    return shortage(code, said)


def shortage(code: str, said: str) -> Denied | None:
    """Shortage for which EC2 could not launch, by its code: out of stock, or over the account's limit."""
    if code in SHORT:
        return NoCapacity(said)
    if code in OVER_QUOTA:
        return QuotaExceeded(said)
    return None
