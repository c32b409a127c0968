"""Records of holds deleted from the state while accounts hold for them: told, never under-counted, given back."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.money.budgets import Account
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.budgets import renew_holds
from pilotlight.flow.observe.snapshot import look
from pilotlight.ports.state import Clock, Page, Stored
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR

DAY = Budget(name="all", usd=Decimal(20), period="day")
RATE = Budget(name="all", usd=Decimal(1), period="hour")
EACH = Decimal(180 + 300 + 7200) / 3600
"""Dollars held for one node at $1: its boot, one idle timeout and the longest run of class batch."""


def stage(budget: Budget) -> Stage:
    """A stage whose pods of class batch may run two hours."""
    return Stage(
        budgets=(budget,), classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)}
    )


def accounts(on: Stage) -> list[Account]:
    """The accounts of the stage's budget, window by window."""
    return [CAP.format.read(key, found.value) for key, found in on.deps.state.scan("cap/").items]


def lose(on: Stage) -> str:
    """Delete the record of the one hold there is; its id."""
    (entry,) = HOLD.scan(on.deps.state)
    HOLD.put(on.deps.state, entry.name, None, over=entry.was)
    return entry.value.id


def bought(on: Stage, name: str = "a") -> None:
    """A pod of ten minutes gets a node, which is lit."""
    on.event(on.submit(name, run_s=600))
    on.minutes(5)
    assert on.nodes("one") == 1


def test_what_was_held_counts_as_spent_until_the_period_ends() -> None:
    """Its node is held for anew, so no look counts less than what is spent; people are told once, with the sum."""
    on = stage(DAY)
    bought(on)
    held = accounts(on)[0].total
    id = lose(on)
    least: list[bool] = []
    on.minutes(60, meanwhile=lambda: least.append(sum(a.total for a in accounts(on)) >= on.world.cost()))
    assert all(least)
    assert not on.world.nodes
    (account,) = accounts(on)
    assert (account.held, account.done) == ({}, {})
    assert account.settled == held + on.world.cost()
    (alert,) = [a for a in on.alerts if a.kind == "finding-budget-lost"]
    assert alert.what == f"hold {id} is gone from the state"
    assert f"${held:.2f} count as spent of $20.00 a day (budget all)" in alert.why


def test_a_rate_has_its_room_back_once_nothing_is_lit_for_it() -> None:
    """Dollars an hour are never fewer than what is lit, and free when it is out: the next pod gets its node."""
    on = stage(RATE)
    bought(on)
    lose(on)
    least: list[bool] = []
    on.minutes(30, meanwhile=lambda: least.append(sum(a.total for a in accounts(on)) >= on.nodes("one")))
    assert all(least)
    assert on.nodes("one") == 0
    bought(on, "b")


def test_a_period_to_come_has_back_what_was_held_in_it() -> None:
    """Of a node that was bought before midnight and may run past it, the lost record leaves nothing in the next day."""
    on = stage(DAY)
    on.wait(11.5 * HOUR)
    bought(on)
    id = lose(on)
    assert any(id in account.held for account in accounts(on)[1:])
    on.minutes(1)
    assert not any(id in account.held for account in accounts(on))
    assert all(account.settled == 0 for account in accounts(on)[1:])


@pytest.mark.parametrize("budget", [DAY, RATE], ids=["dollars a day", "dollars an hour"])
def test_nothing_is_given_back_for_what_is_still_on_its_way(budget: Budget) -> None:
    """A call whose node may yet come keeps what is held for it, whatever became of the record."""
    on = stage(budget)
    on.event(on.submit("a", run_s=600))
    id = lose(on)
    on.tick()
    assert any(id in account.held for account in accounts(on))
    on.minutes(40)
    assert not any(account.held for account in accounts(on))


class Reads(MemoryState):
    """A store that counts how often each key is read."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.reads: Counter[str] = Counter()

    def get(self, key: str) -> Stored | None:
        """Count, and read."""
        self.reads[key] += 1
        return super().get(key)


def test_what_an_adopted_instance_was_charged_is_read_once_a_look() -> None:
    """A node that no hold names is held for anew, after one read of what it was charged for before."""
    on = stage(DAY)
    state = Reads(on.world.clock)
    on.deps = replace(on.deps, state=state)
    bought(on)
    lose(on)
    state.reads.clear()
    renew_holds.keep(on.deps, look(on.deps))
    assert len(list(HOLD.scan(state))) == 1
    assert [count for key, count in state.reads.items() if key.startswith("charged/")] == [1]


class Behind(MemoryState):
    """A store whose lists lag: holds are read by their keys, and not yet listed."""

    lags = False

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Without holds, for a while."""
        if self.lags and prefix.startswith("hold/"):
            return Page(items=(), next="")
        return super().scan(prefix, after=after, limit=limit)


def test_a_hold_that_was_written_since_the_list_was_read_is_not_lost() -> None:
    """Its account holds for it, and its record is there: nothing of it counts as spent."""
    on = stage(DAY)
    state = Behind(on.world.clock)
    on.deps = replace(on.deps, state=state)
    bought(on)
    (entry,) = HOLD.scan(on.deps.state)
    state.lags = True
    on.minutes(1)
    state.lags = False
    (account,) = accounts(on)
    assert entry.value.id in account.held
    assert account.settled == 0
