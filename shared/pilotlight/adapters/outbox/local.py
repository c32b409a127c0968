"""The topics on this machine: a list in memory, or a folder.

In the folder ``<topic>.jsonl`` holds one CloudEvent a line, ``<topic>.offset`` how far it was read.

Who owns the folder can read what went out, dead letters too, with ``cat``. A file that is full becomes
``<topic>.1.jsonl``, in place of the one before; of one whose messages nobody takes four times as much is kept. The
same dead letter again is counted in its line.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pilotlight.codec.events import encode_outgoing
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Outgoing

LARGEST = 8_000_000
"""Bytes of a topic's file before it is turned over."""
UNTAKEN = 4
"""How many times that where its messages are not taken."""
LETTERS = "dead-letter"


class MemoryOutbox:
    """Keeps what was sent, in order, in this process: for replays and tests."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self.sent.extend(messages)


class LocalOutbox:
    """Appends under a lock, so that processes may share the folder."""

    def __init__(self, folder: Path, *, largest: int = LARGEST) -> None:
        self.folder = folder
        self._largest = largest

    def publish(self, messages: Sequence[Outgoing]) -> None:
        by_topic: dict[str, list[bytes]] = {}
        letters = [message for message in messages if message.topic == LETTERS]
        for message in messages:
            if message.topic != LETTERS:
                by_topic.setdefault(message.topic, []).append(encode_outgoing(message) + b"\n")
        for topic, lines in by_topic.items():
            with self._locked(f"{topic}.jsonl") as file, self._explained(topic):
                self._append(topic, file, b"".join(lines))
        if letters:
            self._publish_letters(letters)

    def _publish_letters(self, letters: Sequence[Outgoing]) -> None:
        from pilotlight.codec.letter_counts import with_room

        for letter in letters:
            with self._locked(f"{LETTERS}.jsonl") as file, self._explained(LETTERS):
                if not _counted(file, letter.id):
                    self._append(LETTERS, file, with_room(encode_outgoing(letter)) + b"\n")

    def _append(self, topic: str, file: int, lines: bytes) -> None:
        size = os.fstat(file).st_size
        if size and size + len(lines) > self._largest:
            self._rotate(topic, file, size)
        _append(file, lines)

    def _rotate(self, topic: str, file: int, size: int) -> None:
        """Keep what is there as the older file, unless it is still being delivered."""
        offset = self.folder / f"{topic}.offset"
        mark = os.open(offset, os.O_RDWR) if offset.exists() else None
        try:
            if mark is not None:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if int(os.pread(mark, 32, 0) or b"0") < size < UNTAKEN * self._largest:
                    return
            with _private(self.folder / f"{topic}.1.jsonl", os.O_TRUNC) as older:
                _copy(file, older)
            # In this order: what is cut off in between is delivered twice, and nothing is skipped.
            if mark is not None:
                os.pwrite(mark, b"%-31d" % 0, 0)
            os.ftruncate(file, 0)
        except BlockingIOError:
            return
        finally:
            if mark is not None:
                os.close(mark)

    def letters(self) -> int:
        """Dead letters that are kept, the same one once."""
        files = (self.folder / f"{LETTERS}.jsonl", self.folder / f"{LETTERS}.1.jsonl")
        with self._explained(LETTERS):
            return sum(path.read_bytes().count(b"\n") for path in files if path.exists())

    def drain(self, topic: str, deliver: Callable[[bytes], bool]) -> int:
        """Hand each message not yet delivered to ``deliver``, in order, until it says False; how many it took."""
        taken = 0
        with self._locked(f"{topic}.offset") as mark, self._explained(topic):
            position = int(os.pread(mark, 32, 0) or b"0")
            for line in self._lines_after(topic, position):
                if not deliver(line.rstrip(b"\n")):
                    break
                taken += 1
                position += len(line)
                os.pwrite(mark, b"%-31d" % position, 0)
        return taken

    def _lines_after(self, topic: str, position: int) -> Iterator[bytes]:
        path = self.folder / f"{topic}.jsonl"
        if not path.exists():
            return
        with path.open("rb") as lines:
            lines.seek(position)
            # A line without its end is still being written.
            yield from (line for line in lines if line.endswith(b"\n"))

    @contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        with ExitStack() as stack:
            with self._explained(name):
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                file = stack.enter_context(_private(self.folder / name))
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = self.folder / name
            raise Unavailable(f"outbox {where}: {error.strerror}; choose another with PILOTLIGHT_OUTBOX") from None


@contextmanager
def _private(path: Path, flags: int = 0) -> Iterator[int]:
    """A file that only its owner reads, also where an earlier version made it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    try:
        if os.fstat(file).st_mode & 0o077:
            with suppress(PermissionError):
                os.fchmod(file, 0o600)
        yield file
    finally:
        os.close(file)


def _copy(file: int, to: int) -> None:
    """All of one file into another, by parts."""
    position = 0
    while part := os.pread(file, 1 << 20, position):
        position += len(part)
        while part:
            part = part[os.write(to, part) :]


def _counted(file: int, id: str) -> bool:
    """True where a letter of this id is there; then it is counted once more, in its place."""
    if not os.fstat(file).st_size:
        return False
    from mmap import ACCESS_READ, mmap

    from pilotlight.codec.letter_counts import again

    with mmap(file, 0, access=ACCESS_READ) as whole:
        found = whole.find(b'"id":"%s"' % id.encode())
        if found < 0:
            return False
        start, end = whole.rfind(b"\n", 0, found) + 1, whole.find(b"\n", found)
        line = whole[start:end] if end >= 0 else b""
    counted = again(line)
    if counted == line:
        return False
    os.pwrite(file, counted, start)
    return True


def _append(file: int, lines: bytes) -> None:
    """All of it or none of it: a part of a line would spoil the next."""
    end = os.lseek(file, 0, os.SEEK_END)
    try:
        written = os.write(file, lines)
        while written < len(lines):
            written += os.write(file, lines[written:])
    except OSError:
        os.ftruncate(file, end)
        raise
