"""Owners of shared nodes: which of them have no room left for their pods' part of a node, in one look.

The scheduler asks no budget: pods of a team without money bind beside those of a team with some. Their owner pays for
no part of the node then: its pods leave, and the node stays with the owners that pay for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.fit.closed_nodes import would_bind
from pilotlight.decide.money import hold_owners as rules
from pilotlight.decide.money.budget_limits import (
    class_of,
    in_scope,
    meters,
    paid_until,
    refusal,
    stops,
    used_amount,
    windows,
)
from pilotlight.decide.money.holds import TICK, Away, Lit
from pilotlight.decide.money.node_end import stop_within
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.interruption import UNFUNDED
from pilotlight.facts.money.budgets import Hold, Meter, Payer
from pilotlight.facts.workload import GpuRequest
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.units import MILLI_PER_GPU

MOST_CLOSED = 5
"""A node for which pods wait that are paid for is kept closed for so many minutes, squared, at most."""


class Funding:
    """What the hard budgets of owners leave for shared nodes; what one node is granted is left to no other."""

    def __init__(self, deps: Deps, snapshot: Snapshot) -> None:
        self.deps, self.snapshot, self.now = deps, snapshot, snapshot.now
        self.limits = [meter for meter in meters(deps.policy.budgets, snapshot.now) if meter.budget.hard]
        self._room: BudgetRoom | None = None
        self._pledged: dict[str, Decimal] = {}

    def payers(
        self, hold: Hold, one: Lit, owners: tuple[Payer, ...], gpus: int
    ) -> tuple[tuple[Payer, ...], Away | None]:
        """Who of a node's owners pays for it from now on, and the pods of the others, which leave.

        Where none of them can, it stays with whom it was with last, as an empty node does. Where nobody can pay, the
        hold stays as it is, and the node is stopped within that. Only pods that may be stopped at a cap leave, and only
        where we act.
        """
        if self.deps.mode_of(one.pool) != "act" or one.pool in self.snapshot.others:
            return owners, None
        paying, pods, why = owners, tuple[BoundPod, ...](), ""
        out, pledges = self._unfunded(hold, one, paying)
        known: set[tuple[str, str]] = set()
        while out:
            known |= {(owner.team, owner.workload_class) for owner in out}
            pods += tuple(pod for away in out.values() for pod in away.pods)
            why = why or next(iter(out.values())).why
            paying = rules.owners_of(rules.without_pods(one, pods), gpus, self.deps.policy)
            out, pledges = self._unfunded(hold, one, paying)
        if not paying:
            before = [p for p in rules.payers_of(hold.terms) if (p.team, p.workload_class) not in known]
            paying = rules.as_whole(before)
            out, pledges = self._unfunded(hold, one, paying)
        self._pledged |= pledges
        if out or not paying:
            return rules.payers_of(hold.terms), None
        return paying, Away(pods, why) if pods else None

    def _unfunded(self, hold: Hold, one: Lit, owners: Sequence[Payer]) -> tuple[dict[Payer, Away], dict[str, Decimal]]:
        """The owners whose budgets do not last until their pods can have left; what the others take of each meter."""
        out, pledges = dict[Payer, Away](), dict[str, Decimal]()
        after, goes_on = self._after(hold, owners) if owners else (hold, True)
        for owner in owners:
            pods = rules.pods_of(one.pods, owner, self.deps.policy)
            lacks, takes = self._lacks(hold, after, owner, pods, goes_on=goes_on)
            if lacks and stops(class_of(owner.workload_class), self.deps.policy):
                out[owner] = Away(pods, lacks)
            else:
                pledges |= takes
        return out, pledges

    def _after(self, hold: Hold, owners: Sequence[Payer]) -> tuple[Hold, bool]:
        """The hold as it is once these pay, and whether it is the same one."""
        need = rules.terms_of(hold.terms, owners)
        if rules.pays_alike(self.deps.policy.budgets, hold.terms, need):
            return hold, True
        since = rules.begins_at(hold, self.now)
        return replace(hold, since=since, earlier=(), terms=replace(need, minimum_s=0)), False

    def stays_closed(self, hold: Hold, node: Node, leaving: Iterable[BoundPod]) -> bool:
        """True while pods wait that could bind to a node were it open and that their budgets have no room for, and none
        that are paid for. Pods that are ``leaving`` other nodes come again, and wait then.

        Where both wait, or one of several is paid for, those may bind first that are not: once pods were made to leave
        it opens after a minute, then four, then nine, for any but its payers alone.
        """
        waiting, payers = self._waiting(node), rules.payers_of(hold.terms)
        for pod in leaving:
            if pod.gpu is not None and pod.gpu.count <= sum(milli > 0 for milli in node.devices):
                waiting.setdefault((self.deps.policy.payer(pod.team), pod.workload_class), _gpus(pod.gpu))
        others = waiting.keys() - {(one.team, one.workload_class) for one in payers}
        if not others:
            return False
        unfunded = sum(self._is_unfunded(hold, node, owner, waiting[owner]) for owner in others)
        return unfunded == len(waiting) or self.now < self._opens_at(node)

    def _is_unfunded(self, hold: Hold, node: Node, whose: tuple[str, str], gpus: Decimal) -> bool:
        """True where an owner could not pay for its part of a node once a pod of so many GPUs is on it."""
        held = sum((_gpus(pod.gpu) for pod in node.gpu_pods if pod.gpu), Decimal(0))
        part = gpus / (gpus + held)  # What nobody holds is paid for by those that hold the rest.
        owner = Payer(team=whose[0], workload_class=whose[1], part=part)
        beside = Payer(team=hold.terms.team, workload_class=hold.terms.workload_class, part=1 - part)
        after = replace(hold, since=self.now, earlier=(), terms=rules.terms_of(hold.terms, (beside, owner)))
        return bool(self._lacks(hold, after, owner, (), goes_on=False)[0])

    def _opens_at(self, node: Node) -> datetime:
        """When a node that such pods were made to leave opens again at the soonest, by how often that was."""
        past = interruption_records.past(self.deps, node.instance or node.name)
        left = [one.ended_at for one in past if one.kind == UNFUNDED and one.ended_at is not None]
        return left[-1] + min(len(left), MOST_CLOSED) ** 2 * TICK if left else self.now

    def _waiting(self, node: Node) -> dict[tuple[str, str], Decimal]:
        """Owners of whom pods wait that could bind to a node were it open, each with the fewest GPUs of such a pod."""
        out: dict[tuple[str, str], Decimal] = {}
        misfits = {misfit.shape for misfit in self.snapshot.memory.misfits if misfit.node == node.name}
        for shape in {pod.shape.key: pod.shape for pod in self.snapshot.view.pending}.values():
            if shape.key not in misfits and would_bind(shape, node):
                key = self.deps.policy.payer(shape.team), shape.workload_class
                out[key] = min(out.get(key, _gpus(shape.gpu)), _gpus(shape.gpu))
        return out

    def _lacks(
        self, hold: Hold, after: Hold, owner: Payer, pods: Sequence[BoundPod], *, goes_on: bool
    ) -> tuple[str, Mapping[str, Decimal]]:
        """Why an owner's part of a node cannot be held until its pods can have left; what it takes of each meter."""
        until = self.now + 2 * TICK + timedelta(seconds=stop_within(hold, pods))
        room, pledges, last = self._accounts(), dict[str, Decimal](), paid_until(after, until)
        for limit in self.limits:
            if not in_scope(limit.budget.scope, after.terms.pool, owner.workload_class, owner.team):
                continue
            for meter in windows(limit, last):
                wanted, own = used_amount(meter, after, until), room.own(meter, hold)
                if not goes_on:  # The hold of before ends, and settles what it has spent.
                    own -= min(own, self._spent(meter, hold))
                others = room.total(meter) - own + self._pledged.get(meter.key, Decimal(0))
                if others + wanted > meter.limit:
                    return refusal(meter, others + wanted, after.terms), {}
                pledges[meter.key] = self._pledged.get(meter.key, Decimal(0)) + max(Decimal(0), wanted - own)
        return "", pledges

    def _spent(self, meter: Meter, hold: Hold) -> Decimal:
        """What a hold that ends now settles; a rate is free then."""
        return used_amount(meter, hold, self.now) if meter.end is not None else Decimal(0)

    def _accounts(self) -> BudgetRoom:
        if self._room is None:
            self._room = BudgetRoom(self.deps, self.limits, self.now)
        return self._room


def _gpus(gpu: GpuRequest) -> Decimal:
    return Decimal(gpu.total_milli) / MILLI_PER_GPU
