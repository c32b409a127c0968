"""The judge of hard budgets: what nodes cost beyond one is what was lit while nobody could look, and people know."""

from decimal import Decimal

import pytest
from harness.faults.luck import Outage
from harness.judges.hard_caps import passed, unseen
from harness.judges.strangers_books import StrangersBooks

from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import Policy
from pilotlight.units import HOUR

STORE = Outage("state", HOUR, 2 * HOUR)


def _four_hours() -> StrangersBooks:
    """A node at a dollar an hour that was lit for four hours, under a hard budget of three dollars a day."""
    books = StrangersBooks(Policy(version=1, budgets=(Budget(name="day", usd=Decimal(3), period="day"),)))
    books.log({"event": "launch", "node": "n1", "type": "one", "capacity_type": "on-demand", "t": 0.0})
    terms = Terms(
        pool="one-on-demand",
        team="",
        workload_class="batch",
        usd_per_hour=Decimal(1),
        gpus=1,
        boot_s=0,
        idle_s=0,
        run_s=HOUR,
        run_source="",
        typical_s=HOUR,
    )
    books.bought(["n1"], (terms,), HOUR)
    books.log({"event": "terminate", "node": "n1", "t": 4 * HOUR})
    return books


@pytest.mark.parametrize(
    ("down", "told", "says"),
    [
        pytest.param((), True, "passed by 1.00, and 0.00 were lit in outages", id="nothing was down"),
        pytest.param((STORE,), True, "", id="the store was down for that long"),
        pytest.param((STORE,), False, "nobody was told", id="and nobody was told"),
        pytest.param((STORE._replace(port="channel"),), True, "0.00 were lit", id="a channel stops no look"),
        pytest.param((STORE, STORE._replace(port="pools")), True, "", id="an hour in which two are down is one hour"),
        pytest.param((STORE._replace(end_s=1.5 * HOUR),), True, "0.52 were lit", id="it was down for half of that"),
    ],
)
def test_what_is_beyond_a_hard_budget(down: tuple[Outage, ...], told: bool, says: str) -> None:
    """An overrun is a violation but for what was lit in an outage of store, API server or cloud, where that is told."""
    found = list(passed(_four_hours(), 5 * HOUR, down, lambda name, day: told))
    assert [says in line for line in found] == ([True] if says else [])


def test_a_cluster_at_which_no_look_ends_is_unseen() -> None:
    """Workers that die one after the other see to no budget; two looks a few minutes apart do."""
    assert list(unseen((60.0, 300.0, 1500.0), 1600.0)) == [Outage("cluster", 300.0, 1500.0)]
