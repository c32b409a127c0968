"""Stopped nodes of a pool that pay for themselves, by the price of waiting.

Starting a stopped node instead of launching one saves (boot - start) x (V + its price). The n-th node of a pool,
running or stopped, is worth its disk while (how often it is started) x (what a start saves) > (what its disk costs).
How often is told by when it was last started: once since then. So a node that is never started again costs in disks
at most what one start would have saved, whatever comes (ski rental).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec.structs import replace

from pilotlight.decide.money.economics import works_s
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, cents, clock_seconds, human, moment

MOST = 512
"""No more nodes of a pool than so many are ever remembered."""
STARTS = 9
"""Of so many starts of a pool's stopped nodes the median counts."""


def start_times(last: Sequence[Seconds], size: int, count: int, now_s: Seconds) -> tuple[Seconds, ...]:
    """When each node of a pool was last started, after ``count`` more made it ``size`` nodes."""
    known = [*last, *(0.0 for _ in range(len(last), min(size, MOST)))]
    known[max(0, size - count) : size] = [now_s] * len(known[max(0, size - count) : size])
    return tuple(known)


def measure_start(memory: Memory, entry: InFlight, nodes: Iterable[Node]) -> Memory:
    """The memory with how long the nodes of a purchase took to start, which are ready now with its pods on them."""
    own, asked = set(entry.demands), entry.requested_at
    began = [
        node.ready_since or node.created_at
        for node in nodes
        if node.pool == entry.pool and any(pod.uid in own for pod in node.pods)
    ]
    took = [(at - asked).total_seconds() for at in began if at > asked]
    if not took:
        return memory
    known = (*memory.wakes.get(entry.pool, ()), *sorted(took))
    return replace(memory, wakes={**memory.wakes, entry.pool: known[-STARTS:]})


def as_measured(offerings: Sequence[Offering], memory: Memory) -> list[Offering]:
    """The offerings with what starting a stopped node takes, where that was seen: also where no catalogue says it."""
    usual = {pool: sorted(took)[len(took) // 2] for pool, took in memory.wakes.items()}
    return [replace(one, wake_s=usual[one.pool]) if one.pool in usual else one for one in offerings]


class Worth(msgspec.Struct, frozen=True):
    """Cost and saving of standing by in one pool. ``saved_usd`` are the dollars that one start saves."""

    offering: Offering
    wake_s: Seconds
    disk: UsdPerHour
    wait: UsdPerHour
    last: Sequence[Seconds]

    @property
    def saved_usd(self) -> Usd:
        """Dollars that one start saves: the wait and the boot that are not paid."""
        sooner = Decimal(max(0.0, works_s(self.offering) - self.wake_s)) / Decimal(HOUR)
        return sooner * (self.wait + self.offering.usd_per_hour)

    def until_s(self, n: int) -> Seconds:
        """Until when the n-th node pays for its disk."""
        began = max(self.last[n - 1 :], default=0.0)
        return began + float(self.saved_usd / self.disk) * HOUR if self.disk else began + HOUR * 24 * 365

    def explain(self, n: int, now_s: Seconds) -> str:
        """The sum, for people."""
        since = max(self.last[n - 1 :], default=now_s)
        once = f"node {n} at once was last started {human(now_s - since)} ago"
        an_hour = HOUR / max(now_s - since, 60.0)
        price = f"({cents(self.wait)}/h of waiting + {cents(self.offering.usd_per_hour)}/h)"
        return f"{once} ({an_hour:.2f} an hour) x {human(works_s(self.offering) - self.wake_s)} x {price}"


def stands_by(offering: Offering, rules: PoolPolicy) -> bool:
    """True where nodes of an offering may ever stand by: the policy does not forbid it, and both figures are known."""
    known = offering.wake_s is not None and offering.standby_usd_per_hour is not None
    return known and offering.capacity_type == "on-demand" and rules.spares.stopped != 0


def standby_worth(offering: Offering, state: PoolState, policy: Policy, memory: Memory) -> Worth | None:
    """Worth of standing by in a pool; None where its nodes cannot be stopped or a figure is not known."""
    if not state.stops or offering.wake_s is None or offering.standby_usd_per_hour is None:
        return None
    if offering.capacity_type != "on-demand":
        return None
    wait = policy.wait(memory.pool_class.get(offering.pool, "batch"))
    last = memory.started.get(offering.pool, ())
    return Worth(offering, offering.wake_s, offering.standby_usd_per_hour, wait, last)


def standby(
    nodes: Sequence[NodeVerdict],
    pools: Sequence[PoolState],
    offerings: Mapping[str, Offering],
    policy: Policy,
    memory: Memory,
    now: datetime,
    explain: bool = False,
) -> tuple[list[NodeVerdict], datetime | None]:
    """The verdicts, with nodes stopped that would have been given back and pay for themselves so, and stopped ones
    given back that no longer do; and when the next of them falls due. With ``explain`` those that stay are told too.
    """
    out, due = list(nodes), []
    for state in sorted((s for s in pools if s.stops), key=lambda s: s.name):
        offering = offerings.get(state.name)
        sums = standby_worth(offering, state, policy, memory) if offering is not None else None
        if sums is not None:
            pool = _Pool(sums, state, policy, out, clock_seconds(now))
            pool.judge(explain)
            due += pool.pays_until()
    return out, min((at for at in due if at > now), default=None)


def sell_as_measured(work: Work) -> None:
    """Sell each offering with the starts that were measured."""
    work.offerings = as_measured(work.offerings, work.memory)


def stop_nodes(work: Work) -> None:
    """Stop nodes to stand by where that pays."""
    look = work.look
    nodes, at = standby(work.nodes, look.pools, work.by_pool, work.policy, work.memory, look.now, look.explain)
    work.nodes = nodes
    work.wake_at(at)


class _Pool:
    """The verdicts of one pool, changed in ``out``. ``standing`` counts the nodes that stand by then."""

    def __init__(self, sums: Worth, state: PoolState, policy: Policy, out: list[NodeVerdict], now_s: Seconds) -> None:
        rules = policy.pools.get(state.name)
        self.fixed = None if rules is None or rules.spares.stopped == "auto" else rules.spares.stopped
        self.sums, self.state, self.out, self.now_s = sums, state, out, now_s
        self.lit = state.desired - sum(v.pool == state.name and v.verdict == "release" for v in out)
        self.standing = len(state.stopped)

    def judge(self, explain: bool) -> None:
        """Stop what pays, give back what does not."""
        for at, verdict in enumerate(self.out):
            if verdict.pool == self.state.name and _idle(verdict) and self._pays(self.standing + 1):
                self.standing += 1
                why = f"{verdict.why}; stopped, not given back: {self._sum(self.standing)}"
                self.out[at] = replace(verdict, stop=True, why=why)
        spare = list(self.state.stopped)
        while spare and not self._pays(self.standing):
            why = f"stopped, and no longer worth its disk: {self._sum(self.standing)}"
            self.out.append(self._verdict(spare.pop(), "release", why))
            self.standing -= 1
        for at, instance in enumerate(spare, start=1) if explain else ():
            self.out.append(self._verdict(instance, "keep", f"stopped, and stands by: {self._sum(at)}"))

    def pays_until(self) -> list[datetime]:
        """When the last of those that stand by no longer pays, if it is judged by that."""
        if self.fixed is not None or not self.standing:
            return []
        return [moment(self.sums.until_s(self.lit + self.standing))]

    def _pays(self, standing: int) -> bool:
        if self.fixed is not None:
            return standing <= self.fixed
        return self.sums.until_s(self.lit + standing) > self.now_s

    def _sum(self, standing: int) -> str:
        if self.fixed is not None:
            return f"pools.{self.state.name}.spares.stopped: {self.fixed}"
        sign = ">" if self._pays(standing) else "<"
        return f"{self.sums.explain(self.lit + standing, self.now_s)} {sign} ${self.sums.disk:f}/h for its disk"

    def _verdict(self, instance: str, verdict: Literal["keep", "release"], why: str) -> NodeVerdict:
        return NodeVerdict(
            node=instance,
            pool=self.state.name,
            instance=instance,
            verdict=verdict,
            why=why,
            usd_per_hour=None,
            spent_usd=None,
            registered=False,
            learned=True,
        )


def _idle(verdict: NodeVerdict) -> bool:
    """True for a node that goes because it idles: one that failed or goes by force is no good to have again."""
    return verdict.verdict == "release" and verdict.registered and not (verdict.failed or verdict.forced)
