"""Carries out a recorded plan: upward to at least a size, downward one named instance after the safe order."""

from datetime import timedelta
from typing import Literal

import msgspec

from pilotlight.decide.warm import seen
from pilotlight.errors import Denied, PilotlightError, Retry
from pilotlight.facts.capacity import InFlight, Mode
from pilotlight.facts.decisions import Buy, Effect, NodeVerdict, Plan, Record
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps
from pilotlight.flow.sight import Sight
from pilotlight.units import clock_seconds

FIRST_BACKOFF_S, MOST_BACKOFF_S = 60.0, 1800.0
"""An offering that was refused rests so long, twice as long after each refusal, up to the second."""


def planned(deps: Deps, plan: Plan) -> tuple[Effect, ...]:
    """The calls a plan will make; those that the pool's mode does not allow are only advice."""
    grows = (
        Effect(call="grow", pool=b.pool, target=b.offering, count=b.count, outcome=_intent(deps, b.pool, "scale-up"))
        for b in plan.buys
    )
    releases = (
        Effect(call="release", pool=n.pool, target=n.node, count=1, outcome=_intent(deps, n.pool, "act"))
        for n in plan.releases
    )
    return (*grows, *releases)


def _intent(deps: Deps, pool: str, needs: Literal["scale-up", "act"]) -> str:
    mode = _mode(deps, pool)
    may = mode == "act" or (mode == "scale-up" and needs == "scale-up")
    return "planned" if may else f"advised: the mode is {mode}"


def _mode(deps: Deps, pool: str) -> Mode:
    rules = deps.policy.pools.get(pool)
    return (rules.mode if rules is not None else None) or deps.mode


class Act:
    """The effects of one record, and what came of them. ``status`` stays open when a call's outcome is unknown."""

    def __init__(self, deps: Deps, sight: Sight, record: Record) -> None:
        self.deps, self.sight, self.record = deps, sight, record
        self.effects = list(record.effects)
        self.status: Literal["open", "closed"] = "open"
        self.memory: Memory = sight.memory

    def run(self) -> None:
        """Every call in order; memory is written once, after. A ``Retry`` goes on to the caller."""
        sizes = {p.name: p.desired for p in self.sight.pools}
        calls: tuple[Buy | NodeVerdict, ...] = (*self.record.plan.buys, *self.record.plan.releases)
        try:
            for index, (call, effect) in enumerate(zip(calls, self.effects, strict=True)):
                if effect.outcome == "planned":
                    outcome = self._grow(call, sizes, index) if isinstance(call, Buy) else self._release(call)
                    self.effects[index] = msgspec.structs.replace(effect, outcome=outcome)
        finally:
            if self.memory is not self.sight.memory:
                ledger.remember(self.deps.state, self.deps.name, self.memory)
        self.status = "closed"

    def did(self) -> tuple[str, ...]:
        """What was done, a line a call."""
        return tuple(f"{e.call} {e.pool} ({e.count} x {e.target}): {e.outcome}" for e in self.effects)

    def _grow(self, buy: Buy, sizes: dict[str, int], index: int) -> str:
        """Raise a pool. The ledger entry is written first: a crash in between leaves a promise, not a second buy."""
        deps, now = self.deps, self.sight.now
        key = f"inflight/{deps.name}/{self.record.id}.{index}"
        entry = InFlight(
            decision=self.record.id,
            offering=buy.offering,
            pool=buy.pool,
            count=buy.count,
            requested_at=now,
            ready_by=now + timedelta(seconds=buy.boot_s),
            demands=buy.demands,
        )
        deps.state.put(key, msgspec.json.encode(entry))
        had, sizes[buy.pool] = sizes.get(buy.pool, 0), sizes.get(buy.pool, 0) + buy.count
        try:
            state = deps.pools.grow(buy.pool, sizes[buy.pool], buy.zone)
        except Denied as no:
            got = next((p.desired for p in deps.pools.describe() if p.name == buy.pool), had) - had
            self._refused(key, entry, max(0, got), no)
            sizes[buy.pool] = had + max(0, got)
            return f"{type(no).__name__}: {no}" + (f"; {got} came" if got > 0 else "")
        self._remember(buy)
        sizes[buy.pool] = max(sizes[buy.pool], state.desired)
        return "asked"

    def _refused(self, key: str, entry: InFlight, got: int, no: Denied) -> None:
        if got:
            self.deps.state.put(key, msgspec.json.encode(msgspec.structs.replace(entry, count=got)))
        else:
            self.deps.state.delete(key)
        now = self.sight.now
        old = next((b for b in self.memory.backoffs if b.offering == entry.offering), None)
        tries = old.tries + 1 if old and (now - old.until).total_seconds() < MOST_BACKOFF_S else 1
        rest_s = min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (tries - 1))
        backoff = Backoff(offering=entry.offering, until=now + timedelta(seconds=rest_s), why=str(no), tries=tries)
        others = tuple(b for b in self.memory.backoffs if b.offering != entry.offering)
        self.memory = msgspec.structs.replace(self.memory, backoffs=(*others, backoff))

    def _remember(self, buy: Buy) -> None:
        m, now_s = self.memory, clock_seconds(self.sight.now)
        pool_class = {**m.pool_class, buy.pool: buy.workload_class} if buy.workload_class else m.pool_class
        hits = m.hits
        if buy.demands:
            hits = {**hits, buy.pool: seen(hits.get(buy.pool), buy.count, now_s, buy.boot_s)}
        self.memory = msgspec.structs.replace(
            m, last_buy={**m.last_buy, buy.pool: self.sight.now}, pool_class=pool_class, hits=hits
        )

    def _release(self, node: NodeVerdict) -> str:
        """Cordon, read again who is bound, drain what is no GPU work, then give back that one instance."""
        cluster = self.deps.cluster
        cluster.cordon(node.node)
        busy = [p for p in cluster.bound(node.node) if p.gpu is not None and not p.daemonset]
        if busy:
            cluster.uncordon(node.node)
            return f"kept: {busy[0].namespace}/{busy[0].name} bound to it meanwhile"
        try:
            cluster.drain(node.node)
            self.deps.pools.release(node.pool, node.instance)
        except (Denied, Retry) as no:
            self._uncordon_after(node, no)
            return f"kept: {no}"
        return "released"

    def _uncordon_after(self, node: NodeVerdict, no: PilotlightError) -> None:
        try:
            self.deps.cluster.uncordon(node.node)
        except PilotlightError as second:
            raise no from second
