"""Values as they are printed for others to read: figures end at the billionth, for what follows a division left.

Parts that are printed beside their total are rounded before they are added up, not here.
"""

import re
from decimal import Decimal
from typing import Any

import msgspec

from pilotlight.units import shorten_figure

PLACES = 9
_LONG = re.compile(r"-?\d+\.\d{10,}", re.ASCII)


def printable(value: object) -> Any:
    """Plain values for JSON; decimals stay decimals."""
    return _short(msgspec.to_builtins(value, builtin_types=(Decimal,), str_keys=True, enc_hook=_message))


def _message(raw: msgspec.Raw) -> Any:
    """A message that is kept as it travels, where a decimal is text."""
    return _short_text(msgspec.json.decode(raw))


def _short_text(value: Any) -> Any:
    match value:
        case str() if _LONG.fullmatch(value):
            return Decimal(value)
        case dict():
            return {key: _short_text(item) for key, item in value.items()}
        case list():
            return [_short_text(item) for item in value]
    return value


def _short(value: Any) -> Any:
    match value:
        case Decimal():
            return shorten_figure(value, PLACES) or Decimal(0)
        case float():
            return round(value, PLACES)
        case dict():
            return {key: _short(item) for key, item in value.items()}
        case list() | tuple():
            return [_short(item) for item in value]
    return value
