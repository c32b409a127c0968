"""The part of CEL that selectors of devices use, evaluated on a kind of devices.

Read are literals, lists, ``device.driver``, ``device.attributes`` and ``device.capacity``, the operators, ``?:``,
``in``, ``has``, optional fields, and what text, quantities and versions can be asked. What else an expression needs, as
comprehensions, is ``Unread``: told, never guessed. An answer that depends on a value that is not known is unknown; what
is known not to be there is an error, as in the scheduler, by the rules of CEL's ``&&`` and ``||``.
Sources: the CEL language definition; Kubernetes 1.36, ``k8s.io/dynamic-resource-allocation/cel``.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.units import quantity

Value = object
CelStep = Callable[[DeviceKind], Value]

LONGEST, DEEPEST = 10_240, 40
"""Kubernetes takes no longer expression. No selector that people write is nested so deep."""
LONGEST_NUMBER, LONGEST_MATCHED = 20, 128
"""Digits of a number, of 64 bits at most; characters that a pattern with repeats is tried on: an attribute has 64."""
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


class _Map(NamedTuple):
    """``device.attributes`` or ``device.capacity``; with a ``domain`` one part of it."""

    kind: DeviceKind
    of: str
    domain: str = ""


class _Device(NamedTuple):
    kind: DeviceKind


def evaluate_selector(expression: str, kind: DeviceKind) -> bool | Unknown | Absent:
    """True where an expression chooses a kind of devices. Raises ``Unread``."""
    step = _compiled(expression)
    if isinstance(step, Unread):
        raise Unread(str(step))
    try:
        found = step(kind)
    except RecursionError:
        raise Unread("too long a chain") from None
    return found if isinstance(found, bool | Unknown | Absent) else Absent("a truth")


@lru_cache(maxsize=512)
def _compiled(expression: str) -> CelStep | Unread:
    """Its steps, or why there are none: that is kept too, as it takes as long."""
    try:
        return _steps(expression)
    except Unread as problem:
        return problem
    except RecursionError:
        return Unread("too long a chain")


def _steps(expression: str) -> CelStep:
    if len(expression) > LONGEST:
        raise Unread("it is too long")
    parser = _Parser(_tokens(expression))
    step = parser.conditional()
    if parser.left:
        raise Unread(f"{parser.left[0]!r} is not expected there")
    return step


_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.\d+|0[xX][0-9a-fA-F]+|\d+)[uU]?|(?P<raw>[rR]?)(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]]))""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class _Literal(NamedTuple):
    value: Value


def _tokens(text: str) -> list[str | _Literal]:
    found: list[str | _Literal] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unread(f"{text[at : at + 10]!r} is not expected there")
        at = match.end()
        if number := match["number"]:
            found.append(_Literal(_number(number)))
        elif match["text"]:
            inner = match["text"][1:-1]
            found.append(_Literal(inner if match["raw"] else re.sub(r"\\(.)", _unescaped, inner)))
        else:
            found.append(match["name"] or match["sign"])
    return found


def _number(text: str) -> int | float:
    if len(text) > LONGEST_NUMBER:
        raise Unread(f"a number of {len(text)} digits")
    return float(text) if "." in text else int(text, 0)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPES:
        raise Unread(f"the escape {match[0]}")
    return _ESCAPES[match[1]]


class _Parser:
    """Steps of an expression, by recursive descent; ``left`` are the tokens not read yet."""

    def __init__(self, tokens: list[str | _Literal]) -> None:
        self.left, self._depth = tokens, 0

    def conditional(self) -> CelStep:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unread("it is nested too deep")
        test = self._either()
        if self._next("?"):
            yes = self.conditional()
            self._need(":")
            test = _choice(test, yes, self.conditional())
        self._depth -= 1
        return test

    def _either(self) -> CelStep:
        found = [self._both()]
        while self._next("||"):
            found.append(self._both())
        return _logic(found, decides=True) if len(found) > 1 else found[0]

    def _both(self) -> CelStep:
        found = [self._relation()]
        while self._next("&&"):
            found.append(self._relation())
        return _logic(found, decides=False) if len(found) > 1 else found[0]

    def _relation(self) -> CelStep:
        found = self._sum()
        while (sign := self._one_of(_RELATIONS)) is not None:
            found = _binary(_RELATIONS[sign], found, self._sum())
        return found

    def _sum(self) -> CelStep:
        found = self._product()
        while (sign := self._one_of(_SUMS)) is not None:
            found = _binary(_SUMS[sign], found, self._product())
        return found

    def _product(self) -> CelStep:
        found = self._unary()
        while (sign := self._one_of(_PRODUCTS)) is not None:
            found = _binary(_PRODUCTS[sign], found, self._unary())
        return found

    def _unary(self) -> CelStep:
        signs = []
        while (sign := self._one_of(_UNARY)) is not None:
            signs.append(sign)
        found = self._member()
        for sign in reversed(signs):
            found = _call(_UNARY[sign], (found,))
        return found

    def _member(self) -> CelStep:
        found = self._primary()
        while (sign := self._one_of((".", ".?", "[", "[?"))) is not None:
            if sign in ("[", "[?"):
                found = _call(_field, (found, self.conditional()))
                self._need("]")
                continue
            name = self._name()
            if sign == "." and self._next("("):
                found = _method(name, found, self._arguments(")"))
            else:
                found = _call(_field, (found, _constant(name)))
        return found

    def _primary(self) -> CelStep:
        if not self.left:
            raise Unread("it ends too early")
        token = self.left.pop(0)
        if isinstance(token, _Literal):
            return _constant(token.value)
        if token == "(":
            found = self.conditional()
            self._need(")")
            return found
        if token == "[":
            return _list(self._arguments("]"))
        if token in _NAMED:
            return _constant(_NAMED[token])
        if token == "device":
            return _Device
        if self._next("("):
            return _function(token, self._arguments(")"))
        raise Unread(f"{token!r} is not read")

    def _arguments(self, end: str) -> tuple[CelStep, ...]:
        found: list[CelStep] = []
        while not self._next(end):
            if found:
                self._need(",")
            found.append(self.conditional())
        return tuple(found)

    def _name(self) -> str:
        token = self.left.pop(0) if self.left else ""
        if not isinstance(token, str) or not token.isidentifier():
            raise Unread("a name is missing after a dot")
        return token

    def _next(self, token: str) -> bool:
        if self.left and self.left[0] == token:
            del self.left[0]
            return True
        return False

    def _one_of(self, tokens: Mapping[str, object] | Sequence[str]) -> str | None:
        if self.left and isinstance(self.left[0], str) and self.left[0] in tokens:
            token = self.left.pop(0)
            assert isinstance(token, str)
            return token
        return None

    def _need(self, token: str) -> None:
        if not self._next(token):
            raise Unread(f"{token!r} is missing")


_NAMED: dict[str, Value] = {"true": True, "false": False, "null": None}


def _constant(value: Value) -> CelStep:
    return lambda kind: value


def _list(steps: Sequence[CelStep]) -> CelStep:
    return lambda kind: _known([step(kind) for step in steps])


def _known(values: list[Value]) -> Value:
    """The values, or the first that is none."""
    return next((v for kind in (Unknown, Absent) for v in values if isinstance(v, kind)), values)


def _logic(steps: Sequence[CelStep], *, decides: bool) -> CelStep:
    """All of them, or any: one that decides does so whatever the others are."""

    def step(kind: DeviceKind) -> Value:
        so_far: Value = not decides
        for one in steps:
            found = one(kind)
            if found is decides:
                return decides
            both = _known([so_far, found])
            if isinstance(both, Unknown | Absent):
                so_far = both
            elif found is not (not decides):
                so_far = Absent("a truth")
        return so_far

    return step


def _choice(test: CelStep, yes: CelStep, no: CelStep) -> CelStep:
    def step(kind: DeviceKind) -> Value:
        found = test(kind)
        if isinstance(found, bool):
            return (yes if found else no)(kind)
        return found if isinstance(found, Unknown | Absent) else Absent("a truth")

    return step


def _call(function: Callable[..., Value], steps: Sequence[CelStep]) -> CelStep:
    """A function of values; one that is unknown or absent is what comes of it."""

    def step(kind: DeviceKind) -> Value:
        values = _known([one(kind) for one in steps])
        if not isinstance(values, list):
            return values
        try:
            return function(*values)
        except (TypeError, AttributeError, ArithmeticError, ValueError) as error:
            if isinstance(error, Unread):
                raise
            return Absent("a value of that type")

    return step


def _binary(function: Callable[..., Value], left: CelStep, right: CelStep) -> CelStep:
    return _call(function, (left, right))


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
    if isinstance(many, _Map):
        found = _look(many, str(one), only_there=True)
        return found if isinstance(found, Unknown) else not isinstance(found, Absent)
    if not isinstance(many, list):
        raise TypeError
    return any(_equal(one, each) for each in many)


def _divided(left: int | float, right: int | float) -> Value:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_RELATIONS: dict[str, Callable[..., Value]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _alike(operator.lt),  # type: ignore[arg-type]
    "<=": _alike(operator.le),  # type: ignore[arg-type]
    ">": _alike(operator.gt),  # type: ignore[arg-type]
    ">=": _alike(operator.ge),  # type: ignore[arg-type]
    "in": _within,
}
_SUMS: dict[str, Callable[..., Value]] = {"+": _alike(operator.add), "-": _alike(operator.sub)}
_PRODUCTS: dict[str, Callable[..., Value]] = {
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


_UNARY: dict[str, Callable[..., Value]] = {"!": _not, "-": _minus}


def _field(value: Value, name: Value) -> Value:
    if isinstance(value, _Device):
        if name == "driver":
            return value.kind.driver
        if name in ("attributes", "capacity"):
            return _Map(value.kind, str(name))
        raise Unread(f"device.{name}")
    if isinstance(value, _Map):
        return _look(value, str(name))
    if isinstance(value, list) and isinstance(name, int) and not isinstance(name, bool):
        return value[name] if 0 <= name < len(value) else Absent(f"[{name}]")
    raise TypeError


def _look(where: _Map, name: str, *, only_there: bool = False) -> Value:
    """A domain, or what a device has in it. ``only_there`` asks whether a domain has anything."""
    kind = where.kind
    if not where.domain:
        if only_there and not any(key.startswith(f"{name}/") for key in _names(where)):
            return Absent(name) if kind.seen else Unknown(name)
        return _Map(kind, where.of, name)
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


def _names(where: _Map) -> Sequence[str]:
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


def _function(name: str, steps: Sequence[CelStep]) -> CelStep:
    if name == "has" and len(steps) == 1:
        return _has(steps[0])
    functions: dict[str, Callable[..., Value]] = {"quantity": _amount, "semver": _version, "size": _size}
    if name not in functions:
        raise Unread(f"{name}()")
    return _call(functions[name], steps)


def _size(value: Value) -> int:
    if not isinstance(value, str | list):
        raise TypeError
    return len(value)


def _has(inner: CelStep) -> CelStep:
    def step(kind: DeviceKind) -> Value:
        found = inner(kind)
        return found if isinstance(found, Unknown) else not isinstance(found, Absent)

    return step


def _method(name: str, on: CelStep, steps: Sequence[CelStep]) -> CelStep:
    if name == "orValue" and len(steps) == 1:
        return _or_value(on, steps[0])
    if name == "hasValue" and not steps:
        return _has(on)
    if name not in _METHODS:
        raise Unread(f".{name}()")
    return _call(_METHODS[name], (on, *steps))


def _or_value(on: CelStep, other: CelStep) -> CelStep:
    def step(kind: DeviceKind) -> Value:
        found = on(kind)
        return other(kind) if isinstance(found, Absent) else found

    return step


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


_METHODS: dict[str, Callable[..., Value]] = {
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
