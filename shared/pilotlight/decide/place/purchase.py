"""State of a plan while it is made: pods that wait, nodes bought or asked for, what caps and budgets leave."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import datetime
from decimal import Decimal
from heapq import merge
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import field
from msgspec.structs import replace

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.money.budget_balance import MANY, Purse
from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.economics import stop_of_one_s
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import GpuRequest, PodDemand, PodShape
from pilotlight.units import MILLI_PER_GPU, Seconds, UsdPerHour, cents, count_of

if TYPE_CHECKING:
    from pilotlight.decide.offers.spot_share import SpotShares

A_PURCHASE = 1 << 32
"""Numbers of nodes that a purchase may have: in an order of all, its own begin at the next multiple."""


class Headroom(msgspec.Struct):
    """Room that the caps leave: counts of what is lit, against the policy."""

    policy: Policy  # Its caps and pools' ``max`` are counted against.
    purse: Purse | None = None  # What the budgets leave; None where there are none.
    nodes: int = 0  # Nodes that are lit, or bought by this plan.
    gpus: int = 0  # Whole devices of them.
    usd_per_hour: UsdPerHour = Decimal(0)  # Dollars an hour of them.
    by_pool: Counter[str] = field(default_factory=Counter)  # Nodes of each pool.
    # Nodes of reserved pools that are paid for and still to be had, by pool and zone; no zone: of the whole pool.
    paid: dict[tuple[str, str], int] = field(default_factory=dict)
    # Nodes of each pool that are counted already; purchases take these first.
    owed: Counter[str] = field(default_factory=Counter)
    # Quotas of the cloud's account by pool, where it tells them.
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    # What this plan takes of each quota, in its unit, by its name.
    taken: Counter[str] = field(default_factory=Counter)
    spot_shares: "SpotShares | None" = None  # Shares of spot that are left; None where the policy names none.

    def add(self, offering: Offering, nodes: int, terms_: Terms | None = None) -> None:
        """Count nodes as lit; with terms, as bought by this plan and held for."""
        counted = min(nodes, self.owed[offering.pool]) if self.owed else 0
        more = nodes - counted
        self.owed[offering.pool] -= counted
        if quota := self.quotas.get(offering.pool):
            self.taken[quota.name] += more * quota.takes
        self.nodes += more
        self.gpus += more * offering.gpus
        self.usd_per_hour += more * offering.usd_per_hour
        self.by_pool[offering.pool] += more
        if self.purse is not None and terms_ is not None:
            self.purse.take(terms_, nodes)
        for key in {(offering.pool, ""), (offering.pool, offering.zone)} & self.paid.keys():
            self.paid[key] -= nodes

    def terms(
        self, offering: Offering, shape: PodShape | None, nodes: int = 1, stop_s: Seconds = 0, others: int = 0
    ) -> Terms | None:
        """Terms of a node bought for pods of a shape (None: for whatever comes); None without budgets.

        A first stretch is cut so that all of ``nodes`` find room, which a gang needs. The pods take ``stop_s`` to stop,
        and ``others`` are bought with each node.
        """
        if self.purse is None:
            return None
        if shape is None:
            return self.purse.fit_terms(terms(offering, self.purse.policy, workload_class=None, team=""))
        asked = terms(
            offering,
            self.purse.policy,
            workload_class=shape.workload_class,
            team=shape.team,
            max_run_s=shape.max_run_s,
            typical=self.purse.money.typical,
            stop_s=stop_s,
        )
        return self.purse.fit_terms(asked, nodes, others)

    def room(self, offering: Offering, terms_: Terms | None) -> tuple[int, str, Code]:
        """Count of further nodes that the caps allow; the tightest in figures, and whether it is a budget."""
        caps, pool = self.policy.caps, self.policy.pools.get(offering.pool)
        limits: list[tuple[int, str, Code]] = []
        if pool is not None:
            have = self.by_pool[offering.pool]
            limits.append(
                (pool.max - have, f"pool {offering.pool} is at {have} of its {count_of(pool.max, 'node')}", "cap")
            )
        if caps.nodes is not None:
            limits.append((caps.nodes - self.nodes, f"{self.nodes} of {count_of(caps.nodes, 'node')} lit", "cap"))
        if caps.gpus is not None and offering.gpus:
            left = (caps.gpus - self.gpus) // offering.gpus
            limits.append((left, f"{self.gpus + offering.gpus} of {count_of(caps.gpus, 'GPU')} would be lit", "cap"))
        if caps.usd_per_hour is not None and offering.usd_per_hour > 0:
            after = self.usd_per_hour + offering.usd_per_hour
            left = int((caps.usd_per_hour - self.usd_per_hour) // offering.usd_per_hour)
            limits.append((left, f"{cents(after)} of {cents(caps.usd_per_hour)} an hour would be spent", "cap"))
        if counted := self.owed[offering.pool]:
            limits = [(max(0, left) + counted, figures, code) for left, figures, code in limits]
        if quota := self.quotas.get(offering.pool):
            runs = quota.used + self.taken[quota.name]
            figures = f"{runs:,} of {quota.limit:,} {quota.unit} run of the account's quota {quota.name}"
            limits.append(((quota.limit - runs) // quota.takes, f"{figures}; a node takes {quota.takes:,}", "quota"))
        if self.purse is not None and terms_ is not None:
            limits += self.purse.room(terms_)
        for key in {(offering.pool, ""), (offering.pool, offering.zone)} & self.paid.keys():
            limits.append((self.paid[key], f"no more of pool {offering.pool} is paid for now", "paid"))
        return min(limits, default=(MANY, "", ""))

    def copy(self) -> "Headroom":
        """A copy that later changes leave alone."""
        purse = self.purse.copy() if self.purse is not None else None
        return replace(
            self,
            purse=purse,
            by_pool=Counter(self.by_pool),
            paid=dict(self.paid),
            owed=Counter(self.owed),
            taken=Counter(self.taken),
            spot_shares=self.spot_shares.copy() if self.spot_shares is not None else None,
        )


class Before(NamedTuple):
    """Room of a bin as it was, to give back to it; ``room`` None: it was not there."""

    bin: Bin
    room: tuple[list[int], dict[str, int], dict[str, int], int, int, int, int, int, bool, tuple[str, ...]] | None

    def restore(self) -> None:
        """Put it back."""
        b = self.bin
        if self.room is None:
            b.full = True
        else:
            b.devices, b.slices, b.other, taken, b.cpu_milli, b.memory, b.ephemeral, b.pods, b.full, b.ports = self.room
            del b.taken[taken:]


# Resource of a node's devices, whole ones that are free, thousandths of the one with most, other GPU resources.
FreeDevices = tuple[str, int, int, tuple[tuple[str, int], ...]]


class OpenBins:
    """Bins that have device room, in their order, by what is free of them; what a gang put there can be taken back."""

    def __init__(self, bins: Iterable[Bin]) -> None:
        self._bins: dict[int, Bin] = {}
        # Number by a bin's id, and where it stands.
        self.at: dict[int, tuple[int, FreeDevices | None]] = {}
        self._rows: dict[tuple[str, FreeDevices], list[int]] = {}
        self._fitting: dict[tuple[str, GpuRequest], list[list[int]]] = {}
        self.log: list[Before] = []
        self._seen = 0
        self.add(0, bins)

    def add(self, number: int, bins: Iterable[Bin]) -> None:
        """Further bins, numbered from there on; full ones are no room for anybody."""
        for n, bin_ in enumerate(bins, number):
            if not bin_.full:
                bin_.watch = self.note
                self._bins[n], self.at[id(bin_)] = bin_, (n, None)
                self.log.append(Before(bin_, None))

    def note(self, bin_: Bin) -> None:
        """Keep the room of a bin that is about to change."""
        b = bin_
        held = list(b.devices), dict(b.slices), dict(b.other), len(b.taken), b.cpu_milli, b.memory
        self.log.append(Before(b, (*held, b.ephemeral, b.pods, b.full, b.ports)))

    def able(self, kind: str, gpu: GpuRequest) -> Iterator[Bin]:
        """Bins of a kind whose free devices hold a request, in their order."""
        self._settle(self._seen)
        rows = self._fitting.get((kind, gpu))
        if rows is None:
            rows = [row for (of, level), row in self._rows.items() if of == kind and _holds(level, gpu)]
            self._fitting[kind, gpu] = rows
        few = sum(map(len, rows)) <= 500  # Of more the first ones are as a rule all that is asked for.
        return map(self._bins.__getitem__, sorted(chain.from_iterable(rows)) if few else merge(*rows))

    def undo(self, mark: int) -> None:
        """Give back all that was put, and take away all that was added, since the log was so long."""
        self._settle(self._seen)
        for before in reversed(self.log[mark:]):
            before.restore()
        self._settle(mark)
        for bin_ in [before.bin for before in self.log[mark:] if before.room is None]:
            del self._bins[self.at.pop(id(bin_))[0]]
        del self.log[mark:]
        self._seen = mark

    def _settle(self, since: int) -> None:
        """Move bins that changed to where they are by now."""
        for bin_, _ in self.log[since:]:
            number, was = self.at[id(bin_)]
            level, devices = None, bin_.devices
            if not bin_.full:
                others = tuple(sorted(bin_.slices.items()))
                level = bin_.resource, devices.count(MILLI_PER_GPU), max(devices, default=0), others
            if level == was:
                continue
            if was is not None:
                row = self._rows[bin_.kind, was]
                del row[bisect_left(row, number)]
            if level is not None:
                if (bin_.kind, level) not in self._rows:
                    self._rows[bin_.kind, level] = []
                    self._fitting.clear()
                insort(self._rows[bin_.kind, level], number)
            self.at[id(bin_)] = number, level
        self._seen = len(self.log)


def _holds(level: FreeDevices, gpu: GpuRequest) -> bool:
    """True where devices that are free hold a request; one for none is held anywhere."""
    resource, whole, most, slices = level
    if not gpu.count:
        return True
    if gpu.resource != resource:
        return dict(slices).get(gpu.resource, 0) >= gpu.count
    return most >= gpu.milli if gpu.milli < MILLI_PER_GPU else whole >= gpu.count


class Group(msgspec.Struct):
    """Pods of one shape that still wait."""

    shape: PodShape
    pods: list[PodDemand]

    @property
    def stop_s(self) -> Seconds:
        """Seconds that the slowest of them takes to stop in order."""
        return max(map(stop_of_one_s, {(p.checkpoint_takes_s, p.grace_s): p for p in self.pods}.values()), default=0.0)

    @property
    def picky(self) -> bool:
        """True where its pods mind who else is on or near their node."""
        return self.shape.near is not None and self.shape.near.picky


class Purchase(msgspec.Struct):
    """Nodes of one offering bought so far in this plan, for whom. ``terms`` are one a node, where there are budgets."""

    offering: Offering
    bins: list[Bin] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    demands: list[str] = field(default_factory=list)
    shapes: dict[str, None] = field(default_factory=dict)  # Keys alone, in the order that they came.
    gangs: dict[str, None] = field(default_factory=dict)
    workload_class: str = ""
    number: int = 0  # Its place among the plan's purchases.

    def charge(self, shape: PodShape, pods: Sequence[PodDemand]) -> None:
        """These pods are whom it is for, too."""
        self.demands += [p.uid for p in pods]
        self.shapes[shape.key] = None
        self.workload_class = shape.workload_class
        if shape.gang is not None:
            self.gangs[shape.gang.key] = None

    @property
    def parts(self) -> tuple[Sized, ...]:
        """All that grows with what is bought."""
        return self.bins, self.terms, self.demands, self.shapes, self.gangs

    def cut(self, lengths: Sequence[int]) -> None:
        """Take back all that came since its parts were so long."""
        del self.bins[lengths[0] :], self.terms[lengths[1] :], self.demands[lengths[2] :]
        for kept, length in ((self.shapes, lengths[3]), (self.gangs, lengths[4])):
            while len(kept) > length:
                kept.popitem()

    def buy(self, numbers: Mapping[str, int]) -> Buy:
        """The call that makes it. ``numbers`` say by uid on which of its nodes a pod is put."""
        return Buy(
            pool=self.offering.pool,
            offering=self.offering.name,
            zone=self.offering.zone,
            count=len(self.bins),
            usd_per_hour=self.offering.usd_per_hour,
            boot_s=self.offering.boot_s,
            demands=tuple(self.demands),
            homes=tuple(numbers.get(uid, 0) for uid in self.demands) if numbers else (),
            shapes=tuple(sorted(self.shapes)),
            workload_class=self.workload_class,
            gangs=tuple(sorted(self.gangs)),
            terms=tuple(self.terms),
            why=f"{len(self.demands)} waiting pod{'s' if len(self.demands) != 1 else ''} without room",
        )


def nodes_bought(buys: Iterable[Buy]) -> Counter[str]:
    """Nodes of purchases, by pool."""
    found: Counter[str] = Counter()
    for buy in buys:
        found[buy.pool] += buy.count
    return found


by_age = attrgetter("created_at", "namespace", "name", "uid")
"""The order of pods in a group: the oldest first; those of one burst, made in the same second, by name."""


def in_units(pods: Sequence[PodDemand]) -> list[tuple[str | None, list[Group]]]:
    """Pods as units to place, in order; each is a gang and its groups, or None and one group.

    The order of ``pods`` does not matter: ties go by the shape's key. Pods that take far longer to stop are a group of
    their own: what budgets do not hold for them, they hold for the others.
    """
    by_shape: dict[tuple[str, int], list[PodDemand]] = defaultdict(list)
    stops = {(pod.checkpoint_takes_s, pod.grace_s): pod for pod in pods}
    bits = {stops_in: int(stop_of_one_s(pod)).bit_length() for stops_in, pod in stops.items()}
    for pod in pods:
        by_shape[pod.shape.key, bits[pod.checkpoint_takes_s, pod.grace_s]].append(pod)
    groups = [Group(same[0].shape, sorted(same, key=by_age)) for same in by_shape.values()]
    gangs: dict[str, list[Group]] = defaultdict(list)
    units: list[tuple[str | None, list[Group]]] = []
    alone = {g for n in (one.shape.near for one in groups) if n for g in {*n.groups} - {rule.group for rule in n.rules}}
    for group in sorted(groups, key=lambda one: in_order(one, alone)):
        if group.shape.gang is None:
            units.append((None, [group]))
        else:
            if group.shape.gang.key not in gangs:
                units.append((group.shape.gang.key, gangs[group.shape.gang.key]))
            gangs[group.shape.gang.key].append(group)
    return units


def in_order(group: Group, alone: Container[str] = ()) -> tuple[int | float | str | datetime, ...]:
    """The order in which groups are planned: by priority, those that mind other pods than their own kind last, gangs
    first, the largest first, the oldest first. In ``alone`` are rules' groups with pods that have no such rule."""
    s = group.shape
    follows = s.near is not None and any(r.group not in s.near.groups or r.group in alone for r in s.near.rules)
    size = -s.gpu.total_milli, -s.memory, -s.cpu_milli
    return (-s.priority, follows, s.gang is None, *size, group.pods[0].created_at, s.key, group.stop_s)
