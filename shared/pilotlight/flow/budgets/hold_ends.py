"""Ends of holds: at real cost where a node stopped, void where nothing was bought.

A hold ends once, by compare-and-set; then each account settles what it holds for it, then it is closed, then the
accounts forget it, then it is deleted. So a crash between any two steps leaves a hold that the next look finds, every
step can be done twice by anyone, and a worker that comes late changes nothing.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from functools import partial

from pilotlight.decide.money import account as moves
from pilotlight.decide.money.budget_limits import life, meters, used_amount
from pilotlight.errors import Conflict
from pilotlight.facts.decisions import Buy, NodeVerdict, Record
from pilotlight.facts.money.budgets import Account, Charged, Hold, Meter
from pilotlight.flow.budgets import budget_accounts, held_prices
from pilotlight.flow.budgets.hold_records import every, extend, is_listed, list_in_accounts, write
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.state_schema.billing_records import CHARGED, HOLD
from pilotlight.state_schema.table import Entry


def settle_decision(deps: Deps, record: Record) -> None:
    """Settle the nodes that a decision has just given back, and free what the cloud did not sell it."""
    if not deps.policy.budgets or all(step.open for step in record.steps):
        return
    gone = {
        call.instance or call.node
        for call, step in record.calls_with_steps
        if isinstance(call, NodeVerdict) and step.state == "done"
    }
    nothing = _unsold(record)
    if gone or nothing:
        settle(deps, gone, nothing)


def unsold(deps: Deps, holds: Iterable[Hold], unresolved: AbstractSet[str]) -> set[str]:
    """The holds without an instance, by id, for which nothing was bought, as their filed decisions say.

    A worker that came late, or died at the wrong moment, left them: an instance of their pool is another's.
    """
    asked = {h.decision for h in holds if not h.instance and h.ended_at is None} - unresolved - {""}
    found = (ledger.filed_decision(deps.state, deps.name, decision) for decision in sorted(asked))
    return {id for record in found if record is not None for id in _unsold(record)}


def _unsold(record: Record) -> set[str]:
    return {
        f"{record.id}.{step.n}.{n}"
        for call, step in record.calls_with_steps
        if isinstance(call, Buy) and step.state in ("denied", "unknown", "revoked")
        for n in range(step.count, call.count)
    }


def settle(deps: Deps, gone: Iterable[str], unsold: Iterable[str]) -> None:
    """Settle holds by the instances that were given back, and free those, by id, for which nothing was bought."""
    gone, unsold, now = set(gone), set(unsold), deps.now()
    for found in every(deps):
        if found.value.instance in gone:
            end(deps, found, now)
        elif found.value.id in unsold and not found.value.instance:
            end(deps, found, now, void=True)


def give_back(deps: Deps, holds: Iterable[Hold], now: datetime) -> None:
    """Nothing was bought for these: all they held is free again. One whose instance is known by now is left."""
    for hold in holds:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        if found is not None and (not found.value.instance or found.value.ended_at is not None):
            end(deps, found, now, void=True)


def end(deps: Deps, found: Entry[Hold], ended_at: datetime, *, void: bool = False) -> None:
    """End a hold as it was read, and settle it; one that has ended is settled. Whoever changed it meanwhile goes on."""
    try:
        if found.value.ended_at is None:
            found = _ended(deps, found, ended_at, void or _charged_by_another(deps, found.value))
        _settle(deps, found)
    except Conflict:
        return


def _ended(deps: Deps, found: Entry[Hold], ended_at: datetime, void: bool) -> Entry[Hold]:
    """Every account of the life holds something before the hold ends: only what is held is settled."""
    touched = () if void else life(deps.policy.budgets, found.value, ended_at)
    found = list_in_accounts(deps, found, touched)
    for meter in touched:
        cost = used_amount(meter, found.value, ended_at)
        extend(deps, found.value, meter, cost, least=cost)
    return write(deps, found, ended_at=ended_at, void=void)


def _settle(deps: Deps, found: Entry[Hold]) -> None:
    hold = found.value
    assert hold.ended_at is not None
    lived = {m.key: m for m in life(deps.policy.budgets, hold, hold.ended_at)} | _of_its_accounts(deps, hold)
    if hold.instance and not hold.void:
        fresh = Charged(hold=hold.id, until=hold.ended_at)
        CHARGED.change(deps.state, f"{deps.name}/{hold.instance}", partial(_later, fresh=fresh))
    names = list(dict.fromkeys([*hold.accounts, *(k for k in lived if not is_listed(hold, k))]))
    for name in names:
        meter = lived.get(budget_accounts.meter_key(name))
        budget_accounts.change(
            deps, name, partial(_settled, hold=hold, meter=meter), partial(_is_open, deps, found.name)
        )
    if not hold.closed:
        found = write(deps, found, closed=True)
    for name in names:
        budget_accounts.change(deps, name, partial(moves.forget_done, id=hold.id))
    held_prices.tell(deps, [hold])
    HOLD.delete(deps.state, found.name, if_version=found.version)


def _of_its_accounts(deps: Deps, hold: Hold) -> dict[str, Meter]:
    """The windows that a hold is listed in, as far as the policy still has them."""
    keys = {budget_accounts.meter_key(name) for name in hold.accounts}
    first = meters(deps.policy.budgets, hold.since)
    own = {meter.key.rpartition("/")[0]: meter for meter in first}
    found = (
        each
        for limit, meter in own.items()
        for each in budget_accounts.windows_of(meter, {key for key in keys if key.rpartition("/")[0] == limit})
    )
    return {meter.key: meter for meter in found}


def _settled(account: Account, hold: Hold, meter: Meter | None) -> Account:
    """At real cost. What is held in a window that the policy does not know any more is taken for spent.

    Where nothing is held it is marked: whoever was about to hold for it finds another version.
    """
    assert hold.ended_at is not None
    if hold.id not in account.held:
        return moves.mark_done(account, hold.id)
    if hold.void or (meter is not None and meter.end is None):
        cost = Decimal(0)
    else:
        cost = used_amount(meter, hold, hold.ended_at) if meter else account.held.get(hold.id, Decimal(0))
    return moves.settle_hold(account, hold.id, cost)


def _later(was: Charged | None, fresh: Charged) -> Charged:
    return was if was is not None and was.until >= fresh.until else fresh


def _is_open(deps: Deps, name: str) -> bool:
    found = HOLD.get(deps.state, name)
    return found is not None and not found.value.closed


def _charged_by_another(deps: Deps, hold: Hold) -> bool:
    """True where another hold was charged for this one's instance after the look that gave it to this one."""
    if not hold.instance or hold.matched_at is None:
        return False
    found = CHARGED.get(deps.state, f"{deps.name}/{hold.instance}")
    return found is not None and found.value.hold != hold.id and found.value.until >= hold.matched_at
