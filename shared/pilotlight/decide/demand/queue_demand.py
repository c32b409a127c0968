"""Workers that a queue asks for, and nodes for those that are not there yet.

A queue of n messages wants ceil(n / per_worker) workers, or ceil(n x service / drain) where those are more: so many
are done with what waits in time. Workers are asked for as the queue will be once they could work: while it grows, it
goes on growing as it did for the last minutes until their model is loaded, and for nodes until they have booted too,
but by no more than half, for short bursts end sooner than they last. Workers that were needed within ``keep`` stay
asked for. ``bench/replays/queue_workers.py`` has what each of these is worth. A reading that is old says nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import ceil, isfinite

from msgspec.structs import replace

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.demand.worker_queues import NodesAhead, QueueHistory, QueueReading, QueueRules, Workers
from pilotlight.units import Seconds, human

TREND = timedelta(minutes=5)
"""A queue's growth is what came of it within so long."""
YOUNG = timedelta(minutes=3)
"""A reading that is older says nothing of now."""
KEPT = 128
"""Readings of a queue."""
MOST_GROWTH = 0.5
"""Of what is there: more growth than this is not foretold."""
REACTION_S: Seconds = 60.0
"""From a look to the next."""


def remember_reading(history: QueueHistory, reading: QueueReading, keep_s: Seconds = 0.0) -> QueueHistory:
    """The history with one more reading; one that is no number, or older than the last, changes nothing."""
    last = history.readings[-1].at if history.readings else None
    if not isfinite(reading.length) or reading.length < 0 or (last is not None and reading.at <= last):
        return history
    since = reading.at - TREND - timedelta(seconds=keep_s)
    recent = [one for one in history.readings if one.at >= since]
    return QueueHistory(readings=(*recent, reading)[-KEPT:])


def growth_per_s(history: QueueHistory) -> float:
    """Messages a second by which the queue grew lately; 0 where it shrank or was read once."""
    last = history.readings[-1] if history.readings else None
    readings = [one for one in history.readings if last and one.at >= last.at - TREND]
    if last is None or len(readings) < 2:
        return 0.0
    first = readings[0]
    seconds = (last.at - first.at).total_seconds()
    return max(0.0, (last.length - first.length) / seconds) if seconds > 0 else 0.0


def workers(rules: QueueRules, length: float) -> Workers:
    """Workers that a queue of so many messages asks for."""
    share = ceil(length / rules.per_worker)
    wanted, why = share, f"ceil({length:g} / {rules.per_worker})"
    if rules.service and rules.drain:
        in_time = ceil(length * rules.service / rules.drain)
        if in_time > share:
            sum_ = f"{length:g} x {human(rules.service)} / {human(rules.drain)}"
            wanted, why = in_time, f"ceil({sum_})"
    count = max(rules.min, min(rules.max, wanted))
    bound = "" if count == wanted else f", held at {'min' if count > wanted else 'max'} {count}"
    return Workers(count=count, why=f"{why} = {wanted}{bound}")


def workers_in(rules: QueueRules, history: QueueHistory, now: datetime, ahead_s: Seconds) -> Workers | None:
    """Workers that it will ask for so much later; None where nothing young is known of it."""
    last = history.readings[-1] if history.readings else None
    if last is None or now - last.at > YOUNG:
        return None
    found = _foretold(rules, history, ahead_s)
    since = now - timedelta(seconds=rules.keep)
    before = [n for n, one in enumerate(history.readings, 1) if one.at >= since]
    lately = (_foretold(rules, QueueHistory(readings=history.readings[:n]), ahead_s).count for n in before)
    held = max(lately, default=0)
    if held <= found.count:
        return found
    return Workers(count=held, why=f"{held} were needed within {human(rules.keep)}; {found.why}")


def _foretold(rules: QueueRules, history: QueueHistory, ahead_s: Seconds) -> Workers:
    length = history.readings[-1].length
    grown = min(growth_per_s(history) * ahead_s, length * MOST_GROWTH)
    found = workers(rules, length + grown)
    more = f"{length:g} now, {grown:.3g} more in {human(ahead_s)}: " if grown else ""
    return Workers(count=found.count, why=more + found.why)


def nodes_ahead(
    queues: Mapping[str, QueueRules],
    histories: Mapping[str, QueueHistory],
    view: ClusterView,
    offerings: Iterable[Offering],
    now: datetime,
) -> dict[str, NodesAhead]:
    """Nodes without work that each pool should have, for workers that its queues will ask for and that are not there.

    Workers that wait or run are counted whichever queue they belong to: pods that wait are bought for anyhow.
    """
    by_pool = {offering.pool: offering for offering in offerings}
    there = _there(view)
    found: dict[str, NodesAhead] = {}
    for name, rules in sorted(queues.items()):
        offering = by_pool.get(rules.pool)
        history = histories.get(name)
        if offering is None or history is None or offering.gpus < rules.gpus:
            continue
        wanted = workers_in(rules, history, now, REACTION_S + offering.boot_s + rules.load)
        missing = 0 if wanted is None else wanted.count - there[rules.workers]
        if wanted is None or missing <= 0:
            continue
        nodes = ceil(missing / (offering.gpus // rules.gpus))
        why = f"queue {name}: {wanted.why} workers, {there[rules.workers]} are there"
        before = found.get(rules.pool)
        if before is not None:
            nodes, why = nodes + before.nodes, f"{before.why}; {why}"
        found[rules.pool] = NodesAhead(nodes=nodes, why=why)
    return found


def _there(view: ClusterView) -> Counter[str]:
    """Pods with GPUs that wait or run, by what made them."""
    waiting = (f"{pod.namespace}/{pod.name}" for pod in view.pending)
    running = (f"{pod.namespace}/{pod.name}" for node in view.nodes for pod in node.gpu_pods)
    return Counter(made_by(pod) for pod in (*waiting, *running))


def keep_nodes_ahead(work: Work) -> None:
    """Keep as many warm as queues will ask for, no more than a pool may have."""
    pools = dict(work.policy.pools)
    for name, asked in work.look.ahead.items():
        pool = pools[name]
        pools[name] = pool.with_warm(max(pool.spares.warm, min(asked.nodes, pool.max)))
    work.policy = replace(work.policy, pools=pools)
