"""Values of the policy file, by the types of ``facts.policy``: durations, dollars, sizes; problems by path.

Scalars come as text (see ``codec.policy_file``), so each type reads its own.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation, Overflow
from typing import Any

from msgspec import inspect

from pilotlight.units import quantity, whole

Problems = list[tuple[str, str]]
"""Path and reason of each problem."""

DROPPED: Any = object()
"""What a value with a problem becomes: it is left out, and the rest is still read."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

LONGEST_S, MOST, LEAST = 3650 * 86_400, 10**9, Decimal("1e-9")
"""No duration and no number of a policy is larger, nor smaller if it is not 0: beyond are slips of the hand, and
moments that no calendar has."""
MOST_BYTES = 2**43
"""Nor is there more of a resource on a node: of huge pages there are bytes."""


GONE = {"schedules": "; rules took its place: a list of when and set, as pilotlight schema has it"}
"""Keys of before, by their path, each with what stands for it now."""


def read_value(value: Any, kind: inspect.Type, path: str, problems: Problems) -> Any:
    """A value made ready for its type, or DROPPED after its problem was noted."""
    unit: str = ""
    if isinstance(kind, inspect.Metadata):
        unit, kind = (kind.extra or {}).get("unit", ""), kind.type
    match kind:
        case inspect.StructType():
            return _struct(value, kind, path, problems)
        case inspect.DictType():
            return _dict(value, kind, path, problems)
        case inspect.VarTupleType():
            return _list(value, kind, path, problems)
        case inspect.UnionType():
            return _union(value, kind, path, problems)
        case inspect.CustomType() | inspect.AnyType():
            return value
        case _:
            return _scalar(value, _UNITS.get(unit) or _READERS[type(kind)], kind, path, problems)


def parse_duration(text: str) -> float:
    """Seconds of "90s", "10m", "2h", "1d" or a number. Raises ValueError."""
    unit = _SECONDS.get(text[-1:], 0)
    try:
        seconds = Decimal(text[:-1] if unit else text) * (unit or 1)
    except InvalidOperation:
        raise ValueError("is no duration: write 90s, 10m, 2h or 1d") from None
    except Overflow:
        seconds = Decimal("Infinity")
    if not seconds.is_finite() or seconds < 0:
        raise ValueError("must be a duration of 0 or more")
    if seconds > LONGEST_S:
        raise ValueError(f"is longer than {LONGEST_S // _SECONDS['d']}d")
    return float(seconds)


def quote_text(text: str, most: int = 80) -> str:
    """Text as an error quotes it: whole, or its beginning and its length."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}... ({len(text):,} characters)"


def suggestion(word: str, known: Sequence[str]) -> str:
    """ "; did you mean x?", or what may stand there."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else f" (known: {', '.join(known)})" if known else ""


def _struct(value: Any, kind: inspect.StructType, path: str, problems: Problems) -> Any:
    if not isinstance(value, dict):
        return _wrong(path, "must be a table of keys and values", problems)
    fields = {field.encode_name: field for field in kind.fields}
    clean: dict[str, Any] = {}
    for key, inner in value.items():
        at = _join(path, key)
        if key not in fields:
            problems.append((at, f"unknown key{GONE.get(at) or suggestion(str(key), list(fields))}"))
            continue
        read = read_value(inner, fields[key].type, at, problems)
        if read is not DROPPED:
            clean[key] = read
    missing = [name for name, field in fields.items() if field.required and name not in value]
    problems.extend((_join(path, name), "is missing") for name in missing)
    lost = [name for name, field in fields.items() if field.required and name not in clean]
    return DROPPED if lost else clean


def _dict(value: Any, kind: inspect.DictType, path: str, problems: Problems) -> Any:
    if not isinstance(value, dict):
        return _wrong(path, "must be a table of keys and values", problems)
    clean = {}
    for key, inner in value.items():
        at = _join(path, key)
        if read_value(key, kind.key_type, at, problems) is DROPPED:
            continue
        read = read_value(inner, kind.value_type, at, problems)
        if read is not DROPPED:
            clean[key] = read
    return clean


def _list(value: Any, kind: inspect.VarTupleType, path: str, problems: Problems) -> Any:
    if not isinstance(value, list):
        return _wrong(path, "must be a list, as [a, b]", problems)
    read = [read_value(inner, kind.item_type, f"{path}[{i}]", problems) for i, inner in enumerate(value)]
    return [item for item in read if item is not DROPPED]


def _union(value: Any, kind: inspect.UnionType, path: str, problems: Problems) -> Any:
    """None where allowed; a list or a table where one is allowed; else the other type."""
    types = [t for t in kind.types if not isinstance(t, inspect.NoneType)]
    if value is None and len(types) < len(kind.types):
        return None
    written = inspect.VarTupleType if isinstance(value, list) else inspect.StructType
    fitting = [t for t in types if isinstance(value, list | dict) and isinstance(t, written)]
    others = [t for t in types if not isinstance(t, inspect.VarTupleType | inspect.StructType)]
    return read_value(value, (fitting or others or types)[0], path, problems)


def _scalar(value: Any, read: Callable[[str, Any], Any], kind: inspect.Type, path: str, problems: Problems) -> Any:
    if isinstance(value, bool) and not isinstance(kind, inspect.BoolType):
        return _wrong(path, f"is read as {str(value).lower()}: put it in quotes", problems)
    if not isinstance(value, str | bool):
        return _wrong(path, "must be one value" if value is not None else "has no value", problems)
    try:
        return read(value, kind) if isinstance(value, str) else value
    except ValueError as error:
        return _wrong(path, f"{quote_text(str(value))} {error}", problems)


def _wrong(path: str, reason: str, problems: Problems) -> Any:
    problems.append((path, reason))
    return DROPPED


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _literal(text: str, kind: inspect.LiteralType) -> Any:
    """One of the words (or numbers) that may stand here."""
    for allowed in kind.values:
        if str(allowed) == text:
            return allowed
    words = [str(v) for v in kind.values]
    raise ValueError(f"is not one of {', '.join(words)}{suggestion(text, words).partition(' (')[0]}")


def _int(text: str, _: object) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None
    if number > MOST:
        raise ValueError(f"is more than {MOST:,}")
    return number


def _amount(text: str, _: object) -> int:
    """A whole amount of a resource; a quantity ("4Gi") will do too."""
    number = whole(text)
    if number > MOST_BYTES:
        raise ValueError(f"is more than {MOST_BYTES:,}")
    return number


def _float(text: str, _: object) -> float:
    return float(_dollars(text, _))


def _dollars(text: str, _: object) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError("is not a number") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError("must be a number of 0 or more")
    if amount > MOST or 0 < amount < LEAST:
        raise ValueError(f"is more than {MOST:,}" if amount > 1 else "is less than a billionth: write 0, or more")
    return amount


def _gib(text: str, _: object) -> int:
    """Whole GiB, rounded up; a bare number is GiB."""
    return int(text) if text.isdigit() else -(-whole(text) // 2**30)


def _name(text: str, _: object) -> str:
    if not text:
        raise ValueError("is empty: write a name, or leave the key out")
    return text


def _bool(text: str, _: object) -> bool:
    raise ValueError("is not true or false")


_READERS: dict[type[inspect.Type], Callable[[str, Any], Any]] = {
    inspect.StrType: lambda text, _: text,
    inspect.LiteralType: _literal,
    inspect.IntType: _int,
    inspect.FloatType: _float,
    inspect.DecimalType: _dollars,
    inspect.BoolType: _bool,
}
_UNITS: dict[str, Callable[[str, Any], Any]] = {
    "duration": lambda text, _: parse_duration(text),
    "dollars": _dollars,
    "GiB": _gib,
    "amount": _amount,
    "name": _name,
}


def amount_problem(text: str) -> str:
    """Why text is no Kubernetes quantity, or empty."""
    try:
        quantity(text)
    except ValueError as error:
        return str(error)
    return ""
