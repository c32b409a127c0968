"""The most that may have been spent unseen, in many states, as a table has it: by pools, caps and what is lit."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, states

from pilotlight.decide.money.budget_limits import meters
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Caps
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.flow.budgets.recounts import most, restore_finding
from pilotlight.flow.observe.snapshot import look

CHOICES: dict[str, Any] = {
    "since": (-120, 0, -5, -2000),
    "most one": (2, 0, 20),
    "most eight": (1, 0, 3),
    "nodes": (None, 1, 2, 9),
    "gpus": (None, 1, 8, 9, 40),
    "usd": (None, "2", "33", "500"),
    "measure": ("usd", "gpu_hours"),
    "scope": ("all", "pool one", "pool eight", "team red"),
    "period": ("day", "week"),
    "lit": (True, False),
    "said": ((), ("$1 of $6 a day",), ("a", "b")),
}


def test_what_may_have_been_spent_unseen_is_that_of_the_table() -> None:
    """The dearest nodes that pools and caps let be lit at once, for as long, less what is lit now and held for."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=90_000))
    stage.minutes(30)
    seen, found = look(stage.deps), []
    bare = msgspec.structs.replace(seen, view=msgspec.structs.replace(seen.view, nodes=()))
    for state in states(300, CHOICES):
        usd = state["usd"]
        policy = Policy(
            version=1,
            pools={name: PoolPolicy(instance_type=name, max=state[f"most {name}"]) for name in ("one", "eight")},
            caps=Caps(nodes=state["nodes"], gpus=state["gpus"], usd_per_hour=None if usd is None else Decimal(usd)),
        )
        kind, _, name = state["scope"].partition(" ")
        scope: Any = BudgetScope(**{kind: name}) if name else "all"
        limits: Any = {state["measure"]: Decimal(9)}
        (meter,) = meters([Budget(name="b", period=state["period"], scope=scope, **limits)], seen.now)
        since = seen.now + timedelta(minutes=state["since"])
        own = seen if state["lit"] else bare
        figure = most(replace(stage.deps, policy=policy), own, meter, since)
        told = restore_finding(msgspec.structs.replace(own, lost_since=since), state["said"])
        found.append(line(CHOICES, state, f"{figure:.3f} {told.message}"))
    empty = msgspec.structs.replace(seen, lost_since=seen.now - timedelta(days=401))
    found.append(restore_finding(empty, ()).message)
    assert differing(Path(__file__).with_name("unseen_spend.txt"), found) == []
