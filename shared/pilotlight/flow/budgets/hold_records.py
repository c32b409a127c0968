"""The records of holds, and the accounts that each is listed in: whatever holds more for one lists it there first.

``hold/<cluster>/<decision>.<call>.<node>`` is a hold; it lists every account before anything is held for it there.
"""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from pilotlight.decide.money import account as moves
from pilotlight.facts.money.budgets import Account, Hold, Meter
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Entry


def every(deps: Deps) -> list[Entry[Hold]]:
    """Every hold of the cluster, with the version that was read."""
    return list(HOLD.scan(deps.state, f"{deps.name}/"))


def write(deps: Deps, found: Entry[Hold], **fields: object) -> Entry[Hold]:
    """Write a hold with other fields over the version that was read. Raises ``Conflict``."""
    after = msgspec.structs.replace(found.value, **fields)
    return Entry(found.name, HOLD.put(deps.state, found.name, after, if_version=found.version), after)


def list_in_accounts(deps: Deps, found: Entry[Hold], touched: Iterable[Meter]) -> Entry[Hold]:
    """The hold with an account listed for each of these meters."""
    fresh = [meter for meter in touched if not is_listed(found.value, meter.key)]
    if not fresh:
        return found
    names = [budget_accounts.read(deps, meter).names(1)[0] for meter in fresh]
    for meter, name in zip(fresh, names, strict=True):
        budget_accounts.make_part_known(deps, meter, name)
    return write(deps, found, accounts=(*found.value.accounts, *names))


def is_listed(hold: Hold, key: str) -> bool:
    """True where a hold has an account of a meter, by that one's key."""
    return any(budget_accounts.meter_key(name) == key for name in hold.accounts)


def extend(deps: Deps, hold: Hold, meter: Meter, wanted: Decimal, least: Decimal) -> Account:
    """Raise what a live hold has in a meter's account to what is wanted, if that fits; else to what is owed."""
    name = account_of(hold, meter)

    def alive() -> bool:
        found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
        return found is not None and found.value.ended_at is None

    def update(account: Account) -> Account:
        return moves.extend_hold(account, hold.id, wanted, parts.limit(name, account), least)

    parts = budget_accounts.read(deps, meter)
    if len(parts) > 1:
        own = next((e.value.held.get(hold.id, Decimal(0)) for e in parts if e.name == name), Decimal(0))
        budget_accounts.gather(deps, meter, name, max(wanted, least) - own)
        parts = budget_accounts.read(deps, meter)
    return budget_accounts.change(deps, name, update, alive)


def account_of(hold: Hold, meter: Meter) -> str:
    """The part of a meter's account that a hold is listed in."""
    return next((name for name in hold.accounts if budget_accounts.meter_key(name) == meter.key), meter.key)
