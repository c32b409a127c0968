"""Rates at which the k-th spare node of a pool is asked for, and nodes that a burst calls for, by its own past alone.

Think of a pool that always has k spares: each one taken is replaced by a node that comes a lead time later. The k-th
of them is hit by a demand that arrives while k - 1 others are being replaced, and it is there while fewer than k are.
A node that falls idle takes the place of one on its way. Hits and the time there are faded by several half-lives at
once; each half-life's word counts by how well it foretold so far (weights by Poisson loss, as in Bayesian averaging),
so that pools with bursts of minutes and pools with steady days are both foretold. No price is weighed here.

What demand that has begun calls for is learned by the size that it had grown to: how many nodes are on their way for
demands, in powers of two. A window opens at a demand, if none of its size is open, and tells a lead time later how many
more nodes than fell idle were asked for meanwhile, at most. Of each size the share of windows is kept that came to so
many, averaged over about the last hundred.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import mul

from msgspec.structs import replace

from pilotlight.decide.nodes.spares.quiet_time import corrections, count_foretold, end_quiet, length_at
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Demand
from pilotlight.facts.memory import Followed, Hits, Memory, Window
from pilotlight.units import HOUR, Seconds, clock_seconds

HALF_LIVES_S = (120.0, 600.0, HOUR, 6 * HOUR, 24 * HOUR)
ENOUGH = 3
"""A pool that was asked for nodes less often than this in all has no history to judge by."""
MOST = 64
"""Of no more than so many spares of a pool the rates are learned."""
MOST_COMING = 256
"""No more nodes than so many are remembered to be on their way."""
FORGETTING_S = 24 * HOUR
"""How well a half-life foretold counts half as much so much later: what pools are used for changes."""
LEAST_SHARE = 0.02
"""A spare that is there for a smaller share of the time is hardly ever there."""
RARE = 3.6e-4
"""Hits an hour that no half-life rules out."""
MEMORY_OF_WORTH = 20
"""What a node asked for is worth is averaged over about so many."""

MEMORY_OF_SPELLS = 20
"""What was counted in so many stretches of work counts half from then on."""

REACTION_S = 10.0
"""From a pod's wait to the purchase for it."""

LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""So many more nodes, or more: what is counted."""
ENOUGH_WINDOWS = 3
"""A size seen in fewer windows is judged by the next smaller."""
REMEMBERED = 100
"""What followed is averaged over about so many windows, and one more in which nothing did."""

_PER_S = tuple(math.log(2) / half for half in HALF_LIVES_S)
_NONE = (0.0,) * len(HALF_LIVES_S)
RateTable = tuple[tuple[float, ...], ...]

_ALWAYS = (1.0,) * len(HALF_LIVES_S)
_NOTHING = Followed(shares=(0.0,) * len(LEVELS))


def has_learned(hits: Hits | None) -> bool:
    """True where a pool was asked for nodes often enough to be judged by its own history."""
    return hits is not None and hits.count >= ENOUGH


def with_demand(
    memory: Memory, demands: Iterable[Demand], to: datetime | None, offerings: Mapping[str, Offering], now: datetime
) -> Memory:
    """The memory with what pods ask for that was not counted before, by pool."""
    hits, now_s = dict(memory.hits), clock_seconds(now)
    for one in demands:
        lead = lead_s(offerings[one.pool])
        hits[one.pool] = add_demand(hits.get(one.pool), one.nodes, one.jobs, now_s, lead)
    return replace(memory, hits=hits, counted_to=to)


def count_demand(work: Work) -> None:
    """Count what pods ask for that was not counted before."""
    known = (work.memory.counted_to,) if work.memory.counted_to is not None else ()
    work.counted_to = max([*known, *[pod.created_at for pod in work.view.pending]], default=None)
    work.memory = with_demand(work.memory, work.run.demands, work.counted_to, work.by_pool, work.now)


def lead_s(offering: Offering) -> Seconds:
    """Seconds that a pod waits for a node that is bought for it."""
    return offering.boot_s + REACTION_S


def add_demand(hits: Hits | None, nodes: int, jobs: float, now_s: Seconds, lead_s: Seconds) -> Hits:
    """The history after pods asked for ``nodes`` more nodes at once, on behalf of ``jobs`` (scaled) that wait."""
    old = age_history(hits or Hits(at=now_s), now_s)
    coming, rates, there, losses = list(old.coming), list(old.rates), list(old.there), list(old.losses or _NONE)
    known = len(coming)
    if old.quiets:
        old = end_quiet(old, range(known, known + nodes))
    coming += [now_s + lead_s] * min(nodes, MOST_COMING - known)
    for k in range(known, min(known + nodes, MOST)):
        if k == len(rates):
            rates.append(_NONE)
            there.append(_ALWAYS)
        losses = [loss - math.log(rate + RARE) for loss, rate in zip(losses, rates[k], strict=True)]
        rates[k] = tuple(rate + per * HOUR for rate, per in zip(rates[k], _PER_S, strict=True))
    count, was_out = old.count + 1, hits is not None and hits.out > 0
    worth = old.worth + (jobs / nodes - old.worth) / min(count, MEMORY_OF_WORTH)
    return replace(
        old,
        asked_at=now_s,
        quiet_from=now_s,
        coming=tuple(sorted(coming)),
        rates=tuple(rates),
        there=tuple(there),
        losses=_relative(losses),
        count=count,
        worth=worth,
        out=old.out + nodes,
        spells=old.spells if was_out else min(old.spells + 1, MEMORY_OF_SPELLS),
        again=old.again + was_out,
        spare_s=old.spare_s - lead_s,
        windows=count_burst(old.windows, nodes, now_s + lead_s, len(coming)),
    )


def return_idle(hits: Hits, nodes: int, now_s: Seconds) -> Hits:
    """The history after ``nodes`` fell idle: they stand in for those that were to come first."""
    old = age_history(hits, now_s)
    windows = tuple([replace(window, net=window.net - nodes) for window in old.windows])
    return replace(end_quiet(old), coming=old.coming[nodes:], windows=windows)


def at_work(hits: Hits, nodes: int, now_s: Seconds) -> Hits:
    """The history with no more than so many nodes at work, or on their way to it."""
    if hits.out <= nodes:
        return hits
    old = replace(age_history(hits, now_s), out=nodes)
    if nodes or old.spells < MEMORY_OF_SPELLS:
        return old
    return replace(old, spells=old.spells // 2, again=old.again / 2, spare_s=old.spare_s / 2)


def age_history(hits: Hits, now_s: Seconds) -> Hits:
    """The history as of now. What was coming has come in between, one after the other."""
    if hits.out and now_s > hits.at:
        hits = replace(hits, spare_s=hits.spare_s + now_s - hits.at)
    while hits.coming and hits.coming[0] <= now_s:
        hits = replace(_faded(hits, hits.coming[0]), coming=hits.coming[1:])
    return drop_ended_windows(_faded(hits, now_s))


def hit_again_per_hour(hits: Hits) -> float | None:
    """Times an hour that a node that replaces one at work is taken before that one falls idle, while it is there.

    None where nothing is at work, or too little is known.
    """
    if not hits.out or hits.spells < ENOUGH:
        return None
    if not hits.again:
        return 0.0
    return hits.again * HOUR / hits.spare_s if hits.spare_s > 0 else math.inf


class Outlook:
    """Forecast of a history if nothing more is asked for: as of now, and as of any time ``after_s`` from now."""

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._losses = hits.losses or _NONE
        self.sums = _sums(hits)
        self._now: list[float] = []
        self._then: dict[Seconds, tuple[list[float], list[float]]] = {}
        self._right: dict[int, tuple[float, ...]] = {}

    def weights(self) -> Sequence[float]:
        """Weight of each half-life's word; they sum to 1."""
        if not self._now:
            self._now = _shares(self._losses)
        return self._now

    def _at(self, after_s: Seconds) -> tuple[list[float], list[float]]:
        """Share of each half-life's figure that is left then, and the weight of its word: the same for every spare."""
        then = self._then.get(after_s)
        if then is None:
            fades = _fades(after_s)
            then = self._then[after_s] = fades, _shares(_foretold(self._losses, self.sums, fades, after_s))
        return then

    def hits_per_hour(self, k: int, after_s: Seconds = 0.0) -> float | None:
        """Times an hour that the k-th spare would be taken while it is there.

        None for one that is hardly ever there: it costs next to nothing, and says nothing against those behind it.
        """
        rate = self.by_rates(k, after_s)
        if rate is None or k > len(self._hits.quiets):
            return rate
        if k not in self._right:
            self._right[k] = corrections(self._hits.quiets[k - 1])
        return rate * self._right[k][length_at(self._hits, after_s)]

    def by_rates(self, k: int, after_s: Seconds = 0.0) -> float | None:
        """The same by faded rates alone, however long the pool was quiet."""
        hits = self._hits
        if k > len(hits.rates):
            return 0.0
        if not after_s:
            weights = self.weights()
            rate = sum(map(mul, weights, hits.rates[k - 1]))
            share = sum(map(mul, weights, hits.there[k - 1]))
            return rate / share if share >= LEAST_SHARE else None
        fades, trust = self._at(after_s)
        absent_s = 0.0
        if len(hits.coming) >= k:
            absent_s = min(after_s, max(0.0, hits.coming[len(hits.coming) - k] - hits.at))
        gone = _fades(after_s - absent_s) if absent_s else fades
        rate = share = 0.0
        for trusted, hit, there, fade, left in zip(
            trust, hits.rates[k - 1], hits.there[k - 1], fades, gone, strict=True
        ):
            rate += trusted * hit * fade
            share += trusted * (there * fade + 1.0 - left)
        return rate / share if share >= LEAST_SHARE else None


def _faded(hits: Hits, now_s: Seconds) -> Hits:
    gone_s = now_s - hits.at
    if gone_s <= 0:
        return hits
    if not hits.rates:
        return replace(hits, at=now_s)
    outlook = Outlook(hits)
    hits = count_foretold(hits, now_s, outlook.by_rates)
    fades = _fades(gone_s)
    away = len(hits.coming)
    back = _times(hits.there[away:], fades, [1 - fade for fade in fades])
    return replace(
        hits,
        at=now_s,
        rates=_times(hits.rates, fades, _NONE),
        there=_times(hits.there[:away], fades, _NONE) + back,
        losses=_foretold(hits.losses or _NONE, outlook.sums, fades, gone_s),
    )


def _times(rows: RateTable, by: Sequence[float], plus: Sequence[float]) -> RateTable:
    """Each row times one and plus another. Written out by half-life: most of a look's arithmetic is here."""
    a, b, c, d, e = by
    f, g, h, i, j = plus
    return tuple([(v * a + f, w * b + g, x * c + h, y * d + i, z * e + j) for v, w, x, y, z in rows])


def _sums(hits: Hits) -> list[float]:
    """Hits a second of all spares together, by half-life."""
    return [sum(column) / HOUR for column in zip(*hits.rates, strict=True)]


def _fades(for_s: Seconds) -> list[float]:
    """Share of each half-life's figure that is left after so long."""
    return [math.exp(-per_s * for_s) for per_s in _PER_S]


def _shares(losses: Sequence[float]) -> list[float]:
    trust = [math.exp(-loss) for loss in losses]
    whole = sum(trust)
    return [each / whole for each in trust]


def _foretold(
    losses: Sequence[float], sums: Sequence[float], fades: Sequence[float], for_s: Seconds
) -> tuple[float, ...]:
    """The losses after a stretch of time without a demand: half of the old ones are forgotten in a day.

    How many hits each half-life foretells while it fades so far counts against it: none of them came.
    """
    kept = 0.5 ** (for_s / FORGETTING_S)
    return _relative(
        [
            loss * kept + hits_a_second * (1.0 - fade) / per_s
            for loss, hits_a_second, fade, per_s in zip(losses, sums, fades, _PER_S, strict=True)
        ]
    )


def _relative(losses: Sequence[float]) -> tuple[float, ...]:
    least = min(losses)
    return tuple([loss - least for loss in losses])


def likely_to_follow(hits: Hits, least: float) -> int:
    """Count of further nodes asked for within a lead time with a chance of more than ``least``."""
    chances = zip(LEVELS, _chances(hits), strict=False)
    return max((level for level, chance in chances if chance > least), default=0)


def chance_of(hits: Hits, more: int) -> float:
    """In what share of cases like this at least so many more nodes were asked for within a lead time."""
    chances = zip(LEVELS, _chances(hits), strict=False)
    return next((chance for level, chance in chances if level >= more), 0.0)


def smaller_at_s(hits: Hits) -> Seconds:
    """When what was asked for of late counts as demand of a smaller size, if no more is asked for."""
    return hits.coming[len(hits.coming) - (1 << _size(len(hits.coming)))] if hits.coming else hits.at


def count_burst(windows: tuple[Window, ...], nodes: int, until: Seconds, coming: int) -> tuple[Window, ...]:
    """The windows after ``nodes`` more were asked for, and one of the size that ``coming`` then is, up to ``until``.

    One that began at this moment does not count them: they were seen when it began.
    """
    size = _size(coming)
    after = tuple(
        replace(w, net=w.net + nodes, most=max(w.most, w.net + nodes)) if w.until < until else w for w in windows
    )
    return after if any(w.size == size for w in after) else (*after, Window(size=size, until=until))


def drop_ended_windows(hits: Hits) -> Hits:
    """The history without the windows that are over: what they came to is learned."""
    if not hits.windows or all(window.until > hits.at for window in hits.windows):
        return hits
    followed = list(hits.followed)
    for window in hits.windows:
        if window.until <= hits.at:
            followed += [_NOTHING] * (window.size + 1 - len(followed))
            followed[window.size] = _learned(followed[window.size], window.most)
    return replace(hits, windows=tuple(w for w in hits.windows if w.until > hits.at), followed=tuple(followed))


def _learned(past: Followed, most: int) -> Followed:
    count = min(past.count + 1, REMEMBERED)
    shares = tuple(
        share + ((most >= level) - share) / (count + 1) for level, share in zip(LEVELS, past.shares, strict=True)
    )
    return Followed(count=count, shares=shares)


def _chances(hits: Hits) -> Sequence[float]:
    """Chances of what follows on demand of this size, or of the largest smaller one that was seen often enough."""
    size = _size(len(hits.coming)) if hits.coming else -1
    return next((past.shares for past in reversed(hits.followed[: size + 1]) if past.count >= ENOUGH_WINDOWS), ())


def _size(nodes: int) -> int:
    return nodes.bit_length() - 1
