"""Brakes on a plan: its pools' modes, pauses, limits of ten minutes, and what a person must approve.

A brake that holds a call takes it out of the plan and says so in ``Plan.held``, so that what is stopped is nowhere told
as bought.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from pilotlight.decide.work import Work
from pilotlight.facts.decisions import BrakeCode, Buy, Held, NodeVerdict, Plan, known_per_hour
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Memory, Turn
from pilotlight.facts.modes import Mode
from pilotlight.facts.money.money_policy import Limits
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.units import cents, count_of

WINDOW = timedelta(minutes=10)

_GROWS: tuple[Mode, ...] = ("act", "scale-up")


def apply_brakes(
    plan: Plan, brakes: Brakes, unsettled: Mapping[str, str], policy: Policy, lit_nodes: int, now: datetime
) -> Plan:
    """The plan without what the brakes hold; ``lit_nodes`` is how many are paid for before it.

    ``unsettled`` says by pool why it is not grown now. A node that goes by force, or that is empty at the end
    of a hard budget, is not held by limits.
    """
    hand = _Hand(brakes, unsettled, policy, lit_nodes, plan.usd_per_hour_before, now)
    buys: list[Buy] = []
    held: list[Held] = []
    for buy in plan.buys:
        made, stopped = hand.buy(buy)
        buys += [made] if made else []
        held += [stopped] if stopped else []
    buys, held = _whole_gangs(buys, held)
    stays: dict[str, Held] = {}
    for node in plan.releases:
        if (no := hand.release(node)) is not None:
            stays[node.node] = no
    if not held and not stays:
        return msgspec.structs.replace(plan, buys=tuple(buys)) if buys else plan
    held += stays.values()
    less = sum((h.buy.usd_per_hour * h.count for h in held if h.buy), Decimal(0))
    more = known_per_hour(h.node for h in held if h.node)
    return msgspec.structs.replace(
        plan,
        buys=tuple(buys),
        pods=_waiting(plan.pods, held),
        nodes=tuple(_kept(node, stays.get(node.node)) for node in plan.nodes),
        usd_per_hour_after=plan.usd_per_hour_after - less + more,
        held=tuple(held),
    )


def recent(turns: Sequence[Turn], now: datetime) -> tuple[Turn, ...]:
    """The turns of the last ten minutes."""
    return tuple(t for t in turns if now - t.at < WINDOW)


def turn_of(call: Buy | NodeVerdict, nodes: int, at: datetime) -> Turn:
    """The turn that a call for so many nodes adds."""
    if isinstance(call, Buy):
        return Turn(at=at, added=nodes, usd_per_hour=nodes * call.usd_per_hour)
    return Turn(at=at, removed=nodes)


def remember_call(memory: Memory, call: Buy | NodeVerdict, nodes: int, now: datetime, limits: Limits) -> Memory:
    """The memory after a call was made; nothing is kept where no limit is set."""
    if limits == Limits():
        return memory
    return msgspec.structs.replace(memory, turns=(*recent(memory.turns, now), turn_of(call, nodes, now)))


def pool_pause(brakes: Brakes, pool: str) -> str:
    """Why the calls of a pool are stopped, or nothing."""
    return brakes.paused.get(ALL) or brakes.paused.get(pool, "")


def hold_back(work: Work) -> None:
    """Hold back what brakes and limits do not allow."""
    look, lit = work.look, sum(pool.desired for pool in work.look.pools)
    work.plan = apply_brakes(work.plan, look.brakes, look.unsettled, work.policy, lit, look.now)


class _Hand:
    """Judges the calls of one plan in their order: each that is allowed counts against the next."""

    def __init__(
        self,
        brakes: Brakes,
        unsettled: Mapping[str, str],
        policy: Policy,
        lit_nodes: int,
        usd_per_hour: Decimal,
        now: datetime,
    ) -> None:
        self.unsettled, self.gates = unsettled, policy.gates
        self.brakes, self.limits, self.over, self.now = brakes, policy.caps.ten_minutes, policy.caps.approve_over, now
        self.turns = recent(brakes.turns, now)
        self.nodes, self.usd_per_hour = lit_nodes, usd_per_hour
        self.approved = dict(brakes.approvals)
        self.asked, self.asked_usd = 0, Decimal(0)

    def buy(self, buy: Buy) -> tuple[Buy | None, Held | None]:
        """The part of a purchase that may be bought now, and the part that is held."""
        code, why = self._mode(buy.pool, _GROWS)
        if code == "mode" and buy.pool in self.gates and (other := pool_pause(self.brakes, buy.pool)):
            code, why = "paused", other  # Karpenter buys there in whatever mode.
        if not code and buy.pool in self.unsettled:
            code, why = "settling", self.unsettled[buy.pool]
        allowed = 0 if code else buy.count
        if not code:
            allowed, code, why = self._within_limits(buy)
        if allowed and (no := self._over(buy, allowed)):
            if approval := self._approval(buy.pool, allowed):
                buy = msgspec.structs.replace(buy, approval=approval)
            else:
                code, why = "approval", f"{no}: it waits for approval"
                self.asked, self.asked_usd = self.asked + allowed, self.asked_usd + allowed * buy.usd_per_hour
                allowed = 0
        if allowed:
            self.turns = (*self.turns, turn_of(buy, allowed, self.now))
            self.nodes += allowed
            self.usd_per_hour += allowed * buy.usd_per_hour
        if not code:
            return buy, None
        after = self.brakes.used_up.get(buy.pool, "") if code == "approval" else ""
        held = Held(code=code, why=why, count=buy.count - allowed, buy=buy, after=after)
        return (msgspec.structs.replace(buy, count=allowed, terms=buy.terms[:allowed]) if allowed else None), held

    def _approval(self, pool: str, count: int) -> str:
        """The decision whose approval allows so many nodes, the narrowest that does; it is used by this. Or nothing."""
        given = self.approved.get(pool, ())
        enough = [one for one in given if one[1] >= count]
        if not enough:
            return ""
        used = min(enough, key=lambda one: (one[1], one[0]))
        self.approved[pool] = tuple(one for one in given if one is not used)
        return used[0]

    def release(self, node: NodeVerdict) -> Held | None:
        """The brake that holds a release, if any does."""
        code, why = self._mode(node.pool, ("act",))
        if code == "paused" and node.instance in self.brakes.gives:
            code, why = None, ""
        most = self.limits.nodes_removed
        if not code and most is not None and not (node.failed or node.forced or node.capped):
            removed = sum(t.removed for t in self.turns)
            if removed >= most:
                code, why = "limit", f"{removed + 1} of {count_of(most, 'node')} would be removed in 10 minutes"
        if code:
            if node.capped and node.usd_per_hour:
                why += f"; its hard budget is used up, and each day that it stays costs {cents(24 * node.usd_per_hour)}"
            return Held(code=code, why=why, count=1, node=node)
        self.turns = (*self.turns, turn_of(node, 1, self.now))
        return None

    def _mode(self, pool: str, needs: Sequence[Mode]) -> tuple[BrakeCode | None, str]:
        mode = self.brakes.modes.get(pool, "act")
        if mode not in needs:
            return "mode", f"the mode is {mode}" + (f" ({self.brakes.advice})" if self.brakes.advice else "")
        why = pool_pause(self.brakes, pool)
        return ("paused", why) if why else (None, "")

    def _within_limits(self, buy: Buy) -> tuple[int, BrakeCode | None, str]:
        """Nodes that the limits of ten minutes leave. A gang is not cut."""
        room, why = min(self._room(buy), default=(buy.count, ""))
        allowed = max(0, min(buy.count, room))
        if allowed == buy.count:
            return allowed, None, ""
        return 0 if buy.gangs else allowed, "limit", why

    def _room(self, buy: Buy) -> list[tuple[int, str]]:
        room: list[tuple[int, str]] = []
        if self.limits.nodes_added is not None:
            added = sum(t.added for t in self.turns)
            figures = f"{added + buy.count} of {count_of(self.limits.nodes_added, 'node')} would be added in 10 minutes"
            room.append((self.limits.nodes_added - added, figures))
        most = self.limits.usd_per_hour_added
        if most is not None and buy.usd_per_hour > 0:
            usd = sum((t.usd_per_hour for t in self.turns), Decimal(0))
            after = cents(usd + buy.count * buy.usd_per_hour)
            figures = f"{after} of {cents(most)} an hour would be added in 10 minutes"
            room.append((int((most - usd) // buy.usd_per_hour), figures))
        return room

    def _over(self, buy: Buy, count: int) -> str:
        """Why a person must allow it, or nothing: in the words, with what waits for that before it."""
        nodes, usd = self.nodes + count, self.usd_per_hour + count * buy.usd_per_hour
        if self.over.nodes is not None and nodes > self.over.nodes:
            return f"{count_of(nodes + self.asked, 'node')} would be lit, over {self.over.nodes}"
        if self.over.usd_per_hour is not None and usd > self.over.usd_per_hour:
            return f"{cents(usd + self.asked_usd)} an hour would be spent, over {cents(self.over.usd_per_hour)}"
        return ""


def _whole_gangs(buys: list[Buy], held: list[Held]) -> tuple[list[Buy], list[Held]]:
    """A gang of which one purchase is held is bought nothing: all its nodes, or none."""
    while True:
        stopped = {gang: h for h in held if h.buy is not None for gang in h.buy.gangs}
        broken = [buy for buy in buys if not stopped.keys().isdisjoint(buy.gangs)]
        if not broken:
            return buys, held
        whys = [next(stopped[gang] for gang in buy.gangs if gang in stopped) for buy in broken]
        held = held + [Held(code=w.code, why=w.why, count=b.count, buy=b) for b, w in zip(broken, whys, strict=True)]
        buys = [buy for buy in buys if buy not in broken]


def _waiting(groups: Sequence[PodGroup], held: Sequence[Held]) -> tuple[PodGroup, ...]:
    """The pods of a purchase that is held whole wait. Spares of their offering that are held are nobody's."""
    whole = {h.buy.offering: h for h in held if h.buy is not None and h.buy.demands and h.count == h.buy.count}
    cut = {h.buy.offering: h for h in held if h.buy is not None and h.buy.demands and h.count < h.buy.count}
    out: list[PodGroup] = []
    for group in groups:
        if group.verdict == "bought" and (stopped := whole.get(group.where)):
            why = f"would be bought {group.where}: {stopped.why}"
            out.append(msgspec.structs.replace(group, verdict="waiting", why=why))
        elif group.verdict == "bought" and (part := cut.get(group.where)):
            asked = part.buy.count if part.buy is not None else 1
            more = f"{group.why}; {part.count} of {asked} nodes wait: {part.why}"
            out.append(msgspec.structs.replace(group, why=more))
        else:
            out.append(group)
    return tuple(out)


def _kept(node: NodeVerdict, stopped: Held | None) -> NodeVerdict:
    if stopped is None:
        return node
    return msgspec.structs.replace(node, verdict="keep", why=f"would be released ({node.why}): {stopped.why}")
