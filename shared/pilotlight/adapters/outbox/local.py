"""A folder as the topics: ``<topic>.jsonl`` holds one CloudEvent a line, ``<topic>.offset`` how far it was read.

Anyone can read what went out, dead letters too, with ``cat``.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pilotlight.codec.events import encode_outgoing
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Outgoing


class LocalOutbox:
    """Appends under a lock, so that processes may share the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def publish(self, messages: Sequence[Outgoing]) -> None:
        by_topic: dict[str, list[bytes]] = {}
        for message in messages:
            by_topic.setdefault(message.topic, []).append(encode_outgoing(message) + b"\n")
        for topic, lines in by_topic.items():
            with self._locked(f"{topic}.jsonl") as file, self._explained(topic):
                _append(file, b"".join(lines))

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
        with self._explained(name):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = self.folder / name
            raise Unavailable(f"outbox {where}: {error.strerror}; choose another with PILOTLIGHT_OUTBOX") from None


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
