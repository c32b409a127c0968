"""The part of CEL that selectors of devices use, evaluated on a kind of devices.

Read are literals, lists, ``device.driver``, ``device.attributes`` and ``device.capacity``, the operators, ``?:``,
``in``, ``has``, optional fields, and what text, quantities and versions can be asked. What else an expression needs, as
comprehensions, is ``Unread``: told, never guessed. An answer that depends on a value that is not known is unknown; what
is known not to be there is an error, as in the scheduler, by the rules of CEL's ``&&`` and ``||``.
Sources: the CEL language definition; Kubernetes 1.36, ``k8s.io/dynamic-resource-allocation/cel``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pilotlight.decide.fit.cel_values import (
    FUNCTIONS,
    METHODS,
    PRODUCTS,
    RELATIONS,
    SUMS,
    UNARY,
    Absent,
    Unknown,
    Unread,
    Value,
    WholeDevice,
    select_field,
)
from pilotlight.facts.fit.claimed_devices import DeviceKind

CelStep = Callable[[DeviceKind], Value]
LONGEST, DEEPEST = 10_240, 40
"""Kubernetes takes no longer expression. No selector that people write is nested so deep."""
LONGEST_NUMBER = 20
"""Digits of a number, of 64 bits at most."""


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
        while (sign := self._one_of(RELATIONS)) is not None:
            found = _binary(RELATIONS[sign], found, self._sum())
        return found

    def _sum(self) -> CelStep:
        found = self._product()
        while (sign := self._one_of(SUMS)) is not None:
            found = _binary(SUMS[sign], found, self._product())
        return found

    def _product(self) -> CelStep:
        found = self._unary()
        while (sign := self._one_of(PRODUCTS)) is not None:
            found = _binary(PRODUCTS[sign], found, self._unary())
        return found

    def _unary(self) -> CelStep:
        signs = []
        while (sign := self._one_of(UNARY)) is not None:
            signs.append(sign)
        found = self._member()
        for sign in reversed(signs):
            found = _call(UNARY[sign], (found,))
        return found

    def _member(self) -> CelStep:
        found = self._primary()
        while (sign := self._one_of((".", ".?", "[", "[?"))) is not None:
            if sign in ("[", "[?"):
                found = _call(select_field, (found, self.conditional()))
                self._need("]")
                continue
            name = self._name()
            if sign == "." and self._next("("):
                found = _method(name, found, self._arguments(")"))
            else:
                found = _call(select_field, (found, _constant(name)))
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
            return WholeDevice
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


def _function(name: str, steps: Sequence[CelStep]) -> CelStep:
    if name == "has" and len(steps) == 1:
        return _has(steps[0])
    if name not in FUNCTIONS:
        raise Unread(f"{name}()")
    return _call(FUNCTIONS[name], steps)


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
    if name not in METHODS:
        raise Unread(f".{name}()")
    return _call(METHODS[name], (on, *steps))


def _or_value(on: CelStep, other: CelStep) -> CelStep:
    def step(kind: DeviceKind) -> Value:
        found = on(kind)
        return other(kind) if isinstance(found, Absent) else found

    return step
