"""Tables in a text that is JSON, without the library of YAML: to import that costs a start more than to read them."""

import json
from typing import Any

LARGEST, DEEPEST = 100_000, 20
"""Longer and deeper ones are left to YAML, which weighs them."""
SPECIAL = "\\u", "\x7f"
"""Escapes of letters may stand for half a letter: YAML refuses those, and signs that cannot be printed."""


def read_json(text: str | bytes) -> dict[str, Any] | None:
    """The table in a text, its numbers as they are written; None where it is no JSON, or has a key twice.

    ASCII alone is read. The rest is left to YAML, which all JSON is: its errors name the line.
    """
    if len(text) > LARGEST or not text.isascii():
        return None
    written = text if isinstance(text, str) else text.decode()
    if not written.lstrip().startswith("{") or any(sign in written for sign in SPECIAL):
        return None
    try:
        found: dict[str, Any] = json.loads(
            written, object_pairs_hook=_once, parse_int=str, parse_float=str, parse_constant=_refused
        )
        return found if _levels(found) <= DEEPEST else None
    except (ValueError, RecursionError):
        return None


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_levels, inner), default=0)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _refused(constant: str) -> str:
    raise ValueError(f"{constant} is no JSON")
