"""Which capacity to ask for, for the pods that wait: free room first, then room on its way, then the cheapest.

A demand already in flight is never bought for again. Pods of one shape are planned together. A gang is placed whole
or not at all. Nothing here takes the plan over a cap.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from pilotlight.decide.demand.run_lengths import expected_run_s
from pilotlight.decide.fit.fit import Allowed, Bin, fill, of_offering
from pilotlight.decide.fit.neighbours import NOBODY, Neighbours
from pilotlight.decide.offers.selection import (
    Candidate,
    Eligible,
    Memo,
    dearer,
    eligible,
    held_back,
    rank_candidates,
)
from pilotlight.decide.offers.shortage import better_waited_for, short_zones
from pilotlight.decide.offers.spot_economics import spot_verdict
from pilotlight.decide.place.node_closing import MOST_LOST, Homes, PoolNames, tainted_nodes
from pilotlight.decide.place.purchase import Group, Headroom, Purchase, asked_for, covers
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy, Demand
from pilotlight.facts.labels import HOSTNAME, ZONE
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.pod_verdicts import NOT_NOW, Code, PodGroup, Rejected, Verdict
from pilotlight.facts.workload import Finding, NearRule, PodDemand, PodShape
from pilotlight.units import cents

if TYPE_CHECKING:
    from pilotlight.decide.work import Work

ASKED_LATELY = timedelta(seconds=30)
"""A zone that was refused within this is not asked again before its rest is over."""

PLACED = ("fits", "booting", "bought")
"""What is told of pods that have a place."""


class Provisioner:
    """One planning run: use once. Gives ``outcomes``, ``purchases``, ``findings``; ``due`` is when deadlines ask.

    While ``only`` is set, room and purchases are of that one offering: its pool, in its zone; while ``zone`` is, of
    that zone, or of none that is known. Nodes of pools ``steered`` are kept for pods that belong there (``homes``, None
    where no node is kept for anybody); those that are ``closed`` now are room for them too.
    """

    def __init__(self, work: "Work", ready: list[Bin], booting: list[Bin], headroom: Headroom) -> None:
        look, view, spot_dies = work.look, work.view, any(o.survival is not None for o in work.offerings)
        self.offerings = sorted(work.offerings, key=lambda o: o.name)
        self.policy = work.policy
        self.throughput = look.throughput
        self.memory = work.memory
        self.headroom = headroom
        self.ready = ready
        self.booting = booting
        self.now = look.now
        self.steps = look.money.steps
        self.filters = work.filters
        on_demand = [n.instance_type for n in work.standing if n.capacity_type == "on-demand"] if spot_dies else ()
        self.lit_on_demand = frozenset(on_demand)
        """Types of which nodes run on demand: who retreated there from spot goes back only where that pays."""
        self.unbound = {uid: entry.decision for entry in self.memory.came for uid in entry.demands}
        near = any(pod.shape.near is not None and pod.shape.near.rules for pod in view.pending)
        neighbours = Neighbours(view.around, (p.shape for p in view.pending)) if near else NOBODY
        self.allowed = Allowed(neighbours)
        for bin_ in booting if neighbours is not NOBODY else ():
            neighbours.add_place(bin_)
        self.outcomes: list[PodGroup] = []
        self.findings: list[Finding] = []
        self.purchases: dict[str, Purchase] = {}
        self.demands: list[Demand] = []
        self.due: list[datetime] = []
        self.only: Offering | None = None
        self.zone = ""
        self.waiting: Collection[PodDemand] = ()
        self._told_unbound: set[str] = set()
        self._known: Memo[Eligible] = Memo()
        able, closed = partial(self.able, self.offerings), tainted_nodes(work.standing)
        self.homes = Homes(self.policy, able, work.steered, closed) if work.steered else None

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
        known = self.policy, self.throughput, self.memory, self.now, self.steps, self.lit_on_demand
        about, key = (offerings if shape.key else (shape, *offerings)), (shape.key, self.lit_on_demand)
        return self._known(tuple(about), key, lambda: eligible(shape, offerings, *known))

    def in_flight(self, pending: Sequence[PodDemand]) -> Mapping[str, str]:
        """Pods whose capacity is on its way take their room in it; the offering that was asked for each, by uid."""
        if self.homes is not None and self.homes.closed:
            self.waiting = {pod.shape.key: pod for pod in sorted(pending, key=_turn, reverse=True)}.values()
        if any(pod.shape.due for pod in pending):
            pending = [pod for pod in pending if not self._in_vain(pod)]
        asked, self.booting = asked_for(pending, self.memory.in_flight, self.booting)
        for entry, group, bins in asked:
            why = f"asked for by decision {entry.decision}; expected by {entry.ready_by:%H:%M:%S}"
            self.tell("booting", group, entry.offering, why)
            self._share(entry.pool, group.shape, len(group.pods))
            others = (bin_ for bin_ in self.booting if bin_.pool == entry.pool)
            fill(group.shape, len(group.pods), (*bins, *others), self.allowed)
        return {pod.uid: entry.offering for entry, group, _ in asked for pod in group.pods}

    def _in_vain(self, pod: PodDemand) -> bool:
        """True where only spot is on its way to a pod whose deadline leaves no time for that."""
        if pod.shape.due is None or not self.able(self.offerings, pod.shape).sure:
            return False
        return all(self._is_spot(entry.pool) for entry in self.memory.in_flight if pod.uid in entry.demands)

    def _share(self, pool: str, shape: PodShape, pods: int) -> None:
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
        if not picky(group.shape):
            return self._place(group, buy=buy)
        placed, begun, bought, left = 0, len(self.outcomes), -1, group.pods
        while left and bought != (bought := len(self.bought_bins())):
            placed += self._place(Group(group.shape, left), buy=buy)
            found = {uid for told in self.outcomes[begun:] if told.verdict in PLACED for uid in told.uids}
            left = [pod for pod in group.pods if pod.uid not in found]
        return placed

    def _place(self, group: Group, *, buy: bool) -> int:
        shape, homes = group.shape, self.homes_of(group.shape)
        lost = {p.uid for p in group.pods if self.memory.lost.get(p.uid, 0) >= MOST_LOST} if homes else set()
        if homes and 0 < len(lost) < len(group.pods):
            first = Group(shape, [p for p in group.pods if p.uid not in lost])
            later = Group(shape, [p for p in group.pods if p.uid in lost])
            return self.place(first, buy=buy) + self.place(later, buy=buy)
        placed = self._put(group, homes, lost=bool(lost))
        left = self._without_unbound(Group(shape, group.pods[placed:]))
        if left and homes is not None:
            bought = self._buy(Group(shape, left), homes) if buy else 0
            rest = Group(shape, left[bought:])
            elsewhere = 0 if self._waits_for_a_zone(rest, homes) else self._put(rest, None)
            placed, left = placed + bought + elsewhere, rest.pods[elsewhere:]
        return placed + (self._buy(Group(shape, left), None) if left and buy else 0)

    def _put(self, group: Group, homes: PoolNames | None, *, lost: bool = False) -> int:
        """Into room that there is, or will be; of ``homes``, where they are given."""
        shape, placed = group.shape, 0
        for bins, verdict, why in (
            (self._usable(shape, self.ready), "fits", "a ready node has room; the scheduler will bind it"),
            (self._usable(shape, self.booting), "booting", "a node on its way has room for it"),
            (self._shared_bins(group), "bought", "shares a node that this plan buys"),
        ):
            if shape.due is not None and self.able(self.offerings, shape).sure:
                bins = [b for b in bins if not self._is_spot(b.pool)]
            if self.homes is not None and homes is not None:
                bins = [b for b in bins if self.homes.welcome(b, homes, lost=lost)]
                bins = [b for b in bins if not self._taken_first(self.homes, b, group)]
            for bin_, count in fill(shape, len(group.pods) - placed, bins, self.allowed):
                pods = group.pods[placed : placed + count]
                placed += count
                self._share(bin_.pool, shape, count)
                if verdict == "booting" and len(bin_.taken) == 1:
                    self._ask(bin_.pool, 1, Group(shape, pods))
                self.tell(verdict, Group(shape, pods), bin_.where, why)  # type: ignore[arg-type]
                if verdict == "bought":
                    self.purchases[bin_.where].charge(shape, pods)
        return placed

    def _taken_first(self, homes: Homes, bin_: Bin, group: Group) -> bool:
        """True where a pod that belongs elsewhere and has waited longer would take a closed node's room as it opens."""
        if not homes.shuts(bin_):
            return False
        turn = _turn(group.pods[0]) if group.pods else None
        return any(
            turn is not None
            and _turn(pod) < turn
            and homes.strange(pod.shape, bin_.pool)
            and bin_.room_for(pod.shape) > 0
            and self.allowed(pod.shape, bin_)
            for pod in self.waiting
        )

    def _without_unbound(self, group: Group) -> list[PodDemand]:
        """The pods of a group but those whose own node is ready and did not help: one node was enough to learn that."""
        unbound = [p for p in group.pods if p.uid in self.unbound]
        if unbound and not self._told_unbound.issuperset(p.uid for p in unbound):
            self._told_unbound.update(p.uid for p in unbound)
            decision = self.unbound[unbound[0].uid]
            why = f"its node, bought by decision {decision}, is ready and the pod not bound to it yet"
            self.tell("waiting", Group(group.shape, unbound), "", why, code="unbound")
        return [p for p in group.pods if p.uid not in self.unbound]

    def _usable(self, shape: PodShape, bins: list[Bin]) -> list[Bin]:
        if self.only is not None:
            bins = [b for b in bins if b.in_pool_of(self.only)]
        if self.zone:
            bins = [b for b in bins if b.labels.get(ZONE, self.zone) == self.zone]
        if not self.memory.misfits:
            return bins
        return [b for b in bins if not self.memory.misfit(shape.key, b.where, self.now)]

    def bought_bins(self) -> list[Bin]:
        return [b for purchase in self.purchases.values() for b in purchase.bins]

    def _shared_bins(self, group: Group) -> list[Bin]:
        """Nodes of this plan that pods may share: with budgets, those whose hold covers them."""
        if self.headroom.purse is None:
            bins = self.bought_bins()
            bins = [b for b in bins if b.labels.get(ZONE, self.zone) == self.zone] if self.zone else bins
            return [b for b in bins if self.only is None or b.in_pool_of(self.only)]
        return [
            bin_
            for purchase in self.purchases.values()
            for bin_, held in zip(purchase.bins, purchase.terms, strict=True)
            if (self.only is None or bin_.in_pool_of(self.only))
            and (not self.zone or bin_.labels.get(ZONE, self.zone) == self.zone)
            and covers(held, self.headroom.terms(purchase.offering, group.shape, stop_s=group.stop_s))
        ]

    def _buy(self, group: Group, homes: PoolNames | None) -> int:
        """Purchases. With ``homes`` only those, and nothing is told of pods that get none."""
        able = self._able_now(group)
        if able.candidates and picky(group.shape):
            able = self._near_enough(able, group)
        if homes is None and (better := self._waits_for_a_zone(group, self.homes_of(group.shape))):
            self.tell("waiting", group, "", better, self._not_bought(group, able), code="zone")
            return 0
        if not able.candidates:
            if homes is None:
                self._cannot(group, able)
            return 0
        done = 0
        while done < len(group.pods):
            left = Group(group.shape, group.pods[done:])
            count = self._buy_best(left, able, homes)
            if not count:
                break
            done += count
            if picky(group.shape):
                break
            if self.headroom.spot_shares is not None and group.shape.gang is None:
                able = self._able_now(group)
        return done

    def _able_now(self, group: Group) -> Eligible:
        """Candidates sold now that a group may be bought: its own zones anew where it would go to a dearer type."""
        able = self.able(self._sold(), group.shape)
        again = self._worth_asking_again(group, able)
        return replace(able, candidates=again) if again else able

    def _buy_best(self, group: Group, able: Eligible, homes: PoolNames | None) -> int:
        """Buy nodes of the cheapest candidate the caps leave room for. Returns pods placed; none: they are refused."""
        order = rank_candidates(able, group.shape, len(group.pods), self.policy)
        blocked: list[Rejected] = []
        for index, (usd, candidate) in enumerate(order):
            if homes is not None and candidate.offering.pool not in homes:
                continue
            together = -(-len(group.pods) // candidate.per_node) if group.shape.gang else 1
            terms, (room, figures, code) = self._afforded(candidate, group, together)
            if room <= 0:
                name = candidate.offering.name
                if code == "quota":
                    self._short_of_quota(candidate.offering.pool, figures)
                blocked.append(Rejected(offering=name, code=code, why=figures, usd_per_useful_hour=usd))
                continue
            most = self._most_on_spot(candidate, group)
            if most < 1:
                why = "more of its pods on spot than max_spot_share allows"
                blocked.append(
                    Rejected(offering=candidate.offering.name, code="spot-share", why=why, usd_per_useful_hour=usd)
                )
                continue
            better = self._better_waited_for(candidate, group)
            if better:
                if homes is None:
                    passed = Rejected(
                        offering=candidate.offering.name, code="dearer", why=better, usd_per_useful_hour=usd
                    )
                    rejected = (*blocked, passed, *dearer(order[index:]), *self._not_bought(group, able))
                    self.tell("waiting", group, "", better, rejected, code="backoff")
                return 0
            nodes = min(max(1, min(most, len(group.pods)) // candidate.per_node), room)
            nodes = 1 if picky(group.shape) else nodes
            pods = group.pods[: min(most, nodes * candidate.per_node)]
            self._share(candidate.offering.pool, group.shape, len(pods))
            self._open(candidate, nodes, Group(group.shape, pods), terms)
            why = f"{cents(usd)} per useful hour and pod, the least of {len(order)} that can hold it"
            why += f"; {able.why}" if able.why else ""
            if candidate.offering.capacity_type == "spot":
                rules = self.policy.of_class(group.shape.workload_class)
                why = f"{why}; on spot {spot_verdict(group.shape, candidate.offering, rules).why}"
            rejected = (*blocked, *dearer(order[index:]), *self._not_bought(group, able))
            self.tell("bought", Group(group.shape, pods), candidate.offering.name, why, rejected, usd)
            return len(pods)
        if homes is None:
            stranded = "every offering would strand more GPUs than max_stranded_gpus allows"
            code, figures = (blocked[0].code, blocked[0].why) if blocked else ("stranded", stranded)
            self.tell("refused", group, "", figures, (*blocked, *self._not_bought(group, able)), code=code)
        return 0

    def _most_on_spot(self, candidate: Candidate, group: Group) -> int:
        """Pods of a group that may be bought a candidate by their shares of spot: all where that is no spot."""
        shares = self.headroom.spot_shares
        if shares is None or candidate.offering.capacity_type != "spot":
            return len(group.pods)
        return shares.pods(group.shape)

    def _short_of_quota(self, pool: str, figures: str) -> None:
        message = f"not one more node of it can be had: {figures}; ask the cloud for more quota, or lower other use"
        found = Finding(subject=f"pool {pool}", code="quota-full", message=message)
        if not any((one.subject, one.code) == (found.subject, found.code) for one in self.findings):
            self.findings.append(found)

    def _better_waited_for(self, candidate: Candidate, group: Group) -> str:
        """Why pods wait for what the cloud is short of rather than get a candidate; empty where they get it."""
        if group.shape.due or not any(b.short_since is not None and b.until > self.now for b in self.memory.backoffs):
            return ""
        shape = group.shape
        held = self.able(self.offerings, shape).held
        short = [c for c, code, _ in held if code == "backoff" and self._has_room(c, shape)]
        run_s = expected_run_s(self.memory, shape, self.now)
        return better_waited_for(candidate, short, shape, len(group.pods), run_s, self.policy, self.memory, self.now)

    def _sold(self) -> Sequence[Offering]:
        """Offerings that may be bought now: all there are, one, or those of one zone."""
        if self.only is not None:
            return (self.only,)
        return [o for o in self.offerings if o.zone in ("", self.zone)] if self.zone else self.offerings

    def _worth_asking_again(self, group: Group, able: Eligible) -> tuple[Candidate, ...]:
        """A pod's own zones that rest, before it goes to a dearer type: to ask them again costs nothing."""
        homes = self.homes_of(group.shape) if self.memory.backoffs and self.only is None else None
        if homes is None or any(c.offering.pool in homes for c in able.candidates):
            return ()
        before = self.now - ASKED_LATELY
        asked = {b.offering: b.at for b in self.memory.backoffs if b.at is not None}
        short = [c for c in short_zones(able) if c.offering.pool in homes]
        again = tuple(c for c in short if (at := asked.get(c.offering.name)) is not None and at <= before)
        return () if not again or self._waits_for_a_zone(group, homes) else again

    def _waits_for_a_zone(self, group: Group, homes: PoolNames | None) -> str:
        """Why pods whose own pools are short in every zone are kept off dearer nodes; empty where they are not."""
        if homes is None or not group.pods or not self.memory.backoffs:
            return ""
        able = self.able(self.offerings, group.shape)
        short = [c for c in short_zones(able) if c.offering.pool in homes]
        known = (*able.candidates, *(c for c, _, _ in able.held))
        if not short or any(c.offering.pool in homes for c in able.candidates):
            return ""
        away = [c for c in known if c.offering.pool not in homes]
        if not away:
            return ""
        next_ = min(away, key=lambda c: (c.rate, c.offering.name))
        run_s = expected_run_s(self.memory, group.shape, self.now)
        count = len(group.pods)
        return better_waited_for(next_, short, group.shape, count, run_s, self.policy, self.memory, self.now)

    def _has_room(self, candidate: Candidate, shape: PodShape) -> bool:
        """True where caps and budgets leave a node of a candidate."""
        offering = candidate.offering
        return self.headroom.room(offering, self.headroom.terms(offering, shape))[0] > 0

    def _afforded(
        self, candidate: Candidate, group: Group, together: int
    ) -> tuple[Terms | None, tuple[int, str, Code]]:
        """On which terms a node of a candidate is bought, and how many: with time for the calls of all that are wanted
        where there is money for that, else one by one."""
        offering, others = candidate.offering, -(-len(group.pods) // candidate.per_node) - 1
        terms = self.headroom.terms(offering, group.shape, together, group.stop_s, others)
        room = self.headroom.room(offering, terms)
        if room[0] > 0 or not others:
            return terms, room
        terms = self.headroom.terms(offering, group.shape, together, group.stop_s)
        return terms, self.headroom.room(offering, terms)

    def _near_enough(self, able: Eligible, group: Group) -> Eligible:
        """Candidates with so many pods a node as the pods that are near allow; where they allow none, a finding."""
        candidates: list[Candidate] = []
        broken: list[Rejected] = []
        for one in able.candidates:
            counts = self.allowed.neighbours.copy_counts()
            fresh = self._fresh(one.offering, 1)
            most = min(one.per_node, len(group.pods))
            holds = sum(count for _, count in fill(group.shape, most, fresh, self.allowed))
            near = group.shape.near
            rule = self.allowed.neighbours.broken_rule(near, fresh[0]) if near is not None and not holds else None
            self.allowed.neighbours.restore(counts)
            if holds:
                candidates.append(Candidate(one.offering, holds, one.throughput))
            else:
                why = _not_near(rule, fresh[0]) if rule else "an empty node does not hold it"
                broken.append(Rejected(offering=one.offering.name, code="neighbours", why=why))
        rejected = (*able.rejected, *broken)
        if _one_host(group.shape):
            most = max((one.per_node for one in candidates), default=0)
            candidates = [one for one in candidates if one.per_node == most]
        if candidates or able.held:
            return Eligible(tuple(candidates), rejected, able.held, barred=able.barred)
        message = f"no node that could be bought would do: {'; '.join(sorted({r.why for r in broken}))}"
        return Eligible((), rejected, finding=("neighbours", f"{message}; mend the rule, or add a pool where it holds"))

    def _fresh(self, offering: Offering, nodes: int) -> list[Bin]:
        """New nodes, which pods may spread over from now on."""
        bins = [of_offering(offering, "new", offering.name) for _ in range(nodes)]
        for bin_ in bins if self.allowed.neighbours is not NOBODY else ():
            self.allowed.neighbours.add_place(bin_)
        return bins

    def _not_bought(self, group: Group, able: Eligible) -> tuple[Rejected, ...]:
        """Offerings that are no candidates, those first that would do."""
        return (*held_back(able, group.shape, len(group.pods), self.policy), *able.rejected)

    def _open(self, candidate: Candidate, nodes: int, group: Group, terms: Terms | None) -> None:
        offering = candidate.offering
        purchase = self.purchases.setdefault(offering.name, Purchase(offering))
        self.headroom.add(offering, nodes, terms)
        purchase.terms += [terms] * nodes if terms is not None else []
        fresh = self._fresh(offering, nodes)
        purchase.bins += fresh
        fill(group.shape, len(group.pods), fresh, self.allowed)
        purchase.charge(group.shape, group.pods)
        self._ask(offering.pool, nodes, group)

    def _ask(self, pool: str, nodes: int, group: Group) -> None:
        """Note that pods ask for empty nodes of a pool; those that an earlier look counted do not ask again."""
        to = self.memory.counted_to
        new = len(group.pods) if to is None else sum(1 for pod in group.pods if pod.created_at > to)
        if new:
            jobs = new if group.shape.gang is None else 1 / group.shape.gang.size * new
            scale = float(self.policy.of_class(group.shape.workload_class).wait_scale)
            asked = -(-nodes * new // len(group.pods))
            self.demands.append(Demand(pool=pool, nodes=asked, jobs=jobs * scale))

    def _cannot(self, group: Group, able: Eligible) -> None:
        if able.finding is not None:
            code, message = able.finding
            for pod in group.pods:
                self.findings.append(
                    Finding(subject=pod.full_name, code=code, message=message, uid=pod.uid, team=group.shape.team)
                )
            self.tell("finding", group, "", message, able.rejected, code=code)
            return
        rejected = self._not_bought(group, able)
        if able.barred:
            self.tell("refused", group, "", able.barred, rejected, code="step")
        else:
            later = [r for r in rejected if r.code in NOT_NOW]
            why = "nothing it may run on can be had now: " + "; ".join(f"{r.offering}: {r.why}" for r in later)
            rule: Code = "deadline" if able.why else later[0].code if later else ""
            self.tell("waiting", group, "", able.why or why, rejected, code=rule)

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
                pods=tuple(p.full_name for p in group.pods),
                uids=tuple(p.uid for p in group.pods),
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
        return tuple(purchase.buy() for _, purchase in sorted(self.purchases.items()) if purchase.bins)


def picky(shape: PodShape) -> bool:
    """True where pods of a shape mind who else is on or near their node."""
    return shape.near is not None and shape.near.picky


def _not_near(rule: NearRule, bin_: Bin) -> str:
    """Why a new node does not meet a rule."""
    if bin_.domain(rule.topology) is None:
        fix = f"set pools.{bin_.pool}.{'zones' if rule.topology == ZONE else 'labels'} where its nodes have it"
        return f"to be {rule.says} a node needs that label, and pool {bin_.pool} is not known to have it: {fix}"
    return f"a new node would not be {rule.says}"


def _one_host(shape: PodShape) -> bool:
    """True where pods of a shape have to be on one node: the first decides how many find a place."""
    rules = shape.near.rules if shape.near is not None else ()
    return any(rule.kind == "with" and rule.own and rule.topology == HOSTNAME for rule in rules)


def _turn(pod: PodDemand) -> tuple[int, datetime]:
    """The order in which the scheduler tries pods."""
    return -pod.shape.priority, pod.created_at
