"""Holds on budgets: what a purchase may cost is held before it is made, all or nothing, and settled once its node ends.

``renew_holds`` moves holds on in between. A hold ends once, by compare-and-set: at real cost where a node stopped, void
where nothing was bought. Then each account settles what it holds for it, then it is closed, then the accounts forget
it, then it is deleted. So a crash between any two steps leaves a hold that the next look finds, every step can be done
twice by anyone, and a worker that comes late changes nothing. Without budgets nothing here reads or writes.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from msgspec.structs import replace

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_ladder import refuses
from pilotlight.decide.money.budget_limits import counted_by, life, meters, open_hold, unpaid, used_amount, window
from pilotlight.errors import Conflict
from pilotlight.facts.decisions import Buy, NodeVerdict, Record
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import (
    Account,
    Charged,
    HeldPrice,
    Hold,
    Ladder,
    Meter,
    Money,
    StepInForce,
    Terms,
)
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.billing_records import CHARGED, HELD_PRICE, HOLD, LADDER
from pilotlight.state_schema.table import Kept
from pilotlight.units import Seconds

NOTHING_KNOWN = Memory()


def balances(deps: Deps, now: datetime, memory: Memory = NOTHING_KNOWN) -> Money:
    """Balances of each budget, now and in windows ahead, with the median runs that are remembered."""
    found = meters(deps.policy.budgets, now)
    ahead = budget_accounts.ahead(deps, found).values()
    totals = tuple(
        each
        for meter, read in zip(found, ahead, strict=True)
        for each in budget_accounts.balances_of(meter, {name: entry.value for name, entry in read.items()})
    )
    return Money(balances=totals, typical=typical_runs(deps, memory), steps=steps_in_force(deps.state, deps.name))


def reserve(deps: Deps, decision: str, index: int, nodes: Sequence[Terms], now: datetime) -> str:
    """Hold what a purchase may cost, a hold a node, before it is made: all or nothing. The refusal, or empty.

    Doing it again is doing it once: holds are named by the decision, the number of its call, and that of the node.
    """
    if not deps.policy.budgets:
        return ""
    steps = steps_in_force(deps.state, deps.name)
    for each in nodes if steps else ():
        if stopped := refuses(steps, each.pool, each.workload_class, each.team, now):
            return stopped
    for each in nodes:
        if nobody := unpaid(deps.policy.budgets, each):
            return nobody
    fresh = [open_hold(f"{decision}.{index}.{n}", decision, terms, now) for n, terms in enumerate(nodes)]
    by_meter = counted_by(deps.policy.budgets, fresh)
    written = budget_accounts.write_holds(deps, fresh, by_meter)
    refused = budget_accounts.hold_amounts(deps, f"{decision}.{index}.", written, by_meter)
    if refused:
        void_holds(deps, written, now)
    return refused


def read_ladder(state: State, cluster: str) -> tuple[Ladder, int]:
    """Where the budgets stand on their ladders, and the version that was read."""
    found = LADDER.get(state, cluster)
    return (found.value, found.version) if found else (Ladder(), ABSENT)


def steps_in_force(state: State, cluster: str) -> tuple[StepInForce, ...]:
    """The steps of ladders that rule purchases out."""
    return tuple(rung.step for rung in read_ladder(state, cluster)[0].rungs.values() if rung.step is not None)


def typical_runs(deps: Deps, memory: Memory) -> dict[str, Seconds]:
    """The median run by class; only soft budgets ask for it."""
    if all(budget.hard for budget in deps.policy.budgets):
        return {}
    from pilotlight.decide.demand.run_lengths import median_run_s

    return median_run_s(memory)


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
    """Settle holds by the instances that were given back, and free those, by id, for which nothing was bought.

    The oldest first: of two that name one instance, amid a hand-over, it pays for all that is not paid for.
    """
    gone, unsold, now = set(gone), set(unsold), deps.now()
    for found in sorted(budget_accounts.every_hold(deps), key=lambda found: found.value.since):
        if found.value.instance in gone:
            end(deps, found, now)
        elif found.value.id in unsold and not found.value.instance:
            end(deps, found, now, void=True)


def void_holds(deps: Deps, holds: Iterable[Hold], now: datetime) -> None:
    """Nothing was bought for these: all they held is free again. One whose instance is known by now is left."""
    for hold in holds:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        if found is not None and (not found.value.instance or found.value.ended_at is not None):
            end(deps, found, now, void=True)


def end(deps: Deps, found: Kept[Hold], ended_at: datetime, *, void: bool = False) -> None:
    """End a hold as it was read, and settle it; one that has ended is settled. Whoever changed it meanwhile goes on."""
    try:
        if found.value.ended_at is None:
            found = _ended(deps, found, ended_at, void or _charged_by_another(deps, found.value))
        _settle(deps, found)
    except Conflict:
        return


def _ended(deps: Deps, found: Kept[Hold], ended_at: datetime, void: bool) -> Kept[Hold]:
    """Every account of the life holds something before the hold ends: only what is held is settled."""
    touched = () if void else life(deps.policy.budgets, found.value, ended_at)
    found = budget_accounts.list_in_accounts(deps, found, touched)
    for meter in touched:
        cost = used_amount(meter, found.value, ended_at)
        budget_accounts.extend(deps, found.value, meter, cost, least=cost)
    return budget_accounts.write_hold(deps, found, ended_at=ended_at, void=void)


def _settle(deps: Deps, found: Kept[Hold]) -> None:
    hold = found.value
    assert hold.ended_at is not None
    lived = {m.key: m for m in life(deps.policy.budgets, hold, hold.ended_at)} | _of_its_accounts(deps, hold)
    if hold.instance and not hold.void:
        fresh = Charged(hold=hold.id, until=hold.ended_at)
        CHARGED.change(deps.state, f"{deps.name}/{hold.instance}", partial(_later, fresh=fresh))
    names = list(dict.fromkeys([*hold.accounts, *(k for k in lived if not budget_accounts.is_listed(hold, k))]))
    for name in names:
        meter = lived.get(budget_accounts.meter_key(name))
        budget_accounts.change(
            deps, name, partial(_settled, hold=hold, meter=meter), partial(_is_open, deps, found.name)
        )
    if not hold.closed:
        found = budget_accounts.write_hold(deps, found, closed=True)
    for name in names:
        budget_accounts.change(deps, name, partial(moves.forget_done, id=hold.id))
    tell_prices(deps, [hold])
    HOLD.put(deps.state, found.name, None, over=found.was)


def _of_its_accounts(deps: Deps, hold: Hold) -> dict[str, Meter]:
    """The windows that a hold is listed in, as far as the policy still has them; those before its node came, too."""
    keys = {budget_accounts.meter_key(name) for name in hold.accounts}
    found: dict[str, Meter] = {}
    for meter in meters(deps.policy.budgets, hold.since):
        own = {key for key in keys if budget_accounts.limit_key(key) == budget_accounts.limit_key(meter.key)}
        while meter.end is not None and min(own, default=meter.key) < meter.key:
            start, end = window(meter.budget, meter.start - timedelta(seconds=1))
            meter = replace(meter, start=start, end=end)
        found |= {each.key: each for each in budget_accounts.windows_of(meter, own)}
    return found


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
    if found is None or found.value.hold == hold.id:
        return False
    return found.value.until >= hold.matched_at and found.value.until > hold.since


LATE = timedelta(hours=1)
"""A price may be told so long after a look of the meter that should have known of it began."""


def tell_prices(deps: Deps, holds: Iterable[Hold]) -> set[str]:
    """Tell of holds, as their records are, whose prices changed or are not their pool's. The ids of those."""
    prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
    fresh = [hold for hold in holds if hold.instance and not (hold.told or hold.void)]
    fresh = [hold for hold in fresh if hold.earlier or prices.get(hold.terms.pool) != hold.terms.usd_per_hour]
    if fresh:
        found = {h.instance: HeldPrice(usd_per_hour=h.terms.usd_per_hour, earlier=h.earlier) for h in fresh}
        HELD_PRICE.add(deps.state, f"{deps.name}/{_hour(deps.state.now())}", found)
    return {hold.id for hold in fresh}


def prices_since(deps: Deps, seen: datetime | None) -> dict[str, HeldPrice]:
    """The prices by instance that a meter which has looked up to ``seen`` may not know; what was told last counts."""
    after = f"{deps.name}/{_hour(seen - LATE)}" if seen is not None else ""
    found: dict[str, HeldPrice] = {}
    for entry in HELD_PRICE.table.scan(deps.state, f"{deps.name}/", after=after):
        found |= entry.value.items
    return found


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H}"
