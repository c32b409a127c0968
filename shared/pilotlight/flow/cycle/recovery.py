"""Records that earlier looks left open: calls that were planned are revoked, of those that were sent the cloud is read.

A worker that died, one that stands still, and a call whose answer was lost all look the same: an open record.
"""

from collections.abc import Callable, Container, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from pilotlight.decide.limits.plan_brakes import recent, turn_of
from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import CallStep, NodeVerdict, Plan, Record, StepState
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Limits
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.flow.alerts.decision_messages import close_and_tell
from pilotlight.flow.alerts.wording import line
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot, without_going
from pilotlight.flow.records import call_steps, flight_log, ledger, node_marks
from pilotlight.flow.records.call_steps import Overtaken, Sending
from pilotlight.flow.records.lease import Lease
from pilotlight.flow.records.memory_updates import note_lost, note_refused_release
from pilotlight.ports.clouds import NamingPools

CAME: tuple[StepState, ...] = ("done", "denied", "unknown")
"""How a step ended whose count has come."""


class Left(msgspec.Struct, frozen=True):
    """A record that another look left open, at a version, with its steps as they really are."""

    record: Record
    version: int
    sendings: list[Sending]


def take_over(deps: Deps, held: Lease) -> list[Left]:
    """The open records, where there are any. From here on nothing that their worker planned can be sent.

    Raises ``Busy`` where the lease was lost meanwhile: then an open record is its new holder's, at work.
    """
    found = ledger.open_records(deps.state, deps.name)
    if found:
        held.keep(sure=True)
    return [Left(record, version, call_steps.taken_over(deps, record)) for record, version in found]


def look_and_settle(deps: Deps, look: Callable[[], Snapshot], left: list[Left]) -> tuple[Snapshot, list[Left]]:
    """One read, and what is left open settled by it. One more where pods wait that may fit a node which was opened."""
    snapshot = look()
    if not left:
        return snapshot, left
    before, (snapshot, left) = left, settle_left(deps, snapshot, left)
    if snapshot.view.pending and any_reopened(snapshot, before):  # Those pods may fit where nothing could bind.
        return settle_left(deps, look(), left)
    return snapshot, left


def settle_left(deps: Deps, snapshot: Snapshot, left: Sequence[Left]) -> tuple[Snapshot, list[Left]]:
    """Settle what the look shows of each, close those of which all is known.

    The look with what may still land, and the records that stay open. What went is settled first: the size that an
    earlier purchase asked for counted it.
    """
    lost = [s for one in left for s in one.sendings if s.step.state == "sent" and s.step.call == "release"]
    _settle_calls(deps, snapshot, left)
    snapshot = without_going(deps, snapshot)
    turned = _with_unheard(deps, snapshot, left, _with_undone(snapshot, lost, _turned(deps, snapshot, left)))
    left = [one for one in left if not _close(deps, one)]
    return _with_open(deps, snapshot, turned, [(one.record, step) for one in left for step in _sent(one)]), left


def _settle_calls(deps: Deps, snapshot: Snapshot, left: Sequence[Left]) -> None:
    """What came of each call: of those never sent, then of releases, then of purchases."""
    calls = [(one.record, sending) for one in left for sending in one.sendings]
    lost = purchases(left)
    for record, sending in calls:
        if sending.step.state == "revoked":
            _undo(deps, record, sending.step)
    for record, sending in calls:
        if sending.step.state == "sent" and sending.step.call == "release":
            _settle_release(deps, snapshot, record, sending, lost)
    for record, sending in calls:
        if sending in lost:
            _settle_grow(deps, snapshot, record, sending)


def _sent(one: Left) -> list[CallStep]:
    """Calls whose answers are still lost."""
    return [sending.step for sending in one.sendings if sending.step.state == "sent"]


def _with_open(deps: Deps, snapshot: Snapshot, memory: Memory, open_: Sequence[tuple[Record, CallStep]]) -> Snapshot:
    """The look with what may still land: sizes that were asked for, nodes that may go, decisions in doubt."""
    grows = [step for _, step in open_ if step.call == "grow"]
    pools = tuple(_as_asked(pool, grows) for pool in snapshot.pools)
    memory = replace(memory, sizes={**snapshot.memory.sizes, **{pool.name: pool.desired for pool in pools}})
    return replace(
        snapshot,
        memory=memory,
        was=ledger.remember(deps.state, deps.name, snapshot.was, memory),
        pools=pools,
        unsettled={step.pool: _until(step) for step in grows if call_steps.may_land(step, snapshot.now)},
        leaving={step.target: record.id for record, step in open_ if step.call == "release"},
        unresolved=frozenset(record.id for record, _ in open_),
    )


def any_reopened(snapshot: Snapshot, left: Sequence[Left]) -> bool:
    """True where a node was opened that this look still shows closed: its release was called off, or never came."""
    closed = {node.name for node in snapshot.view.nodes if node.marked}
    let_go = (s.step for one in left for s in one.sendings if s.step.call == "release")
    return any(step.state in ("revoked", "unknown") and step.target in closed for step in let_go)


def carry_on(deps: Deps, snapshot: Snapshot, left: Sequence[Left], held: Lease) -> tuple[str, ...]:
    """Send again each release whose answer was lost, to the same instance under its mark; what came of it, a line each.

    Not where a GPU pod has bound to it since, or a person has opened it: then it is left alone until the first call can
    no longer land. One whose answer is lost again waits for the next look, and nothing else waits for it.
    """
    if not left:
        return ()
    from pilotlight.flow.cycle.act import Act

    said: list[str] = []
    opened = {node.name for node in snapshot.view.nodes if not node.marked}
    for one in left:
        again = [s for s in one.sendings if s.step.call == "release" and not _opened(one.record, s.step, opened)]
        act = Act(deps, snapshot, one.record, held, again, lost=purchases(left))
        try:
            act.run()
        except Overtaken:
            raise
        except Retry:
            held.keep(sure=True)
        said += [line(s.step) for s in act.sendings if s.step.state == "done"]
        _close(deps, one)
    return tuple(said)


def any_stays(left: Sequence[Left], plan: Plan) -> bool:
    """True where a node stays that was to go, and the plan buys without it: it is looked at again first."""
    return bool(plan.buys) and any(sending.stays for one in left for sending in one.sendings)


def purchases(left: Sequence[Left]) -> list[Sending]:
    """The purchases whose answers are lost."""
    return [s for one in left for s in one.sendings if s.step.state == "sent" and s.step.call == "grow"]


def sized_anew(deps: Deps, snapshot: Snapshot, left: Sequence[Left], plan: Plan) -> Snapshot:
    """The look with its pools' sizes as they are now that nodes went after it: purchases raise them from there."""
    if not (left and plan.buys):
        return snapshot
    grows = [sending.step for sending in purchases(left)]
    now = {pool.name: _as_asked(pool, grows).desired for pool in deps.pools.describe() if not pool.unread}
    pools = (replace(p, desired=min(p.desired, now.get(p.name, p.desired))) for p in snapshot.pools)
    return replace(snapshot, pools=tuple(pools))


def _opened(record: Record, step: CallStep, opened: Container[str]) -> bool:
    """True where a person has opened a node that we had closed to give it back."""
    verdict = record.plan.calls[step.n]
    ours = isinstance(verdict, NodeVerdict) and verdict.registered and not verdict.forced
    return ours and step.target in opened


def _with_undone(snapshot: Snapshot, lost: Iterable[Sending], memory: Memory) -> Memory:
    """The memory with the releases, ``lost`` up to this look, that did not happen: each counts once."""
    for step in (sending.step for sending in lost):
        if step.state == "unknown":
            instance = step.instance or step.target
            memory = note_refused_release(memory, instance, step.note, snapshot.now, certain=False)
    return memory


def _with_unheard(deps: Deps, snapshot: Snapshot, left: Sequence[Left], memory: Memory) -> Memory:
    """The memory with purchases whose answers were lost and that never came; where a refusal leaves no trace, also
    those of which who heard them was overtaken before it wrote their names."""
    seen = {pool.name: pool for pool in snapshot.pools if not pool.unread}
    for one in left:
        for sending in one.sendings:
            step, pool = sending.step, seen.get(sending.step.pool)
            if pool is not None and step.sent_at is not None and _unheard(deps, memory, pool, one.record, sending):
                memory = note_lost(memory, step.target, step.sent_at, snapshot.now)
    return memory


def _unheard(deps: Deps, memory: Memory, pool: PoolState, record: Record, sending: Sending) -> bool:
    """True where a purchase has fewer nodes than it asked for. Of names that were written each is heard by itself."""
    step, asked = sending.step, record.steps[sending.step.n].count
    if step.call != "grow" or step.state not in ("done", "unknown"):
        return False
    if step.state == "unknown":
        return step.count < asked
    if pool.rules is None or not pool.rules.forgets:
        return False
    there = {one.name for one in pool.asked}
    if any(one.name not in there for one in memory.asked.get(pool.name, ())):
        return False
    named = _named(deps, record, sending)
    return named is not None and named < asked


def _turned(deps: Deps, snapshot: Snapshot, left: Sequence[Left]) -> Memory:
    """The memory with what these calls came to, for the limits of ten minutes; one that may still land counts."""
    if deps.policy.caps.ten_minutes == Limits():
        return snapshot.memory
    moments = {one.record.at for one in left}
    turns = [turn for turn in recent(snapshot.memory.turns, snapshot.now) if turn.at not in moments]
    turns += [
        turn_of(one.record.plan.calls[sending.step.n], sending.step.count, one.record.at)
        for one in left
        for sending in one.sendings
        if sending.step.count and (sending.step.state in CAME or sending.step.call == "grow")
        if sending.step.state != "revoked"
    ]
    return replace(snapshot.memory, turns=recent(turns, snapshot.now))


def _settle_grow(deps: Deps, snapshot: Snapshot, record: Record, sending: Sending) -> None:
    """What came of a purchase, by its names, or else by its pool's size: of a part that is hidden neither tells."""
    step = sending.step
    named = _named(deps, record, sending)
    if named is None and any(pool.name == step.pool and pool.hidden for pool in snapshot.pools):
        return
    size = next((pool.desired for pool in snapshot.pools if pool.name == step.pool), 0)
    came = max(0, min(step.count, step.count - (step.to - size))) if named is None else min(step.count, named)
    # A hand may have raised the size so far meanwhile; a name is no other's.
    if came == step.count and (named is not None or not call_steps.may_land(step, snapshot.now)):
        sending.end("done", code="late", note="its answer was lost; the cloud shows it")
    elif step.sent_at is None or snapshot.now >= step.sent_at + call_steps.LATE:
        _shrink_flight(deps, record, step, came)
        note = f"its answer was lost; {came} of {step.count} came" if came else "its answer was lost, and it never came"
        sending.end("unknown", code="late", note=note, count=came)


def _named(deps: Deps, record: Record, sending: Sending) -> int | None:
    """How many came, by their names; None where the cloud names none, or they may not be read."""
    step = record.steps[sending.step.n]
    try:
        return deps.pools.came(step.pool, step.to, sending.name) if isinstance(deps.pools, NamingPools) else None
    except Denied:
        return None


def _settle_release(deps: Deps, snapshot: Snapshot, record: Record, sending: Sending, lost: Sequence[Sending]) -> None:
    """Gone is done. One that is still there stays closed while the call may land: it is sent again, or then opened."""
    step, now, said = sending.step, snapshot.now, sending.step.answer
    there = any(node.name == step.target for node in snapshot.view.nodes)
    hidden = any(pool.name == step.pool and pool.hidden for pool in snapshot.pools)
    if not there and not hidden and not snapshot.is_asked_for(step.instance or step.target, going=False):
        _end_late(sending, f"{said}; the node is gone", lost)
    elif step.sent_at is None or now >= step.sent_at + call_steps.LANDS:
        verdict = record.plan.calls[step.n]
        if _gone(deps, step):
            node_marks.mark_released(deps, step.target, verdict.why, by=record.id)
            _end_late(sending, f"{said}; the instance is gone", lost)
            return
        if there and isinstance(verdict, NodeVerdict) and not verdict.forced:
            node_marks.lift(deps, step.target, "release", by=record.id)
        left = "the node is still there" if there or not hidden else "its pool cannot be read whole"
        sending.end("unknown", code="late", note=f"{said}, and {left}", count=0)


def _end_late(sending: Sending, note: str, lost: Sequence[Sending]) -> None:
    """A release is done: purchases whose answers are lost are told that their pool is one smaller."""
    sending.end("done", code="late", note=note)
    for purchase in lost:
        purchase.one_less(sending.step)


def _gone(deps: Deps, step: CallStep) -> bool:
    """True where the cloud says that the instance of a node that is still seen is gone, or goes."""
    try:
        found = deps.pools.instance(step.pool, step.instance or step.target)
    except Denied:
        return False
    return found is not None and (not found.there or (found.going is True and found.deadline is None))


def _undo(deps: Deps, record: Record, step: CallStep) -> None:
    """Take back the traces of a call that was never sent."""
    if step.call == "grow":
        flight_log.forget_flight(deps.state, flight_log.flight_name(deps.name, record.id, step.n))
    else:
        node_marks.lift(deps, step.target, "release", by=record.id)


def _close(deps: Deps, one: Left) -> bool:
    """True where all of it is known: then it is told and filed."""
    known = replace(one.record, steps=tuple(sending.step for sending in one.sendings))
    if any(step.open for step in known.steps):
        return False
    if deps.policy.budgets:
        from pilotlight.flow.budgets import budget_holds

        budget_holds.settle_decision(deps, known)
    from pilotlight.flow.observe import instance_lifetimes

    instance_lifetimes.note_released(deps, known, later=True)
    close_and_tell(deps, known, one.version)
    return True


def _shrink_flight(deps: Deps, record: Record, step: CallStep, came: int) -> None:
    """The entry of capacity in flight is left with what came."""
    key = flight_log.flight_name(deps.name, record.id, step.n)
    entry = flight_log.flight(deps.state, key)
    if entry is not None and came:
        flight_log.write_flight(deps.state, key, replace(entry, count=came, demands=(), homes=()))
    elif entry is not None:
        flight_log.forget_flight(deps.state, key)


def _as_asked(pool: PoolState, grows: Sequence[CallStep]) -> PoolState:
    """The pool with what was asked of it and may still come: it counts as on its way."""
    asked = max((step.to for step in grows if step.pool == pool.name), default=0)
    return replace(pool, desired=asked) if asked > pool.desired else pool


def _until(step: CallStep) -> str:
    end = f"{step.sent_at + call_steps.LANDS:%H:%M:%S}" if step.sent_at else "then"
    return f"an earlier call for {step.count} x {step.target} may still land, until {end}"
