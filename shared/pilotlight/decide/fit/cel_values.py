"""Values of CEL in selectors of devices, and the operators, fields and methods on them.

A value that nobody knows is ``Unknown``, one that is known not to be there is ``Absent``. An operator that does not
take a value's type raises ``TypeError``; what is not read here raises ``Unread``.
"""

import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.units import quantity

Value = object
LONGEST_MATCHED = 128
"""Characters that a pattern with repeats is tried on, at most: an attribute has 64."""

MOST_REPEATS = 3
"""A pattern with more repeats, or with nested ones, may take Python's matcher too long."""


class Unread(ValueError):
    """An expression that uses what is not read here; ``str()`` says what."""


class Unknown(NamedTuple):
    """An answer that depends on what nobody knows: ``name``."""

    name: str


class Absent(NamedTuple):
    """An answer that cannot be had: ``name`` is not there, or is of another type."""

    name: str


class Version(NamedTuple):
    """A semantic version; ``release`` is False for a prerelease, which comes before its release."""

    numbers: tuple[int, ...]
    release: bool = True
    prerelease: str = ""


class Measured(NamedTuple):
    """A quantity."""

    value: Decimal


class DeviceValues(NamedTuple):
    """``device.attributes`` or ``device.capacity``; with a ``domain`` one part of it."""

    kind: DeviceKind
    of: str
    domain: str = ""


class WholeDevice(NamedTuple):
    """``device`` itself."""

    kind: DeviceKind


def _alike(function: Callable[[object, object], Value]) -> Callable[[Value, Value], Value]:
    """A function of two numbers, or of two values of one type."""

    def checked(left: Value, right: Value) -> Value:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (left, right))
        if not numbers and (type(left) is not type(right) or isinstance(left, Version | Measured)):
            raise TypeError
        return function(left, right)

    return checked


def _equal(left: Value, right: Value) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (left, right))
    return (numbers or type(left) is type(right)) and left == right


def _within(one: Value, many: Value) -> Value:
    if isinstance(many, DeviceValues):
        found = _look(many, str(one), only_there=True)
        return found if isinstance(found, Unknown) else not isinstance(found, Absent)
    if not isinstance(many, list):
        raise TypeError
    return any(_equal(one, each) for each in many)


def _divided(left: int | float, right: int | float) -> Value:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


RELATIONS: dict[str, Callable[..., Value]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _alike(operator.lt),  # type: ignore[arg-type]
    "<=": _alike(operator.le),  # type: ignore[arg-type]
    ">": _alike(operator.gt),  # type: ignore[arg-type]
    ">=": _alike(operator.ge),  # type: ignore[arg-type]
    "in": _within,
}
SUMS: dict[str, Callable[..., Value]] = {"+": _alike(operator.add), "-": _alike(operator.sub)}
PRODUCTS: dict[str, Callable[..., Value]] = {
    "*": _alike(operator.mul),
    "/": _alike(_divided),  # type: ignore[arg-type]
    "%": _alike(lambda left, right: left - right * _divided(left, right)),  # type: ignore[operator, arg-type]
}


def _not(value: Value) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return not value


def _minus(value: Value) -> Value:
    if isinstance(value, bool):
        raise TypeError
    return operator.neg(value)  # type: ignore[arg-type]


UNARY: dict[str, Callable[..., Value]] = {"!": _not, "-": _minus}


def select_field(value: Value, name: Value) -> Value:
    """A field of a device or of its values, or an item of a list."""
    if isinstance(value, WholeDevice):
        if name == "driver":
            return value.kind.driver
        if name in ("attributes", "capacity"):
            return DeviceValues(value.kind, str(name))
        raise Unread(f"device.{name}")
    if isinstance(value, DeviceValues):
        return _look(value, str(name))
    if isinstance(value, list) and isinstance(name, int) and not isinstance(name, bool):
        return value[name] if 0 <= name < len(value) else Absent(f"[{name}]")
    raise TypeError


def _look(where: DeviceValues, name: str, *, only_there: bool = False) -> Value:
    """A domain, or what a device has in it. ``only_there`` asks whether a domain has anything."""
    kind = where.kind
    if not where.domain:
        if only_there and not any(key.startswith(f"{name}/") for key in _names(where)):
            return Absent(name) if kind.seen else Unknown(name)
        return DeviceValues(kind, where.of, name)
    full = f"{where.domain}/{name}"
    if full in kind.differs:
        return Unknown(full)
    if where.of == "capacity":
        if full in kind.capacity:
            return Measured(quantity(kind.capacity[full]))
    elif full in kind.versions:
        return _version(kind.versions[full])
    elif full in kind.attributes:
        return kind.attributes[full]
    return Absent(full) if kind.seen else Unknown(full)


def _names(where: DeviceValues) -> Sequence[str]:
    kind = where.kind
    return [*kind.capacity] if where.of == "capacity" else [*kind.attributes, *kind.versions, *kind.differs]


_SEMVER = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


def _version(text: Value) -> Version:
    match = _SEMVER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError
    return Version(tuple(int(part) for part in match.groups()[:3]), not match[4], match[4] or "")


def _amount(text: Value) -> Measured:
    return Measured(quantity(text)) if isinstance(text, str) else _wrong()


def _wrong() -> Measured:
    raise TypeError


def _size(value: Value) -> int:
    if not isinstance(value, str | list):
        raise TypeError
    return len(value)


def _of_text(function: Callable[..., Value]) -> Callable[..., Value]:
    def checked(*values: Value) -> Value:
        if not all(isinstance(value, str) for value in values):
            raise TypeError
        return function(*values)

    return checked


def _matches(text: str, pattern: str) -> bool:
    repeats = re.findall(r"(?<!\\)[*+{]", pattern)
    if re.search(r"\)[*+?{]", pattern) or len(repeats) > MOST_REPEATS or "(?" in pattern:
        raise Unread(f"the pattern {pattern!r}")
    if repeats and len(text) > LONGEST_MATCHED:
        raise Unread(f"a pattern with repeats on {len(text)} characters")
    try:
        return re.search(pattern, text, re.ASCII) is not None
    except re.error:
        raise Unread(f"the pattern {pattern!r}") from None


def _compared(left: Value, right: Value) -> int:
    if type(left) is not type(right) or not isinstance(left, Version | Measured):
        raise TypeError
    return (left > right) - (left < right)  # type: ignore[operator]


METHODS: dict[str, Callable[..., Value]] = {
    "contains": _of_text(lambda text, part: part in text),
    "startsWith": _of_text(lambda text, part: text.startswith(part)),
    "endsWith": _of_text(lambda text, part: text.endswith(part)),
    "matches": _of_text(_matches),
    "lowerAscii": _of_text(lambda text: re.sub("[A-Z]", lambda m: m[0].lower(), text)),
    "upperAscii": _of_text(lambda text: re.sub("[a-z]", lambda m: m[0].upper(), text)),
    "size": _size,
    "compareTo": _compared,
    "isGreaterThan": lambda left, right: _compared(left, right) > 0,
    "isLessThan": lambda left, right: _compared(left, right) < 0,
    "major": lambda version: version.numbers[0],
    "minor": lambda version: version.numbers[1],
    "patch": lambda version: version.numbers[2],
}

FUNCTIONS: dict[str, Callable[..., Value]] = {"quantity": _amount, "semver": _version, "size": _size}
