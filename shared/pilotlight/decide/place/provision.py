"""Provisioner of one plan, which gives waiting pods a place: free room first, then room on its way, then new nodes.

A demand already in flight is never bought for again. Pods of one shape are planned together. A gang is placed whole
or not at all. Nothing here takes the plan over a cap.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import filterfalse
from typing import TYPE_CHECKING

from pilotlight.decide.fit.fit import NOBODY, Allowed, Bin, Neighbours, fill
from pilotlight.decide.money.budget_limits import longest_run
from pilotlight.decide.offers.selection import Candidate, Choices, Eligible, rank_candidates
from pilotlight.decide.place.belonging import Homes, PoolNames, wait_for_own_zone
from pilotlight.decide.place.homes import Housed, keep_homes
from pilotlight.decide.place.new_nodes import buy_nodes
from pilotlight.decide.place.purchase import A_PURCHASE, Group, Headroom, OpenBins, Purchase
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy, Demand
from pilotlight.facts.labels import ZONE
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.pod_verdicts import Code, PodGroup, Rejected, Verdict
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding, PodDemand, PodShape
from pilotlight.units import cents

if TYPE_CHECKING:
    from pilotlight.decide.place.image_order import ImageOrder
    from pilotlight.decide.place.requested_nodes import AskedFor

Ranking = list[tuple[Decimal, Candidate]]

PLACED = ("fits", "booting", "bought")
"""What is told of pods that have a place."""


class Provisioner:
    """One planning run: use once. Gives ``outcomes``, ``purchases``, ``findings``; ``due`` is when deadlines ask.

    While ``only`` is set, room and purchases are of that one offering: its pool, in its zone; while ``zone`` is, of
    that zone, or of none that is known. Nodes of pools ``steered`` are kept for the pods that they are given; ``homes``
    says who belongs where, None where no node is kept for anybody.
    """

    def __init__(self, work: Work, ready: list[Bin], booting: list[Bin], headroom: Headroom) -> None:
        look, view, spot_dies = work.look, work.view, any(o.survival is not None for o in work.offerings)
        self.offerings = sorted(work.offerings, key=lambda o: o.name)
        self.policy = work.policy
        self.throughput = look.throughput
        self.memory = work.memory
        self.headroom = headroom
        self.ready = ready
        self.booting = booting
        self.images: ImageOrder | None = None  # Where a ready node has what a pod waits with.
        self.open: OpenBins  # Nodes with device room, once it is known which are on their way for whom.
        self.opened = 0  # Offerings that purchases were begun of: their nodes stand in that order.
        self.now, self.untaken = look.now, look.untaken
        self.steps = look.money.steps
        self.filters = work.filters
        on_demand = [n.instance_type for n in work.standing if n.capacity_type == "on-demand"] if spot_dies else ()
        self.lit_on_demand = frozenset(on_demand)
        """Types of which nodes run on demand: who retreated there from spot goes back only where that pays."""
        self.unbound = {uid: entry.decision for entry in self.memory.came for uid in entry.demands}
        near = any(shape.near is not None and shape.near.rules for shape in view.shapes)
        around = view.around, (p.shape for p in view.pending), work.steered, [one.takes for one in view.daemons]
        neighbours = Neighbours(*around) if near else NOBODY
        self.allowed = Allowed(neighbours)
        self._has_due = any(shape.due for shape in view.shapes)
        for bin_ in booting if neighbours is not NOBODY else ():
            neighbours.add_place(bin_)
        self.outcomes: list[PodGroup] = []
        self.housed: list[Housed] = []  # Pods by their node, where nodes take only the pods that they are given.
        self.findings: list[Finding] = []
        self.purchases: dict[str, Purchase] = {}
        self.demands: list[Demand] = []
        self.due: list[datetime] = []
        self.only: Offering | None = None
        self.zone = ""
        self.told_unbound: set[str] = set()
        self._choices = Choices(self.policy, self.throughput, self.memory, self.now, self.steps)
        self._rankings: dict[tuple[int, int], tuple[Eligible, Ranking, dict[int, list[Rejected]]]] = {}
        self.steered = work.steered
        able, closed = partial(self.able, self.offerings), {node.name for node in work.standing if node.home}
        self.homes = Homes(self.policy, able, work.steered, closed, view.pending) if work.steered else None
        # Pods have pools of their own, and the cloud was short of something: they may wait for a zone of theirs.
        self.may_wait = bool(work.steered and self.memory.backoffs)

    def able(self, offerings: Sequence[Offering], shape: PodShape) -> Eligible:
        """Candidates of some offerings that a shape may be bought now, by every filter in turn."""
        able = self.eligible(shape, offerings)
        for narrow in self.filters:
            able = narrow(self, able, shape, offerings)
        return able

    def wake_at(self, at: datetime | None) -> None:
        """Note when waiting pods may be bought for otherwise."""
        if at is not None:
            self.due.append(at)

    def refuse(self, pod: PodDemand, why: str) -> None:
        """Tell a person what to mend of a pod's deadline; nothing is bought for it."""
        finding = Finding(subject=pod.full_name, code="deadline", message=why, uid=pod.uid, team=pod.shape.team)
        self.findings.append(finding)
        self.tell("finding", Group(pod.shape, [pod]), "", why, code="deadline")

    def eligible(self, shape: PodShape, offerings: Sequence[Offering]) -> Eligible:
        """Worked out once for a shape, of which it is asked at each step of a plan."""
        return self._choices(shape, offerings, self.lit_on_demand)

    def ranking(self, able: Eligible, shape: PodShape, count: int) -> Ranking:
        """Candidates of pods of a shape, the cheapest first, worked out once for shapes that have the same ones."""
        known = self._rankings.get((id(able), count))
        if known is None:
            order = rank_candidates(able, shape, count, self.policy)
            known = self._rankings[id(able), count] = able, order, {}
        return known[1]

    def passed_over(self, able: Eligible, count: int, index: int) -> list[Rejected]:
        """Why those after one of a ranking were not taken."""
        _, order, told = self._rankings[id(able), count]
        if index not in told:
            told[index] = _dearer(order[index:])
        return told[index]

    def in_flight(self, pending: Sequence[PodDemand]) -> Mapping[str, str]:
        """Pods whose capacity is on its way take their room in it; the offering that was asked for each, by uid."""
        homed = any(bin_.home for bin_ in (*self.ready, *self.booting))
        kept = keep_homes(self, [pod for pod in pending if pod.uid not in self.untaken]) if homed else {}
        if kept:
            pending = [pod for pod in pending if pod.uid not in kept]
        if self._has_due:
            pending = [pod for pod in pending if not self._in_vain(pod)]
        asked: Sequence[AskedFor] = ()
        if self.memory.in_flight:
            from pilotlight.decide.place.requested_nodes import asked_for

            asked, self.booting = asked_for(pending, self.memory.in_flight, self.booting)
        self.open = OpenBins((*self.ready, *self.booting))
        for entry, group, bins in asked:
            why = f"asked for by decision {entry.decision}; expected by {entry.ready_by:%H:%M:%S}"
            self.tell("booting", group, entry.offering, why)
            self.take_spot_share(entry.pool, group.shape, len(group.pods))
            others = (bin_ for bin_ in self.booting if bin_.pool == entry.pool)
            placed = 0
            for bin_, count in fill(group.shape, len(group.pods), (*bins, *others), self.allowed):
                self.house(bin_, group.pods[placed : (placed := placed + count)])
        return kept | {pod.uid: entry.offering for entry, group, _ in asked for pod in group.pods}

    def house(self, bin_: Bin, pods: Sequence[PodDemand]) -> None:
        """Note who is put on a node, where nodes take only the pods that they are given."""
        if bin_.home or bin_.pool in self.steered:
            self.housed.append(Housed(bin_, pods))

    def _in_vain(self, pod: PodDemand) -> bool:
        """True where only spot is on its way to a pod whose deadline leaves no time for that."""
        if pod.shape.due is None or not self.able(self.offerings, pod.shape).sure:
            return False
        return all(self._is_spot(entry.pool) for entry in self.memory.in_flight if pod.uid in entry.demands)

    def too_risky(self, shape: PodShape, pool: str) -> bool:
        """True where a pool is spot and a shape's deadline leaves no time for that."""
        return shape.due is not None and self._is_spot(pool) and bool(self.able(self.offerings, shape).sure)

    def take_spot_share(self, pool: str, shape: PodShape, pods: int) -> None:
        """Count pods that get spot against their team's and class's share of it."""
        if self.headroom.spot_shares is not None and self._is_spot(pool):
            self.headroom.spot_shares.take(shape, pods)

    def _is_spot(self, pool: str) -> bool:
        rules = self.policy.pools.get(pool)
        return rules is not None and rules.capacity_type == "spot"

    def homes_of(self, shape: PodShape) -> PoolNames | None:
        """The pools that a shape belongs to; None: any it may use."""
        return self.homes.pools_for(shape) if self.homes is not None else None

    def place(self, group: Group, *, buy: bool = True) -> int:
        """Free room, then room on its way, then purchases unless not to ``buy``. Returns how many pods found a place.

        Where pods belong comes first, and any other room or purchase only where that is not to be had. Of pods that
        mind each other one node is bought at a time: each may open room for the rest on nodes that are there.
        """
        if not group.picky:
            return self._place(group, buy=buy)
        placed, begun, bought, left = 0, len(self.outcomes), -1, group.pods
        while left and bought != (bought := self.nodes_bought()):
            placed += self._place(Group(group.shape, left), buy=buy)
            found = {uid for told in self.outcomes[begun:] if told.verdict in PLACED for uid in told.uids}
            left = [pod for pod in group.pods if pod.uid not in found]
        return placed

    def _place(self, group: Group, *, buy: bool) -> int:
        shape, homes = group.shape, self.homes_of(group.shape)
        left = self._put(group, homes)
        placed, left = len(group.pods) - len(left), self._without_unbound(Group(shape, left))
        if left and homes is not None:
            bought = buy_nodes(self, Group(shape, left), homes) if buy else 0
            if bought and group.picky:  # The rest may find room beside it, at the next round.
                return placed + bought
            rest = Group(shape, left[bought:])
            waits = self.may_wait and wait_for_own_zone(self, rest, homes)
            left = rest.pods if waits else self._put(rest, None)
            placed += bought + len(rest.pods) - len(left)
        return placed + (buy_nodes(self, Group(shape, left), None) if left and buy else 0)

    def _put(self, group: Group, homes: PoolNames | None) -> list[PodDemand]:
        """Into room that there is, or will be; of ``homes``, where they are given. The pods that found none."""
        shape, left = group.shape, group.pods
        for there, kind, verdict, why in (
            (self.ready, "ready", "fits", "a ready node has room; the scheduler will bind it"),
            (self.booting, "booting", "booting", "a node on its way has room for it"),
            (self.purchases, "new", "bought", "shares a node that this plan buys"),
        ):
            if not there or not left:
                continue
            bins = self._shared_bins(group) if kind == "new" else self._usable(shape, kind)
            if shape.due is not None and self.able(self.offerings, shape).sure:
                bins = filterfalse(lambda b: self._is_spot(b.pool), bins)
            if self.homes is not None and homes is not None:
                bins = filter(partial(self.homes.welcome, homes=homes), bins)
            placed = ends = 0
            for own, fit in self.images.turns(left, bins) if self.images and kind == "ready" else ((left, bins),):
                ends += len(own)
                for bin_, count in fill(shape, len(own), fit, self.allowed):
                    self._note(verdict, Group(shape, left[placed : (placed := placed + count)]), bin_, why)  # type: ignore[arg-type]
                if placed < ends:
                    break  # They are of one shape: no more of them find room.
            left = left[placed:]
        return left

    def _note(self, verdict: Verdict, group: Group, bin_: Bin, why: str) -> None:
        self.house(bin_, group.pods)
        self.take_spot_share(bin_.pool, group.shape, len(group.pods))
        if verdict == "booting" and len(bin_.taken) == 1:
            self.note_demand(bin_.pool, 1, group)
        self.tell(verdict, group, bin_.where, why)
        if verdict == "bought":
            self.purchases[bin_.where].charge(group.shape, group.pods)

    def _without_unbound(self, group: Group) -> list[PodDemand]:
        """The pods of a group but those whose own node is ready and did not help: one node was enough to learn that."""
        if not self.unbound:
            return group.pods
        unbound = [p for p in group.pods if p.uid in self.unbound]
        if unbound and not self.told_unbound.issuperset(p.uid for p in unbound):
            self.told_unbound.update(p.uid for p in unbound)
            decision = self.unbound[unbound[0].uid]
            why = f"its node, bought by decision {decision}, is ready and the pod not bound to it yet"
            self.tell("waiting", Group(group.shape, unbound), "", why, code="unbound")
        return [p for p in group.pods if p.uid not in self.unbound]

    def _usable(self, shape: PodShape, kind: str) -> Iterator[Bin]:
        """Nodes of a kind, there or on their way, with devices for one pod of a shape, where pods may go now."""
        bins = self._in_place(self.open.able(kind, shape.gpu))
        if not self.memory.misfits:
            return bins
        return filterfalse(lambda b: self.memory.has_mismatch(shape.key, b.where, self.now), bins)

    def _in_place(self, bins: Iterator[Bin]) -> Iterator[Bin]:
        if self.only is not None:
            bins = filter(partial(Bin.in_pool_of, offering=self.only), bins)
        return filter(lambda b: b.labels.get(ZONE, self.zone) == self.zone, bins) if self.zone else bins

    def nodes_bought(self) -> int:
        """Count of nodes that this plan buys so far."""
        return sum(len(purchase.bins) for purchase in self.purchases.values())

    def _shared_bins(self, group: Group) -> Iterator[Bin]:
        """Nodes of this plan with device room that pods may share: with budgets, those whose hold covers them."""
        bins = self._in_place(self.open.able("new", group.shape.gpu))
        if self.headroom.purse is None:
            return bins
        known: dict[int, bool] = {}
        return filter(partial(self._covered, group, known), bins)

    def _covered(self, group: Group, known: dict[int, bool], bin_: Bin) -> bool:
        held = self.purchases[bin_.where].terms[self.open.at[id(bin_)][0] % A_PURCHASE]
        if id(held) not in known:
            known[id(held)] = covers(held, group, self.policy)
        return known[id(held)]

    def note_demand(self, pool: str, nodes: int, group: Group) -> None:
        """Note that pods ask for empty nodes of a pool; those that an earlier look counted do not ask again."""
        to = self.memory.counted_to
        new = len(group.pods) if to is None else sum(1 for pod in group.pods if pod.created_at > to)
        if new:
            jobs = new if group.shape.gang is None else 1 / group.shape.gang.size * new
            scale = float(self.policy.of_class(group.shape.workload_class).wait_scale)
            asked = -(-nodes * new // len(group.pods))
            self.demands.append(Demand(pool=pool, nodes=asked, jobs=jobs * scale))

    def tell(
        self,
        verdict: Verdict,
        group: Group,
        where: str,
        why: str,
        rejected: tuple[Rejected, ...] = (),
        usd: Decimal | None = None,
        code: Code = "",
    ) -> None:
        self.outcomes.append(
            PodGroup(
                verdict=verdict,
                pods=tuple([p.full_name for p in group.pods]),
                uids=tuple([p.uid for p in group.pods]),
                where=where,
                why=why,
                code=code,
                rejected=rejected,
                usd_per_useful_hour=usd,
                workload_class=group.shape.workload_class,
                class_reason=group.shape.class_reason,
                team=group.shape.team,
            )
        )

    def buys(self) -> tuple[Buy, ...]:
        """The purchases of the plan, one an offering."""
        bought = [purchase for _, purchase in sorted(self.purchases.items()) if purchase.bins]
        nodes = {id(bin_): n for purchase in bought for n, bin_ in enumerate(purchase.bins)} if self.housed else {}
        numbers = {pod.uid: n for one in self.housed if (n := nodes.get(id(one.bin))) is not None for pod in one.pods}
        return tuple(one.buy(numbers if one.offering.pool in self.steered else {}) for one in bought)


def covers(held: Terms, group: Group, policy: Policy) -> bool:
    """True where a node held for on such terms may take pods of a group: whose money it is, and for how long."""
    shape = group.shape
    if (held.team, held.workload_class) != (policy.payer(shape.team), shape.workload_class):
        return False
    longest_s, _ = longest_run(shape.max_run_s, shape.workload_class, policy)
    return held.run_s >= longest_s and held.stop_s >= group.stop_s


def _dearer(pairs: Sequence[tuple[Decimal, Candidate]]) -> list[Rejected]:
    """Why each but the first of a ranking was not taken."""
    best = cents(pairs[0][0])
    return [
        Rejected(
            offering=c.offering.name,
            code="dearer",
            why=f"{cents(usd)} per useful hour and pod, the choice {best}",
            usd_per_useful_hour=usd,
        )
        for usd, c in pairs[1:]
    ]
