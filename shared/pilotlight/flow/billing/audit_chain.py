"""A cluster's audit chain as the state has it: its lines with their records, its head, and the anchor told once a day.

The chain's count and head are told, so that they lie where nobody who can write the state can; and what is older than a
year leaves it behind a checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from pilotlight.decide.alerts.audit_proof import line_of
from pilotlight.facts.decisions import Chain, Link, LinkKind
from pilotlight.facts.messages import Alert
from pilotlight.flow.alerts.decision_messages import by_fingerprint, was_noticed
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import COST
from pilotlight.state_schema.decision_records import DECISION, HEAD, LINKS
from pilotlight.state_schema.marks import NOTICED
from pilotlight.state_schema.table import Entry, Mark, Table, pages
from pilotlight.units import HOUR

STILL = timedelta(days=2)
"""A chain to which nothing was added for so long has its anchor already."""

KEPT = timedelta(seconds=(DECISION.ttl_s or 0) - HOUR)
"""A decision of so long ago may have left the store with its age."""


def anchor(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Tell the anchor of a day, once; a line on it.

    A message's name has the count in it: two ticks at once, or one after a crash, may send two, and people are told of
    one fingerprint once.
    """
    day = f"audit-anchor/{now:%Y-%m-%d}"
    if was_noticed(deps, day):
        return ()
    retain(deps.state, deps.name, now)
    last = head(deps.state, deps.name)
    told = last is not None and last.at > now - STILL
    if last is not None and told:
        deps.outbox.publish([by_fingerprint(_alert(deps.name, day, last), f"-{last.seq}")])
    NOTICED.put(deps.state, f"{deps.name}/{day}", Mark())
    return (f"anchored the audit chain at {last.seq}",) if last is not None and told else ()


def _alert(cluster: str, day: str, head: Link) -> Alert:
    return Alert(
        cluster=cluster,
        kind="audit-anchor",
        severity="info",
        fingerprint=day,
        what=f"the audit chain has {head.seq} records",
        why=f"its head is {head.hash}: a chain that was cut or made anew has another",
        next="told again tomorrow, where something was decided",
        how=f"pilotlight audit verify --anchor {head.seq}:{head.hash}",
        at=head.at,
    )


DROPPED_AFTER = timedelta(days=370)
"""Links of so long ago go, before their own time ends them without a word."""


RECORDS: Mapping[LinkKind, Table[Any]] = {"decision": DECISION, "cost": COST}
"""Where the records are that links of a kind name."""


def links(state: State, cluster: str, after: int = 0) -> list[Link]:
    """The links behind a place, in their order. The head is read first: what is added meanwhile is not in it."""
    head = HEAD.get(state, cluster)
    if head is None or not head.value.links:
        return []
    found = {link.seq: link for link in head.value.links}
    first = min(found)
    # A record begins at its first link: the one that has `after` may begin earlier, by as many as one holds.
    for entry in LINKS.scan(state, f"{cluster}/"):
        if entry.value.links and entry.value.links[-1].seq > after:
            found |= {link.seq: link for link in entry.value.links if link.seq < first}
    return [link for seq, link in sorted(found.items()) if seq > after]


def lines(state: State, cluster: str, after: int = 0) -> Iterator[bytes]:
    """The chain as an export has it. A decision that was filed twice stands with the link that is of its record."""
    chain = links(state, cluster, after)
    of_id: dict[str, list[Link]] = {}
    for link in chain:
        of_id.setdefault(link.id, []).append(link)
    for link in chain:
        record = _record(state, cluster, link)
        twice = len(of_id[link.id]) > 1 and _seat(of_id[link.id], record) != link.seq
        yield line_of(link, b"" if twice else record)


def _record(state: State, cluster: str, link: Link) -> bytes:
    table = RECORDS.get(link.kind)
    stored = state.get(table.key(f"{cluster}/{link.id}")) if table is not None else None
    return stored.value if stored else b""


def _seat(links: Sequence[Link], record: bytes) -> int:
    """Which of one decision's links the record is of; the last where it is of none."""
    digest = sha256(record).hexdigest()
    return next((link.seq for link in links if link.digest == digest), links[-1].seq)


def strangers(state: State, cluster: str) -> list[str]:
    """Decisions, and then costs, that are in no link though the chain had begun: somebody put them there.

    The records are read first, for a link is written before its record.
    """
    within = {kind: table.key(f"{cluster}/") for kind, table in RECORDS.items()}
    ids = {kind: [key.removeprefix(key_) for key, _ in pages(state, key_)] for kind, key_ in within.items()}
    chain = links(state, cluster)
    known, since = {link.id for link in chain}, min((link.id for link in chain if link.kind == "decision"), default="~")
    decisions = [id for id in ids["decision"] if id not in known and id > since]
    return decisions + [id for id in ids["cost"] if id not in known]


def retain(state: State, cluster: str, now: datetime) -> int:
    """Drop the links that are older than a year, behind a checkpoint that says so in the chain; how many records."""
    old = list[Entry[Chain]]()
    for entry in LINKS.scan(state, f"{cluster}/"):
        if not entry.value.links or entry.value.links[-1].at > now - DROPPED_AFTER:
            break
        old.append(entry)
    if old:
        last = old[-1].value.links[-1]
        ledger.chain(state, cluster, "checkpoint", str(last.seq), now, last.hash)
    for entry in old:
        LINKS.delete(state, entry.name)
    return len(old)


def head(state: State, cluster: str) -> Link | None:
    """The last link."""
    found = HEAD.get(state, cluster)
    return found.value.links[-1] if found and found.value.links else None
