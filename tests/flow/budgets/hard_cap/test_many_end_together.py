"""Many nodes whose hard cap ends at one moment have their calls one after another, and all of them in time."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from cap_stage import KEEP, STOP, capped, days, pod
from msgspec.structs import replace as with_
from stage import Stage

from pilotlight.facts.policy import PoolPolicy
from pilotlight.ports.clouds import OPEN, Gate
from pilotlight.units import HOUR
from pilotlight.world.residents import Resident
from pilotlight.world.world_pools import WorldPools

NODES = 60


class Slow(WorldPools):
    """A cloud that takes its time to give an instance back, and says so within the deadline of a call."""

    wait: Callable[[float], None]
    call_s = 8.0

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Let out, and done a while later."""
        if self.holds(pool, instance):
            gate()
        self.wait(self.call_s)
        self._world.terminate(instance, "released", evict=True)


def stage(call_s: float, usd: Decimal, hold: float = HOUR, idle_s: float = 600.0) -> Stage:
    """Room for a hundred nodes at a dollar an hour, on a slow cloud."""
    rules = with_(STOP, hold=hold, idle_timeout=idle_s)
    on = capped(usd, rules, pools={"one": PoolPolicy(instance_type="one", max=100)})
    pools = Slow(on.world)
    pools.wait, pools.call_s = on.wait, call_s
    on.deps = replace(on.deps, pools=pools)
    return on


@pytest.mark.parametrize("call_s", [0.0, 8.0, 19.0])
@pytest.mark.parametrize("lingers", [False, True], ids=["stop at once", "take all of their grace"])
def test_sixty_nodes_that_end_together_are_gone_in_time(call_s: float, lingers: bool) -> None:
    """Sixty nodes of one cap, and calls of up to the deadline of one: the cap is kept, and most of it is used."""
    on = stage(call_s, Decimal(90))
    on.world.evictions.lingers = lingers
    for n in range(NODES - 1):
        pod(on, f"p{n}", 40 * HOUR)
    on.event(pod(on, "last", 40 * HOUR))
    on.minutes(3)
    assert len(on.events("launch")) == NODES
    on.minutes(100)
    assert Decimal(60) < max(days(on)) <= 90


@pytest.mark.parametrize("hold", [600.0, 4 * HOUR], ids=["a short hold", "a long one"])
def test_sixty_nodes_under_a_cap_of_minutes(hold: float) -> None:
    """A cap that is worth fifteen minutes of all: whatever is bought for it is gone before it is passed."""
    on = stage(19.0, Decimal(15), hold)
    for n in range(NODES - 1):
        pod(on, f"p{n}", 40 * HOUR)
    on.event(pod(on, "last", 40 * HOUR))
    on.minutes(120)
    assert days(on)
    assert max(days(on)) <= 15


def test_sixty_empty_nodes_go_before_their_idling_passes_the_cap() -> None:
    """All work ends at once, and idling is cheap by the policy: sixty slow releases are in time all the same."""
    on = stage(19.0, Decimal(60), 4 * HOUR, idle_s=5 * HOUR)
    for n in range(NODES - 1):
        pod(on, f"p{n}", 600)
    on.event(pod(on, "last", 600))
    on.minutes(15)
    on.world.residents.put("n7", Resident("cache", "local storage"))
    on.world.residents.put("n8", Resident("db", "PDB", guarded=True))
    on.minutes(120)
    assert max(days(on)) <= 60


@pytest.mark.parametrize(("usd", "run_s"), [(60, 40 * HOUR), (150, 40 * HOUR), (150, 119 * 60.0)])
def test_whole_runs_that_end_together_leave_time_for_each_others_calls(usd: int, run_s: float) -> None:
    """What no cap stops is held for its whole run and its turn of the calls, and no run is cut short."""
    rules = with_(KEEP, idle_timeout=60.0)
    on = capped(Decimal(usd), rules, pools={"one": PoolPolicy(instance_type="one", max=100)})
    pools = Slow(on.world)
    pools.wait, pools.call_s = on.wait, 19.0
    on.deps = replace(on.deps, pools=pools)
    for n in range(NODES - 1):
        pod(on, f"p{n}", run_s)
    on.event(pod(on, "last", run_s))
    on.minutes(3)
    bought = len(on.events("launch"))
    assert bought > usd // 3
    on.minutes(150)
    assert max(days(on)) <= usd
    assert len(on.world.finished) >= (bought if run_s <= 2 * HOUR else 0)
    assert min(on.world.now_s if e is None else e for e in _ends(on)[:bought]) >= 2 * HOUR


def _ends(on: Stage) -> list[float | None]:
    """When each node went, by when it came."""
    ends = {r["node"]: r["t"] for r in on.events("terminate")}
    return [ends.get(r["node"]) for r in on.events("launch")]
