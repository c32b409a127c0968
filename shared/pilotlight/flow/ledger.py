"""What a cluster's decisions leave in the state: memory, capacity in flight, and the records of decisions.

Keys: ``memory/<cluster>``, ``inflight/<cluster>/<decision>.<n>``, ``open/<cluster>/<id>`` from before a decision's
first effect until after its last, then ``decision/<cluster>/<id>``, and ``told/<cluster>/<what>``.
"""

from collections.abc import Sequence

import msgspec

from pilotlight.facts.capacity import InFlight, Node, PoolState
from pilotlight.facts.decisions import Record
from pilotlight.facts.memory import Memory
from pilotlight.ports import State
from pilotlight.units import HOUR

KEEP_RECORDS_S = 30 * 24 * HOUR
TELL_AGAIN_S = 24 * HOUR
"""The same finding or refusal is told once in so long."""

_memory = msgspec.json.Decoder(Memory)
_flight = msgspec.json.Decoder(InFlight)
_record = msgspec.json.Decoder(Record)


def in_flight(state: State, cluster: str) -> list[tuple[str, InFlight]]:
    """Every entry of capacity asked for, with its key, oldest first."""
    out: list[tuple[str, InFlight]] = []
    prefix, after = f"inflight/{cluster}/", ""
    while True:
        page = state.scan(prefix, after=after)
        out += [(key, _flight.decode(stored.value)) for key, stored in page.items]
        if not page.next:
            return out
        after = page.next


def recall(state: State, cluster: str) -> Memory:
    """What was remembered, without capacity in flight."""
    stored = state.get(f"memory/{cluster}")
    return _memory.decode(stored.value) if stored else Memory()


def remember(state: State, cluster: str, memory: Memory) -> None:
    """Write the memory. Capacity in flight has records of its own."""
    state.put(f"memory/{cluster}", msgspec.json.encode(msgspec.structs.replace(memory, in_flight=(), overdue=())))


def flight_key(cluster: str, decision: str, index: int) -> str:
    """The key of the entry that a decision's effect number ``index`` makes."""
    return f"inflight/{cluster}/{decision}.{index}"


def write_flight(state: State, key: str, entry: InFlight) -> None:
    """Write an entry of capacity asked for."""
    state.put(key, msgspec.json.encode(entry))


def write(state: State, record: Record) -> None:
    """Write an open decision: before its first effect, and where an effect's outcome stays unknown."""
    state.put(f"open/{record.cluster}/{record.id}", msgspec.json.encode(record))


def close(state: State, record: Record) -> None:
    """File a decision all of whose effects are known and whose messages are sent."""
    closed = msgspec.structs.replace(record, status="closed")
    state.put(f"decision/{record.cluster}/{record.id}", msgspec.json.encode(closed), ttl_s=KEEP_RECORDS_S)
    state.delete(f"open/{record.cluster}/{record.id}")


def open_records(state: State, cluster: str) -> list[Record]:
    """Decisions that were begun and not filed, oldest first."""
    return [_record.decode(stored.value) for _, stored in state.scan(f"open/{cluster}/").items]


def was_told(state: State, cluster: str, what: str) -> bool:
    """Whether people were told this lately."""
    return state.get(f"told/{cluster}/{what}") is not None


def told(state: State, cluster: str, what: str) -> None:
    """Mark it told: after it was sent, so that a crash in between tells it twice rather than never."""
    state.put(f"told/{cluster}/{what}", b"1", ttl_s=TELL_AGAIN_S)


def still_booting(entries: Sequence[InFlight], nodes: Sequence[Node], pools: Sequence[PoolState]) -> list[int]:
    """How many nodes of each entry are still on their way, in the entries' order.

    A pool boots (its desired size less its ready nodes); the newest requests are the ones not here yet.
    """
    coming = {p.name: p.desired for p in pools}
    for node in nodes:
        if node.ready and node.pool in coming:
            coming[node.pool] -= 1
    left = [0] * len(entries)
    for index in sorted(range(len(entries)), key=lambda i: entries[i].requested_at, reverse=True):
        entry = entries[index]
        left[index] = max(0, min(entry.count, coming.get(entry.pool, 0)))
        coming[entry.pool] = coming.get(entry.pool, 0) - left[index]
    return left
