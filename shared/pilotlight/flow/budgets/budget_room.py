"""Room that each limit leaves a hold: accounts settled and held, as a pass over all holds reads them once."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.money import account as moves
from pilotlight.decide.money.budget_limits import held_amount, latest, refusal, used_amount
from pilotlight.decide.money.holds import Short
from pilotlight.facts.money.budgets import Account, Balance, Hold, Meter
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_holds import balances_of
from pilotlight.flow.budgets.hold_records import account_of, extend
from pilotlight.flow.deps import Deps


class BudgetRoom:
    """The accounts of these meters' limits, from their windows on. ``known`` has the accounts by limit and by name."""

    def __init__(self, deps: Deps, meters: Sequence[Meter], now: datetime) -> None:
        self._deps, self.meters, self._now = deps, meters, now
        self.known = {_limit_of(m): budget_accounts.ahead(deps, m) for m in meters}
        self._sums: dict[str, tuple[Account, Decimal]] = {}

    def total(self, meter: Meter) -> Decimal:
        """Settled and held against a meter."""
        known = self.known.get(_limit_of(meter), {})
        parts = ((name, a) for name, a in known.items() if budget_accounts.meter_key(name) == meter.key)
        return sum((self._sum(name, account) for name, account in parts), Decimal(0))

    def own(self, meter: Meter, hold: Hold) -> Decimal:
        """The amount that a meter holds for one hold."""
        account = self.known[_limit_of(meter)].get(account_of(hold, meter), budget_accounts.NONE)
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

        Judged by what was read already; the account is only written where that would change it.
        """
        spent, commitment = used_amount(meter, has, self._now), held_amount(meter, has)
        wanted = max(spent, held_amount(meter, wants))
        room = meter.limit - self.total(meter) + self.own(meter, has)
        least = max(spent, min(commitment, room))
        name, known = account_of(has, meter), self.known[_limit_of(meter)]
        account = known.get(name, budget_accounts.NONE)
        most = self._sum(name, account) + room - self.own(meter, has)
        if moves.extend_hold(account, has.id, wanted, most, least) is not account:
            known[name] = extend(self._deps, has, meter, wanted, least)
        got = self.own(meter, has)
        if got >= wanted:
            return None
        others = self.total(meter) - got
        return Short(node, refusal(meter, others + wanted, wants.terms), max(Decimal(0), commitment - got))

    def lacks(self, meter: Meter, cut: Hold, wants: Hold, node: str) -> Short | None:
        """The shortage that is told where it is this limit that a stretch could not be renewed within."""
        after = self.total(meter) - self.own(meter, cut) + held_amount(meter, wants)
        if not meter.budget.hard or after <= meter.limit:
            return None
        return Short(node, refusal(meter, after, wants.terms))

    def let_go(self, hold: Hold, has: Hold, concerned: Sequence[Meter]) -> None:
        """Free what a hold has beyond ``has``, but what is spent."""
        for meter in concerned:
            needs = max(used_amount(meter, has, self._now), held_amount(meter, has))
            if self.own(meter, has) > needs:
                name = account_of(has, meter)
                update = partial(moves.lower_hold, id=hold.id, to=needs)
                self.known[_limit_of(meter)][name] = budget_accounts.change(self._deps, name, update)

    def balances(self) -> tuple[Balance, ...]:
        """The balance of each limit, in its window and in those ahead."""
        return tuple(b for m in self.meters for b in balances_of(m, self.known[_limit_of(m)]))

    def _sum(self, name: str, account: Account) -> Decimal:
        """A part's total, worked out once: with thousands of holds each of them asks."""
        known = self._sums.get(name)
        if known is None or known[0] is not account:
            known = self._sums[name] = (account, account.total)
        return known[1]


def _limit_of(meter: Meter) -> str:
    """A limit, whatever the window: what all its accounts' names begin with."""
    return meter.key.rpartition("/")[0]
