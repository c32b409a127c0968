"""Quotas of a cloud's account, where a plan would buy more than they leave."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.offers.pool_quota import NO_QUOTAS, Quota
from pilotlight.ports.clouds import QuotaPools

_log = logging.getLogger("pilotlight")


def quotas_of(
    pools: QuotaPools, offerings: Sequence[Offering], buys: Sequence[Buy], *, sure: bool
) -> Mapping[str, Quota]:
    """The quotas by pool; none where ``buys`` are ``sure`` and within them, or where they cannot be read."""
    types = {offering.pool: (offering.instance_type, offering.capacity_type) for offering in offerings}
    try:
        quotas = pools.quotas(types)
    except (Denied, Retry) as no:
        _log.warning("quotas unread", extra={"data": {"why": str(no)}})
        return NO_QUOTAS
    if not sure:
        return quotas
    wanted: Counter[str] = Counter()
    for buy in buys:
        if quota := quotas.get(buy.pool):
            wanted[quota.name] += buy.count * quota.takes
    short = any(wanted[quota.name] > quota.limit - quota.used for quota in quotas.values() if wanted[quota.name])
    return quotas if short else NO_QUOTAS
