"""Checks: the verdict on one thing that was looked at, with its fix; and a credential's own words."""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.units import Seconds

Level = Literal["ok", "warning", "fault", "unknown"]
"""``unknown`` is what could not be looked at; only a ``fault`` fails a check-up."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. ``code`` is stable; ``fix`` says what to do, and is empty where all is well."""

    code: str
    subject: str
    verdict: Level
    what: str
    fix: str = ""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A service account's token by its own words: whose it is, when it was made and when it ends, where it does."""

    subject: str = ""
    made: datetime | None = None
    ends: datetime | None = None


TOKEN_WARNING_S: Seconds = 7 * 86_400.0
"""A credential that ends sooner is told of."""
SHORT_LIVED_S: Seconds = 2 * 86_400.0
"""One that was made for no longer is renewed by where it comes from: a mounted account, a plugin."""
