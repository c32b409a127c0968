"""One GET that is answered with JSON, in words that hold nothing of its URL but the host."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.http import Broken, fetch
from pilotlight.errors import BadInput, BadRequest, Forbidden, Throttled, Unavailable
from pilotlight.units import Seconds

WITHIN_S: Seconds = 5.0
PAUSE_S: Seconds = 30.0
T = TypeVar("T")


def ask(url: str, headers: Mapping[str, str], shape: type[T], who: str) -> T:
    """The answer in its shape. Raises ``Unavailable``, ``Throttled``, ``Forbidden`` or ``BadRequest``."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if not host:
        raise BadInput(f"{who}: its address names no host")
    try:
        answer = fetch(url, WITHIN_S, headers=headers)
    except Broken as error:
        raise Unavailable(f"{who} at {host} does not answer ({error})") from None
    if answer.status in (401, 403):
        raise Forbidden(f"{who} at {host} answers {answer.status}: check the credential and its rights")
    if answer.status == 429:
        raise Throttled(f"{who} at {host} answers 429", PAUSE_S)
    if answer.status >= 500:
        raise Unavailable(f"{who} at {host} answers {answer.status}")
    if answer.status != 200:
        raise BadRequest(f"{who} at {host} answers {answer.status}: check the queue's address")
    try:
        return typed_json.decode(answer.body, shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unavailable(f"{who} at {host} answers what cannot be read") from None


def length_of(value: Any, who: str) -> float:
    """A length as sources write it. Raises ``Unavailable`` for what is no length: it is never taken for 0."""
    try:
        length = float(value)
    except (TypeError, ValueError):
        length = -1.0
    if not 0 <= length < float("inf"):
        raise Unavailable(f"{who} tells {value!r}, which is no length of a queue")
    return length
