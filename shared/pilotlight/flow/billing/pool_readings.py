"""Readings of pools at a billing tick: prices as their cloud tells them, GPU utilisation of late, paid capacity unused.

Prices are read a few times a day and kept in the state, for the processes to come. Utilisation is for the policy's
rules: read by looks, gone when old. Unused capacity is for the month's report: in a new month counting begins with its
first tick, up to then nothing of it is counted.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.money.counted_days import CountedDays
from pilotlight.errors import BadInput, Denied, Retry
from pilotlight.facts.offers.catalog import LivePrices, SpotLearnt
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import PAID_IDLE, POOL_USE, PRICES
from pilotlight.state_schema.marks import PRICES_READ, Mark
from pilotlight.units import HOUR, count_of

EVERY_S, OVER_S, STEP_S = 240.0, 1800.0, 60.0

ASK_EVERY_S = 6 * HOUR
AGAIN_S = HOUR
"""After they could not be read they are asked for again in so long."""

WEEK = timedelta(days=7)


def measure(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Read and keep it, where that is due; a line where it cannot be read: rules then go by what pods hold."""
    entry = POOL_USE.get(deps.state, deps.name)
    if deps.telemetry is None or (entry is not None and (now - entry.value.at).total_seconds() < EVERY_S):
        return ()
    from pilotlight.decide.utilisation.cluster_use import measure_pool_use

    try:
        read = deps.telemetry.read(now.timestamp() - OVER_S, now.timestamp(), STEP_S)
    except (Retry, Denied, BadInput) as error:
        return (f"telemetry: absent: rules go by what pods hold: {error}",)
    POOL_USE.put(deps.state, deps.name, measure_pool_use(read, deps.observe().nodes, now))
    return ()


def count_paid_idle(deps: Deps) -> None:
    """Look at the reserved pools, and count up to now."""
    by_pool = {offering.pool: offering for offering in deps.offerings if offering.capacity_type == "reserved"}
    if by_pool:
        from pilotlight.decide.offers.reserved_capacity import count_unused, unused_capacity

        now = deps.state.now()
        idle = unused_capacity(by_pool, deps.pools.describe(), deps.policy, {}, now)
        PAID_IDLE.change(deps.state, f"{deps.name}/{now:%Y-%m}", lambda was: count_unused(was, idle, now))


def refresh_prices(deps: Deps) -> tuple[str, ...]:
    """Read them where that is due; what was done. What cannot be read stops nothing: what is known grows old."""
    if deps.live_prices is None or PRICES_READ.get(deps.state, deps.name) is not None:
        return ()
    names = sorted({pool.instance_type for pool in deps.policy.pools.values()})
    try:
        answer = deps.live_prices(names)
        told = {name: dict(prices) for name, prices in answer.prices.items()}
        zones = _zones(deps, answer.zones)
    except (Denied, Retry) as no:
        PRICES_READ.put(deps.state, deps.name, Mark(note=str(no)), ttl_s=AGAIN_S)
        return (f"prices could not be read: {no}",)
    new = LivePrices(
        at=deps.now(), prices=told, zones=zones, soon_taken=answer.soon_taken, taken=dict(answer.taken)
    )  # fmt: skip
    PRICES.change(deps.state, deps.name, lambda was: replace(new, committed=was.committed) if was else new)
    note = "; ".join(answer.refused)
    PRICES_READ.put(deps.state, deps.name, Mark(note=note), ttl_s=AGAIN_S if note else ASK_EVERY_S)
    return (f"read prices of {len(told)} of {count_of(len(names), 'type')}" + (f"; {note}" if note else ""),)


def keep_committed(deps: Deps, known: CountedDays) -> None:
    """Keep what a bill's commitments pay for a GPU-hour, by pool, for plans to come. What no bill tells now is gone."""
    from pilotlight.decide.offers.commitment_use import commitment_use

    rates = commitment_use(known).rates
    if rates or PRICES.get(deps.state, deps.name) is not None:
        PRICES.change(deps.state, deps.name, lambda was: replace(was or LivePrices(at=deps.now()), committed=rates))


def _zones(deps: Deps, told: Mapping[str, SpotPrices]) -> dict[str, SpotLearnt]:
    """Spot's prices by zone, as far as they are known by now; ``told`` are those that came with the others."""
    from pilotlight.decide.offers.live_prices import learnt

    before = PRICES.get(deps.state, deps.name)
    known = before.value.zones if before is not None else {}
    names = sorted({pool.instance_type for pool in deps.policy.pools.values() if pool.capacity_type == "spot"})
    now = deps.now()
    if deps.spot_prices is None or not names:
        return learnt(known, told, now) if told else known
    return learnt(known, deps.spot_prices(names, now - WEEK), now)
