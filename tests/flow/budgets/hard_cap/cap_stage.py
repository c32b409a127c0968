"""A stage under a hard budget, pods that say how they stop, and what the world's own log says was spent."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from stage import START, Stage

from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.units import HOUR

STOP = ClassPolicy(gpu_models="any", idle_timeout=600, max_runtime=24 * HOUR, may_move=("hard-cap",))
KEEP = ClassPolicy(gpu_models="any", idle_timeout=600, max_runtime=2 * HOUR)
CAP = Decimal(6)


def capped(usd: Decimal = CAP, rules: ClassPolicy = STOP, **fields: Any) -> Stage:
    """A stage with a hard budget a day in UTC; nodes cost a dollar an hour. Serving may not be stopped."""
    budget = Budget(name="all", usd=usd, period="day")
    return Stage(budgets=(budget,), classes={"batch": rules, "serving": KEEP}, **fields)


def pod(on: Stage, name: str, run_s: float, grace_s: float = 30.0, takes_s: float = 0.0, **traits: Any) -> PodDemand:
    """A pod with a grace, and what its checkpoint takes, is created."""
    made = PodDemand(
        uid=f"uid-{name}",
        namespace="ml",
        name=name,
        shape=shape(gpu=GpuRequest(count=1), **traits),
        created_at=on.world.clock.now(),
        grace_s=grace_s,
        checkpoint_takes_s=takes_s,
    )
    on.world.submit(made, run_s)
    return made


def says_now(on: Stage, **fields: Any) -> None:
    """Every pod that runs says something else of its end."""
    for job in on.world.running.values():
        job.placement = [one._replace(demand=msgspec.structs.replace(one.demand, **fields)) for one in job.placement]
    for node in on.world.nodes.values():
        node.value = None


def days(on: Stage) -> list[Decimal]:
    """What all nodes cost in each day, in dollars, by the world's log."""
    ends = {r["node"]: r["t"] for r in on.events("terminate")}
    out: dict[Any, Decimal] = {}
    for record in on.events("launch"):
        at, end = (START + timedelta(seconds=s) for s in (record["t"], ends.get(record["node"], on.world.now_s)))
        while at < end:
            midnight = datetime.combine(at.date() + timedelta(days=1), time(), UTC)
            until = min(end, midnight)
            out[at.date()] = out.get(at.date(), Decimal(0)) + Decimal((until - at).total_seconds()) / 3600
            at = until
    return [out[day] for day in sorted(out)]
