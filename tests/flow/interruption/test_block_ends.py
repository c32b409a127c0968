"""Ends of blocks of capacity: begun by themselves, once, whatever was posted about their instances before."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from test_interrupt import SAVES, Doomed

from pilotlight.facts.interruption.interruption import LEAD_S, Interruption
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.facts.policy import PaidPolicy, PoolPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.drain_all import carry_on
from pilotlight.world.simulation import World
from pilotlight.world.world_pools import WorldPools

BOUGHT = PoolPolicy(instance_type="one", capacity_type="reserved", max=5, paid=PaidPolicy(nodes=5))


class Block(WorldPools):
    """A cloud whose pool is one block of capacity, which it takes back at ``ends``, as it says from the first day."""

    def __init__(self, world: World, ends: datetime) -> None:
        super().__init__(world)
        self.ends = ends

    def describe(self) -> Sequence[PoolState]:
        """The pool with its block."""
        (state,) = super().describe()
        block = Paid(
            name="cr-1", count=5, free=5 - state.desired, ends=self.ends, takes=True, instances=tuple(self._world.nodes)
        )
        return (msgspec.structs.replace(state, paid=(block,)),)

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """It goes when the block ends."""
        said = super().instance(pool, instance)
        return msgspec.structs.replace(said, going=True, deadline=self.ends) if said and said.there else said


class InBlock(Doomed):
    """A node with a pod on it, in a block that ends a while after its lead begins."""

    def __init__(self, lead_in_s: float) -> None:
        super().__init__(BOUGHT, pods=[SAVES])
        self.block = Block(self.world, self.world.clock.now() + timedelta(seconds=LEAD_S + lead_in_s))
        self.deps = replace(self.deps, pools=self.block)

    def post(self, kind: Any, deadline: datetime | None, **fields: Any) -> None:
        """Somebody posts a notice of now about the node."""
        self.deliver(kind, deadline=deadline, fields={"cloud": "aws", **fields})

    def pass_s(self, seconds: float) -> None:
        """So long passes, with a look every half minute."""
        for _ in range(int(seconds // 30)):
            self.wait(30)
            carry_on(self.deps)

    @property
    def ends(self) -> list[Interruption]:
        """What was begun of the block's end."""
        all_ = interruption_records.every(self.deps.state, "c")
        return [one for one in all_ if one.kind == "capacity-reservation" and one.truth == "verified"]


POSTED: dict[str, tuple[str, float | None, dict[str, Any]]] = {
    "nothing": ("", None, {}),
    "an end that is not true": ("spot-interruption", 120, {}),
    "an end of weeks ahead, which is not over yet": ("scheduled-change", 30 * 86400, {}),
    "the block's own end, by another cloud": ("capacity-reservation", LEAD_S + 60, {"cloud": "gcp"}),
    "the block's own end, after which it would stay": ("capacity-reservation", LEAD_S + 60, {"action": "freeze"}),
    "that it is frozen for a moment": ("lifecycle", 900, {"action": "freeze"}),
}


@pytest.mark.parametrize(("kind", "goes_s", "fields"), POSTED.values(), ids=POSTED.keys())
def test_a_blocks_end_is_begun_whatever_was_posted_before(
    kind: str, goes_s: float | None, fields: dict[str, Any]
) -> None:
    """It begins at its lead, once: the pod is saved and the node given back before the cloud takes it."""
    stage = InBlock(60)
    if kind:
        now = stage.world.clock.now()
        stage.post(kind, now + timedelta(seconds=goes_s) if goes_s else None, **fields)
    stage.pass_s(15 * 60)
    (begun,) = stage.ends
    assert begun.deadline == stage.block.ends
    stage.pass_s(17 * 60)
    (over,) = stage.ends
    assert (over.outcome, "n1" in stage.world.nodes) == ("released", False)


def test_what_is_posted_after_a_blocks_end_was_dealt_with_begins_it_no_more() -> None:
    """A mode that only advises tells of the end once, whatever is posted of its instance then."""
    stage = InBlock(0)
    stage.deps = replace(stage.deps, mode="advise")
    stage.pass_s(60)
    stage.post("spot-interruption", stage.world.clock.now() + timedelta(seconds=120))
    stage.pass_s(14 * 60)
    assert [one.outcome for one in stage.ends] == ["advised"]
