"""Refusals of a dead letter, counted in the line that is there: the number has room, all else stays."""

import re

ROOM = 10
"""Digits that a count may have; JSON takes the blanks after a number."""

_COUNT = re.compile(rb'"count":(\d+) *\}')


def with_room(line: bytes) -> bytes:
    """A letter's line with room for its count to grow."""
    return _written(line, 1)


def again(line: bytes) -> bytes:
    """The line of a letter that was refused once more; as long as before."""
    found = _last(line)
    return line if found is None else _written(line, int(found[1]) + 1)


def _written(line: bytes, count: int) -> bytes:
    found = _last(line)
    if found is None or count >= 10**ROOM:
        return line
    return line[: found.start()] + b'"count":' + str(count).encode().ljust(ROOM) + b"}" + line[found.end() :]


def _last(line: bytes) -> re.Match[bytes] | None:
    """The letter's own: what its body quotes stands before it, and with its quotes escaped."""
    start = line.rfind(b'"count":')
    return _COUNT.match(line, start) if start >= 0 else None
