"""Types, prices and names of a policy beside a catalogue, and what its pools cost."""

from typing import Any

import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.policy import Policy
from pilotlight.settings import default_file
from pilotlight.tools.lint.policy_sense import (
    misnamed_pools,
    pool_costs,
    runs_above_budgets,
    unbounded_gates,
    unlabelled_names,
    unpriced_pools,
)

CATALOG = read_catalog(default_file("data/catalogs/articles.yaml").read_bytes(), "articles")


def policy(pools: str, more: str = "") -> Policy:
    """A policy of such pools."""
    return read_policy(f"version: 1\npools: {{{pools}}}\n{more}", "p")


def test_a_pool_says_what_a_node_and_all_of_it_cost() -> None:
    """An hour and a month; what stays lit is told too."""
    lit = "t4: {instance_type: g4dn.xlarge, max: 4, spares: {warm: 1}}"
    (line,) = pool_costs(policy(lit, "prices: {overrides: {g4dn.xlarge/on-demand: 0.5}}"), CATALOG)
    assert line == (
        "pool t4: $0.50/h a node on-demand, 4 at most: $2.00/h, $1,460.00 a month; 1 stays lit: $365.00 a month"
    )


SENSE: dict[str, Any] = {
    "a type that is none": (
        "a: {instance_type: g4dn.xlrge}",
        "pools.a.instance_type: g4dn.xlrge is no type of catalogue articles; did you mean g4dn.xlarge?",
    ),
    "a type like no other": ("a: {instance_type: zzz}", "pools.a.instance_type: zzz is no type of catalogue articles;"),
    "spot without a price": (
        "a: {instance_type: p3.8xlarge, capacity_type: spot}",
        "pools.a.capacity_type: no spot price of p3.8xlarge is known",
    ),
}


@pytest.mark.parametrize(("pools", "said"), SENSE.values(), ids=SENSE)
def test_a_pool_that_nothing_is_bought_for_is_told(pools: str, said: str) -> None:
    """With what to write; such a pool has no cost."""
    (line,) = unpriced_pools(policy(pools), CATALOG)
    assert line.startswith(said)
    assert not list(pool_costs(policy(pools), CATALOG))


T4 = "t4: {instance_type: g4dn.xlarge}"
PRICED = "prices: {overrides: {g4dn.xlarge/on-demand: 1}}"
ABOVE: dict[str, Any] = {
    "a run above it": ("usd: 100", "serving: {max_runtime: 7d}", ["serving 168 h, $168.00"]),
    "a run at its last dollar": ("usd: 168", "serving: {max_runtime: 7d}", []),
    "a run of which a day lies in its period": (
        "usd: 23, period: day",
        "serving: {max_runtime: 7d}",
        ["training 24 h, $24.00, serving 24 h, $24.00"],
    ),
    "stretches of a run": ("usd: 100", "serving: {max_runtime: 7d, may_move: [hard-cap]}", []),
    "a class off this pool": ("usd: 9, scope: {class: batch}", "batch: {capacity_types: [spot]}", []),
    "a budget that may be passed": ("usd: 100, hard: false", "serving: {max_runtime: 7d}", []),
    "a budget of another class": ("usd: 100, scope: {class: batch}", "serving: {max_runtime: 7d}", []),
    "a rate": ("usd: 1, period: hour", "serving: {max_runtime: 7d}", []),
}


@pytest.mark.parametrize(("budget", "classes", "said"), ABOVE.values(), ids=ABOVE)
def test_a_run_that_a_hard_budget_can_never_hold_is_noted(budget: str, classes: str, said: list[str]) -> None:
    """With pool, hours, dollars, the budget and the way out; none where it may be held in part, or not at all."""
    rules = policy(T4, f"{PRICED}\nclasses: {{{classes}}}\nbudgets: [{{name: b, {budget}}}]")
    notes = [*runs_above_budgets(rules, CATALOG)]
    assert len(notes) == len(said)
    for note, figures in zip(notes, said, strict=True):
        assert note.startswith("budgets.b: one node of pool t4, held for its longest run, is above all of its $")
        assert f": {figures}" in note
        assert "Write a shorter max_runtime, or may_move: [hard-cap]" in note


NAMES = {
    "a pool": ("'my pool': {instance_type: x}", "", "pools.my pool: 'my pool' is no value of a label"),
    "a label": ("a: {instance_type: x, labels: {'a b': c}}", "", "pools.a.labels.a b: 'a b' is no label"),
    "a label's value": ("a: {instance_type: x, labels: {a: 'b c'}}", "", "pools.a.labels.a: 'b c' is no value"),
    "a taint": (
        "a: {instance_type: x, taints: [{key: 'a b', effect: NoSchedule}]}", "", "pools.a.taints[0]: 'a b=' is no",
    ),
    "a team": ("", "budgets: [{name: b, usd: 1, scope: {team: 'a b'}}]", "budgets[0].scope.team: 'a b' is no value"),
}  # fmt: skip


@pytest.mark.parametrize(("pools", "more", "said"), NAMES.values(), ids=NAMES)
def test_a_name_that_no_label_takes_is_a_fault(pools: str, more: str, said: str) -> None:
    """No node or pod could ever carry it."""
    (line,) = unlabelled_names(policy(pools, more))
    assert line.startswith(said)


BUDGETS = {
    "none": ("", 1),
    "one that may be passed": ("budgets: [{name: b, usd: 9, hard: false}]", 1),
    "one of another pool": ("budgets: [{name: b, usd: 9, hard: true, scope: {pool: b}}]", 1),
    "one of a team": ("budgets: [{name: b, usd: 9, hard: true, scope: {team: t}}]", 1),
    "its own": ("budgets: [{name: b, usd: 9, hard: true, scope: {pool: a}}]", 0),
    "one of all": ("budgets: [{name: b, usd: 9, hard: true}]", 0),
}


@pytest.mark.parametrize(("budgets", "noted"), BUDGETS.values(), ids=BUDGETS)
def test_a_gate_that_no_hard_budget_counts_is_noted(budgets: str, noted: int) -> None:
    """With the NodePool whose limit nobody sets, and the budget to write."""
    pools = "a: {instance_type: x, cluster_pool: 'karpenter:gpu'}, b: {instance_type: x}"
    notes = [*unbounded_gates(policy(pools, budgets))]
    assert len(notes) == noted
    for note in notes:
        assert note.startswith("pools.a: no hard budget counts it, so no limit of NodePool gpu is set; write a budget")


def test_a_pools_name_with_a_misspelt_prefix_is_a_fault() -> None:
    """It would be a pool that no cloud has; the way to write a NodePool's is told."""
    pools = "a: {instance_type: x, cluster_pool: 'Karpenter:gpu'}, b: {instance_type: x, cluster_pool: 'karpenter:gpu'}"
    (line,) = misnamed_pools(policy(pools))
    assert line.startswith("pools.a.cluster_pool: 'Karpenter:gpu' is no name of a pool: write its name at the cloud")
