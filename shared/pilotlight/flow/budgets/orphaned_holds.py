"""Holds whose record is gone from the state while an account still holds for them: what is given back, and who is told.

A record is written before anything is held for it, and deleted after every account has settled it. So what an account
holds for an id that no record names is a loss. A node of it that is lit is held for anew, for its whole life. One that
went meanwhile may have cost all that was held: in the period that goes on that is taken for spent. Rates, and periods
to come, have it back once nothing of its decision is on its way.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from pilotlight.decide.money import account as moves
from pilotlight.decide.money.budget_limits import amount, budget_owner, limit
from pilotlight.facts.money.budgets import Account, Meter
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import HOLD


def settle_lost(
    deps: Deps,
    snapshot: Snapshot,
    meters: Iterable[Meter],
    known: Mapping[str, dict[str, Account]],
    holds: Collection[str],
) -> list[Finding]:
    """Settle what accounts hold for ids that are not among ``holds``. A finding for each says what counts as spent.

    ``known`` are each limit's accounts by name, from its window on, as they were read; and as they are afterwards.
    """
    coming = {entry.decision for _, entry in snapshot.flights} | snapshot.unresolved
    told: defaultdict[str, list[str]] = defaultdict(list)
    for meter in meters:
        found = known[meter.key.rpartition("/")[0]]
        for name, account in list(found.items()):
            spends = meter.end is not None and budget_accounts.meter_key(name) == meter.key
            for id, usd in account.held.items():
                if id in holds or _decision(id) in coming or _there(deps, id):
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


def _there(deps: Deps, id: str) -> bool:
    return HOLD.get(deps.state, f"{deps.name}/{id}") is not None
