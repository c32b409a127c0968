"""Pools of a policy as they are sold, and how many GPUs each team's budget stands for."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from pilotlight.errors import BadInput
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.offers.catalog import Catalog, InstanceType
from pilotlight.facts.policy import Policy, PoolPolicy

Object = dict[str, Any]
LABELS = {"app.kubernetes.io/name": "pilotlight"}


class Sold(NamedTuple):
    """A pool of the policy with its instance type."""

    name: str
    pool: PoolPolicy
    machine: InstanceType

    @property
    def gpus(self) -> int:
        """The most GPUs that it may have."""
        return self.pool.max * self.machine.gpus

    @property
    def usd_per_gpu(self) -> Decimal | None:
        """Dollars an hour of one of its GPUs; None where its price is not known."""
        price = self.machine.prices.get(self.pool.capacity_type) or self.machine.prices.get("on-demand")
        return price.usd_per_hour / self.machine.gpus if price and self.machine.gpus else None


class Team(NamedTuple):
    """A team with a budget: its namespace, and the GPUs that it may have at once."""

    name: str
    namespace: str
    gpus: int


def sold_pools(policy: Policy, catalog: Catalog) -> tuple[Sold, ...]:
    """The pools with GPUs whose type is known. Raises ``BadInput`` where there is none."""
    types = catalog.instance_types
    named = ((name, pool, types.get(pool.instance_type)) for name, pool in policy.pools.items())
    found = tuple(Sold(name, pool, machine) for name, pool, machine in named if machine is not None and machine.gpus)
    if not found:
        raise BadInput("the policy has no pool with GPUs whose type is known: there is nothing to write manifests for")
    return found


def teams(policy: Policy, pools: Iterable[Sold], namespaces: Mapping[str, str]) -> tuple[Team, ...]:
    """The teams with a budget. Nobody can have more GPUs at once than an hour of its whole budget pays for.

    ``namespaces`` are those that are not called as their team. Raises ``BadInput`` where no budget names a team.
    """
    pools = tuple(pools)
    most = sum(each.gpus for each in pools)
    prices = [usd for each in pools if (usd := each.usd_per_gpu)]
    out: dict[str, Team] = {}
    for budget in policy.budgets:
        team = budget.scope.team if budget.scope != "all" else None
        if team:
            gpus = min(most, _affordable(budget, min(prices, default=None)) or most)
            gpus = min(gpus, out[team].gpus) if team in out else gpus
            out[team] = Team(team, namespaces.get(team, team), gpus)
    if not out:
        raise BadInput("no budget of the policy is of a team: write one with scope: {team: NAME}")
    return tuple(out.values())


def _affordable(budget: Budget, usd_per_gpu: Decimal | None) -> int | None:
    """GPUs that the budget pays for at once, for an hour; None where it says nothing of that."""
    found = [budget.gpu_hours] if budget.gpu_hours is not None else []
    found += [budget.usd / usd_per_gpu] if budget.usd is not None and usd_per_gpu else []
    return max(0, int(min(found))) if found else None


def tolerations(pools: Iterable[Sold]) -> list[Object]:
    """Tolerations of all taints of these pools."""
    taints = {(t.key, t.value, t.effect): t for each in pools for t in each.pool.taints}
    return [
        {"key": t.key, "operator": "Equal" if t.value else "Exists", "effect": t.effect}
        | ({"value": t.value} if t.value else {})
        for t in taints.values()
    ]


def types_of(pools: Iterable[Sold]) -> list[str]:
    """Their instance types, each once."""
    return sorted({each.pool.instance_type for each in pools})
