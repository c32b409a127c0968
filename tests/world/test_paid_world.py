"""Reserved nodes of the world's cloud: paid for apart, and no more of them than there are."""

from datetime import timedelta

import pytest
from both_ways import WAYS, ports
from small_cloud import START

from pilotlight.errors import NoCapacity
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.world.machines import WorldPool

RESERVED = (WorldPool(name="r", instance_type="one", capacity_type="reserved", paid=2),)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_reserved_is_told_and_costs_nothing_more(way: str) -> None:
    """A reserved pool tells how many of its nodes are free, launches no more, and adds nothing to what is paid."""
    with ports(way, pools=RESERVED) as here:
        here.pools.grow("r", 1)
        (state,) = here.pools.describe()
        assert state.paid == (Paid(name="r-reserved", count=2, free=1),)
        with pytest.raises(NoCapacity, match="2 reserved nodes"):
            here.pools.grow("r", 3)
        here.world.advance(3600)
        assert here.world.cost() == 0
        assert here.clock.now() == START + timedelta(hours=1)
