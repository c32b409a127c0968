"""What a cluster's decisions leave in the state: memory, capacity in flight, and the records of decisions.

Keys: ``memory/<cluster>``, ``inflight/<cluster>/<decision>.<n>``, ``open/<cluster>/<id>`` from before a decision's
first effect until after its last, then ``decision/<cluster>/<id>``, and ``told/<cluster>/<what>``. An entry in flight
for more demands than one value holds goes on in ``inflight/<cluster>/<decision>.<n>+<part>``.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from pilotlight.codec.records import MARK, Format, Mark
from pilotlight.facts.capacity import InFlight, Node, PoolState
from pilotlight.facts.decisions import Record
from pilotlight.facts.memory import Memory
from pilotlight.flow.trim import fitted
from pilotlight.ports import State, Stored
from pilotlight.units import HOUR

SKEW = timedelta(seconds=5)
"""A worker's clock may be so far ahead of the cloud's; with more, what boots still counts as room."""

_LAST = datetime(9000, 1, 1, tzinfo=UTC)

KEEP_RECORDS_S = 30 * 24 * HOUR
TELL_AGAIN_S = 24 * HOUR
"""The same finding or refusal is told once in so long."""

MOST_DEMANDS = 5000
"""Pod uids of one entry in flight: about 200 KB."""
KEEP_PARTS_S = 24 * HOUR
"""Parts of an entry are left to expire: long after it came, or was given up."""

MEMORY, IN_FLIGHT, RECORD = Format(Memory), Format(InFlight), Format(Record)
_TOLD = MARK.write(Mark())


def in_flight(state: State, cluster: str) -> list[tuple[str, InFlight]]:
    """Every entry of capacity asked for, with its key, oldest first."""
    out: list[tuple[str, InFlight]] = []
    for key, stored in _all(state, f"inflight/{cluster}/"):
        entry = IN_FLIGHT.read(key, stored.value)
        whole, _, part = key.partition("+")
        if not part:
            out.append((key, entry))
        elif out and out[-1][0] == whole:
            demands = out[-1][1].demands + entry.demands
            out[-1] = whole, msgspec.structs.replace(out[-1][1], demands=demands)
    return out


def recall(state: State, cluster: str) -> Memory:
    """What was remembered, without capacity in flight."""
    stored = state.get(f"memory/{cluster}")
    return MEMORY.read(f"memory/{cluster}", stored.value) if stored else Memory()


def remember(state: State, cluster: str, memory: Memory) -> None:
    """Write the memory. Capacity in flight has records of its own."""
    lasting = msgspec.structs.replace(memory, in_flight=(), came=(), overdue=())
    state.put(f"memory/{cluster}", MEMORY.write(lasting))


def flight_key(cluster: str, decision: str, index: int) -> str:
    """The key of the entry that a decision's effect number ``index`` makes."""
    return f"inflight/{cluster}/{decision}.{index}"


def flight(state: State, key: str) -> InFlight | None:
    """One entry of capacity asked for, without its further parts."""
    stored = state.get(key)
    return IN_FLIGHT.read(key, stored.value) if stored else None


def write_flight(state: State, key: str, entry: InFlight) -> None:
    """Write an entry of capacity asked for. Its parts come first: without the entry they count for nothing."""
    demands = entry.demands
    for part, start in enumerate(range(MOST_DEMANDS, len(demands), MOST_DEMANDS), 1):
        more = msgspec.structs.replace(entry, count=0, demands=demands[start : start + MOST_DEMANDS])
        state.put(f"{key}+{part:04d}", IN_FLIGHT.write(more), ttl_s=KEEP_PARTS_S)
    state.put(key, IN_FLIGHT.write(msgspec.structs.replace(entry, demands=demands[:MOST_DEMANDS])))


def write(state: State, record: Record, *, if_version: int | None = None) -> int:
    """Write an open decision: before its first effect, and as far as its effects are known; its version.

    Raises ``Conflict`` where another worker, which holds the lease now, has settled that version.
    """
    return state.put(f"open/{record.cluster}/{record.id}", fitted(record, RECORD.write), if_version=if_version)


def close(state: State, record: Record) -> None:
    """File a decision all of whose effects are known and whose messages are sent."""
    closed = msgspec.structs.replace(record, status="closed")
    state.put(f"decision/{record.cluster}/{record.id}", fitted(closed, RECORD.write), ttl_s=KEEP_RECORDS_S)
    state.delete(f"open/{record.cluster}/{record.id}")


def filed(state: State, cluster: str, decision: str) -> Record | None:
    """A decision by its id."""
    key = f"decision/{cluster}/{decision}"
    stored = state.get(key)
    return RECORD.read(key, stored.value) if stored else None


def open_records(state: State, cluster: str) -> list[Record]:
    """Decisions that were begun and not filed, oldest first."""
    return [RECORD.read(key, stored.value) for key, stored in _all(state, f"open/{cluster}/")]


def filed_records(state: State, cluster: str) -> list[Record]:
    """Decisions that were carried out, oldest first."""
    return [RECORD.read(key, stored.value) for key, stored in _all(state, f"decision/{cluster}/")]


def was_told(state: State, cluster: str, what: str) -> bool:
    """Whether people were told this lately."""
    return state.get(f"told/{cluster}/{what}") is not None


def told(state: State, cluster: str, what: str, subject: str = "") -> None:
    """Mark it told, and of whom: after it was sent, so that a crash in between tells it twice rather than never."""
    state.put(f"told/{cluster}/{what}", MARK.write(Mark(note=subject)), ttl_s=TELL_AGAIN_S)


def all_told(state: State, cluster: str) -> list[tuple[str, str]]:
    """What people were told lately, and of whom."""
    within = f"told/{cluster}/"
    return [(key.removeprefix(within), MARK.read(key, stored.value).note) for key, stored in _all(state, within)]


def untell(state: State, cluster: str, what: str) -> None:
    """It is over, and people were told so: it is news again."""
    state.delete(f"told/{cluster}/{what}")


def still_booting(entries: Sequence[InFlight], nodes: Sequence[Node], pools: Sequence[PoolState]) -> list[int]:
    """How many nodes of each entry are still on their way, in the entries' order.

    A pool boots its desired size less its ready nodes. Each of those belongs to the newest entry that was written
    before it was begun; one whose beginning the cloud does not tell counts as the newest.
    """
    left = [0] * len(entries)
    newest = sorted(range(len(entries)), key=lambda i: entries[i].requested_at, reverse=True)
    for pool in {e.pool: None for e in entries}:
        for begun in _begun(pool, nodes, pools):
            for index in newest:
                entry = entries[index]
                if entry.pool == pool and left[index] < entry.count and entry.requested_at <= begun + SKEW:
                    left[index] += 1
                    break
    return left


def _begun(pool: str, nodes: Sequence[Node], pools: Sequence[PoolState]) -> list[datetime]:
    """When each node that a pool still boots was begun, the newest first."""
    state = next((p for p in pools if p.name == pool), None)
    if state is None:
        return []
    ours = [n for n in nodes if n.pool == pool]
    known = [b.requested_at for b in state.booting] + [n.created_at for n in ours if not n.ready]
    coming = max(0, state.desired - sum(n.ready for n in ours))
    unknown = [_LAST] * (coming - len(known))
    return (unknown + sorted(known, reverse=True))[:coming]


def _all(state: State, prefix: str) -> Iterator[tuple[str, Stored]]:
    after = ""
    while True:
        page = state.scan(prefix, after=after)
        yield from page.items
        if not page.next:
            return
        after = page.next
