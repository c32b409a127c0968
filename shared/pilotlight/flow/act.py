"""Carries out a recorded plan: upward to at least a size, downward one named instance after the safe order."""

from collections import Counter
from datetime import timedelta
from typing import Literal

import msgspec

from pilotlight.errors import BadRequest, Busy, Denied, LastNode, PilotlightError, Retry
from pilotlight.facts.capacity import InFlight, Mode
from pilotlight.facts.decisions import Buy, Effect, NodeVerdict, Plan, Record
from pilotlight.facts.policy import ApproveOver
from pilotlight.flow import brakes, ledger, memorise
from pilotlight.flow.billing import lives
from pilotlight.flow.books import budget_holds
from pilotlight.flow.brakes import Brakes
from pilotlight.flow.deps import Deps
from pilotlight.flow.lease import Lease
from pilotlight.flow.sight import Sight
from pilotlight.units import cents


def planned(deps: Deps, plan: Plan, sight: Sight) -> tuple[Effect, ...]:
    """The calls a plan will make; those that the pool's mode does not allow are advice, those a brake holds stopped."""
    sizes = Counter({p.name: p.desired for p in sight.pools})
    held = Brakes(deps, sight, sizes.total(), plan.usd_per_hour_before)
    out: list[Effect] = []
    for buy in plan.buys:
        effect = Effect(call="grow", pool=buy.pool, target=buy.offering, count=buy.count)
        effect = _braked(held, buy, _within_mode(deps, effect, "scale-up"))
        sizes[buy.pool] += effect.count if effect.outcome == "planned" else 0
        out.append(msgspec.structs.replace(effect, to=sizes[buy.pool]))
    for node in plan.releases:
        effect = Effect(call="release", pool=node.pool, target=node.node, count=1)
        out.append(_braked(held, node, _within_mode(deps, effect, "act")))
    return tuple(out)


def _braked(held: Brakes, call: Buy | NodeVerdict, effect: Effect) -> Effect:
    if effect.outcome != "planned":
        return effect
    allowed, why = held.allow(call)
    if allowed:
        return msgspec.structs.replace(effect, count=allowed, note=why)
    return msgspec.structs.replace(effect, outcome="stopped", note=why)


def _within_mode(deps: Deps, effect: Effect, needs: Literal["scale-up", "act"]) -> Effect:
    rules = deps.policy.pools.get(effect.pool)
    mode: Mode = (rules.mode if rules is not None else None) or deps.mode
    if mode in ("act", needs):
        return effect
    return msgspec.structs.replace(effect, outcome="advised", note=f"the mode is {mode}")


class Act:
    """The effects of one record. ``effects`` tells what came of each as far as it is known; ``at`` is being made."""

    def __init__(self, deps: Deps, sight: Sight, record: Record, held: Lease) -> None:
        self.deps, self.sight, self.record, self.held = deps, sight, record, held
        self.effects = list(record.effects)
        self.memory = sight.memory
        self.at = -1
        self.flapping: list[str] = []
        self.short: Counter[str] = Counter()

    def run(self) -> None:
        """Every call in order; memory is written once, after. A ``Retry`` goes on to the caller: outcome unknown."""
        calls: tuple[Buy | NodeVerdict, ...] = (*self.record.plan.buys, *self.record.plan.releases)
        for index, (call, effect) in enumerate(zip(calls, self.effects, strict=True)):
            if effect.outcome == "planned":
                self.effects[index] = self._call(call, effect, index)
        self._roll_back_gangs()
        if self.memory is not self.sight.memory:
            ledger.remember(self.deps.state, self.deps.name, self.memory)

    def known(self) -> tuple[Effect, ...]:
        """What came of each call after one failed: all that come after that one were not made."""
        note = "not called: an earlier call failed, or the lease was lost"
        return tuple(
            msgspec.structs.replace(e, outcome="undone", note=note) if e.outcome == "planned" and i != self.at else e
            for i, e in enumerate(self.effects)
        )

    def _call(self, call: Buy | NodeVerdict, effect: Effect, index: int) -> Effect:
        self.at = -1
        self.held.keep()
        why = brakes.paused(self.deps.state, self.deps.name, call.pool)
        if why:
            return msgspec.structs.replace(effect, outcome="stopped", note=why)
        self.at = index
        effect = self._grow(call, effect, index) if isinstance(call, Buy) else self._release(call, effect)
        if effect.outcome == "done":
            self.memory = brakes.turned(self.memory, call, effect.count, self.sight.now, self.deps.policy.limits)
        return effect

    def _grow(self, buy: Buy, effect: Effect, index: int) -> Effect:
        """Raise a pool. The ledger entry is written first: a crash in between leaves a promise, not a second buy.

        What an earlier call on this pool did not get is not asked for again. An entry for a part of a purchase names no
        demands: whose room it is shows when it comes.
        """
        deps, now = self.deps, self.sight.now
        entry = InFlight(
            decision=self.record.id,
            offering=buy.offering,
            pool=buy.pool,
            count=effect.count,
            requested_at=now,
            ready_by=now + timedelta(seconds=buy.boot_s),
            demands=buy.demands if effect.count == buy.count else (),
            gangs=buy.gangs,
        )
        refused = budget_holds.reserve(deps, self.record.id, index, buy.terms[: effect.count], now)
        if refused:
            return msgspec.structs.replace(effect, outcome="denied", count=0, note=refused)
        key = ledger.flight_key(deps.name, self.record.id, index)
        ledger.write_flight(deps.state, key, entry)
        effect = msgspec.structs.replace(effect, to=effect.to - self.short[buy.pool])
        try:
            deps.pools.grow(buy.pool, effect.to, buy.zone)
        except Denied as no:
            return self._denied(buy, effect, key, entry, no)
        self.memory, trips = memorise.flapped(memorise.bought(self.memory, buy, now), buy.pool, now)
        self.memory = memorise.sized(self.memory, buy.pool, effect.to)
        self.flapping += [buy.pool] if trips else []
        if deps.policy.approve_over != ApproveOver():
            brakes.use_approval(deps.state, deps.name, buy.pool)
        return msgspec.structs.replace(effect, outcome="done")

    def _denied(self, buy: Buy, effect: Effect, key: str, entry: InFlight, no: Denied) -> Effect:
        """Keep what came, remember what was refused. Auth and bad requests rest longest: asking again helps nobody."""
        self.memory = memorise.refused(self.memory, entry.offering, no, self.sight.now)
        size = next((p.desired for p in self.deps.pools.describe() if p.name == buy.pool), 0)
        self.memory = memorise.sized(self.memory, buy.pool, size)
        came = max(0, effect.count - (effect.to - size))
        self.short[buy.pool] += effect.count - came
        if came:
            ledger.write_flight(self.deps.state, key, msgspec.structs.replace(entry, count=came))
        else:
            self.deps.state.delete(key)
        note = f"{type(no).__name__}: {no}"
        return msgspec.structs.replace(effect, outcome="denied", count=came, note=note)

    def _roll_back_gangs(self) -> None:
        """A gang of which a part was refused gives back the rest at once: all its nodes, or none."""
        buys = self.record.plan.buys
        failed = {g for b, e in zip(buys, self.effects, strict=False) if e.outcome == "denied" for g in b.gangs}
        for index, buy in enumerate(buys):
            effect = self.effects[index]
            if failed.intersection(buy.gangs) and effect.count and effect.outcome in ("done", "denied"):
                self.held.keep()
                self._give_back(buy.pool, index)
                self.deps.state.delete(ledger.flight_key(self.deps.name, self.record.id, index))
                why = f"gang {', '.join(sorted(failed.intersection(buy.gangs)))}: not all nodes could be had"
                outcome = "denied" if effect.outcome == "denied" else "undone"
                self.effects[index] = msgspec.structs.replace(effect, outcome=outcome, count=0, note=why)

    def _give_back(self, pool: str, index: int) -> None:
        """Until all are back it is unknown how many of a call's nodes stay: the pool's size then tells.

        Only what began since this decision is taken. A cloud that does not list it yet is looked at again: ``Busy``.
        """
        state = next((p for p in self.deps.pools.describe() if p.name == pool), None)
        if state is None:
            return
        effect = self.effects[index]
        self.effects[index] = msgspec.structs.replace(effect, outcome="planned", to=state.desired)
        self.at = index
        began = [b for b in state.booting if b.requested_at >= self.sight.now - ledger.SKEW]
        newest = sorted(began, key=lambda b: (b.requested_at, len(b.instance), b.instance))
        for booting in newest[-effect.count :]:
            self.deps.pools.release(pool, booting.instance)
            lives.given_back(self.deps, pool, booting)
        if len(newest) < effect.count:
            raise Busy(f"pool {pool} does not list yet all that it was asked for: what is missing is given back later")

    def _release(self, node: NodeVerdict, effect: Effect) -> Effect:
        """Cordon, read again who is bound, drain what is no GPU work, then give back that one instance."""
        replace = msgspec.structs.replace
        if node.failed and node.offering:
            self.memory = memorise.never_ready(self.memory, node.offering, node.why, self.sight.now)
        if not node.registered:
            try:
                self.deps.pools.release(node.pool, node.instance)
            except Denied as no:
                return replace(effect, outcome="kept", note=str(no))
            return replace(effect, outcome="done")
        cluster = self.deps.cluster
        try:
            cluster.cordon(node.node)
            busy = [p for p in cluster.bound(node.node) if p.gpu is not None and not p.daemonset]
        except BadRequest as gone:
            return replace(effect, outcome="undone", note=f"the node left by itself: {gone}")
        if busy:
            self._uncordon(node)
            note = f"{busy[0].namespace}/{busy[0].name} bound to it meanwhile"
            return replace(effect, outcome="kept", note=note)
        try:
            cluster.drain(node.node)
        except (Denied, Retry) as no:
            self._uncordon_after(node, no)
            return replace(effect, outcome="kept", note=str(no))
        self.held.keep()
        try:
            self.deps.pools.release(node.pool, node.instance)
        except LastNode as no:
            self._uncordon_after(node, no)
            self.memory = memorise.floored(self.memory, node.pool, self.sight.now)
            note = f"{no}: {cents(node.usd_per_hour)}/h for as long as it stays"
            return replace(effect, outcome="denied", count=0, note=note)
        except Denied as no:  # A Retry leaves it unknown whether the node went: the next look reads it.
            self._uncordon_after(node, no)
            return replace(effect, outcome="kept", note=str(no))
        if not node.failed and not node.learned:
            self.memory = memorise.released(self.memory, node.pool, node.break_even_s, self.sight.now)
        return replace(effect, outcome="done")

    def _uncordon(self, node: NodeVerdict) -> None:
        if not node.frozen:
            self.deps.cluster.uncordon(node.node)

    def _uncordon_after(self, node: NodeVerdict, no: PilotlightError) -> None:
        """Whoever cannot even uncordon leaves the record open: the next look does it."""
        try:
            self._uncordon(node)
        except BadRequest:
            return  # The node left by itself meanwhile.
        except PilotlightError as second:
            raise second from no
