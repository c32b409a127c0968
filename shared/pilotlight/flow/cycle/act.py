"""Carries out the steps of a decision: upward to at least a size, downward one named instance (``release``)."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from pilotlight.decide.limits.plan_brakes import remember_call
from pilotlight.errors import Denied, NoCapacity, QuotaExceeded, Retry, Throttled, Unsure
from pilotlight.facts.decisions import Buy, CallStep, NodeVerdict, Record
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.flow.cycle.release import DRAIN_S, NodeRelease
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records, flight_log, ledger, memory_updates
from pilotlight.flow.records.call_steps import Overtaken, Sending
from pilotlight.flow.records.lease import Lease
from pilotlight.ports.clouds import CALL_S
from pilotlight.ports.state import CountsOperations
from pilotlight.units import Seconds

NOT_CALLED = "not called: an earlier call failed, or the lease was lost"

THERE = "nothing was sent: its pool was raised that far meanwhile"


class Act:
    """The steps of one record. ``memory`` is what they leave behind, ``flapping`` the pools whose breaker tripped,
    ``unfinished`` whether a gang lacks a part: what it has goes back at the next look. ``elsewhere``: a zone had no
    capacity, and the next one is to be tried. ``ran`` is a stopwatch that was started when the look began. ``lost`` are
    earlier purchases whose answers were lost.
    """

    def __init__(
        self,
        deps: Deps,
        snapshot: Snapshot,
        record: Record,
        held: Lease,
        sendings: Sequence[Sending],
        ran: Callable[[], Seconds] | None = None,
        lost: Sequence[Sending] = (),
    ) -> None:
        self.deps, self.snapshot, self.record, self.held, self.sendings = deps, snapshot, record, held, sendings
        self.memory, self.tally = snapshot.memory, snapshot.memory.tally
        self.ran, self.lost = ran, lost
        self.failed: dict[str, Retry] = {}
        self.flapping: list[str] = []
        self.unfinished = self.elsewhere = False

    def make_calls(self) -> Record:
        """Make the calls and write what they left behind; the record with its steps as they are known then."""
        try:
            self.run()
        except Retry:
            self._remember()
            raise
        self._remember()
        return msgspec.structs.replace(self.record, steps=tuple(sending.step for sending in self.sendings))

    def run(self) -> None:
        """Every call in order. After a ``Retry`` no other is made: it is raised, and what was planned is revoked. But a
        call that a cloud was asked for costs its own pool alone, and its gangs: those of other pools are made first.

        A step that was sent before is a release that is sent again: to the same instance, under its mark.
        """
        ran = self.deps.clock.stopwatch()
        try:
            for sending in self.sendings:
                if sending.step.open and not self._given_up(sending.step):
                    self._carry_out_unless_lost(sending, ran)
            if self.failed:
                raise next(iter(self.failed.values()))
        except Overtaken:
            raise
        except Retry:
            for sending in self.sendings:
                if sending.step.state == "planned":
                    sending.end("revoked", code="failed", note=NOT_CALLED, count=0)
            raise

    def _carry_out_unless_lost(self, sending: Sending, ran: Callable[[], Seconds]) -> None:
        """Carry a step out; what its cloud raised is kept by its pool. One that hangs has no time for other pools."""
        try:
            self._carry_out(sending)
        except (Overtaken, Throttled):
            raise
        except Retry as lost:
            if sending.step.call == "release" and sending.let_out:
                self.failed[sending.step.pool] = lost
            elif self.failed.get(sending.step.pool) is not lost or ran() >= CALL_S:
                raise

    def _given_up(self, step: CallStep) -> bool:
        """True where an earlier call for its pool failed, or a purchase for one of its gangs."""
        if not self.failed:
            return False
        calls = self.record.plan.calls
        call, others = calls[step.n], [c for c in calls if isinstance(c, Buy) and c.pool in self.failed]
        gangs = set(call.gangs) if isinstance(call, Buy) else set[str]()
        return step.pool in self.failed or any(not gangs.isdisjoint(one.gangs) for one in others)

    def _remember(self) -> None:
        """Write what the calls left behind, once, after them."""
        state, plan, tally = self.deps.state, self.record.plan, self.tally
        if self.ran:
            asked = state.operations() if isinstance(state, CountsOperations) else {}
            verdicts = (*(group.verdict for group in plan.pods), *(node.verdict for node in plan.releases))
            tally = tally.count_duration("cycle", self.ran()).count_decision(verdicts, asked)
        memory = msgspec.structs.replace(self.memory, tally=tally)
        ledger.remember(self.deps.state, self.deps.name, self.snapshot.was, memory)

    def _carry_out(self, sending: Sending) -> None:
        step, call = sending.step, self.record.plan.calls[sending.step.n]
        self.held.keep(for_s=CALL_S if step.call == "grow" else DRAIN_S)
        why = brake_records.pause_reason(self.deps.state, self.deps.name, call.pool)
        gives = not isinstance(call, Buy) and not self.snapshot.stays(call.pool, call.instance)
        if not why and step.state == "sent" and not gives:
            # A call that was sent before its pool became another's is not sent again.
            why = self.snapshot.others.get(call.pool, "")
        if why:
            if step.state == "planned":
                sending.end("revoked", code="paused", note=why, count=0)
            return
        if isinstance(call, Buy):
            self._grow(call, sending)
        else:
            self._release(call, sending)
        self.tally = self.tally.count_call(step.call, sending.step.state)
        if sending.step.count and sending.step.state in ("done", "denied") and sending.step.code != "there":
            nodes, limits = sending.step.count, self.deps.policy.caps.ten_minutes
            self.memory = remember_call(self.memory, call, nodes, self.record.at, limits)

    def _grow(self, buy: Buy, sending: Sending) -> None:
        """Raise a pool. The ledger entry is written first: a crash in between leaves a promise, not a second buy."""
        deps, n = self.deps, sending.step.n
        refused = ""
        if deps.policy.budgets:
            from pilotlight.flow.budgets import budget_holds

            refused = budget_holds.reserve(deps, self.record.id, n, buy.terms[: buy.count], self.snapshot.now)
        if refused:
            self.tally = self.tally.count_refusal("Budget")
            sending.end("denied", code="budget", note=refused, count=0)
            return
        key = flight_log.flight_name(deps.name, self.record.id, n)
        entry = self._entry(buy, n)
        flight_log.write_flight(deps.state, key, entry)
        try:
            most = sending.step.count  # No more than dollars are held for, however much went since the look.
            grown = deps.pools.grow(
                buy.pool, sending.step.to, buy.zone, gate=sending.gate, token=sending.name, most=most
            )
        except Denied as no:
            self._denied(buy, sending, key, entry, no)
            return
        except Overtaken:
            raise
        except Retry as no:
            if not (sending.let_out and isinstance(no, Unsure)):
                flight_log.forget_flight(deps.state, key)
            if sending.let_out:
                self._unanswered(buy, sending, no)
            elif not sending.reached:  # Its cloud did not answer what it was asked before the call.
                self.memory = memory_updates.note_not_made(self.memory, buy.offering, str(no), self.snapshot.now)
            self.failed[buy.pool] = no
            raise
        if not sending.let_out:
            sending.end("done", code="there", note=THERE)
            return
        to = sending.step.to
        self._move_lost(sending.step, sending.step.count)
        if grown.asked:
            self.memory = memory_updates.note_asked(self.memory, buy.pool, grown.asked, self.snapshot.now)
        self.memory, trips = memory_updates.note_growth(self.memory, buy, to, self.snapshot.now)
        self._asked(buy, served=True)
        if any(state.stops for state in self.snapshot.pools if state.name == buy.pool):
            self.memory = memory_updates.note_started(self.memory, buy.pool, to, buy.count, self.snapshot.now)
        self.flapping += [buy.pool] if trips else []
        pending, now = self.snapshot.view.pending, self.snapshot.now
        self.tally = memory_updates.count_waits(self.tally, pending, buy.demands, now, sending.step.sent_at)
        sending.end("done")

    def _move_lost(self, step: CallStep, came: int) -> None:
        """Purchases whose answers are lost, and that had not come when this one was sent, come beyond it."""
        for purchase in self.lost:
            purchase.comes_beyond(step, came)

    def _asked(self, buy: Buy, *, served: bool) -> None:
        """Learn whether a zone had spot."""
        offering = next((o for o in self.deps.offerings if o.name == buy.offering), None) if buy.zone else None
        if offering is not None and offering.capacity_type == "spot":
            from pilotlight.decide.offers.spot_lifetimes import learn_from_purchase

            lives = learn_from_purchase(self.memory.lives, offering, served, self.snapshot.now)
            self.memory = msgspec.structs.replace(self.memory, lives=dict(lives))

    def _entry(self, buy: Buy, n: int) -> InFlight:
        """The entry of capacity on its way. A part of a purchase names no demands: they show when it comes."""
        now = self.snapshot.now
        return InFlight(
            decision=self.record.id,
            offering=buy.offering,
            pool=buy.pool,
            count=buy.count,
            requested_at=now,
            ready_by=now + timedelta(seconds=buy.boot_s),
            demands=() if (cut := self._cut(buy)) else buy.demands,
            homes=() if cut else buy.homes,
            gangs=buy.gangs,
            n=n,
            woken=any(state.name == buy.pool and state.standby >= buy.count for state in self.snapshot.pools),
        )

    def _cut(self, buy: Buy) -> bool:
        return any(held.buy is not None and held.buy.offering == buy.offering for held in self.record.plan.held)

    def _denied(self, buy: Buy, sending: Sending, key: str, entry: InFlight, no: Denied) -> None:
        """Keep what came, remember what was refused. A gang that lacks a part gives back the rest at the next look."""
        deps, step = self.deps, sending.step
        several = memory_updates.several_zones(deps.offerings, buy.pool)
        alike = [one.name for one in deps.offerings if one.pool == buy.pool and isinstance(no, QuotaExceeded)]
        for name in alike or [entry.offering]:  # A quota counts a region: no zone of the pool has room under it.
            self.memory = memory_updates.note_refusal(self.memory, name, no, self.snapshot.now, several=several)
        if isinstance(no, NoCapacity):
            self._asked(buy, served=False)
            self.elsewhere = self.elsewhere or several
        self.tally = self.tally.count_refusal(type(no).__name__)
        told = (p.desired for p in deps.pools.describe() if p.name == buy.pool and not p.unread)
        size = next(told, step.to - step.count)
        self.memory = memory_updates.note_size(self.memory, buy.pool, size)
        came = max(0, min(step.count, step.count - (step.to - size)))
        self._move_lost(step, came)
        if came:
            flight_log.write_flight(
                deps.state, key, self._broken(msgspec.structs.replace(entry, count=came), buy.gangs)
            )
        else:
            flight_log.forget_flight(deps.state, key)
        self._break(buy.gangs)
        sending.end("denied", code="refused", note=f"{type(no).__name__}: {no}", count=came)

    def _unanswered(self, buy: Buy, sending: Sending, no: Retry) -> None:
        """Its answer is lost, or its cloud says "not now" or was not reached: then nothing is waited for."""
        if isinstance(no, Unsure):
            self._move_lost(sending.step, sending.step.count)
            return
        now = self.snapshot.now
        self.tally = self.tally.count_refusal(type(no).__name__)
        self.memory = memory_updates.note_not_made(self.memory, buy.offering, str(no), now)
        tries = memory_updates.tries_of(self.memory, buy.offering)
        again = f"; tried {tries} times" if tries > 1 else ""
        sending.end("denied", code="refused", note=f"{type(no).__name__}: {no}{again}", count=0)
        if again:
            self._break(buy.gangs)

    def _break(self, gangs: Sequence[str]) -> None:
        """A part of these gangs was refused: what was bought for them alone goes back, and no more of it is bought."""
        self.unfinished = self.unfinished or bool(gangs)
        for other in self.sendings:
            call = self.record.plan.calls[other.step.n]
            if not isinstance(call, Buy) or set(gangs).isdisjoint(call.gangs):
                continue
            if other.step.state == "planned":
                other.end("revoked", code="failed", note="its gang lacks a part: all its nodes, or none", count=0)
            key = flight_log.flight_name(self.deps.name, self.record.id, other.step.n)
            entry = flight_log.flight(self.deps.state, key)
            if entry is not None and not entry.broken:
                flight_log.write_flight(self.deps.state, key, self._broken(entry, gangs))

    def _broken(self, entry: InFlight, gangs: Sequence[str]) -> InFlight:
        """It goes back, if it was asked for by these gangs alone; else it is the others' from now on."""
        known = {pod.uid: pod.shape.gang for pod in self.snapshot.view.pending}
        theirs = {uid for uid in entry.demands if (gang := known.get(uid)) is not None and gang.key in gangs}
        others = tuple(uid for uid in entry.demands if uid not in theirs and uid in known)
        if others:
            left = tuple(gang for gang in entry.gangs if gang not in gangs)
            number = dict(zip(entry.demands, entry.homes, strict=False))
            homes = tuple(number[uid] for uid in others) if entry.homes else ()
            return msgspec.structs.replace(entry, demands=others, homes=homes, gangs=left)
        return msgspec.structs.replace(entry, broken=bool(gangs))

    def _release(self, node: NodeVerdict, sending: Sending) -> None:
        now = self.snapshot.now
        self.memory = memory_updates.forget_asked(self.memory, node.pool, node.instance)
        way_out = NodeRelease(self.deps, self.held, node, sending, self.memory, by=self.record.id, now=now)
        try:
            way_out.run()
        finally:
            self.memory = way_out.memory
        if sending.step.state == "done":
            for purchase in self.lost:
                purchase.one_less(sending.step)
        if sending.step.state == "done" and self.memory.lives and not node.taken:
            from pilotlight.decide.offers.spot_lifetimes import gave_back

            gone = next((n for n in self.snapshot.view.nodes if n.name == node.node), None)
            self.memory = msgspec.structs.replace(self.memory, lives=dict(gave_back(self.memory.lives, gone)))
