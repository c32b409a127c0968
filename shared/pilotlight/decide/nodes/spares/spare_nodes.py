"""Nodes that a pool keeps without work: how long one may idle, and spares that are worth their price.

The k-th spare pays while (hits an hour of the k-th) x (worth of the wait that a hit saves) is more than its price an
hour. Both sides count only while it is there. A pool keeps and buys up to the largest k for which each spare up to the
k-th pays; and, while demand comes, as many as are likely to be asked for within a lead time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import msgspec

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.money.budget_ladder import barring_step
from pilotlight.decide.money.economics import break_even_s, comes_s
from pilotlight.decide.nodes.spares.demand_rates import (
    REACTION_S,
    Outlook,
    age_history,
    chance_of,
    has_learned,
    hit_again_per_hour,
    likely_to_follow,
    smaller_at_s,
)
from pilotlight.decide.nodes.spares.quiet_time import SPARES
from pilotlight.decide.offers.offerings import too_old
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.memory import Hits, Memory
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.policy import Policy
from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, cents, clock_seconds, human, moment, per_hour

FAR_S = 90 * 24 * HOUR
"""Nothing is foretold for longer."""

LONGEST = 2
"""So many times what a hit saves a spare may cost after the last hit: whatever comes, that is what hindsight lost."""

UNCOUNTED = Decimal(1)
"""So many dollars an hour of a wait buy no spare: where waits are cheap dollars and waits come to the same, and dollars
decide."""

LIKELY = 0.25
"""A burst is bought for where it comes at least so often: no more than four nodes are launched for one asked for."""


class Spares:
    """Spare nodes of a pool that pay for themselves now, by its own history: ``count``.

    ``wait`` is what counts of an hour's wait for one of its nodes, ``usd_per_hit`` what a spare that is taken saves:
    the wait for a boot, and the boot itself, which is paid without being used. ``steady`` of them pay by their rate
    alone: by waits, since a spare that pays by boots costs about as much as it saves.

    One bought while demand comes saves half a lead time's wait on average, and costs nothing more where it is asked for
    before it is ready: it runs as long, only sooner. Where it is not, its boot was for nothing; that counts the more,
    the more of what a hit saves is boot.

    To reach it ``bought`` are paid for, that still pay when they come: none while nodes are at work that by experience
    are idle again before another is asked for.

    Whatever the rates say, none idles longer after the last hit than ``LONGEST`` times what a hit saves pays for. One
    that is bought has no images yet; one that worked may save its next pod ``pull_s`` of their pull besides.
    """

    def __init__(
        self, offering: Offering, hits: Hits, value_of_wait: Decimal, now: datetime, pull_s: Seconds = 0.0
    ) -> None:
        self.offering, self._now = offering, now
        new_s = comes_s(offering) + pull_s
        self._lead_s = new_s + REACTION_S
        self.hits = age_history(hits, clock_seconds(now))
        self._value = value_of_wait
        self.wait = max(Decimal(0), value_of_wait - UNCOUNTED) * Decimal(hits.worth)
        sums = _sums(offering.usd_per_hour, new_s, self._lead_s, self.wait)
        self.usd_per_hit, self._boot, self._least, least_chance, longest_s = sums
        self._ends_s = (hits.asked_at or hits.at) + longest_s
        self._outlook = Outlook(self.hits)
        self.steady = self._count()
        more = likely_to_follow(self.hits, least_chance)
        self.count = max(self.steady, more)
        again = hit_again_per_hour(self.hits)
        comes_back = again is not None and again <= self._least and more <= self.steady
        self.bought = 0 if comes_back else max(more, self._paying_as_they_come())

    def saving(self, pull_s: Seconds) -> "Spares":
        """Those that pay where each saves the pull of images besides."""
        return Spares(self.offering, self.hits, self._value, self._now, pull_s) if pull_s else self

    def _count(self) -> int:
        """The largest k that pays with all before it, but those hardly ever there."""
        most = 0
        for k in range(1, len(self.hits.rates) + 1 if self.hits.at < self._ends_s else 1):
            rate = self.hits_per_hour(k)
            if rate is not None and rate <= self._least:
                break
            most = most if rate is None else k
        return most

    def _paying_as_they_come(self) -> int:
        """Those of ``steady`` that still pay a lead time later, when one that is bought now has come."""
        return next((k for k in range(min(self.steady, SPARES)) if not self.pays(k + 1, self._lead_s)), self.steady)

    def pays(self, k: int, after_s: Seconds = 0.0) -> bool:
        """True where the k-th spare pays for itself, now or so much later if nothing is asked for."""
        if self.hits.at + after_s >= self._ends_s:
            return False
        rate = self.hits_per_hour(k, after_s)
        return rate is None or rate > self._least

    def hits_per_hour(self, k: int, after_s: Seconds = 0.0) -> float | None:
        """Times an hour that the k-th spare is taken while it is there; None for one that hardly ever is."""
        return self._outlook.hits_per_hour(k, after_s)

    def paying_until(self, kept: int) -> datetime:
        """When the first ``kept`` spares, which pay now, no longer all do if nothing is asked for: to the second."""
        if kept > self.steady:
            return moment(smaller_at_s(self.hits))
        rates = [(rate, k) for k in range(1, kept + 1) if (rate := self.hits_per_hour(k)) is not None]
        soonest = min(rates, default=(0.0, kept))[1]
        step = 8.0
        while step < FAR_S and self.pays(soonest, step):
            step *= 4
        late = self._pays_until_s(soonest, min(step, FAR_S))
        for k in range(1, kept + 1):  # One that is hardly ever there now says something later.
            if not self.pays(k, late):
                late = self._pays_until_s(k, late)
        return moment(min(self.hits.at + late, self._ends_s))

    def _pays_until_s(self, k: int, late: Seconds) -> Seconds:
        """Until when the k-th pays, which no longer does so much later: to the second."""
        early = 0.0
        while late - early > 1:
            middle = (early + late) / 2
            early, late = (middle, late) if self.pays(k, middle) else (early, middle)
        return late

    def explain(self, k: int) -> str:
        """The sum behind the k-th spare: "hit 3.1 times an hour x 190 s x ($10.00 - $1.00)/h > $0.53/h"."""
        lead, price = self._lead_s, self.offering.usd_per_hour
        scale = Decimal(self.hits.worth)
        wait = f"({cents(self._value * scale)} - {cents(UNCOUNTED * scale)})/h"
        if self.steady < k <= self.count:
            chance, boot = chance_of(self.hits, k), cents(self._boot)
            more = 1 + self._boot / (self.usd_per_hit - self._boot)
            lost = f"{1 - chance:.0%} x a boot of {boot} x {more:.2f}"
            saves = f"{chance:.0%} x {lead / 2:.0f} s x {wait} > {lost}"
            return f"after demand like the last {lead:.0f} s' so many more came as often as this: {saves}"
        if not self.wait:
            return f"a wait at {cents(self._value * scale)}/h keeps none: {cents(UNCOUNTED * scale)}/h do not count"
        if self.hits.at >= self._ends_s:
            saved = f"{lead:.0f} s x {wait} + a boot of {cents(self._boot)}"
            return f"nothing was asked for so long that idling cost {LONGEST} times what a hit saves, {saved}"
        sign = ">" if self.pays(k) else "<="
        return f"hit {self.hits_per_hour(k) or 0.0:.2g} times an hour x {lead:.0f} s x {wait} {sign} {cents(price)}/h"


class _Sums(NamedTuple):
    """Saving of a hit and cost of a boot; the least hits an hour and the least chance that pay; the longest idling."""

    usd_per_hit: Usd
    boot: Usd
    per_hour: float
    chance: float
    longest_s: Seconds


@lru_cache(maxsize=1024)
def _sums(price: UsdPerHour, boot_s: Seconds, lead_s: Seconds, wait: UsdPerHour) -> _Sums:
    """The sums of an offering at what counts of an hour's wait for it: the same from look to look.

    A chance pays where it x waited / 2 > (1 - it) x boot x (1 + boot / waited).
    """
    boot, waited = per_hour(price, boot_s), per_hour(wait, lead_s)
    usd_per_hit = waited + boot
    if not waited:
        return _Sums(usd_per_hit, boot, math.inf, 1.0, 0.0)
    lost = boot * usd_per_hit / waited
    least_chance = max(LIKELY, float(lost / (lost + waited / 2)))
    longest_s = LONGEST * float(usd_per_hit / price) * HOUR if price else math.inf
    return _Sums(usd_per_hit, boot, float(price / waited), least_chance, longest_s)


class Allowance(msgspec.Struct, frozen=True):
    """Seconds that a node of a pool may idle, and why so long.

    Where ``spares`` says how many pay for themselves, by the pool's own history, those stay and the others go at once.
    That history is its breaker too: what is lit again soon raises the hits.
    """

    seconds: Seconds
    why: str
    spares: Spares | None = None


def allowance(
    offering: Offering, policy: Policy, memory: Memory, spares: Spares | None, pull_s: Seconds = 0.0
) -> Allowance:
    """The idle time a node may have: the policy's word; else what the pool's history says; else the break-even.

    Without a history it goes when keeping it has cost as much as relighting would, and later where its pool flapped.
    ``pull_s`` is what the images that it has save its next pod.
    """
    bare = _allowance(offering, policy, memory, spares and spares.saving(pull_s), pull_s)
    flaps = memory.flaps.get(offering.pool)
    if flaps is None or flaps.stretch == 1 or bare.spares is not None:
        return bare
    longest = policy.of_class(memory.pool_class.get(offering.pool, "batch")).max_idle_timeout
    seconds = max(bare.seconds, min(bare.seconds * flaps.stretch, longest))
    return Allowance(seconds, f"{bare.why}; {flaps.stretch} times as long since it flapped")


def spares_by_pool(
    offerings: Mapping[str, Offering], policy: Policy, memory: Memory, now: datetime
) -> dict[str, Spares]:
    """Spares that pay for themselves, of each pool with a history whose idle time the policy does not name."""
    return {
        name: Spares(offerings[name], hits, policy.value_of_wait, now)
        for name, hits in memory.hits.items()
        if policy.value_of_wait and name in offerings and offerings[name].usd_per_hour and has_learned(hits)
        if _stated(offerings[name], policy, memory) is None
    }


def _stated(offering: Offering, policy: Policy, memory: Memory) -> Allowance | None:
    """The idle time that the policy names, of a pool or of the class that it was last lit for."""
    pool = policy.pools.get(offering.pool)
    if pool is not None and pool.idle_timeout is not None:
        return Allowance(pool.idle_timeout, f"pools.{offering.pool}.idle_timeout")
    name = memory.pool_class.get(offering.pool, "batch")
    stated = policy.of_class(name).idle_timeout
    return None if stated is None else Allowance(stated, f"classes.{name}.idle_timeout")


def _allowance(offering: Offering, policy: Policy, memory: Memory, spares: Spares | None, pull_s: Seconds) -> Allowance:
    if spares is not None:
        return Allowance(0, "", spares)
    stated = _stated(offering, policy, memory)
    if stated is not None:
        return stated
    name = memory.pool_class.get(offering.pool, "batch")
    if not offering.usd_per_hour:
        return Allowance(policy.of_class(name).max_idle_timeout, "it is paid for either way: max_idle_timeout")
    wait = policy.wait(name)
    comes = comes_s(offering)
    even = break_even_s(comes + pull_s, offering.usd_per_hour, wait)
    pull = f" and {human(pull_s)} of image pull" if pull_s else ""
    worth = f"a wait at {cents(wait)}/h" if wait else "no price on waiting"
    seconds = min(even, policy.of_class(name).max_idle_timeout)
    return Allowance(seconds, f"break-even: a {human(comes)} boot{pull}, {worth}")


def spare_buys(work: Work) -> tuple[Buy, ...]:
    """Nodes to reach each pool's spares that pay for themselves, its warm and its least number.

    The look says for which workers of queues a pool's warm number is as high as it is. A node that only pods without
    money are on is there: it opens for any that is paid for. As for pods nothing is bought while a pool rests, nor at a
    price that is far too old.
    """
    run, by_pool, policy, memory, ahead = work.run, work.by_pool, work.policy, work.memory, work.look.ahead
    buys: list[Buy] = []
    empty = _empty((*run.ready, *run.booting), by_pool) + _visited(work)
    for name, pool in sorted(policy.pools.items()):
        offering = by_pool.get(name)
        if offering is None or not (pool.spares.warm or pool.min or name in memory.hits):
            continue
        offering = _in_its_best_zone(offering, run, memory)
        if _rests(offering, run, policy, memory):
            continue
        own = work.spares.get(name)
        pay = own.bought if own is not None else 0
        short = max(pool.spares.warm - empty[name], pay - empty[name], pool.min - run.headroom.by_pool[name])
        if short <= 0:
            continue
        terms = run.headroom.terms(offering, None)
        count = min(short, max(0, run.headroom.room(offering, terms)[0]))
        if count > 0:
            run.headroom.add(offering, count, terms)
            why = f"warm minimum: {pool.spares.warm} idle, at least {pool.min} lit"
            if own is not None and short == pay - empty[name]:
                pays = "1 spare pays for itself" if pay == 1 else f"{pay} spares pay for themselves"
                why = f"{pays}: the last is {own.explain(pay)}"
            elif name in ahead and short == pool.spares.warm - empty[name] and pool.spares.warm <= ahead[name].nodes:
                why = f"for {ahead[name].whom}: {ahead[name].why}"
            buys.append(_warm_buy(offering, count, terms, why))
    return tuple(buys)


def price_spares(work: Work) -> None:
    """Price the spares of each pool, but of those that a rule releases."""
    spares = spares_by_pool(work.relit, work.policy, work.memory, work.now)
    released = work.ruled.released if work.ruled is not None else {}
    work.spares = {name: own for name, own in spares.items() if name not in released}


def buy_spares(work: Work) -> None:
    """Buy spares, warm nodes and each pool's least number."""
    work.spare_buys = spare_buys(work)


def _visited(work: Work) -> Counter[str]:
    """Closed nodes that only pods without money are on, if any, by pool."""
    there = (node for node in work.standing if node.ready and not node.schedulable)
    return Counter(node.pool for node in there if node.name in work.look.money.visited)


def _in_its_best_zone(offering: Offering, run: Provisioner, memory: Memory) -> Offering:
    """Of a pool's zones that do not rest the cheapest, whose nodes live longest; the first where all rest."""
    zones = [o for o in run.offerings if o.pool == offering.pool]
    able = [o for o in zones if not memory.live_backoff(o.name, run.now)] if len(zones) > 1 else []
    return min(able, key=lambda o: (o.compared_usd_per_hour, o.interruptions_per_hour, o.name), default=offering)


def _rests(offering: Offering, run: Provisioner, policy: Policy, memory: Memory) -> bool:
    """True where nothing is bought of an offering now: it failed, its price is too old, or a budget's step says so."""
    failed = memory.live_backoff(offering.name, run.now) or too_old(policy, offering, run.now)
    return bool(failed or barring_step(run.steps, offering, memory.pool_class.get(offering.pool, ""), "", run.now))


def spares_coming(run: Provisioner, by_pool: Mapping[str, Offering]) -> Counter[str]:
    """Nodes on their way that nobody waits for, by pool."""
    return _empty(run.booting, by_pool)


def _empty(bins: Iterable[Bin], by_pool: Mapping[str, Offering]) -> Counter[str]:
    unused = ((b, by_pool[b.pool]) for b in bins if b.pool in by_pool and not b.taken)
    return Counter([b.pool for b, of in unused if sum(b.devices) >= sum(of.devices) and b.slices == of.slices])


def _warm_buy(offering: Offering, count: int, terms: Terms | None, why: str) -> Buy:
    return Buy(
        pool=offering.pool,
        offering=offering.name,
        zone=offering.zone,
        count=count,
        usd_per_hour=offering.usd_per_hour,
        boot_s=offering.boot_s,
        demands=(),
        shapes=(),
        why=why,
        terms=(terms,) * count if terms is not None else (),
    )
