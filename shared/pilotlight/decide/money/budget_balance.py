"""Balances of the budgets: while a plan is made, and how an account changes, on which they rest.

Of an account an id moves one way: held, then settled and done, then forgotten. Every change returns the account itself
where there is nothing to do. Rooms of parts: ``limit`` is what this account or part of one may take in all.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

import msgspec
from msgspec import field

from pilotlight.decide.money.budget_limits import (
    applies,
    held_amount,
    latest,
    open_hold,
    paid_until,
    refusal,
    unpaid,
    windows,
)
from pilotlight.decide.money.economics import calls_s, least_s
from pilotlight.facts.money.budgets import Account, Hold, Meter, Money, Terms, Transfer
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.policy import Policy

MANY = 1 << 30
"""As many nodes as anyone wants: no budget is in the way."""


class Purse(msgspec.Struct):
    """The balances, and what this plan has taken so far."""

    money: Money
    now: datetime
    policy: Policy  # As its file has it: a node is held for by what it may cost once no rule holds any more.
    taken: dict[str, Decimal] = field(default_factory=dict)
    bought: int = 0
    _made: dict[str, list[Meter]] = field(default_factory=dict)  # Windows of each limit, as far as they were asked for.
    _asked: tuple[Terms, tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]] | None = None

    def fit_terms(self, terms_: Terms, nodes: int = 1, others: int = 0) -> Terms:
        """The terms with a first stretch as long as each of so many nodes finds room for, if that is worth a boot.

        A whole run that is held beforehand, and a stretch that would not last for a boot and a stop, stay as they are.
        Either leaves time for the calls of all that are lit and of the ``others`` that are bought with it.
        """
        turn_s = calls_s(self.money.lit + self.bought + max(nodes - 1, others))
        if not terms_.stretch_s:
            return msgspec.structs.replace(terms_, calls_s=turn_s)
        least = least_s(terms_) + turn_s
        terms_ = msgspec.structs.replace(terms_, stretch_s=max(terms_.stretch_s, least))
        hold, stakes = self.at_stake(terms_)
        hard = [(meter, before) for meter, before, _ in stakes if meter.budget.hard]
        if not hard:
            return terms_
        until = min(latest(meter, hold, (meter.limit - before) / nodes) for meter, before in hard)
        stretch_s = (until - self.now).total_seconds()
        if not least <= stretch_s < terms_.stretch_s:
            return terms_
        return msgspec.structs.replace(terms_, stretch_s=stretch_s)

    def room(self, terms_: Terms) -> list[tuple[int, str, Code]]:
        """Count of further nodes that each meter allows, and why not one more."""
        if nobody := unpaid({b.meter.budget.name: b.meter.budget for b in self.money.balances}.values(), terms_):
            return [(0, nobody, "unpaid")]
        return [(*self._room(*each, terms_), "budget") for each in self.at_stake(terms_)[1]]

    def take(self, terms_: Terms, nodes: int) -> None:
        """Count nodes as held."""
        self.bought += nodes
        for meter, _, each in self.at_stake(terms_)[1]:
            self.taken[meter.key] = self.taken.get(meter.key, Decimal(0)) + nodes * each
        self._asked = None

    def frees_at(self) -> list[datetime]:
        """When windows in which something is used end: the next ones begin emptier."""
        return [b.meter.end for b in self.money.balances if b.total and b.meter.end]

    def copy(self) -> "Purse":
        """A copy that later changes leave alone."""
        return Purse(self.money, self.now, self.policy, dict(self.taken), self.bought, self._made)

    def at_stake(self, terms_: Terms) -> tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]:
        """The hold of a node bought now, and each meter that it has to fit in: how far that is used, with all that this
        plan has taken, and what the node takes of it. Worked out once for the same terms, until something is taken.
        """
        if self._asked is None or self._asked[0] is not terms_:
            self._asked = terms_, self._work_out(terms_)
        return self._asked[1]

    def _work_out(self, terms_: Terms) -> tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]:
        totals = {b.meter.key: b.total for b in self.money.balances}
        hold = open_hold("", "", terms_, self.now)
        last = paid_until(hold, max(hold.until, hold.binds_until))
        found: list[tuple[Meter, Decimal, Decimal]] = []
        for own in (b.meter for b in self.money.balances if b.meter.start <= self.now and applies(b.meter, terms_)):
            for meter in windows(own, last, self._made.setdefault(own.key, [own])):
                before = totals.get(meter.key, Decimal(0)) + self.taken.get(meter.key, Decimal(0))
                each = held_amount(meter, hold)
                if meter is own or each:
                    found.append((meter, before, each))
        return hold, found

    def _room(self, meter: Meter, before: Decimal, each: Decimal, terms_: Terms) -> tuple[int, str]:
        left = int((meter.limit - before) // each) if each > 0 else MANY
        return left, refusal(meter, before + each, terms_, self.now)


MOST_HELD = 1500
"""Holds of one record: about 100 KB. More are held in a further part."""


def share(account: Account, part: int, limit: Decimal) -> Decimal:
    """Dollars that a part may take in all. The first has all that no other part was given."""
    return account.moved + (limit if part == 0 else 0)


def reserve_amounts(account: Account, wanted: Mapping[str, Decimal], limit: Decimal) -> Account | None:
    """With all of these held, or None where that passes the limit. What is held or done already stays as it is."""
    fresh = {id: usd for id, usd in wanted.items() if id not in account.held and id not in account.done}
    if not fresh:
        return account
    after = msgspec.structs.replace(account, held={**account.held, **fresh})
    return after if after.total <= limit or after.total <= account.total else None


def extend_hold(account: Account, id: str, wanted: Decimal, limit: Decimal, least: Decimal) -> Account:
    """With a live hold raised to what is wanted if that fits; else to ``least``, which is owed in any case.

    It is never lowered, and one that is done stays done.
    """
    if id in account.done:
        return account
    own = account.held.get(id)
    if own is not None and own >= max(wanted, least):
        return account
    fits = account.total - (own or 0) + wanted <= limit
    grant = max(own or Decimal(0), wanted if fits else least)
    if grant == own:
        return account
    return account.with_held(id, grant)


def lower_hold(account: Account, id: str, to: Decimal) -> Account:
    """With less held for an id, if it is held."""
    if account.held.get(id, Decimal(0)) <= to:
        return account
    return account.with_held(id, to)


def settle_hold(account: Account, id: str, cost: Decimal) -> Account:
    """Turn the amount held for an id into what it really cost. One that is not held changes nothing."""
    if id not in account.held:
        return account
    return msgspec.structs.replace(
        account,
        held={key: usd for key, usd in account.held.items() if key != id},
        settled=account.settled + cost,
        done={**account.done, id: cost},
    )


def mark_done(account: Account, id: str) -> Account:
    """An id that is over without anything held: nobody can hold for it here from now on."""
    if id in account.held or id in account.done:
        return account
    return msgspec.structs.replace(account, done={**account.done, id: Decimal(0)})


def forget_done(account: Account, id: str) -> Account:
    """Without the mark that an id is done. Only for holds that are closed."""
    if id not in account.done:
        return account
    return msgspec.structs.replace(account, done={key: usd for key, usd in account.done.items() if key != id})


def settle_lost_hold(account: Account, id: str, cost: Decimal) -> Account:
    """Turn the amount held for an id whose record is gone into ``cost``, and know the id no more."""
    return forget_done(settle_hold(account, id, cost), id) if id in account.held else account


def unseen(account: Account, id: str, cost: Decimal) -> Account:
    """With what may have been spent while nothing was known of it, once for each id."""
    if id in account.done:
        return account
    return msgspec.structs.replace(account, settled=account.settled + cost, done={**account.done, id: cost})


def give_room(account: Account, name: str, to: int, room: Decimal) -> Account:
    """With room given up for another part, under the name of that transfer."""
    giving = {**account.giving, name: Transfer(to=to, room=room)}
    return msgspec.structs.replace(account, moved=account.moved - room, giving=giving)


def take_room(account: Account, name: str, room: Decimal) -> Account:
    """With the room of a transfer that its giver still names, once."""
    if name in account.taken:
        return account
    return msgspec.structs.replace(account, moved=account.moved + room, taken=(*account.taken, name))


def gave(account: Account, name: str) -> Account:
    """The giver without a transfer that has been taken."""
    if name not in account.giving:
        return account
    return msgspec.structs.replace(account, giving={k: v for k, v in account.giving.items() if k != name})


def took(account: Account, name: str) -> Account:
    """The taker without the name of a transfer that its giver does not name any more."""
    if name not in account.taken:
        return account
    return msgspec.structs.replace(account, taken=tuple(n for n in account.taken if n != name))


def part_account(account: Account, parts: int) -> Account:
    """The first part with so many parts at least: that is written before a further one is."""
    return account if account.parts >= parts else msgspec.structs.replace(account, parts=parts)
