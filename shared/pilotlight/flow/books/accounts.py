"""Accounts and holds in the state: how they are read, and how an account is changed by compare-and-set.

Keys: ``cap/<cluster>/<budget>/<measure>/<window>`` is an account, ``hold/<cluster>/<decision>.<call>.<node>`` the hold
of one node, ``runs/<cluster>`` how long pods ran, for budgets that are not hard.
"""

from collections.abc import Callable

from pilotlight.codec.records import Format
from pilotlight.decide.money.holds import Claim
from pilotlight.errors import Conflict
from pilotlight.facts.budget import Account, Hold, Meter, Runs
from pilotlight.flow.deps import Deps, Kept
from pilotlight.ports import ABSENT
from pilotlight.units import HOUR

KEEP_ACCOUNTS_S = 400 * 24 * HOUR

ACCOUNT, HOLD, RUNS = Format(Account), Format(Hold), Format(Runs)


def account(deps: Kept, meter: Meter) -> Account:
    """What counts against a meter."""
    return _read(deps, meter)[0]


def change(deps: Deps, meter: Meter, update: Callable[[Account], Account]) -> None:
    """Change an account."""
    claim(deps, meter, lambda found: Claim(update(found)))


def claim(deps: Deps, meter: Meter, decide: Callable[[Account], Claim]) -> Claim:
    """Decide on what is there and write it. Whoever was faster makes it decide again: each loss is another's win."""
    while True:
        found, version = _read(deps, meter)
        claimed = decide(found)
        if claimed.account is found:
            return claimed
        try:
            record = ACCOUNT.write(claimed.account)
            deps.state.put(_cap_key(deps, meter), record, if_version=version, ttl_s=KEEP_ACCOUNTS_S)
            return claimed
        except Conflict:
            continue


def holds(deps: Deps) -> list[Hold]:
    """Every hold of the cluster."""
    found: list[Hold] = []
    after = ""
    while True:
        page = deps.state.scan(f"hold/{deps.name}/", after=after)
        found += [HOLD.read(key, stored.value) for key, stored in page.items]
        if not page.next:
            return found
        after = page.next


def write(deps: Deps, hold: Hold) -> None:
    """Write a hold."""
    deps.state.put(_hold_key(deps, hold), HOLD.write(hold))


def forget(deps: Deps, hold: Hold) -> None:
    """Delete a hold that no account names any more."""
    deps.state.delete(_hold_key(deps, hold))


def runs(deps: Deps) -> Runs:
    """The runs seen so far."""
    stored = deps.state.get(_runs_key(deps))
    return RUNS.read(_runs_key(deps), stored.value) if stored else Runs()


def write_runs(deps: Deps, seen: Runs) -> None:
    """Write the runs seen so far."""
    deps.state.put(_runs_key(deps), RUNS.write(seen))


def _read(deps: Kept, meter: Meter) -> tuple[Account, int]:
    stored = deps.state.get(_cap_key(deps, meter))
    return (ACCOUNT.read(_cap_key(deps, meter), stored.value), stored.version) if stored else (Account(), ABSENT)


def _cap_key(deps: Kept, meter: Meter) -> str:
    return f"cap/{deps.name}/{meter.key}"


def _hold_key(deps: Deps, hold: Hold) -> str:
    return f"hold/{deps.name}/{hold.id}"


def _runs_key(deps: Deps) -> str:
    return f"runs/{deps.name}"
