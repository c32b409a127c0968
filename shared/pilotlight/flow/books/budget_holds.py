"""Budget holds in the state: reserved before a purchase, settled when the node stops. ``keeper`` moves them on.

A hold (``hold/<cluster>/<decision>.<call>.<node>``) lists every account before anything is held for it there. It ends
once, by compare-and-set; then each account settles what it holds for it, then it is closed, then the accounts forget
it, then it is deleted. So a crash between any two steps leaves a hold that the next look finds, every step can be done
twice by anyone, and a worker that comes late changes nothing. Without budgets nothing here reads or writes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.capacity.runs import typical
from pilotlight.decide.money import account as moves
from pilotlight.decide.money.budget import held, life, meters, opened, refusal, used
from pilotlight.decide.money.ladder import refuses
from pilotlight.errors import Conflict
from pilotlight.facts.budget import Account, Balance, Charged, Hold, Meter, Money, Runs, Terms
from pilotlight.facts.decisions import Buy, NodeVerdict, Record
from pilotlight.facts.policy import Budget
from pilotlight.flow.books import accounts, ladder
from pilotlight.flow.deps import Deps
from pilotlight.flow.memory import ledger
from pilotlight.ports import ABSENT
from pilotlight.state_schema.books import CHARGED, HOLD, RUNS
from pilotlight.state_schema.table import Entry


def balances(deps: Deps, now: datetime) -> Money:
    """How far each budget is used now, and in windows ahead."""
    found = meters(deps.policy.budgets, now)
    totals = tuple(each for meter in found for each in balances_of(meter, accounts.ahead(deps, meter)))
    return Money(balances=totals, typical=typical(known_runs(deps)), steps=ladder.steps(deps.state, deps.name))


def balances_of(meter: Meter, known: dict[str, Account]) -> list[Balance]:
    """The balance of a meter, and of every later window of its limit in which something is held."""
    sums: dict[str, Decimal] = {meter.key: Decimal(0)}
    for name, account in known.items():
        key = accounts.meter_key(name)
        sums[key] = sums.get(key, Decimal(0)) + account.total
    return [Balance(meter=each, total=sums[each.key]) for each in accounts.windows_of(meter, sums)]


def reserve(deps: Deps, decision: str, index: int, nodes: Sequence[Terms], now: datetime) -> str:
    """Hold what a purchase may cost, a hold a node, before it is made: all or nothing. The refusal, or empty.

    Doing it again is doing it once: holds are named by the decision, the number of its call, and that of the node.
    """
    if not deps.policy.budgets:
        return ""
    steps = ladder.steps(deps.state, deps.name)
    for each in nodes if steps else ():
        if stopped := refuses(steps, each.pool, each.workload_class, each.team, now):
            return stopped
    fresh = [opened(f"{decision}.{index}.{n}", decision, terms, now) for n, terms in enumerate(nodes)]
    by_meter = _counted(deps.policy.budgets, fresh)
    written = _written(deps, fresh, by_meter)
    refused = _held(deps, f"{decision}.{index}.", written, by_meter)
    if refused:
        give_back(deps, written, now)
    return refused


def _counted(budgets: Sequence[Budget], fresh: Sequence[Hold]) -> dict[str, tuple[Meter, list[Hold]]]:
    """Which meters count which of the holds."""
    out: dict[str, tuple[Meter, list[Hold]]] = {}
    for hold in fresh:
        for meter in life(budgets, hold, max(hold.until, hold.binds_until)):
            if held(meter, hold):
                out.setdefault(meter.key, (meter, []))[1].append(hold)
    return out


def _written(deps: Deps, fresh: Sequence[Hold], by_meter: dict[str, tuple[Meter, list[Hold]]]) -> list[Hold]:
    """The holds as they are in the state, each with its accounts. What an earlier attempt wrote stays as it is."""
    named: defaultdict[str, list[str]] = defaultdict(list)
    for meter, own in by_meter.values():
        names = accounts.read(deps, meter).names(len(own))
        accounts.opened(deps, meter, names[-1])
        for hold, name in zip(own, names, strict=True):
            named[hold.id].append(name)
    out: list[Hold] = []
    for hold in fresh:
        listed = msgspec.structs.replace(hold, accounts=tuple(named[hold.id]))
        try:
            HOLD.put(deps.state, f"{deps.name}/{hold.id}", listed, if_version=ABSENT)
            out.append(listed)
        except Conflict:
            found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
            out += [found.value] if found else []
    return out


def _held(deps: Deps, prefix: str, holds: Sequence[Hold], by_meter: dict[str, tuple[Meter, list[Hold]]]) -> str:
    def alive(ids: Iterable[str]) -> bool:
        found = HOLD.scan(deps.state, f"{deps.name}/{prefix}")
        return {entry.value.id for entry in found if entry.value.ended_at is None}.issuperset(ids)

    for meter, _ in by_meter.values():
        wanted: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
        for hold in holds:
            for name in hold.accounts:
                if accounts.meter_key(name) == meter.key:
                    wanted[name][hold.id] = held(meter, hold)
        for name, own in wanted.items():
            if not accounts.reserve(deps, meter, name, own, partial(alive, own)):
                after = accounts.total(deps, meter) + sum(own.values(), Decimal(0))
                return refusal(meter, after, next(h.terms for h in holds if h.id in own))
    return ""


def give_back(deps: Deps, holds: Iterable[Hold], now: datetime) -> None:
    """Nothing was bought for these: all they held is free again. One whose instance is known by now is left."""
    for hold in holds:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        if found is not None and (not found.value.instance or found.value.ended_at is not None):
            end(deps, found, now, void=True)


def stop(deps: Deps, hold: Hold, ended_at: datetime) -> None:
    """A node has stopped: its real cost is settled, the rest of its hold is free again."""
    found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
    if found is not None:
        end(deps, found, ended_at)


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
    found = listed(deps, found, touched)
    for meter in touched:
        cost = used(meter, found.value, ended_at)
        extend(deps, found.value, meter, cost, least=cost)
    return write(deps, found, ended_at=ended_at, void=void)


def _settle(deps: Deps, found: Entry[Hold]) -> None:
    hold = found.value
    assert hold.ended_at is not None
    lived = {m.key: m for m in life(deps.policy.budgets, hold, hold.ended_at)} | _of_its_accounts(deps, hold)
    if hold.instance and not hold.void:
        fresh = Charged(hold=hold.id, until=hold.ended_at)
        CHARGED.change(deps.state, f"{deps.name}/{hold.instance}", partial(_later, fresh=fresh))
    names = list(dict.fromkeys([*hold.accounts, *(k for k in lived if not _is_listed(hold, k))]))
    for name in names:
        meter = lived.get(accounts.meter_key(name))
        accounts.change(deps, name, partial(_settled, hold=hold, meter=meter), partial(_is_open, deps, found.name))
    if not hold.closed:
        found = write(deps, found, closed=True)
    for name in names:
        accounts.change(deps, name, partial(moves.forgotten, id=hold.id))
    HOLD.delete(deps.state, found.name, if_version=found.version)


def _of_its_accounts(deps: Deps, hold: Hold) -> dict[str, Meter]:
    """The windows that a hold is listed in, as far as the policy still has them."""
    keys = {accounts.meter_key(name) for name in hold.accounts}
    first = meters(deps.policy.budgets, hold.since)
    own = {meter.key.rpartition("/")[0]: meter for meter in first}
    found = (
        each
        for limit, meter in own.items()
        for each in accounts.windows_of(meter, {key for key in keys if key.rpartition("/")[0] == limit})
    )
    return {meter.key: meter for meter in found}


def _settled(account: Account, hold: Hold, meter: Meter | None) -> Account:
    """At real cost. What is held in a window that the policy does not know any more is taken for spent.

    Where nothing is held it is marked: whoever was about to hold for it finds another version.
    """
    assert hold.ended_at is not None
    if hold.id not in account.held:
        return moves.marked(account, hold.id)
    if hold.void or (meter is not None and meter.end is None):
        cost = Decimal(0)
    else:
        cost = used(meter, hold, hold.ended_at) if meter else account.held.get(hold.id, Decimal(0))
    return moves.settled(account, hold.id, cost)


def _later(was: Charged | None, fresh: Charged) -> Charged:
    return was if was is not None and was.until >= fresh.until else fresh


def _is_open(deps: Deps, name: str) -> bool:
    found = HOLD.get(deps.state, name)
    return found is not None and not found.value.closed


def _is_listed(hold: Hold, key: str) -> bool:
    return any(accounts.meter_key(name) == key for name in hold.accounts)


def _charged_by_another(deps: Deps, hold: Hold) -> bool:
    """Whether another hold was charged for this one's instance after the look that gave it to this one."""
    if not hold.instance or hold.matched_at is None:
        return False
    found = CHARGED.get(deps.state, f"{deps.name}/{hold.instance}")
    return found is not None and found.value.hold != hold.id and found.value.until >= hold.matched_at


def write(deps: Deps, found: Entry[Hold], **fields: object) -> Entry[Hold]:
    """Write a hold with other fields over the version that was read. Raises ``Conflict``."""
    after = msgspec.structs.replace(found.value, **fields)
    return Entry(found.name, HOLD.put(deps.state, found.name, after, if_version=found.version), after)


def listed(deps: Deps, found: Entry[Hold], touched: Iterable[Meter]) -> Entry[Hold]:
    """The hold with an account listed for each of these meters."""
    fresh = [meter for meter in touched if not _is_listed(found.value, meter.key)]
    if not fresh:
        return found
    names = [accounts.read(deps, meter).names(1)[0] for meter in fresh]
    for meter, name in zip(fresh, names, strict=True):
        accounts.opened(deps, meter, name)
    return write(deps, found, accounts=(*found.value.accounts, *names))


def extend(deps: Deps, hold: Hold, meter: Meter, wanted: Decimal, least: Decimal) -> Account:
    """Raise what a live hold has in a meter's account to what is wanted, if that fits; else to what is owed."""
    name = account_of(hold, meter)

    def alive() -> bool:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        return found is not None and found.value.ended_at is None

    def update(account: Account) -> Account:
        return moves.extended(account, hold.id, wanted, parts.limit(name, account), least)

    parts = accounts.read(deps, meter)
    if len(parts) > 1:
        own = next((e.value.held.get(hold.id, Decimal(0)) for e in parts if e.name == name), Decimal(0))
        accounts.gather(deps, meter, name, max(wanted, least) - own)
        parts = accounts.read(deps, meter)
    return accounts.change(deps, name, update, alive)


def account_of(hold: Hold, meter: Meter) -> str:
    """The part of a meter's account that a hold is listed in."""
    return next((name for name in hold.accounts if accounts.meter_key(name) == meter.key), meter.key)


def after(deps: Deps, record: Record) -> None:
    """Settle the nodes that a decision has just given back, and free what the cloud did not sell it."""
    if not deps.policy.budgets or all(step.open for step in record.steps):
        return
    gone = {
        call.instance or call.node
        for call, step in record.made
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
    found = (ledger.filed(deps.state, deps.name, decision) for decision in sorted(asked))
    return {id for record in found if record is not None for id in _unsold(record)}


def _unsold(record: Record) -> set[str]:
    return {
        f"{record.id}.{step.n}.{n}"
        for call, step in record.made
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


def every(deps: Deps) -> list[Entry[Hold]]:
    """Every hold of the cluster, with the version that was read."""
    return list(HOLD.scan(deps.state, f"{deps.name}/"))


def soft(deps: Deps) -> bool:
    """Whether some budget holds typical runs only."""
    return not all(budget.hard for budget in deps.policy.budgets)


def known_runs(deps: Deps) -> Runs:
    """The runs seen so far, where a budget asks for them."""
    found = RUNS.get(deps.state, deps.name) if soft(deps) else None
    return found.value if found else Runs()
