"""Several hard caps that end at one moment, and caps that end about midnight, with others on the nodes.

Money is counted here from the world's log: launches and terminations times the price.
"""

from decimal import Decimal

import pytest
from cap_stage import KEEP, STOP, days, pod
from stage import Stage

from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import PoolPolicy
from pilotlight.units import HOUR
from pilotlight.world.residents import Resident

POOL = {"one": PoolPolicy(instance_type="one", max=30)}
TEAMS = ("red", "green", "blue")


def blockers(on: Stage) -> None:
    """On each node a guarded pod of an hour's grace, and one that comes back at once."""
    for node in sorted(on.world.nodes):
        on.world.residents.put(node, Resident(f"db-{node}", "PDB", guarded=True, takes_s=None, grace_s=HOUR))
        on.world.residents.put(node, Resident(f"again-{node}", "local storage", returns=True))


@pytest.mark.parametrize("run_s", [40 * HOUR, 3 * HOUR], ids=["at work", "idle by then"])
def test_several_caps_that_end_at_one_moment_are_each_kept(run_s: float) -> None:
    """Three teams' caps and one for all end together: no team's nodes pass its own, nor all of them theirs."""
    own = [Budget(name=t, scope=BudgetScope(team=t), usd=Decimal(20), period="day") for t in TEAMS]
    everybody = Budget(name="all", usd=Decimal(60), period="day")
    on = Stage(budgets=(*own, everybody), classes={"batch": STOP, "serving": KEEP}, pools=POOL)
    for team in TEAMS:
        for n in range(4):
            made = pod(on, f"{team}{n}", run_s, team=team)
        on.event(made)
    on.minutes(5)
    placed = [(each.node.id, job) for job in on.world.running.values() for each in job.placement]
    owner = {node: job.demands[0].shape.team for node, job in placed}
    assert len(owner) == 12
    blockers(on)
    on.minutes(8 * 60)
    assert max(days(on)) <= 60
    ends = {r["node"]: r["t"] for r in on.events("terminate")}
    for team in TEAMS:
        lived = [(r["t"], ends.get(r["node"], on.world.now_s)) for r in on.events("launch") if owner[r["node"]] == team]
        assert sum(end - begin for begin, end in lived) / HOUR <= 20


@pytest.mark.parametrize("usd", [11, 12, 13, 24])
def test_a_cap_that_ends_about_midnight_is_kept_on_either_side(usd: int) -> None:
    """Begun at noon, a node whose cap lasts to midnight and one that ends just before or after it pass no day's cap."""
    budget = Budget(name="all", usd=Decimal(usd), period="day")
    on = Stage(budgets=(budget,), classes={"batch": STOP, "serving": KEEP}, pools=POOL)
    on.event(pod(on, "a", 60 * HOUR, grace_s=1200))
    on.event(pod(on, "b", 600))
    on.minutes(20)
    blockers(on)
    on.minutes(30 * 60)
    assert len(days(on)) == 2
    assert max(days(on)) <= usd
