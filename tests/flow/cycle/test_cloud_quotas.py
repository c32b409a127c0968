"""Quotas of a cloud's account are heard only where a plan would buy more than they leave."""

from decimal import Decimal
from typing import Any

import pytest
from stage import Stage

from pilotlight.errors import Denied, Unavailable
from pilotlight.facts.decisions import Buy
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.flow.cycle.planning import quotas_of
from pilotlight.world.world_pools import WorldPools


class Account(WorldPools):
    """A cloud whose pools count against one quota of 16, of which 8 are used: a node of the small one takes 4."""

    no: Exception | None = None

    def quotas(self, types: Any) -> dict[str, Quota]:
        """Of those pools that it is asked for."""
        if self.no is not None:
            raise self.no
        takes = {"one": 4, "eight": 6}
        return {pool: Quota(name="q", limit=16, used=8, takes=takes[pool]) for pool in types}


def _buy(pool: str, count: int) -> Buy:
    return Buy(
        pool=pool, offering=pool, zone="", count=count, usd_per_hour=Decimal(1), boot_s=1, demands=(), shapes=(), why=""
    )


@pytest.mark.parametrize(
    ("buys", "heard"),
    [
        ([], False),
        ([("one", 2)], False),
        ([("one", 3)], True),
        ([("one", 1), ("one", 1)], False),
        ([("eight", 1)], False),
        ([("eight", 1), ("one", 1)], True),
        ([("other", 9)], False),
    ],
)
def test_quotas_count_only_where_purchases_pass_them(buys: list[tuple[str, int]], heard: bool) -> None:
    """All purchases against one quota together; where it is not sure what is bought they are heard in any case."""
    stage = Stage()
    account, made = Account(stage.world), [_buy(*each) for each in buys]
    assert bool(quotas_of(account, stage.deps.offerings, made, sure=True)) is heard
    assert set(quotas_of(account, stage.deps.offerings, made, sure=False)) == {"one", "eight"}


@pytest.mark.parametrize("no", [Denied("no right"), Unavailable("no answer")])
def test_quotas_that_cannot_be_read_stop_nothing(no: Exception) -> None:
    """The plan stays as it is."""
    stage = Stage()
    account = Account(stage.world)
    account.no = no
    assert quotas_of(account, stage.deps.offerings, [_buy("one", 9)], sure=False) == {}
