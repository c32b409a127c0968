"""Cost of the edges per event: decoding, and one operation of each state."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.codec.events import decode, encode
from pilotlight.facts.messages import PodPending
from pilotlight.ports.state import ABSENT, State

TIMES = 5000


def main() -> None:
    """Print microseconds per call."""
    event = encode(PodPending(cluster="c", namespace="n", name="p", uid="u", identity="u/1"), id="1")
    _show("decode one structured CloudEvent", lambda _: decode(event, {}, cluster="c"))
    with tempfile.TemporaryDirectory() as folder:
        _state("memory", MemoryState(SystemClock()))
        _state("sqlite", SqliteState(Path(folder) / "state.db", SystemClock()))


def _state(name: str, state: State) -> None:
    _show(f"{name}: put of 300 bytes", lambda i: state.put(f"k/{i % 3000}", b"v" * 300))
    _show(f"{name}: put if absent, with a TTL", lambda i: state.put(f"q/{i}", b"v", if_version=ABSENT, ttl_s=5))
    _show(f"{name}: get", lambda i: state.get(f"k/{i % 3000}"))
    _show(f"{name}: scan of 10 keys", lambda _: state.scan("k/", limit=10))
    _show(f"{name}: delete", lambda i: state.delete(f"q/{i}"))


def _show(what: str, call: Callable[[int], object]) -> None:
    began = time.perf_counter()
    for i in range(TIMES):
        call(i)
    print(f"{what:45} {(time.perf_counter() - began) / TIMES * 1e6:7.1f} us")


if __name__ == "__main__":
    main()
