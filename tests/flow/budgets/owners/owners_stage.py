"""Teams with and without money in one pool, and what the world tells of them."""

from collections import Counter
from decimal import Decimal
from typing import Any

from stage import Stage

from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import budget_holds
from pilotlight.units import HOUR

STOPS = ClassPolicy(gpu_models="any", idle_timeout=1800, max_runtime=12 * HOUR, may_move=("hard-cap",), hold=HOUR)
RUNS_ON = ClassPolicy(gpu_models="any", idle_timeout=1800, max_runtime=3 * HOUR)


def stage(usd: dict[str, str], most: int = 1, batch: ClassPolicy = STOPS, **pool: Any) -> Stage:
    """A pool of nodes of 8 GPUs at $32 an hour, and teams with so many dollars a day."""
    budgets = tuple(
        Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(limit), period="day") for team, limit in usd.items()
    )
    return Stage(
        pools={"eight": PoolPolicy(instance_type="eight", max=most)}, budgets=budgets, classes={"batch": batch}
    )


def totals(on: Stage) -> dict[str, Decimal]:
    """Settled and held of each budget's first day, to the cent."""
    out: dict[str, Decimal] = {}
    for each in budget_holds.balances(on.deps, on.deps.state.now()).balances:
        out.setdefault(each.meter.budget.name, each.total.quantize(Decimal("0.01")))
    return out


def stopped(on: Stage) -> Counter[str]:
    """How often each pod was made to stop before its end."""
    return Counter(line["job"] for line in on.log if line["event"] == "stop" and line["reason"] != "done")


def launches(on: Stage) -> int:
    """Nodes that were bought."""
    return sum(line["event"] == "launch" for line in on.log)


def teams_on(on: Stage) -> list[str]:
    """Teams of the GPU pods that are bound now."""
    return sorted(pod.team for node in on.deps.cluster.observe().nodes for pod in node.gpu_pods)
