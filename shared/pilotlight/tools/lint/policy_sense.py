"""Sense of a policy beside a catalogue: what pools cost, types and prices nobody knows, names that no label takes."""

import re
from collections.abc import Iterator
from decimal import Decimal

from pilotlight.codec.policy_values import quote_text, suggestion
from pilotlight.decide.money.budget_limits import in_scope
from pilotlight.decide.offers.offerings import price_of
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.lint.claim_notes import classes_of
from pilotlight.units import HOUR, cents

MONTH_H = 730
"""Hours of a month, as clouds count them."""
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LETTERS = "write at most 63 letters, digits, dashes, dots or underscores, the first and last a letter or digit"
_GATED = "write its name at the cloud, or karpenter:NAME in small letters for a NodePool of Karpenter's"


def unlabelled_names(policy: Policy) -> Iterator[str]:
    """Names that Kubernetes takes for no label, though nodes or pods would have to carry them: nothing would match."""
    for name, pool in policy.pools.items():
        if not name or not _VALUE.fullmatch(name):
            yield f"pools.{name}: {quote_text(name)} is no value of a label: {_LETTERS}"
        for key, value in pool.labels.items():
            if not _KEY.fullmatch(key):
                yield f"pools.{name}.labels.{key}: {quote_text(key)} is no label: {_LETTERS}"
            elif not _VALUE.fullmatch(value):
                yield f"pools.{name}.labels.{key}: {quote_text(value)} is no value of a label: {_LETTERS}"
        for i, taint in enumerate(pool.taints):
            if not _KEY.fullmatch(taint.key) or not _VALUE.fullmatch(taint.value):
                yield f"pools.{name}.taints[{i}]: {quote_text(f'{taint.key}={taint.value}')} is no taint: {_LETTERS}"
    for i, budget in enumerate(policy.budgets):
        team = budget.scope.team if isinstance(budget.scope, BudgetScope) else None
        if team and not _VALUE.fullmatch(team):
            yield f"budgets[{i}].scope.team: {quote_text(team)} is no value of a label: {_LETTERS}"


def unbounded_gates(policy: Policy) -> Iterator[str]:
    """Pools that Karpenter buys for and no hard budget counts: no limit is set there."""
    for name, nodepool in policy.gates.items():
        if not any(budget.hard and in_scope(budget.scope, name, "", "") for budget in policy.budgets):
            yield (
                f"pools.{name}: no hard budget counts it, so no limit of NodePool {nodepool} is set; write a budget "
                f"with hard: true of scope all, or of pool {name}"
            )


def misnamed_pools(policy: Policy) -> Iterator[str]:
    """Names at the cloud that no cloud gives: the colon is of karpenter:NAME, and its prefix is written otherwise."""
    for name, pool in policy.pools.items():
        if ":" in pool.cluster_pool and not pool.nodepool:
            yield f"pools.{name}.cluster_pool: {quote_text(pool.cluster_pool)} is no name of a pool: {_GATED}"


def unpriced_pools(policy: Policy, catalog: Catalog) -> Iterator[str]:
    """Pools for which nothing is bought by what is known here: their type, or its price, is in no catalogue."""
    for name, pool in policy.pools.items():
        path = f"pools.{name}"
        if pool.instance_type not in catalog.instance_types:
            known = sorted(catalog.instance_types)
            close = suggestion(pool.instance_type, known).partition(" (known")[0]
            yield (
                f"{path}.instance_type: {pool.instance_type} is no type of catalogue {catalog.name}{close}; nothing is "
                "bought there until a file of prices.files has its price; "
                "`pilotlight show data/catalogs/articles.yaml` prints one"
            )
        elif _price(policy, catalog, pool) is None:
            key = f"{pool.instance_type}/{pool.capacity_type}"
            yield (
                f"{path}.capacity_type: no {pool.capacity_type} price of {pool.instance_type} is known: nothing is "
                f"bought there; write prices: {{overrides: {{{key}: DOLLARS}}}}, or have its cloud tell it"
            )


def runs_above_budgets(policy: Policy, catalog: Catalog) -> Iterator[str]:
    """Pools of which a hard budget holds no node for a class: its longest run in one period is above all of it."""
    for budget in policy.budgets:
        if budget.usd is None or not budget.hard or budget.period == "hour":
            continue
        scope = budget.scope.pool if isinstance(budget.scope, BudgetScope) else None
        for pool in [scope] if scope else policy.pools:
            price = _price(policy, catalog, policy.pools[pool])
            above = [] if price is None else [*_above(policy, budget, policy.pools[pool], price)]
            if above:
                yield (
                    f"budgets.{budget.name}: one node of pool {pool}, held for its longest run, is above all of its "
                    f"{cents(budget.usd)}: {', '.join(above)}. While that lies in one {budget.period} only pods "
                    "that name a shorter run are bought for there. Write a shorter max_runtime, or may_move: "
                    "[hard-cap] (stretches are held then), or more dollars"
                )


def _above(policy: Policy, budget: Budget, pool: PoolPolicy, price: Decimal) -> Iterator[str]:
    """Classes whose longest run is dearer than the budget, with hours and dollars of it that lie in one period."""
    for name in classes_of(budget):
        rules = policy.of_class(name)
        allowed = (*rules.capacity_types, *(["on-demand"] if rules.fallback == "allow" else []))
        hours = min(rules.longest_run_s, _PERIOD_S[budget.period]) / HOUR
        usd = Decimal(str(hours)) * price
        if pool.capacity_type in allowed and not rules.stops and usd > (budget.usd or 0):
            yield f"{name} {hours:.4g} h, {cents(usd)}"


_PERIOD_S = {"day": 24 * HOUR, "week": 7 * 24 * HOUR, "month": 31 * 24 * HOUR}


def pool_costs(policy: Policy, catalog: Catalog) -> Iterator[str]:
    """Cost of each pool whose price is known: of a node, of all that it may have, and of those that stay lit."""
    for name, pool in policy.pools.items():
        price = _price(policy, catalog, pool)
        if price is None:
            continue
        most = f"{pool.max} at most: {cents(pool.max * price)}/h, {cents(pool.max * price * MONTH_H)} a month"
        least = max(pool.min, pool.spares.warm)
        lit = (
            f"; {least} {'stays' if least == 1 else 'stay'} lit: {cents(least * price * MONTH_H)} a month"
            if least
            else ""
        )
        yield f"pool {name}: {cents(price)}/h a node {pool.capacity_type}, {most}{lit}"


def _price(policy: Policy, catalog: Catalog, pool: PoolPolicy) -> Decimal | None:
    machine = catalog.instance_types.get(pool.instance_type)
    return None if machine is None else price_of(policy, pool.instance_type, machine, pool.capacity_type)
