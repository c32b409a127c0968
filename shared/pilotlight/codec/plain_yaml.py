"""The plain part of YAML, in which policies and prices are written, read without a library: to import one costs a cold
start more than to read all of them.

Plain is ASCII, tables, lists, ``{}`` and ``[]``, quotes without escapes, comments. All else that YAML has, a key twice
and every mistake are left to ``codec.bounded_yaml``, whose errors name the line: in doubt a text is not plain.
"""

from collections.abc import Mapping
from string import ascii_letters, digits, printable
from typing import Any

LARGEST, DEEPEST = 100_000, 20
_PRINTED = frozenset(printable) - frozenset("\t\r\x0b\x0c")
_FIRST = frozenset(f"{ascii_letters}{digits}_./~")
"""What text without quotes begins with here."""
_IN_KEY = frozenset(f"{ascii_letters}{digits}_./-")
_IN_FLOW = _IN_KEY | frozenset("+%@$~ ")

TEXT: Mapping[str, Any] = {}
"""For readers that take every value as text."""
MEANT: Mapping[str, Any] = {
    "": None,
    "~": None,
    **{
        cased: value
        for word, value in {
            "true": True,
            "yes": True,
            "on": True,
            "false": False,
            "no": False,
            "off": False,
            "null": None,
        }.items()
        for cased in (word, word.title(), word.upper())
    },
}
"""What YAML 1.1 takes words without quotes for, but numbers and moments."""


class _NotPlainError(Exception):
    """There is more than this reads."""


def read_plain(text: str | bytes, meant: Mapping[str, Any]) -> dict[str, Any] | None:
    """The table in a text; None where it is not plain."""
    if len(text) > LARGEST or not text.isascii():
        return None
    written = text if isinstance(text, str) else text.decode()
    if not _PRINTED.issuperset(written):
        return None
    try:
        return _Reader(written, meant).document()
    except _NotPlainError:
        return None


class _Reader:
    """Where reading has come to: a line, and in ``{}`` and ``[]`` a letter of it."""

    def __init__(self, written: str, meant: Mapping[str, Any]) -> None:
        self._lines, self._meant = written.split("\n"), meant
        self._next, self._line, self._at = 0, "", 0

    def document(self) -> dict[str, Any]:
        """The one table."""
        indent = self._indent()
        _need(indent >= 0)
        line = self._lines[self._next][indent:]
        if line[0] == "{":
            self._next += 1
            found: dict[str, Any] = self._value(line, 0)
        else:
            found = self._table(indent, 0)
        _need(self._indent() < 0)
        return found

    def _indent(self) -> int:
        """Spaces before the next line that holds something, which is then the next; -1 where there is none."""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            inner = line.lstrip(" ")
            if inner and inner[0] != "#":
                return len(line) - len(inner)
            self._next += 1
        return -1

    def _table(self, indent: int, depth: int) -> dict[str, Any]:
        _need(depth < DEEPEST)
        found: dict[str, Any] = {}
        while self._indent() == indent:
            key, rest = self._key(self._lines[self._next][indent:].rstrip())
            _need(key not in found)
            self._next += 1
            found[key] = self._value(rest, depth) if rest and rest[0] != "#" else self._below(indent, depth)
        _need(self._indent() < indent)
        return found

    def _below(self, indent: int, depth: int) -> Any:
        """The value of a key at whose line nothing more stands."""
        inner = self._indent()
        if inner >= indent and self._lines[self._next].startswith("- ", inner):
            return self._list(inner, depth + 1)
        return self._table(inner, depth + 1) if inner > indent else self._meant.get("", "")

    def _list(self, indent: int, depth: int) -> list[Any]:
        _need(depth < DEEPEST)
        found = []
        while self._indent() == indent and self._lines[self._next].startswith("- ", indent):
            line = self._lines[self._next].rstrip()
            rest = line[indent + 2 :].lstrip()
            if rest and rest[0] in _FIRST and (": " in rest or rest[-1] == ":"):
                inner = len(line) - len(rest)
                self._lines[self._next] = " " * inner + rest
                found.append(self._table(inner, depth + 1))
            else:
                self._next += 1
                found.append(self._value(rest, depth))
        _need(self._indent() <= indent)
        return found

    def _key(self, line: str) -> tuple[str, str]:
        """A key, and what stands behind its colon."""
        if line[0] in "\"'":
            key, rest = _quoted(line)
        else:
            end = line.find(":")
            key, rest = line[:end], line[end:]
            _need(end > 0 and key[0] in _FIRST and _IN_KEY.issuperset(key) and key not in MEANT)
        _need(len(key) < 128 and rest[:1] == ":" and rest[1:2] in ("", " "))
        return key, rest[1:].lstrip()

    def _value(self, text: str, depth: int) -> Any:
        """A value of one line, or one in ``{}`` or ``[]`` that begins there."""
        _need(bool(text))
        if text[0] in "{[":
            self._line, self._at = text, 0
            value = self._flow(depth + 1)
            rest = self._line[self._at :]
        elif text[0] in "\"'":
            value, rest = _quoted(text)
        else:
            bare = text.partition(" #")[0].rstrip()
            _need(bare[:1] in _FIRST and ": " not in bare and bare[-1:] != ":")
            return self._meant.get(bare, bare)
        _need(not rest.strip() or (rest[0] == " " and rest.lstrip()[0] == "#"))
        return value

    def _flow(self, depth: int) -> Any:
        """The value at the cursor, which comes behind it."""
        _need(depth < DEEPEST)
        sign = self._sign()
        if sign == "{":
            return self._flow_table(depth)
        if sign == "[":
            return self._flow_list(depth)
        bare, text = self._flow_text()
        return self._meant.get(text, text) if bare else text

    def _flow_table(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        while self._sign() != "}":
            bare, key = self._flow_text()
            _need(self._line[self._at : self._at + 2] == ": " and key not in found and not (bare and key in MEANT))
            self._at += 1
            found[key] = self._flow(depth + 1)
            self._comma("}")
        self._at += 1
        return found

    def _flow_list(self, depth: int) -> list[Any]:
        found = []
        self._at += 1
        while self._sign() != "]":
            found.append(self._flow(depth + 1))
            self._comma("]")
        self._at += 1
        return found

    def _comma(self, end: str) -> None:
        """Go on behind a comma, or stay before the end."""
        sign = self._sign()
        _need(sign in (",", end))
        if sign == ",":
            self._at += 1
            _need(self._sign() != end)

    def _flow_text(self) -> tuple[bool, str]:
        """Text at the cursor, and whether it has no quotes."""
        line, begins = self._line, self._at
        if line[begins] in "\"'":
            text, rest = _quoted(line[begins:])
            self._at = len(line) - len(rest)
            return False, text
        while self._at < len(line) and (
            line[self._at] in _IN_FLOW or (line[self._at] == ":" and line[self._at + 1 : self._at + 2] in _IN_KEY)
        ):
            self._at += 1
        text = line[begins : self._at].rstrip()
        _need(text[:1] in _FIRST and not text.startswith("...") and len(text) < 128)
        return True, text

    def _sign(self) -> str:
        """The next letter that is no space and in no comment."""
        while True:
            while self._line.startswith(" ", self._at):
                self._at += 1
            if self._at < len(self._line) and self._line[self._at] != "#":
                return self._line[self._at]
            _need(self._at == len(self._line) or self._at == 0 or self._line[self._at - 1] == " ")
            _need(self._next < len(self._lines))
            self._line, self._at = self._lines[self._next], 0
            self._next += 1


def _quoted(text: str) -> tuple[str, str]:
    """What stands in the quotes that a text begins with, and what behind them."""
    mark = text[0]
    end = text.find(mark, 1)
    _need(end > 0 and text[end + 1 : end + 2] != mark and not (mark == '"' and "\\" in text[:end]))
    return text[1:end], text[end + 1 :]


def _need(plain: bool) -> None:
    if not plain:
        raise _NotPlainError
