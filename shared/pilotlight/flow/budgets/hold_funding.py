"""Owners of shared nodes: which of them have no room left for their pods' part of a node, in one look.

The scheduler asks no budget: pods of a team without money bind beside those of a team with some. Their owner pays for
no part of the node then: its pods leave, and the node stays with the owners that pay for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

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
from pilotlight.decide.money.economics import Stopping, calls_s
from pilotlight.decide.money.gpu_shares import measure
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

MOST_CLOSED = 5
"""A node is kept closed for so many minutes at most where pods of its payers wait; squared, where others alone do."""
_Owner = tuple[str, str]
"""The team that pays, and the class."""
_Measure = Callable[[GpuRequest], Decimal]
"""GPUs of a node that devices stand for."""


class _Wanted(NamedTuple):
    """GPUs that an owner's pods wait for: of the smallest gang or pod, of the largest, of all; what each asks for, and
    the pods."""

    fewest: Decimal
    most: Decimal
    whole: Decimal
    asks: Sequence[GpuRequest]
    pods: Sequence[Stopping]


class Funding:
    """What the hard budgets of owners leave for shared nodes; what one node is granted is left to no other."""

    def __init__(self, deps: Deps, snapshot: Snapshot) -> None:
        self.deps, self.snapshot, self.now = deps, snapshot, snapshot.now
        self.limits = [meter for meter in meters(deps.policy.budgets, snapshot.now) if meter.budget.hard]
        self._room: BudgetRoom | None = None
        self._pledged: dict[str, Decimal] = {}
        self._taken = 0  # Nodes that went over to others in this look: their stops may have to take turns.

    def payers(
        self, hold: Hold, one: Lit, owners: tuple[Payer, ...], gpus: int
    ) -> tuple[tuple[Payer, ...], Away | None]:
        """Who of a node's owners pays for it from now on, and the pods that leave, for which an owner's dollars do not
        last: of each owner the oldest pods stay that it can pay for, until those that leave have left.

        Where none of them can, it stays with whom it was with last, as an empty node does. Where nobody can pay, the
        hold stays as it is, and the node is stopped within that. Only pods that may be stopped at a cap leave, and only
        where we act.
        """
        if self.deps.mode_of(one.pool) != "act" or self.snapshot.stays(one.pool, one.instance):
            return owners, None
        left, paying, pods, why = one, owners, tuple[BoundPod, ...](), ""
        out, pledges = self._unfunded(hold, one, left, paying)
        known: set[_Owner] = set()
        while out:
            known |= {(owner.team, owner.workload_class) for owner in out}
            pods += tuple(pod for owner in out for pod in self._beyond(hold, one, left, owner, gpus))
            why = why or next(iter(out.values())).why
            left = rules.without_pods(one, pods)
            paying = rules.owners_of(left, gpus, self.deps.policy)
            out, pledges = self._unfunded(hold, one, left, paying)
        if not paying:
            before = [p for p in rules.payers_of(hold.terms) if (p.team, p.workload_class) not in known]
            paying = rules.as_whole(before)
            out, pledges = self._unfunded(hold, one, left, paying)
        self._pledged |= pledges
        self._taken += bool(pledges)
        if out or not paying:
            return rules.payers_of(hold.terms), None
        return paying, Away(pods, why) if pods else None

    def _unfunded(
        self, hold: Hold, one: Lit, left: Lit, owners: Sequence[Payer]
    ) -> tuple[dict[Payer, Away], dict[str, Decimal]]:
        """The owners whose budgets do not last until their pods can have left; what the others take of each meter.

        ``one`` is the node as it is, ``left`` as it is once those have left it that leave it already.
        """
        out, pledges = dict[Payer, Away](), dict[str, Decimal]()
        after, goes_on = self._after(hold, owners) if owners else (hold, True)
        for owner in owners:
            stopping = rules.pods_of(one.pods, owner, self.deps.policy)
            lacks, takes = self._lacks(hold, after, owner, stopping, goes_on=goes_on)
            if lacks and stops(class_of(owner.workload_class), self.deps.policy):
                out[owner] = Away(rules.pods_of(left.pods, owner, self.deps.policy), lacks)
            else:
                pledges |= takes
        return out, pledges

    def _beyond(self, hold: Hold, one: Lit, left: Lit, owner: Payer, gpus: int) -> Sequence[BoundPod]:
        """The pods of an owner that leave, once those stay that it can pay for: gang by gang, the oldest first."""
        stopping = rules.pods_of(one.pods, owner, self.deps.policy)
        leaving = own = list(rules.pods_of(left.pods, owner, self.deps.policy))
        for some in rules.in_gangs(own):
            rest = [pod for pod in leaving if pod not in some]
            paying = rules.owners_of(rules.without_pods(left, rest), gpus, self.deps.policy)
            after, goes_on = self._after(hold, paying)
            mine = next((p for p in paying if (p.team, p.workload_class) == (owner.team, owner.workload_class)), None)
            if mine is None or not self._lacks(hold, after, mine, stopping, goes_on=goes_on)[0]:
                leaving = rest
        return leaving or own

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
        it opens later each time. It opens at once for its payers' pods where all that wait are paid for, or where these
        find room beside all that are not.
        """
        one = next((offering for offering in self.deps.offerings if offering.pool == hold.terms.pool), None)
        measured = measure(node, one.gpus if one is not None else node.gpus)
        waiting = self._waiting(node, leaving, measured)

        def is_unfunded(owner: _Owner, gpus: Decimal) -> bool:
            return self._is_unfunded(hold, node, owner, gpus, waiting[owner].pods, measured)

        unpaid = {owner for owner, wants in waiting.items() if is_unfunded(owner, wants.most)}
        payers = {(one.team, one.workload_class) for one in rules.payers_of(hold.terms)}
        if not unpaid:
            return not waiting.keys() <= payers and self.now < self._opens_at(node)
        if all(is_unfunded(owner, wants.fewest) for owner, wants in waiting.items()):
            return True
        paid = [wants.most for owner, wants in waiting.items() if owner in payers and owner not in unpaid]
        finds_room = bool(paid) and _all_find_room(node, waiting, unpaid, max(paid), measured)
        return not finds_room and self.now < self._opens_at(node, soon=bool(paid))

    def _is_unfunded(
        self, hold: Hold, node: Node, whose: _Owner, gpus: Decimal, pods: Sequence[Stopping], measured: _Measure
    ) -> bool:
        """True where an owner could not pay for its part of a node once pods of so many GPUs more are on it."""
        held, own = {whose: gpus}, list(pods)
        for pod in node.gpu_pods:
            if pod.gpu is not None:
                key = self.deps.policy.payer(pod.team), pod.workload_class
                held[key] = held.get(key, Decimal(0)) + measured(pod.gpu)
                own += [pod] if key == whose else []
        whole = sum(held.values(), Decimal(0))  # What nobody holds is paid for by those that hold the rest.
        owners = [Payer(team=team, workload_class=kind, part=has / whole) for (team, kind), has in held.items()]
        need = rules.terms_of(hold.terms, owners)
        if rules.pays_alike(self.deps.policy.budgets, hold.terms, need):
            return False
        after = replace(hold, since=self.now, earlier=(), terms=need)
        return bool(self._lacks(hold, after, owners[0], own, goes_on=False)[0])

    def _opens_at(self, node: Node, *, soon: bool = False) -> datetime:
        """When a node that such pods were made to leave opens again at the soonest, by how often that was; ``soon`` for
        pods of those that pay for it."""
        past = interruption_records.past(self.deps, node.instance or node.name)
        left = [one.ended_at for one in past if one.kind == UNFUNDED and one.ended_at is not None]
        return left[-1] + min(len(left), MOST_CLOSED) ** (1 if soon else 2) * TICK if left else self.now

    def _waiting(self, node: Node, leaving: Iterable[BoundPod], measured: _Measure) -> dict[_Owner, _Wanted]:
        """Owners of whom pods wait that could bind to a node were it open, or leave another and come again."""
        binds: dict[str, bool] = {m.shape: False for m in self.snapshot.memory.misfits if m.node == node.name}
        found: dict[_Owner, list[tuple[str, GpuRequest, Stopping]]] = {}
        for pod in self.snapshot.view.pending:
            if pod.shape.key not in binds:
                binds[pod.shape.key] = would_bind(pod.shape, node)
            if binds[pod.shape.key]:
                owner: _Owner = (self.deps.policy.payer(pod.shape.team), pod.shape.workload_class)
                gang = pod.shape.gang.key if pod.shape.gang else pod.uid
                found.setdefault(owner, []).append((gang, pod.shape.gpu, pod))
        for bound in leaving:
            if bound.gpu is not None and bound.gpu.count <= _free_devices(node, bound.gpu.resource):
                owner = self.deps.policy.payer(bound.team), bound.workload_class
                found.setdefault(owner, []).append((bound.gang or bound.uid, bound.gpu, bound))
        free = sum((measured(gpu) for gpu in _free(node)), Decimal(0))
        return {owner: _wanted(pods, free, measured) for owner, pods in found.items()}

    def _lacks(
        self, hold: Hold, after: Hold, owner: Payer, pods: Sequence[Stopping], *, goes_on: bool
    ) -> tuple[str, Mapping[str, Decimal]]:
        """Why an owner's part of a node cannot be held until its pods can have left; what it takes of each meter."""
        until = self.now + 2 * TICK + timedelta(seconds=stop_within(hold, pods) + calls_s(self._taken))
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
                    return refusal(meter, others + wanted, after.terms, self.now), {}
                pledges[meter.key] = self._pledged.get(meter.key, Decimal(0)) + max(Decimal(0), wanted - own)
        return "", pledges

    def _spent(self, meter: Meter, hold: Hold) -> Decimal:
        """What a hold that ends now settles; a rate is free then."""
        return used_amount(meter, hold, self.now) if meter.end is not None else Decimal(0)

    def _accounts(self) -> BudgetRoom:
        if self._room is None:
            self._room = BudgetRoom(self.deps, self.limits, self.now)
        return self._room


def _free_devices(node: Node, resource: str) -> int:
    """Devices of a resource that are free, or free in part."""
    return node.slices[resource] if resource in node.slices else sum(milli > 0 for milli in node.devices)


def _free(node: Node) -> Sequence[GpuRequest]:
    """All that is free of a node's devices."""
    slices = [GpuRequest(count=count, resource=name) for name, count in node.slices.items()]
    return (GpuRequest(count=1, milli=sum(node.devices), resource=node.resource), *slices)


def _all_find_room(
    node: Node, waiting: Mapping[_Owner, _Wanted], unpaid: Iterable[_Owner], paid: Decimal, measured: _Measure
) -> bool:
    """True where the largest that is ``paid`` for finds room beside all that is not, whoever binds first."""
    if node.slices:
        return _have_room(node, waiting.values())
    beside = sum((waiting[owner].whole for owner in unpaid), paid)
    return beside <= sum((measured(gpu) for gpu in _free(node)), Decimal(0))


def _have_room(node: Node, waiting: Iterable[_Wanted]) -> bool:
    """True where slices are free for all that waits: one profile has no room for another."""
    asked: dict[str, int] = {}
    for gpu in (gpu for wants in waiting for gpu in wants.asks):
        asked[gpu.resource] = asked.get(gpu.resource, 0) + gpu.total_milli
    free = {gpu.resource: gpu.total_milli for gpu in _free(node)}
    return all(milli <= free.get(name, 0) for name, milli in asked.items())


def _wanted(pods: Sequence[tuple[str, GpuRequest, Stopping]], free: Decimal, measured: _Measure) -> _Wanted:
    """What pods want, each with its gang and its GPUs; of a gang no more than is ``free``."""
    gangs: dict[str, Decimal] = {}
    for gang, gpu, _ in pods:
        gangs[gang] = gangs.get(gang, Decimal(0)) + measured(gpu)
    at_once = max(free, *(measured(gpu) for _, gpu, _ in pods))
    each = [min(gpus, at_once) for gpus in gangs.values()]
    whole = sum(gangs.values(), Decimal(0))
    return _Wanted(min(each), max(each), whole, [gpu for _, gpu, _ in pods], [pod for _, _, pod in pods])
