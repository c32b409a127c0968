"""Plans of random clusters, with two features on at least: what is bought, who waits, what is given back."""

from pathlib import Path
from typing import Any

import pytest
from random_looks import NOW, look_of
from state_tables import differing, minutes

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.homes import NO_HOMES

SEEDS = 240
PART = 40


def _terms(one: Terms) -> str:
    hours = (one.boot_s, one.idle_s, one.run_s, one.stretch_s, one.stop_s, one.calls_s)
    return f"{one.team or '-'}/{one.workload_class or '-'} {' '.join(f'{each / 60:g}' for each in hours)}"


def _said(seed: int, look: dict[str, Any]) -> list[str]:
    made: Plan = plan_cluster(Look(**look))
    out = [f"{seed}: ${made.usd_per_hour_before} to ${made.usd_per_hour_after} an hour; look again {_again(made)}"]
    for buy in made.buys:
        terms = "; ".join(sorted({_terms(one) for one in buy.terms}))
        out.append(
            f"  buy {buy.count} {buy.offering} for {','.join(buy.demands)} {buy.workload_class} {buy.gangs}: {terms}"
        )
    for group in made.pods:
        rejected = "; ".join(f"{one.offering} {one.code or '-'}" for one in group.rejected)
        out.append(f"  {group.verdict} {group.code} {len(group.pods)} {group.where}: {group.why} | {rejected}")
    for node in made.nodes:
        marks = "".join(name[0] for name in ("blocked", "learned", "failed", "stop", "capped") if getattr(node, name))
        out.append(
            f"  {node.verdict} {node.node} {marks} idle {node.idle_s / 60:g} of {node.break_even_s:.0f}: {node.why}"
        )
    homes = made.homes
    if homes != NO_HOMES:
        given = " ".join(f"{one.pod}@{one.home}" for one in homes.tolerate)
        out.append(f"  homes: {given or '-'} | named {homes.name} | open {','.join(homes.open) or '-'}")
    out += [f"  demand {one.pool} {one.nodes} nodes {one.jobs:g} jobs" for one in made.demands]
    out += [f"  held {one.code} {one.count}: {one.why}" for one in made.held]
    out += [f"  {one.code} {one.subject}: {one.message}" for one in made.findings]
    return out


def _again(made: Plan) -> str:
    return minutes(made.look_again_at, NOW)


@pytest.mark.parametrize("part", range(SEEDS // PART))
def test_plans_are_those_of_the_table(part: int) -> None:
    """Forty clusters, each with features of its own, are planned for as the table says."""
    found: list[str] = []
    for seed in range(part * PART, (part + 1) * PART):
        look = look_of(seed)
        look.pop("features")
        found += _said(seed, look)
    assert differing(Path(__file__).with_name(f"plans_{part}.txt"), found) == []
