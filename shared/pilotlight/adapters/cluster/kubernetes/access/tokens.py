"""Claims of a service account's token."""

import base64
import binascii
from datetime import UTC, datetime

import msgspec

from pilotlight.facts.limits.checks import Token


class _Claims(msgspec.Struct, frozen=True):
    sub: str = ""
    iat: float | None = None
    exp: float | None = None


def token_of(token: str) -> Token | None:
    """Claims of a JSON Web Token, unverified: the API server judges it. None for what is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
        made, ends = _moment(claims.iat), _moment(claims.exp)
    except (binascii.Error, ValueError, OverflowError, OSError):
        return None
    return Token(subject=claims.sub, made=made, ends=ends)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
