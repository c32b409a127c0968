"""State of a plan while it is made: pods that wait, nodes bought or asked for, what caps and budgets leave."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.money.budget_balance import MANY, Purse
from pilotlight.decide.money.budget_limits import longest_run, terms
from pilotlight.decide.money.economics import stop_of_one_s
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import Seconds, UsdPerHour, cents, count_of

if TYPE_CHECKING:
    from pilotlight.decide.offers.spot_share import SpotShares


@dataclass(slots=True)
class Headroom:
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
            return self.purse.fit_terms(terms(offering, self.policy, workload_class=None, team=""))
        asked = terms(
            offering,
            self.policy,
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
            limits += [(left, figures, "budget") for left, figures in self.purse.room(terms_)]
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


def covers(held: Terms, group: "Group", policy: Policy) -> bool:
    """True where a node held for on such terms may take pods of a group: whose money it is, and for how long."""
    shape = group.shape
    if (held.team, held.workload_class) != (policy.payer(shape.team), shape.workload_class):
        return False
    longest_s, _ = longest_run(shape.max_run_s, shape.workload_class, policy)
    return held.run_s >= longest_s and held.stop_s >= group.stop_s


@dataclass(slots=True)
class Group:
    """Pods of one shape that still wait."""

    shape: PodShape
    pods: list[PodDemand]

    @property
    def stop_s(self) -> Seconds:
        """Seconds that the slowest of them takes to stop in order."""
        return max(map(stop_of_one_s, self.pods), default=0.0)

    @property
    def picky(self) -> bool:
        """True where its pods mind who else is on or near their node."""
        return self.shape.near is not None and self.shape.near.picky


@dataclass(slots=True)
class Purchase:
    """Nodes of one offering bought so far in this plan, for whom. ``terms`` are one a node, where there are budgets."""

    offering: Offering
    bins: list[Bin] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    demands: list[str] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    gangs: set[str] = field(default_factory=set)
    workload_class: str = ""

    def charge(self, shape: PodShape, pods: Sequence[PodDemand]) -> None:
        """These pods are whom it is for, too."""
        self.demands += [p.uid for p in pods]
        self.shapes.add(shape.key)
        self.workload_class = shape.workload_class
        if shape.gang is not None:
            self.gangs.add(shape.gang.key)

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


def by_age(pod: PodDemand) -> tuple[datetime, str, str, str]:
    """The order of pods in a group: the oldest first; those of one burst, made in the same second, by name."""
    return pod.created_at, pod.namespace, pod.name, pod.uid


def in_units(pods: Sequence[PodDemand]) -> list[tuple[str | None, list[Group]]]:
    """Pods as units to place, in order; each is a gang and its groups, or None and one group.

    The order of ``pods`` does not matter: ties go by the shape's key. Pods that take far longer to stop are a group of
    their own: what budgets do not hold for them, they hold for the others.
    """
    by_shape: dict[tuple[str, int], list[PodDemand]] = defaultdict(list)
    for pod in pods:
        by_shape[pod.shape.key, int(stop_of_one_s(pod)).bit_length()].append(pod)
    groups = [Group(same[0].shape, sorted(same, key=by_age)) for same in by_shape.values()]
    gangs: dict[str, list[Group]] = defaultdict(list)
    units: list[tuple[str | None, list[Group]]] = []
    for group in sorted(groups, key=in_order):
        if group.shape.gang is None:
            units.append((None, [group]))
        else:
            if group.shape.gang.key not in gangs:
                units.append((group.shape.gang.key, gangs[group.shape.gang.key]))
            gangs[group.shape.gang.key].append(group)
    return units


def in_order(group: Group) -> tuple[int, bool, bool, int, int, int, datetime, str, Seconds]:
    """The order in which groups are planned: by priority, those that mind other pods than their own kind last,
    gangs first, the largest first, the oldest first.
    """
    s = group.shape
    follows = s.near is not None and any(rule.group not in s.near.groups for rule in s.near.rules)
    size = -s.gpu.total_milli, -s.memory, -s.cpu_milli
    return (-s.priority, follows, s.gang is None, *size, group.pods[0].created_at, s.key, group.stop_s)


class AskedFor(NamedTuple):
    """Waiting pods of one shape that capacity was asked for, and the nodes of that request."""

    entry: InFlight
    group: Group
    bins: list[Bin]


def asked_for(
    pending: Sequence[PodDemand], in_flight: Sequence[InFlight], booting: Sequence[Bin]
) -> tuple[list[AskedFor], list[Bin]]:
    """The pods that were asked for, in the order of requests and in a plan's; and ``booting``, the newest last.

    So who was told of room on its way finds it in a later look too: what was asked for since is taken last.
    """
    entries = sorted(in_flight, key=lambda e: (e.requested_at, e.decision, e.n, e.offering))
    flight = {uid: index for index, entry in enumerate(entries) for uid in entry.demands}
    groups: dict[tuple[int, str], Group] = {}
    for pod in sorted(pending, key=by_age) if flight else ():
        if (index := flight.get(pod.uid)) is not None:
            groups.setdefault((index, pod.shape.key), Group(pod.shape, [])).pods.append(pod)
    own = _by_entry(entries, booting)
    order = sorted(groups.items(), key=lambda item: (item[0][0], in_order(item[1])))
    asked = [AskedFor(entries[index], group, own[index]) for (index, _), group in order]
    newest = [bin_ for bins in own for bin_ in bins]
    owned = set(map(id, newest))
    return asked, [*(bin_ for bin_ in booting if id(bin_) not in owned), *newest]


def _by_entry(entries: Sequence[InFlight], booting: Sequence[Bin]) -> list[list[Bin]]:
    """The nodes on their way that each entry asked for: of its pool the newest entry has the last."""
    left: dict[str, list[Bin]] = {}
    for bin_ in booting:
        left.setdefault(bin_.pool, []).append(bin_)
    own: list[list[Bin]] = []
    for entry in reversed(entries):
        there = left.get(entry.pool, [])
        first = max(0, len(there) - entry.count)
        own.append(there[first:])
        left[entry.pool] = there[:first]
    return own[::-1]
