"""The ledger that a cluster's decisions leave in the state: memory, decisions, warnings told.

Keys: ``memory/<cluster>`` and ``idle/<cluster>/<part>``, ``open/<cluster>/<id>`` from before a decision's first call
until after its last is known, then ``decision/<cluster>/<id>``, and ``told/<cluster>/<what>``.

A decision's record is made to fit the store: a plan over thousands of pods keeps its counts and its first names. What
acting and recovery read is never cut: calls, their steps, nodes to release; so a plan of very many releases becomes
several. Messages may be cut, because they are made anew from the plan and its outcomes, and a warning that was not told
is told by the next look. Terms may be, because holds have records of their own.
"""

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from pilotlight.errors import Busy, Conflict, Corrupt
from pilotlight.facts.capacity import Node
from pilotlight.facts.decisions import Chain, Link, LinkKind, Plan, Record, known_per_hour
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.flow.records.lease import LOST
from pilotlight.ports.state import ABSENT, LARGEST, State
from pilotlight.state_schema.decision_records import DECISION, HEAD, IDLE, LINKS, LINKS_AT_HEAD, MEMORY, OPEN
from pilotlight.state_schema.marks import TOLD, Mark
from pilotlight.state_schema.parted import ReadParts
from pilotlight.state_schema.table import Table, pages
from pilotlight.units import clock_seconds

_log = logging.getLogger("pilotlight.state")

CLOUD_SKEW = timedelta(seconds=5)
"""The cloud's clock may be so far behind the store's; with more, what boots still counts as room."""

_LAST = datetime(9000, 1, 1, tzinfo=UTC)

MOST_RELEASES = 300
"""Nodes that one decision gives back: about 400 bytes of its record each."""

KEPT = (1000, 100, 10, 1, 0)
"""Names kept of each list, tried in this order."""


class Remembered(NamedTuple):
    """The memory as it was read, and the versions that it is written over."""

    memory: Memory
    version: int
    idle: ReadParts[datetime]


def new_id(now: datetime, look: str) -> str:
    """A decision's id. Ids sort by time, and no two are the same: ``look`` has the fence, new with every holder."""
    return f"{int(clock_seconds(now) * 1000):014d}-{hashlib.blake2b(look.encode(), digest_size=4).hexdigest()}"


def recall(state: State, cluster: str) -> Remembered:
    """Read the memory, without capacity in flight."""
    found = MEMORY.get(state, cluster)
    idle = IDLE.read(state, cluster)
    memory = found.value if found else Memory()
    memory = msgspec.structs.replace(memory, idle_since={**memory.idle_since, **idle.values})
    return Remembered(memory, found.version if found else ABSENT, idle)


def remember(state: State, cluster: str, was: Remembered, memory: Memory) -> Remembered:
    """Write what changed of the memory, over what was read. Capacity in flight has records of its own.

    Raises ``Busy`` where another worker has written it since: the lease was lost to it.
    """
    lasting, version, idle = _lasting(memory), was.version, was.idle
    try:
        if lasting != _lasting(was.memory):
            version = MEMORY.put(state, cluster, lasting, if_version=version)
        if memory.idle_since != idle.values:
            idle = IDLE.write(state, cluster, idle, memory.idle_since)
    except Conflict:
        raise Busy(LOST) from None
    return Remembered(memory, version, idle)


def _lasting(memory: Memory) -> Memory:
    return msgspec.structs.replace(memory, in_flight=(), came=(), overdue=(), idle_since={}, rests={})


def write(state: State, record: Record, *, if_version: int) -> int:
    """Write an open decision: before its first call, and as far as its steps are known; its version.

    Raises ``Busy`` where another worker, which holds the lease now, has settled that version.
    """
    try:
        return OPEN.put(state, _name(record), _storable(record, OPEN), if_version=if_version)
    except Conflict:
        raise Busy(LOST) from None


def close(state: State, record: Record) -> None:
    """File a decision all of whose steps are known and whose messages are sent: in the chain, then under its id."""
    closed = _storable(msgspec.structs.replace(record, status="closed"), DECISION)
    digest = hashlib.sha256(DECISION.format.write(closed)).hexdigest()
    chain(state, record.cluster, "decision", record.id, record.at, digest)
    DECISION.put(state, _name(record), closed)
    OPEN.delete(state, _name(record))


def chain(state: State, cluster: str, kind: LinkKind, id: str, at: datetime, digest: str) -> None:
    """Put a record's digest behind the head of its cluster's audit chain, once: whoever files it again, after a worker
    that died in between, finds it there. Whoever was faster makes it start again from what that one wrote.

    Costs come many at once, and from two ticks too: they are looked for in the links before the head's, too.
    """
    while True:
        found = HEAD.get(state, cluster)
        head = found.value if found else Chain()
        newest = head.links if kind != "cost" else (*_links_before(state, cluster, head), *head.links)
        if any((link.id, link.digest) == (id, digest) for link in newest):
            return
        link, kept = head.next_link(kind, id, at, digest), head.links
        if len(kept) >= LINKS_AT_HEAD:
            with suppress(Conflict):  # Then one that died before it moved the head has written the same.
                LINKS.put(state, f"{cluster}/{kept[0].seq:012d}", head, if_version=ABSENT)
            kept = ()
        with suppress(Conflict):
            HEAD.put(state, cluster, Chain(links=(*kept, link)), if_version=found.version if found else ABSENT)
            return


def _links_before(state: State, cluster: str, head: Chain) -> tuple[Link, ...]:
    """The links that have left the head's record last."""
    first = head.links[0].seq - LINKS_AT_HEAD if head.links else 0
    found = LINKS.get(state, f"{cluster}/{first:012d}") if first > 0 else None
    return found.value.links if found else ()


def filed_decision(state: State, cluster: str, decision: str) -> Record | None:
    """A decision by its id."""
    found = DECISION.get(state, f"{cluster}/{decision}")
    return found.value if found else None


def open_records(state: State, cluster: str) -> list[tuple[Record, int]]:
    """Decisions that were begun and not filed, oldest first, with their versions."""
    return [(found.value, found.version) for found in OPEN.scan(state, f"{cluster}/")]


def filed_records(state: State, cluster: str) -> list[Record]:
    """Decisions that were carried out, oldest first. One that cannot be read hides no other: the log names it."""
    out: list[Record] = []
    for key, stored in pages(state, DECISION.key(f"{cluster}/")):
        try:
            out.append(DECISION.format.read(key, stored.value))
        except Corrupt as error:
            _log.warning("a decision is left out", extra={"data": {"why": str(error)}})
    return out


def was_told(state: State, cluster: str, what: str) -> bool:
    """True where people were told this lately."""
    return TOLD.get(state, f"{cluster}/{what}") is not None


def mark_told(state: State, cluster: str, what: str, subject: str = "") -> None:
    """Mark it told, and of whom: after it was sent, so that a crash in between tells it twice rather than never."""
    TOLD.put(state, f"{cluster}/{what}", Mark(note=subject))


def all_told(state: State, cluster: str) -> list[tuple[str, str]]:
    """Warnings that people were told lately, each with its subject."""
    within = f"{cluster}/"
    return [(found.name.removeprefix(within), found.value.note) for found in TOLD.scan(state, within)]


def untell(state: State, cluster: str, what: str) -> None:
    """It is over, and people were told so: it is news again."""
    TOLD.delete(state, f"{cluster}/{what}")


def still_booting(entries: Sequence[InFlight], nodes: Sequence[Node], pools: Sequence[PoolState]) -> list[int]:
    """Numbers of nodes of each entry that are still on their way, in the entries' order.

    A pool boots its desired size less its ready nodes and what its cloud could not launch. Each of those belongs to
    the newest entry that was written before it was begun; one whose beginning the cloud does not tell counts as
    the newest.
    """
    left = [0] * len(entries)
    newest = sorted(range(len(entries)), key=lambda i: entries[i].requested_at, reverse=True)
    for pool in {e.pool: None for e in entries}:
        own = deque(index for index in newest if entries[index].pool == pool)
        for begun in _begun(pool, nodes, pools):
            latest = begun + CLOUD_SKEW
            # What is full, or was written later, is nobody's that was begun before either.
            while own and (left[own[0]] >= entries[own[0]].count or entries[own[0]].requested_at > latest):
                own.popleft()
            if not own:
                break
            left[own[0]] += 1
    return left


def _begun(pool: str, nodes: Sequence[Node], pools: Sequence[PoolState]) -> list[datetime]:
    """When each node that a pool still boots was begun, the newest first."""
    state = next((p for p in pools if p.name == pool), None)
    if state is None:
        return []
    ours = [n for n in nodes if n.pool == pool]
    known = [b.requested_at for b in (*state.booting, *state.queued) if not b.going]
    known += [n.created_at for n in ours if not n.ready]
    size = state.size_beside(ours) if state.leaves else state.desired
    coming = max(0, size - state.owed - len(state.refused) - sum(n.ready for n in ours))
    unknown = [_LAST] * (coming - len(known))
    return (unknown + sorted(known, reverse=True))[:coming]


def _storable(record: Record, table: Table[Record]) -> Record:
    """The record, or what the store takes of it."""
    write = table.format.write
    return record if len(write(record)) <= LARGEST else fitting(record, write)


def _name(record: Record) -> str:
    return f"{record.cluster}/{record.id}"


def limit_releases(plan: Plan, now: datetime) -> Plan:
    """A plan of more than ``MOST_RELEASES`` with the first of them; the others stay for the next look, at once."""
    later = {node.node: node for node in plan.releases[MOST_RELEASES:]}
    after = plan.usd_per_hour_after + known_per_hour(later.values())
    why = f"to be released too; one decision releases {MOST_RELEASES} nodes at most"
    nodes = tuple(
        msgspec.structs.replace(node, verdict="keep", why=why) if node.node in later else node for node in plan.nodes
    )
    return msgspec.structs.replace(plan, nodes=nodes, usd_per_hour_after=after, look_again_at=now)


def fitting(record: Record, write: Callable[[Record], bytes]) -> Record:
    """The record with as many names as fit the store, as it is written."""
    less = record
    for most in KEPT:
        if len(write(less)) <= LARGEST:
            break
        less = _trimmed(record, most)
    return less


def _trimmed(record: Record, most: int) -> Record:
    plan = record.plan
    kept = tuple(node for node in plan.nodes if node.verdict == "keep")[:most]
    less = msgspec.structs.replace(
        plan,
        buys=tuple(
            msgspec.structs.replace(
                b, demands=b.demands[:most], homes=b.homes[:most], shapes=b.shapes[:most], terms=b.terms[:most]
            )
            for b in plan.buys
        ),
        pods=tuple(_named(group, most) for group in plan.pods[:most]),
        nodes=kept + plan.releases,
        findings=plan.findings[:most],
    )
    basis = record.basis and msgspec.structs.replace(record.basis, prices=record.basis.prices[:most])
    cut = msgspec.structs.replace(record, plan=less, messages=record.messages[:most], basis=basis)
    return msgspec.structs.replace(cut, left_out=dict(Counter(_counts(record)) - Counter(_counts(cut))))


def _named(group: PodGroup, most: int) -> PodGroup:
    unnamed = max(0, len(group.pods) - most)
    return msgspec.structs.replace(group, pods=group.pods[:most], uids=group.uids[:most], unnamed=unnamed)


def _counts(record: Record) -> dict[str, int]:
    plan = record.plan
    return {
        "groups": len(plan.pods),
        "nodes": len(plan.nodes),
        "findings": len(plan.findings),
        "messages": len(record.messages),
        "prices": len(record.basis.prices) if record.basis else 0,
    }
