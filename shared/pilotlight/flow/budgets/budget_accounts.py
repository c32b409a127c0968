"""Accounts in the state, and the holds that they list: how they are read, and how one is changed by compare-and-set.

Keys: ``cap/<cluster>/<end>/<budget>/<measure>/<start>`` is an account, with ``/1``, ``/2`` ... its further parts;
``hold/<cluster>/<place>`` are holds by id, each of which lists every account before anything is held there. Whatever
adds to one reads in this order: the account, then the hold it adds for, which must be live; then it writes over the
version it read. Whoever ends a hold changes each of its accounts, so that nobody adds to one afterwards.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import MAX, held_amount, refusal, windows
from pilotlight.errors import Conflict
from pilotlight.facts.money.budgets import Account, Balance, Hold, Meter
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.state_schema.table import Entry, Kept

Alive = Callable[[], bool]
"""Whether the holds that are added for are live."""

ByMeter = Mapping[str, tuple[Meter, list[Hold]]]
"""By its key each meter that counts some holds, and those."""

NONE = Account()


class Parts(list[Entry[Account]]):
    """The parts of a meter's account as they were read, each by its name, the first one first."""

    def __init__(self, meter: Meter, entries: Iterable[Entry[Account]]) -> None:
        super().__init__(entries)
        self.meter = meter

    @property
    def total(self) -> Decimal:
        """Settled and held in all of them."""
        return sum((entry.value.total for entry in self), Decimal(0))

    def limit(self, name: str, account: Account) -> Decimal:
        """The most that a part may take: its share, less what other parts have beyond theirs (a limit was lowered)."""
        others = (e for e in self if e.name != name)
        debt = sum((min(Decimal(0), _share(self.meter, e) - e.value.total) for e in others), Decimal(0))
        return moves.share(account, number(name), self.meter.limit) + debt

    def names(self, count: int) -> list[str]:
        """The parts that so many new holds are to be in."""
        out: list[str] = []
        part = 0
        while len(out) < count:
            name = _named(self.meter, part)
            known = next((e.value for e in self if e.name == name), NONE)
            room = max(0, moves.MOST_HELD - len(known.held) - len(known.done))
            out += [name] * min(room, count - len(out))
            part += 1
        return out


def number(name: str) -> int:
    """The number of a part: 0 for the first, whose name has none."""
    parts = name.split("/")
    return int(parts[4]) if len(parts) > 4 else 0


def meter_key(name: str) -> str:
    """The key of the meter that a part is of."""
    return "/".join(name.split("/")[:4])


def limit_key(name: str) -> str:
    """The key of the limit that a part, or a meter, is of."""
    return "/".join(name.split("/")[1:3])


def start_of(name: str) -> str:
    """When the window began that a part, or a meter, is of: "20261120T0500"."""
    return name.split("/")[3]


def read(deps: HasBudgets, meter: Meter) -> Parts:
    """The parts of a meter's account. One read, where it has no further parts."""
    first = _get(deps, meter.key)
    return Parts(meter, [first, *(_get(deps, f"{meter.key}/{n}") for n in range(1, first.value.parts))])


def _get(deps: HasBudgets, name: str) -> Entry[Account]:
    found = CAP.get(deps.state, f"{deps.name}/{name}")
    return Entry(name, found.version, found.value) if found else Entry(name, ABSENT, NONE)


def ahead(deps: HasBudgets, found: Sequence[Meter]) -> dict[str, dict[str, Entry[Account]]]:
    """By limit, in their order, the accounts of its window and of those after it, part by part: one scan for all."""
    keys, cut = [meter.key for meter in found], len(deps.name) + 1
    out: dict[str, dict[str, Entry[Account]]] = {limit_key(key): {} for key in keys}
    if not found:
        return out
    first, end = {limit_key(key): start_of(key) for key in keys}, min(keys).partition("/")[0]
    for entry in CAP.scan(deps.state, f"{deps.name}/", after=f"{deps.name}/{end}"):
        name = entry.name[cut:]
        limit = limit_key(name)
        if limit in out and start_of(name) >= first[limit]:
            out[limit][name] = entry._replace(name=name)
    return out


def totals(deps: HasBudgets, found: Sequence[Meter]) -> dict[str, Decimal]:
    """Settled and held against each meter, by its key: one scan for all that end together."""
    sums, cut = {meter.key: Decimal(0) for meter in found}, len(deps.name) + 1
    for end in sorted({meter.key.partition("/")[0] for meter in found}):
        for entry in CAP.scan(deps.state, f"{deps.name}/{end}/"):
            if (key := meter_key(entry.name[cut:])) in sums:
                sums[key] += entry.value.total
    return sums


def balances_of(meter: Meter, known: Mapping[str, Account]) -> list[Balance]:
    """The balance of a meter, and of every later window of its limit in which something is held."""
    sums: dict[str, Decimal] = {meter.key: Decimal(0)}
    for name, account in known.items():
        key = meter_key(name)
        sums[key] = sums.get(key, Decimal(0)) + account.total
    return [Balance(meter=each, total=sums[each.key]) for each in windows_of(meter, sums)]


def change(deps: HasBudgets, name: str, update: Callable[[Account], Account], alive: Alive | None = None) -> Account:
    """Change a part by compare-and-set, and nothing where ``update`` returns what it was given, or nobody is alive."""
    while True:
        _, version, was = _get(deps, name)
        after = update(was)
        if after is was or (alive is not None and not alive()):
            return was
        try:
            CAP.put(deps.state, f"{deps.name}/{name}", after, if_version=version)
        except Conflict:
            continue
        return after


def make_part_known(deps: HasBudgets, meter: Meter, name: str) -> None:
    """Make a part known, and all before it, before a hold names it: what nobody knows of, nobody counts."""
    if number(name):
        change(deps, meter.key, partial(moves.part_account, parts=number(name) + 1))


def reserve(deps: HasBudgets, meter: Meter, name: str, wanted: Mapping[str, Decimal], alive: Alive) -> bool:
    """Hold all of these in a part, or none of them."""

    def update(account: Account) -> Account:
        return moves.reserve_amounts(account, wanted, parts.limit(name, account)) or account

    for _ in range(2):
        parts = read(deps, meter)
        after = change(deps, name, update, alive)
        if all(id in after.held or id in after.done for id in wanted):
            return True
        if not gather(deps, meter, name, sum(wanted.values(), Decimal(0))):
            return False
    return False


def gather(deps: HasBudgets, meter: Meter, to: str, need: Decimal) -> bool:
    """Move room to a part from the others until it can take so much more. Whether it can now."""
    parts = finish(deps, read(deps, meter))
    own = next((e.value for e in parts if e.name == to), NONE)
    need -= parts.limit(to, own) - own.total
    for entry in parts if len(parts) > 1 else ():
        room = min(need, _share(meter, entry) - entry.value.total)
        if entry.name != to and room > 0 and _give(deps, entry, number(to), room):
            need -= room
    finish(deps, read(deps, meter))
    return need <= 0


def _give(deps: HasBudgets, entry: Entry[Account], to: int, room: Decimal) -> bool:
    """Over the version that was read, which names the transfer: no other ever has that name."""
    after = moves.give_room(entry.value, f"{number(entry.name)}@{entry.version}", to, room)
    try:
        CAP.put(deps.state, f"{deps.name}/{entry.name}", after, if_version=entry.version)
    except Conflict:
        return False
    return True


def finish(deps: HasBudgets, parts: Parts) -> Parts:
    """End every transfer that was begun: taken, then no longer given, then its name forgotten by its taker."""
    begun = [e for e in parts if e.value.giving or e.value.taken]
    for entry in begun:
        for name, transfer in entry.value.giving.items():
            change(
                deps,
                _named(parts.meter, transfer.to),
                partial(moves.take_room, name=name, room=transfer.room),
                partial(_gives, deps, entry.name, name),
            )
            change(deps, entry.name, partial(moves.gave, name=name))
    for entry in read(deps, parts.meter) if begun else ():
        for name in entry.value.taken:
            giver = _named(parts.meter, int(name.partition("@")[0]))
            change(deps, entry.name, partial(moves.took, name=name), partial(_gives_no_more, deps, giver, name))
    return read(deps, parts.meter) if begun else parts


def _gives(deps: HasBudgets, giver: str, name: str) -> bool:
    return name in _get(deps, giver).value.giving


def _gives_no_more(deps: HasBudgets, giver: str, name: str) -> bool:
    return not _gives(deps, giver, name)


def _named(meter: Meter, part: int) -> str:
    return meter.key + (f"/{part}" if part else "")


def _share(meter: Meter, entry: Entry[Account]) -> Decimal:
    return moves.share(entry.value, number(entry.name), meter.limit)


def windows_of(meter: Meter, keys: Iterable[str]) -> Iterator[Meter]:
    """The windows of a limit, from a meter's own on, that have one of the keys."""
    wanted = set(keys)
    last = max(map(start_of, wanted), default=start_of(meter.key))
    for each in windows(meter, MAX):
        if each.key in wanted:
            yield each
        if start_of(each.key) >= last:
            return


def every_hold(deps: Deps) -> list[Kept[Hold]]:
    """Every hold of the cluster, with the version that was read."""
    return list(HOLD.scan(deps.state, f"{deps.name}/"))


def write_hold(deps: Deps, found: Kept[Hold], **fields: object) -> Kept[Hold]:
    """Write a hold with other fields over the version that was read. Raises ``Conflict``."""
    after = msgspec.structs.replace(found.value, **fields)
    HOLD.put(deps.state, found.name, after, over=found.was)
    return Kept(found.name, after, after)


def list_in_accounts(deps: Deps, found: Kept[Hold], touched: Iterable[Meter]) -> Kept[Hold]:
    """The hold with an account listed for each of these meters."""
    fresh = {m.key: (m, [found.value]) for m in touched if not is_listed(found.value, m.key)}
    if not fresh:
        return found
    return write_hold(deps, found, accounts=found.value.accounts + names_for(deps, fresh)[found.value.id])


def names_for(deps: HasBudgets, by_meter: ByMeter) -> dict[str, tuple[str, ...]]:
    """The parts that each hold (by id) is to be in, one of each meter that counts it; they are known from then on."""
    named: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for meter, own in by_meter.values():
        names = read(deps, meter).names(len(own))
        make_part_known(deps, meter, names[-1])
        for hold, name in zip(own, names, strict=True):
            named[hold.id] += (name,)
    return named


def is_listed(hold: Hold, key: str) -> bool:
    """True where a hold has an account of a meter, by that one's key."""
    return key in hold.accounts or any(name.startswith(f"{key}/") for name in hold.accounts)


def extend(deps: Deps, hold: Hold, meter: Meter, wanted: Decimal, least: Decimal) -> Account:
    """Raise what a live hold has in a meter's account to what is wanted, if that fits; else to what is owed."""
    name = account_of(hold, meter)

    def alive() -> bool:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        return found is not None and found.value.ended_at is None

    def update(account: Account) -> Account:
        return moves.extend_hold(account, hold.id, wanted, parts.limit(name, account), least)

    parts = read(deps, meter)
    if len(parts) > 1:
        own = next((e.value.held.get(hold.id, Decimal(0)) for e in parts if e.name == name), Decimal(0))
        gather(deps, meter, name, max(wanted, least) - own)
        parts = read(deps, meter)
    return change(deps, name, update, alive)


def account_of(hold: Hold, meter: Meter) -> str:
    """The part of a meter's account that a hold is listed in."""
    key = meter.key
    return key if key in hold.accounts else next((n for n in hold.accounts if n.startswith(f"{key}/")), key)


def write_holds(deps: Deps, fresh: Sequence[Hold], by_meter: ByMeter) -> list[Hold]:
    """The holds as they are in the state, each with its accounts. What an earlier attempt wrote stays as it is."""
    named = names_for(deps, by_meter)
    listed = {hold.id: msgspec.structs.replace(hold, accounts=named.get(hold.id, ())) for hold in fresh}
    lost = HOLD.change(deps.state, deps.name, {id: (None, hold) for id, hold in listed.items()})
    there = (HOLD.get(deps.state, f"{deps.name}/{id}") for id in sorted(lost))
    return [hold for id, hold in listed.items() if id not in lost] + [found.value for found in there if found]


def hold_amounts(deps: Deps, prefix: str, holds: Sequence[Hold], by_meter: ByMeter) -> str:
    """Hold what each meter counts of these, whose ids begin with a prefix. The first refusal, or empty."""

    def alive(ids: Iterable[str]) -> bool:
        found = HOLD.scan(deps.state, f"{deps.name}/{prefix}")
        return {entry.value.id for entry in found if entry.value.ended_at is None}.issuperset(ids)

    listed: defaultdict[str, list[tuple[str, Hold]]] = defaultdict(list)
    for hold in holds:
        for name in hold.accounts:
            listed[meter_key(name)].append((name, hold))
    for meter, _ in by_meter.values():
        wanted: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
        for name, hold in listed[meter.key]:
            wanted[name][hold.id] = held_amount(meter, hold)
        for name, own in wanted.items():
            if not reserve(deps, meter, name, own, partial(alive, own)):
                after = read(deps, meter).total + sum(own.values(), Decimal(0))
                first = next(h for h in holds if h.id in own)
                return refusal(meter, after, first.terms, first.since)
    return ""
