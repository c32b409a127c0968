"""Prices as a cloud tells them, read a few times a day and kept in the state, for the processes to come."""

from datetime import timedelta

from pilotlight.decide.offers.live_prices import learnt
from pilotlight.errors import Denied, Retry
from pilotlight.facts.offers.catalog import LivePrices, SpotLearnt
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import PRICES
from pilotlight.state_schema.marks import PRICES_READ
from pilotlight.state_schema.table import Mark
from pilotlight.units import HOUR

EVERY_S = 6 * HOUR
AGAIN_S = HOUR
"""After they could not be read they are asked for again in so long."""

WEEK = timedelta(days=7)


def refresh(deps: Deps) -> tuple[str, ...]:
    """Read them where that is due; what was done. What cannot be read stops nothing: what is known grows old."""
    if deps.live_prices is None or PRICES_READ.get(deps.state, deps.name) is not None:
        return ()
    names = sorted({pool.instance_type for pool in deps.policy.pools.values()})
    try:
        told = {name: dict(prices) for name, prices in deps.live_prices(names).items()}
        zones = _zones(deps)
    except (Denied, Retry) as no:
        PRICES_READ.put(deps.state, deps.name, Mark(note=str(no)), ttl_s=AGAIN_S)
        return (f"prices could not be read: {no}",)
    PRICES.put(deps.state, deps.name, LivePrices(at=deps.now(), prices=told, zones=zones))
    PRICES_READ.put(deps.state, deps.name, Mark(), ttl_s=EVERY_S)
    return (f"read prices of {len(told)} of {len(names)} types",)


def _zones(deps: Deps) -> dict[str, SpotLearnt]:
    """Spot's prices by zone, as far as they are known by now."""
    before = PRICES.get(deps.state, deps.name)
    known = before.value.zones if before is not None else {}
    names = sorted({pool.instance_type for pool in deps.policy.pools.values() if pool.capacity_type == "spot"})
    if deps.spot_prices is None or not names:
        return known
    now = deps.now()
    return learnt(known, deps.spot_prices(names, now - WEEK), now)
