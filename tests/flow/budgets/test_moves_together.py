"""Holds that move on together, while another worker buys, or ends one of them: no dollar is lost or held twice."""

from collections.abc import Callable
from dataclasses import replace as with_fields
from decimal import Decimal

from msgspec.structs import replace
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.budget_limits import terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.budgets import budget_holds, renew_holds
from pilotlight.flow.observe.snapshot import Snapshot, look
from pilotlight.ports.state import Page
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR, Seconds


class Meanwhile(MemoryState):
    """A store in which another worker does something just before a call to an account, once."""

    before = ""
    does: Callable[[], object]

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """After what the other does."""
        self._other("put", key)
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """After what the other does."""
        self._other("scan", prefix)
        return super().scan(prefix, after=after, limit=limit)

    def _other(self, call: str, key: str) -> None:
        if self.before == call and key.startswith("cap/"):
            self.before = ""
            self.does()


def lit(usd: str) -> tuple[Stage, Meanwhile, Snapshot]:
    """Three nodes that a budget holds, and a look once all are to be moved on."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(usd), period="day"),))
    state = Meanwhile(on.world.clock)
    on.deps = with_fields(on.deps, state=state)
    for name in ("a", "b", "c"):
        on.event(on.submit(name, run_s=5 * HOUR))
    on.minutes(8)
    holds = [entry.value for entry in HOLD.scan(state, "c/")]
    assert len({hold.instance for hold in holds} - {""}) == 3
    return on, state, replace(look(on.deps), now=max(hold.binds_until for hold in holds))


def test_a_purchase_while_holds_move_on_is_neither_lost_nor_over_the_limit() -> None:
    """Another's write of the account comes first: the look asks again, and holds beside it what there is room for."""
    on, state, seen = lit("1000")
    own = terms(on.deps.offerings[0], on.deps.policy, workload_class="batch", team="")
    state.before, state.does = "put", lambda: budget_holds.reserve(on.deps, "d", 0, [own], seen.now)
    renew_holds.keep(on.deps, seen)
    bought = HOLD.get(state, "c/d.0.0")
    assert bought is not None
    found = {entry.name.removeprefix("c/"): entry.value for entry in CAP.scan(state)}
    assert {name for name, account in found.items() if "d.0.0" in account.held} == {*bought.value.accounts}
    assert all(entry.value.total <= 1000 for entry in CAP.scan(state))
    assert all(entry.value.binds_until > seen.now for entry in HOLD.scan(state, "c/"))


def test_a_hold_that_another_ended_since_the_look_is_not_held_for_again() -> None:
    """Its account has settled and forgotten it, its record is gone: nothing is held for it, the others move on."""
    on, state, seen = lit("1000")
    (gone, *others) = [entry.value for entry in HOLD.scan(state, "c/")]
    state.before, state.does = "scan", lambda: budget_holds.settle(on.deps, {gone.instance}, ())
    renew_holds.keep(on.deps, seen)
    held = {id for entry in CAP.scan(state) for id in entry.value.held}
    assert held == {hold.id for hold in others}
    assert {entry.value.id for entry in HOLD.scan(state, "c/")} == held
