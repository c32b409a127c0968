"""Room that each limit leaves a hold, what people should know of it, and accounts that hold for a record that is gone.

Accounts are read once in a pass over all holds. A record is written before anything is held for it, and deleted after
every account has settled it. So what an account holds for an id that no record names is a loss. A node of it that is
lit is held for anew, for its whole life. One that went meanwhile may have cost all that was held: in the period that
goes on that is taken for spent. Rates, and periods to come, have it back once nothing of its decision is on its way.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import (
    amount,
    budget_owner,
    class_of,
    held_amount,
    latest,
    limit,
    refusal,
    used_amount,
)
from pilotlight.decide.money.holds import Short, report
from pilotlight.errors import Conflict
from pilotlight.facts.money.budgets import Account, Balance, Hold, Meter
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.billing_records import CAP, HOLD


class BudgetRoom:
    """The accounts of these meters' limits, from their windows on. ``known`` has the accounts by limit and by name.

    What holds claim is counted here, until ``write`` writes each account that it changed, once; ``singly`` each claim
    is written by itself.
    """

    def __init__(self, deps: Deps, meters: Sequence[Meter], now: datetime, *, singly: bool = False) -> None:
        self._deps, self.meters, self._now, self._singly = deps, meters, now, singly
        read = budget_accounts.ahead(deps, meters)
        self.known = {of: {name: entry.value for name, entry in found.items()} for of, found in read.items()}
        self._read = {name: entry for found in read.values() for name, entry in found.items()}
        self._sums: dict[str, tuple[Account, Decimal]] = {}
        self._changed: dict[str, Meter] = {}
        self._claimed: set[str] = set()

    def total(self, meter: Meter) -> Decimal:
        """Settled and held against a meter."""
        known, key = self.known.get(_limit_of(meter), {}), meter.key
        names = key, *[f"{key}/{n}" for n in range(1, known.get(key, budget_accounts.NONE).parts)]
        return sum((self._sum(name, known[name]) for name in names if name in known), Decimal(0))

    def own(self, meter: Meter, hold: Hold) -> Decimal:
        """The amount that a meter holds for one hold."""
        account = self.known[_limit_of(meter)].get(budget_accounts.account_of(hold, meter), budget_accounts.NONE)
        return account.held.get(hold.id, Decimal(0))

    def cut(self, wants: Hold, own: Hold, concerned: Sequence[Meter]) -> Hold:
        """A stretch that is renewed only as far as every hard limit leaves room. Whole runs are all or nothing."""
        if not wants.terms.stretch_s or wants.until == own.until:
            return wants
        hard = (meter for meter in concerned if meter.budget.hard)
        reach = [latest(m, wants, m.limit - self.total(m) + self.own(m, wants)) for m in hard]
        return msgspec.structs.replace(wants, until=max(own.until, min([wants.until, *reach])))

    def claim(self, meter: Meter, has: Hold, wants: Hold, node: str) -> Short | None:
        """Hold what a node ``wants`` beyond what it ``has``; what it is short of, None where it was granted.

        Judged by what was read already; the account is only changed where that would change it.
        """
        spent, commitment = used_amount(meter, has, self._now), held_amount(meter, has)
        wanted = max(spent, commitment if wants is has else held_amount(meter, wants))
        if wanted > max(spent, commitment) and self.total(meter) > meter.limit:
            self.let_go(has, has, [meter])  # A hold that was overdue before its node came has more than that may use.
        if self.own(meter, has) >= max(wanted, commitment):
            return None
        room = meter.limit - self.total(meter) + self.own(meter, has)
        least = max(spent, min(commitment, room))
        name, known = budget_accounts.account_of(has, meter), self.known[_limit_of(meter)]
        account = known.get(name, budget_accounts.NONE)
        most = self._sum(name, account) + room - self.own(meter, has)
        changed = moves.extend_hold(account, has.id, wanted, most, least)
        if changed is not account and self._singly:
            known[name] = budget_accounts.extend(self._deps, has, meter, wanted, least)
        elif changed is not account:
            self._change(meter, name, changed)
            self._claimed.add(has.id)
        got = self.own(meter, has)
        if got >= wanted:
            return None
        others = self.total(meter) - got
        return Short(node, refusal(meter, others + wanted, wants.terms, self._now), max(Decimal(0), commitment - got))

    def lacks(self, meter: Meter, cut: Hold, wants: Hold, node: str) -> Short | None:
        """The shortage that is told where it is this limit that a stretch could not be renewed within."""
        after = self.total(meter) - self.own(meter, cut) + held_amount(meter, wants)
        if not meter.budget.hard or after <= meter.limit:
            return None
        return Short(node, refusal(meter, after, wants.terms, self._now))

    def let_go(self, hold: Hold, has: Hold, concerned: Sequence[Meter]) -> None:
        """Free what a hold has beyond ``has``, but what is spent."""
        for meter in concerned:
            needs = max(used_amount(meter, has, self._now), held_amount(meter, has))
            if self.own(meter, has) > needs:
                name, known = budget_accounts.account_of(has, meter), self.known[_limit_of(meter)]
                update = partial(moves.lower_hold, id=hold.id, to=needs)
                if self._singly:
                    known[name] = budget_accounts.change(self._deps, name, update)
                else:
                    self._change(meter, name, update(known[name]))

    def write(self) -> bool:
        """Write each changed account once. False where another was faster, or a hold is over: nothing is granted then,
        and whoever asks claims singly. Claims that were written stay: to claim them again changes nothing.

        The order is that of every claim: accounts were read before, holds are looked at now, and each account is
        written over the version that was read.
        """
        lacking = [name for name in self._changed if not self._has_room(name)]
        plain = [name for name in self._changed if name not in lacking]
        return self._write(plain) and all(self._gathers(name) and self._write([name]) for name in lacking)

    def _write(self, names: Sequence[str]) -> bool:
        holds = budget_accounts.every_hold(self._deps) if names else ()
        if not names or not self._claimed.issubset([e.value.id for e in holds if e.value.ended_at is None]):
            return not names
        try:
            for name in names:
                version = self._read[name].version if name in self._read else ABSENT
                CAP.put(self._deps.state, f"{self._deps.name}/{name}", self._account(name), if_version=version)
        except Conflict:
            return False
        return True

    def _has_room(self, name: str) -> bool:
        """True where a part needs nothing of the others' room."""
        meter, after = self._changed[name], self._account(name)
        if not budget_accounts.number(name) and after.parts < 2:
            return True
        every = [entry for key, entry in self._read.items() if budget_accounts.meter_key(key) == meter.key]
        return after.total <= max(self._before(name).total, budget_accounts.Parts(meter, every).limit(name, after))

    def _gathers(self, name: str) -> bool:
        """Move the others' room to a part that needs it. False where they have none, or another changed the part."""
        was, after, meter = self._before(name), self._account(name), self._changed[name]
        if not budget_accounts.gather(self._deps, meter, name, after.total - was.total):
            return False
        self._read[name] = entry = next(e for e in budget_accounts.read(self._deps, meter) if e.name == name)
        moved = {field: getattr(entry.value, field) for field in ("moved", "giving", "taken")}
        self._change(meter, name, msgspec.structs.replace(after, **moved))
        return msgspec.structs.replace(was, **moved) == entry.value

    def _change(self, meter: Meter, name: str, account: Account) -> None:
        self._changed[name] = meter
        self.known[_limit_of(meter)][name] = account

    def _account(self, name: str) -> Account:
        return self.known[_limit_of(self._changed[name])][name]

    def _before(self, name: str) -> Account:
        return self._read[name].value if name in self._read else budget_accounts.NONE

    def balances(self) -> tuple[Balance, ...]:
        """The balance of each limit, in its window and in those ahead."""
        return tuple(b for m in self.meters for b in budget_accounts.balances_of(m, self.known[_limit_of(m)]))

    def _sum(self, name: str, account: Account) -> Decimal:
        """A part's total, worked out once: with thousands of holds each of them asks."""
        known = self._sums.get(name)
        if known is None or known[0] is not account:
            known = self._sums[name] = (account, account.total)
        return known[1]


def _limit_of(meter: Meter) -> str:
    """The limit's part of a meter's key: the same in all windows."""
    return meter.key.partition("/")[2].rpartition("/")[0]


def hold_findings(
    policy: Policy,
    told: Collection[tuple[Meter, list[Short]]],
    room: BudgetRoom,
    kept: Sequence[tuple[str, Hold]],
) -> tuple[Finding, ...]:
    """One finding for each limit that people should know of. ``kept`` are the holds that stay, by their nodes."""
    found: dict[str, Finding] = {}
    for meter, short in told:
        subject = f"budget {meter.budget.name}, {meter.measure}"
        why = report(meter, room.total(meter), short)
        if why and subject not in found:
            found[subject] = Finding(subject=subject, code="budget-hold", message=why)
    return (*found.values(), *_passed(room, kept), *_endless(policy, told, kept))


def _passed(room: BudgetRoom, kept: Iterable[tuple[str, Hold]]) -> Iterator[Finding]:
    """Hard limits that are below what is settled and held, most likely since they were lowered."""
    for meter in room.meters:
        total = room.total(meter)
        if meter.budget.hard and total > meter.limit:
            from pilotlight.decide.money.passed_limits import HeldNode, comes_to

            shares = [HeldNode(name, room.own(meter, hold), hold.until) for name, hold in kept]
            if why := comes_to(meter, total, shares):
                yield Finding(subject=f"{budget_owner(meter)}, {limit(meter)}", code="budget-passed", message=why)


def _endless(
    policy: Policy, told: Iterable[tuple[Meter, list[Short]]], kept: Iterable[tuple[str, Hold]]
) -> Iterator[Finding]:
    """Classes without an end whose pods run on nodes that a hard budget has no more room for: they go beyond it."""
    short = {one.node: m.budget.name for m, lacks in told for one in lacks if m.budget.hard and m.end is not None}
    found = {name: short[node] for node, hold in kept if node in short for name in hold.classes.values()}
    for name in sorted(class_ for class_ in map(class_of, found) if class_ and not policy.ends(class_)):
        yield Finding(
            subject=f"class {name}",
            code="budget-endless",
            message=f"hard budget {found[name]} has no more room, and classes.{name} has no end: its pods run on. "
            "Write may_move: [hard-cap] for the class to have them stopped in order, or more dollars",
        )


def settle_lost(
    deps: Deps,
    snapshot: Snapshot,
    meters: Iterable[Meter],
    known: Mapping[str, dict[str, Account]],
    holds: Collection[str],
) -> list[Finding]:
    """Settle what accounts hold for ids that are not among ``holds``. A finding for each says what counts as spent.

    ``known`` are the accounts of the meters' limits, in their order, by name, from their windows on: as they were read,
    and as they are afterwards.
    """
    coming = {entry.decision for _, entry in snapshot.flights} | snapshot.unresolved
    told: defaultdict[str, list[str]] = defaultdict(list)
    for meter, found in zip(meters, known.values(), strict=True):
        key = meter.key
        for name, account in list(found.items()):
            spends = meter.end is not None and (name == key or name.startswith(f"{key}/"))
            for id, usd in account.held.items():
                if id in holds or _decision(id) in coming or HOLD.get(deps.state, f"{deps.name}/{id}"):
                    continue
                cost = usd if spends else Decimal(0)
                found[name], was_lost = _settle(deps, name, id, cost)
                if was_lost:
                    figures = f"{amount(meter, cost)} count as spent of {limit(meter)} ({budget_owner(meter)})"
                    told[id] += [figures] if cost else []
    return [_finding(id, said) for id, said in told.items()]


def _settle(deps: Deps, name: str, id: str, cost: Decimal) -> tuple[Account, bool]:
    """The account as it is then, and whether it still held for the id: else a worker has settled it in order."""
    was_lost = False

    def update(account: Account) -> Account:
        nonlocal was_lost
        was_lost = id in account.held
        return moves.settle_lost_hold(account, id, cost)

    return budget_accounts.change(deps, name, update), was_lost


def _finding(id: str, said: Sequence[str]) -> Finding:
    """The finding that tells people of a lost record."""
    why = f"its record was deleted: {', '.join(said) or 'what it held is free again'}"
    why += "; a node of it that is lit is held for anew"
    return Finding(subject=f"hold {id}", code="budget-lost", message=why)


def _decision(id: str) -> str:
    """The decision of ``<decision>.<call>.<node>``; empty for a node that nobody bought."""
    return id.rsplit(".", 2)[0] if id.count(".") > 1 else ""
