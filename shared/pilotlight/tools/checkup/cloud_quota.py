"""The policy's pools against what a cloud's account may rent: its region's sizes, and its quota."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.cloud_shop import Assortment, Size
from pilotlight.facts.policy import Policy
from pilotlight.units import count_of


def shop_checks(
    policy: Policy, offered: Sequence[Offering], shop: Assortment, clouds: Mapping[str, PoolState]
) -> Iterator[Check]:
    """Checks that each pool's size is sold there with the GPUs we count on, and that the quota holds its max."""
    gpus = {offering.pool: offering.gpus for offering in offered}
    wanted: Counter[str] = Counter()
    for name, pool in policy.pools.items():
        size = shop.sizes.get(pool.instance_type)
        if size is None:
            close = get_close_matches(pool.instance_type, shop.sizes, n=1)
            fix = f"mend pools.{name}.instance_type" + (f"; did you mean {close[0]}?" if close else "")
            yield _check("size", name, "fault", f"{pool.instance_type} is no size of the region", fix)
            continue
        yield _size(name, size, gpus.get(name))
        one = size.takes.get(pool.capacity_type, {})
        more = max(0, pool.max - clouds[name].desired if name in clouds else pool.max)
        wanted += Counter({key: amount * more for key, amount in one.items()})
        yield from _not_one(name, size, shop, one if more else {})
    yield from _quota(shop, wanted)


def _check(code: str, pool: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code=code, subject=f"pool {pool}", verdict=verdict, what=what, fix=fix)


def _size(name: str, size: Size, gpus: int | None) -> Check:
    if gpus is not None and size.gpus != gpus:
        what = f"{size.name} has {count_of(size.gpus, 'GPU')} at the cloud, {gpus} in the catalogue"
        return _check("size", name, "fault", what, "mend the catalogue file that names it (prices.files)")
    if not size.sold:
        return _check("size", name, "warning", f"{size.name} cannot be chosen now", "ask the cloud, or another size")
    return _check("size", name, "ok", f"{size.name} is sold here; GPUs: {size.gpus}")


def _left(shop: Assortment, resource: str) -> int | None:
    """Nodes that the quota leaves, None where it says nothing."""
    limit, used = shop.quota.get(resource, (None, 0))
    return None if limit is None else max(0, limit - used)


def _not_one(name: str, size: Size, shop: Assortment, one: Mapping[str, int]) -> Iterator[Check]:
    for resource, amount in one.items():
        left = _left(shop, resource)
        if left is not None and amount > left:
            what = f"not one more {size.name} is within the quota: {resource} {amount:,}, and {left:,} are left"
            yield _check("quota", name, "fault", what, "ask the cloud for more quota: every purchase is refused now")


def _quota(shop: Assortment, wanted: Mapping[str, int]) -> Iterator[Check]:
    short = {r: amount for r, amount in wanted.items() if (left := _left(shop, r)) is not None and amount > left}
    for resource, amount in short.items():
        what = f"{resource}: all pools at their max take {amount:,} more, and {_left(shop, resource):,} are left"
        fix = "ask the cloud for more, or lower max: purchases beyond are refused"
        yield Check(code="quota", subject="quota", verdict="warning", what=what, fix=fix)
    if wanted and shop.quota and not short:
        yield Check(code="quota", subject="quota", verdict="ok", what="is enough for all pools at their max")
