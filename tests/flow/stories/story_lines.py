"""What flows go by, in short: an alert is a line, and a record one line or a few, each by its name."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from stage import START
from state_tables import minutes

from pilotlight.facts.decisions import Record
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.memory import Memory
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.budgets import Account, Hold, Ladder
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.state_schema.billing_records import CAP, CHARGED, HELD_PRICE, HOLD, LADDER, PricePart
from pilotlight.state_schema.cluster_records import APPROVED, NODE_MARK, PAUSE, NodeMark
from pilotlight.state_schema.decision_records import DECISION, MEMORY, OPEN
from pilotlight.state_schema.flight_records import IN_FLIGHT
from pilotlight.state_schema.instance_records import INTERRUPTION, RESCUE
from pilotlight.state_schema.lease_records import FENCE
from pilotlight.state_schema.table import Table

BEGIN = START + timedelta(hours=9)
"""Stories begin three hours before midnight: a day ends in each."""


def alert_line(alert: Alert) -> str:
    """An alert with its figures, as people read it."""
    money = f"{alert.usd or '-'}/{alert.usd_per_hour or '-'}"
    over = " over" if alert.resolved else ""
    return f"{alert.kind} {alert.severity}{over} {alert.subject} {money} {alert.what} | {alert.why} | {alert.next}"


def _at(at: datetime | None) -> str:
    return minutes(at, BEGIN)


def lines_of(key: str, value: bytes) -> list[str]:
    """A record as lines, each by its name; none of a family that no flow here goes by."""
    family, _, name = key.partition("/")
    shown = _SHOWN.get(family)
    if shown is None:
        return []
    table, tell = shown
    if family == "hold":
        cluster = name.partition("/")[0]
        part = table.format.read(key, value)
        return [f"hold {cluster}/{id} {line}" for id, hold in part.items.items() for line in tell(hold)]
    return [f"{family} {name} {line}" for line in tell(table.format.read(key, value))]


def _hold(hold: Hold) -> Iterator[str]:
    own = hold.terms
    marks = "".join(name[0] for name in ("frozen", "stopping", "void", "closed", "told") if getattr(hold, name))
    spans = "/".join(f"{each / 60:g}" for each in (own.run_s, own.typical_s, own.stretch_s, own.stop_s, own.calls_s))
    times = "/".join(map(_at, (hold.since, hold.binds_until, hold.until, hold.ended_at)))
    old = ",".join(f"{_at(one.until)} ${one.usd_per_hour}" for one in hold.earlier)
    yield f": {hold.instance} {times} {spans} ${own.usd_per_hour} [{old}] {marks} {len(hold.accounts)} {own.team}"


def _account(account: Account) -> Iterator[str]:
    held = " ".join(f"{usd:.3f}" for usd in account.held.values())
    rest = f"{account.parts} {account.moved:.3f} {sorted(account.giving)} {account.taken}"
    yield f": {account.settled:.3f} held {held or '-'} done {len(account.done)} {rest}"


def _interruption(found: Interruption) -> Iterator[str]:
    times = "/".join(map(_at, (found.received_at, found.begin, found.deadline, found.until, found.ended_at)))
    marks = "".join(name[0] for name in ("ours", "replaced", "cordoned", "named", "priced") if getattr(found, name))
    done = f"asked {sorted(found.asked)} evicted {sorted(found.evicted)}"
    sure = f"confirmed {_at(found.confirmed.deadline)}" if found.confirmed else ""
    end = f"{found.outcome} {found.proof}"
    yield f": {found.kind} {found.truth} {times} {marks} {done} {sure} lost {found.lost_usd:.4f} {end}"


def _decision(record: Record) -> Iterator[str]:
    steps = (f"{s.n} {s.call} {s.target} {s.count} to {s.to} {s.state} {s.code}" for s in record.steps)
    held = (f"{one.code} {one.count}" for one in record.plan.held)
    yield f": {record.status} [{'; '.join(steps)}] held [{'; '.join(held)}] {len(record.messages)} messages"


def _memory(memory: Memory) -> Iterator[str]:
    for one in memory.backoffs:
        yield f"rests {one.offering}: to {_at(one.until)} {one.tries} short {_at(one.short_since)}"
    for q in memory.quarantines:
        yield f"quarantine {q.shape} {q.pool}: {_at(q.until)}"
    for name, flaps in memory.flaps.items():
        yield f"flaps {name}: {_at(flaps.released_at)} {flaps.idle_s:.0f} {len(flaps.times)} {flaps.stretch}"
    for name, size in memory.sizes.items():
        yield f"size {name}: {size}"
    for name, at in (*memory.last_buy.items(), *memory.floors.items(), *memory.rests.items()):
        yield f"when {name}: {_at(at)}"
    for name, hits in memory.hits.items():
        rates = [f"{rate:.3f}" for each in hits.rates for rate in each]
        yield f"hits {name}: {hits.count} {hits.out} {hits.spells} {hits.worth:.3f} {hits.spare_s:.0f} {rates}"
    for job, due in memory.due.items():
        yield f"due {job}: {due.saved_s:.0f} {due.base_s:.0f} {_at(due.began)}"
    yield f"rest: {memory.pool_class} {{}} {[one.node for one in memory.misfits]} {_at(memory.counted_to)}"
    yield f"turns: {[(_at(t.at), t.added, t.removed) for t in memory.turns]}"
    yield f"periods: {memory.periods}"
    calls = memory.tally
    yield f"calls: {calls.calls} {calls.refusals} {calls.again}"
    yield f"took: {[f'{name} {sum(d.counts)} {d.total_s:.0f}' for name, d in calls.durations.items()]}"


def _mark(mark: NodeMark) -> Iterator[str]:
    for name, o in sorted(mark.owners.items()):
        yield f"{name}: by {o.by} {_at(o.since)}-{_at(o.until)} {o.given_back} {o.doubted}"


def _flight(one: InFlight) -> Iterator[str]:
    marks = f"{' broken' if one.broken else ''}{' woken' if one.woken else ''}"
    yield f": {one.count} {one.offering} {one.demands} {one.gangs} to {_at(one.ready_by)}{marks}"


def _ladder(ladder: Ladder) -> Iterator[str]:
    for name, rung in ladder.rungs.items():
        yield f"{name}: {rung.at} since {_at(rung.since)} {rung.step is not None}"


def _prices(part: PricePart) -> Iterator[str]:
    yield from (f"{name}: ${one.usd_per_hour} {len(one.earlier)}" for name, one in part.items.items())


_SHOWN: dict[str, tuple[Table[Any], Callable[[Any], Iterator[str]]]] = {
    "hold": (HOLD.table, _hold),
    "cap": (CAP, _account),
    "charged": (CHARGED, lambda one: iter([f": {one.hold} {_at(one.until)}"])),
    "mark": (NODE_MARK, _mark),
    "inflight": (IN_FLIGHT, _flight),
    "rescue": (RESCUE, _interruption),
    "interruption": (INTERRUPTION, _interruption),
    "ladder": (LADDER, _ladder),
    "open": (OPEN, _decision),
    "decision": (DECISION, _decision),
    "pause": (PAUSE, lambda one: iter([f": {one.reason}"])),
    "approved": (APPROVED, lambda one: iter([f": {one.nodes} {one.spent_by}"])),
    "fence": (FENCE, lambda one: iter([f": lost since {_at(one.lost_since)}"])),
    "memory": (MEMORY, _memory),
    "held-price": (HELD_PRICE.table, _prices),
}
