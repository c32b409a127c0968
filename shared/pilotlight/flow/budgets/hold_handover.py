"""Holds go over to whoever's pods are on the node now: the old one ends at what the node cost up to this look.

A crash in between leaves a node without a hold, which is held for anew from where it was charged, by its pods.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from pilotlight.decide.money import hold_owners as rules
from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.holds import Lit, as_bound
from pilotlight.decide.money.node_end import class_of
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Hold, Owner, Terms
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.budgets.hold_moves import Live
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.table import Entry


class Handover:
    """The holds of one look that change hands. ``before`` are the records as they were read."""

    def __init__(
        self, deps: Deps, snapshot: Snapshot, before: Mapping[str, Entry[Hold]], still_ours: Callable[[], None]
    ) -> None:
        self.deps, self.now, self.before, self.still_ours = deps, snapshot.now, before, still_ours
        self._offerings = {offering.pool: offering for offering in deps.offerings}

    def of(self, live: Sequence[Live]) -> list[Live]:
        """All of them as they are now. A Workload's hold that a node takes over is that node's."""
        out: list[Live] = []
        taken: set[str] = set()
        waiting = [hold for hold, one in live if one is None]
        for hold, one in live:
            if one is None or hold.stopping or one.pool not in self._offerings:
                out.append((hold, one))
                continue
            offering = self._offerings[one.pool]
            known, seen = as_bound(hold, one)
            owners = rules.owners_of(seen or one, offering.gpus, self.deps.policy)
            if not owners or rules.pays_alike(self.deps.policy.budgets, hold.terms, rules.owned(hold.terms, owners)):
                out.append((hold, one))
                continue
            left = [each for each in waiting if each.id not in taken]
            fresh = self._handed_over(known, one, offering, owners, left)
            taken.add(fresh.id)
            out.append((fresh, one))
        ids = {hold.id for hold, one in out if one is not None}
        return [pair for pair in out if pair[1] is not None or pair[0].id not in ids]

    def _handed_over(
        self, hold: Hold, one: Lit, offering: Offering, owners: Sequence[Owner], waiting: Sequence[Hold]
    ) -> Hold:
        entry = self.before.get(hold.id)
        if entry is None:  # It is held for from this look on.
            return replace(hold, terms=rules.owned(self._terms(offering, owners[0]), owners))
        self.still_ours()
        budget_holds.end(self.deps, Entry(entry.name, entry.version, hold), self.now)
        known = {
            "classes": hold.classes,
            "teams": hold.teams,
            "frozen": hold.frozen,
            "since": rules.begins_at(hold, self.now),
        }
        asked = rules.waits_for(waiting, one.pool, owners[0])
        if asked is not None:
            own = replace(rules.owned(asked.terms, owners), minimum_s=0)
            return replace(asked, terms=own, instance=one.instance, matched_at=self.now, **known)
        return Hold(
            id=f"held.{one.instance}.{self.now:%Y%m%dT%H%M%S%f}",
            decision="",
            terms=replace(rules.owned(self._terms(offering, owners[0]), owners), minimum_s=0),
            binds_until=self.now,
            until=self.now,
            instance=one.instance,
            matched_at=self.now,
            **known,
        )

    def _terms(self, offering: Offering, owner: Owner) -> Terms:
        return terms(offering, self.deps.policy, workload_class=class_of(owner.workload_class), team=owner.team)
