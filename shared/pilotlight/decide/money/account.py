"""Changes of an account. An id moves one way: held, then settled and done, then forgotten.

Every change returns the account itself where there is nothing to do. Rooms of parts: ``limit`` is what this account or
part of one may take in all.
"""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from pilotlight.facts.money.budgets import Account, Transfer

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
    return msgspec.structs.replace(account, held={**account.held, id: grant})


def lower_hold(account: Account, id: str, to: Decimal) -> Account:
    """With less held for an id, if it is held."""
    if account.held.get(id, Decimal(0)) <= to:
        return account
    return msgspec.structs.replace(account, held={**account.held, id: to})


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
