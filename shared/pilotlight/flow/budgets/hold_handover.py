"""Holds go over to whoever's pods are on the node now, from this look on.

Where the scheduler put pods on each other's nodes of a pool, or a team's own node is empty meanwhile, holds change
nodes: each team goes on with its own dollars. Else another begins, and the old one ends at what the node cost up to
now. The new one is written first and names the old one (``after``): where its worker dies in between, the next look
ends the old one at the same moment (``renew_holds``), so that no minute of the node is nobody's.
"""

from collections.abc import Callable, Iterable, MutableMapping, Sequence

from msgspec.structs import replace

from pilotlight.decide.money import hold_owners as rules
from pilotlight.decide.money.budget_limits import class_of, terms
from pilotlight.decide.money.holds import Away, Lit, as_bound, first_seen
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Hold, Payer, Terms
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.budgets.hold_funding import Funding
from pilotlight.flow.budgets.hold_moves import Live, is_frozen
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Kept


class Handover:
    """The holds of one look that change hands. ``before`` are the records as they are in the state."""

    def __init__(
        self, deps: Deps, snapshot: Snapshot, before: MutableMapping[str, Kept[Hold]], still_ours: Callable[[], None]
    ) -> None:
        self.deps, self.now, self.before, self.still_ours = deps, snapshot.now, before, still_ours
        self._offerings = {offering.pool: offering for offering in deps.offerings}
        self.away: dict[str, Away] = {}  # By instance: pods that leave it for want of dollars.
        self.funding = Funding(deps, snapshot)

    def settle_owners(self, live: Sequence[Live]) -> list[Live]:
        """All of them as they are now. A Workload's hold that a node takes over is that node's."""
        out: list[Live] = []
        waiting = {hold.id: hold for hold, one in live if one is None}
        for hold, one in self._exchanged(live, waiting.values()):
            owners = self._paying(hold, one, waiting.values()) if one is not None else ()
            if one is not None and owners:
                hold = self._handed_over(as_bound(hold, one)[0], one, owners, list(waiting.values()))
                waiting.pop(hold.id, None)
            out.append((hold, one))
        taken = {hold.id for hold, one in out if one is not None}
        return [(hold, one) for hold, one in out if one is not None or hold.id not in taken]

    def _exchanged(self, live: Sequence[Live], waiting: Iterable[Hold]) -> list[Live]:
        """With holds of a pool that change nodes, where that makes a node its owner's."""
        at = {one.instance: (hold, one) for hold, one in live if one is not None and not hold.stopping}
        wants = {name: owners for name, (hold, one) in at.items() if (owners := self._others(hold, one))}
        free = list(waiting)
        for name, owners in wants.items():
            hold, one = at[name]
            if not self._others(hold, one):
                continue
            if asked := rules.waits_for(free, one.pool, owners[0]):
                free.remove(asked)  # That one takes it over; the next node of its owner has another's.
                continue
            need = rules.terms_of(hold.terms, owners)
            mine = next((n for n, (own, other) in at.items() if n != name and self._serves(own, other, hold, need)), "")
            if mine:
                own, other = at[mine]
                if is_frozen(own, other):  # What it was held for is free: it promises nothing beyond.
                    own = replace(own, until=min(own.until, self.now))
                at[name], at[mine] = (self._moved(own, hold, one), one), (self._moved(hold, own, other), other)
        return [at.get(one.instance, (hold, one)) if one is not None else (hold, one) for hold, one in live]

    def _serves(self, own: Hold, other: Lit, hold: Hold, need: Terms) -> bool:
        """True where a hold is the owner's that a node needs, and its own node has no pods, or others'."""
        alike = own.terms.pool == need.pool and own.terms.usd_per_hour == need.usd_per_hour
        if not alike or own.earlier or hold.earlier or not (own.id in self.before and hold.id in self.before):
            return False
        mine = rules.pays_alike(self.deps.policy.budgets, own.terms, need)
        return mine and (not other.pods or bool(self._others(own, other)))

    def _moved(self, hold: Hold, was: Hold, one: Lit) -> Hold:
        """The hold on the node of another: what is known of that node's pods stays there."""
        return replace(
            hold,
            instance=one.instance,
            matched_at=self.now,
            frozen=was.frozen,
            visited_since=was.visited_since,
            classes=was.classes,
            teams=was.teams,
        )

    def _paying(self, hold: Hold, one: Lit, waiting: Iterable[Hold]) -> tuple[Payer, ...]:
        """The others that pay for it from now on: those whose budgets have no room for their pods do not.

        Where that leaves none, those pay on who held it and whose own pods wait for it. A Workload's hold that the
        node is to take over pays for its owner's part.
        """
        owners = self._owners(hold, one)
        if not owners:
            return ()
        seen, pays = as_bound(hold, one)[1] or one, rules.waits_for(waiting, one.pool, owners[0]) or hold
        paying, away = self.funding.payers(pays, seen, owners, self._gpus(one))
        if away is not None:
            self.away[one.instance] = away
        return self._if_others(hold, paying)

    def _others(self, hold: Hold, one: Lit) -> tuple[Payer, ...]:
        """Who pays for it from now on, where that is anybody else."""
        return self._if_others(hold, self._owners(hold, one))

    def _owners(self, hold: Hold, one: Lit) -> tuple[Payer, ...]:
        """Who has pods on it, where not all are its own; a node that is being stopped stays as it is."""
        if hold.stopping or not one.pods or one.pool not in self._offerings or self._is_its_owners(hold, one):
            return ()
        return rules.owners_of(as_bound(hold, one)[1] or one, self._gpus(one), self.deps.policy)

    def _if_others(self, hold: Hold, owners: tuple[Payer, ...]) -> tuple[Payer, ...]:
        alike = owners and rules.pays_alike(self.deps.policy.budgets, hold.terms, rules.terms_of(hold.terms, owners))
        return () if alike else owners

    def _gpus(self, one: Lit) -> int:
        return self._offerings[one.pool].gpus if one.pool in self._offerings else 0

    def _is_its_owners(self, hold: Hold, one: Lit) -> bool:
        """True where all of its pods are of whom it is held for, as nearly all are."""
        own, payer = (hold.terms.team, hold.terms.workload_class), self.deps.policy.payer
        seen = (first_seen(hold, pod) for pod in one.pods)
        return not hold.terms.owners and all((payer(team), kind) == own for team, kind in seen)

    def _handed_over(self, hold: Hold, one: Lit, owners: Sequence[Payer], waiting: Sequence[Hold]) -> Hold:
        entry, offering = self.before.get(hold.id), self._offerings[one.pool]
        if entry is None:  # It is held for from this look on.
            return replace(hold, terms=rules.terms_of(self._terms(offering, owners[0]), owners))
        asked = rules.waits_for(waiting, one.pool, owners[0]) or Hold(
            id=f"held.{one.instance}.{self.now:%Y%m%dT%H%M%S%f}",
            decision="",
            terms=self._terms(offering, owners[0]),
            since=self.now,
            binds_until=self.now,
            until=self.now,
        )
        asked = replace(
            asked,
            terms=replace(rules.terms_of(asked.terms, owners), minimum_s=0),
            since=rules.begins_at(hold, self.now),
            instance=one.instance,
            matched_at=self.now,
            after=hold.id,
            frozen=hold.frozen,
            classes=hold.classes,
            teams=hold.teams,
        )
        named = entry.value.instance == hold.instance or self._wrote(hold)  # Else it has its node from this look on.
        if not (named and self._wrote(asked)):
            return hold
        budget_holds.end(self.deps, self.before[hold.id]._replace(value=hold), self.now)
        return asked

    def _wrote(self, hold: Hold) -> bool:
        """Write a hold in place of what is known of it; False where another worker was faster."""
        self.still_ours()
        was = self.before[hold.id].was if hold.id in self.before else None
        if HOLD.change(self.deps.state, self.deps.name, {hold.id: (was, hold)}):
            return False
        self.before[hold.id] = Kept(f"{self.deps.name}/{hold.id}", hold, hold)
        return True

    def _terms(self, offering: Offering, owner: Payer) -> Terms:
        return terms(offering, self.deps.policy, workload_class=class_of(owner.workload_class), team=owner.team)
