"""Decoding of JSON and plain values into typed ones, safe from the first use on in a process of several threads.

msgspec 0.22 works out what a Struct's fields hold when one is first decoded, and shows another thread the unfinished
answer: that thread reads a null pointer and the process ends. Here one thread at a time works it out.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_ONE_AT_A_TIME = Lock()


@overload
def decoder(kind: type[T], *, strict: bool = True) -> msgspec.json.Decoder[T]: ...
@overload
def decoder(kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]: ...
def decoder(kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """A decoder of JSON into one kind of value."""
    with _ONE_AT_A_TIME:
        return msgspec.json.Decoder(kind, strict=strict)


def decode(body: bytes | str, kind: type[T], *, dec_hook: Callable[[type, Any], Any] | None = None) -> T:
    """JSON as a value of a kind. Raises ``msgspec.DecodeError`` and ``msgspec.ValidationError``."""
    _work_out(kind)  # type: ignore[arg-type]  # A type is hashable.
    return msgspec.json.decode(body, type=kind, dec_hook=dec_hook)


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """A plain value as one of a kind. Raises ``msgspec.ValidationError``."""
    _work_out(kind)  # type: ignore[arg-type]  # A type is hashable.
    return msgspec.convert(value, kind, strict=strict)


@cache
def _work_out(kind: object) -> None:
    """Have what a kind's fields hold worked out, once."""
    decoder(kind)
