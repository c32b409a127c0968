"""Share of a team's or a class's work on spot: ``max_spot_share`` of the GPUs that its pods ask for.

Counted are its pods that run, those whose node is on its way, and those that wait. The share is kept where nodes are
bought: beyond it spot is not bought for them, and nothing that runs is moved.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import field
from msgspec.structs import replace

from pilotlight.decide.offers.selection import Eligible
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.policy import ClassPolicy, Policy, TeamPolicy
from pilotlight.facts.workload import PodShape
from pilotlight.units import MILLI_PER_GPU

Who = tuple[str, str]
"""("class", "batch") or ("team", "research")."""


class SpotShares(msgspec.Struct):
    """``asked`` are thousandths of GPUs that each one's pods ask for, ``on_spot`` those of them that have spot or will;
    ``gangs`` what gangs got of that in this plan.
    """

    limits: Mapping[Who, Decimal]
    asked: Counter[Who] = field(default_factory=Counter)
    on_spot: Counter[Who] = field(default_factory=Counter)
    gangs: Counter[str] = field(default_factory=Counter)

    def take(self, shape: PodShape, pods: int) -> None:
        """Count pods that get spot."""
        for who in self._of(shape):
            self.on_spot[who] += shape.gpu.total_milli * pods
        if shape.gang is not None:
            self.gangs[shape.gang.key] += shape.gpu.total_milli * pods

    def pods(self, shape: PodShape) -> int:
        """Further pods of a shape that may get spot; of a shape that no share counts, any number."""
        left = min((self._left(who) for who in self._of(shape)), default=None)
        if left is None or not shape.gpu.total_milli:
            return 1_000_000
        return max(0, left) // shape.gpu.total_milli

    def full(self, shape: PodShape) -> str:
        """Why no more spot is bought for a shape, or empty. A gang gets all of its spot or none."""
        need = shape.gpu.total_milli
        if shape.gang is not None:
            need = max(0, need * shape.gang.size - self.gangs[shape.gang.key])
        who = next((who for who in self._of(shape) if self._left(who) < need), None)
        return self._says(who) if who is not None else ""

    def copy(self) -> "SpotShares":
        """A copy that later changes leave alone."""
        return SpotShares(self.limits, Counter(self.asked), Counter(self.on_spot), Counter(self.gangs))

    def _of(self, shape: PodShape) -> Iterator[Who]:
        return (who for who in (("class", shape.workload_class), ("team", shape.team)) if who in self.limits)

    def _left(self, who: Who) -> int:
        return int(self.limits[who] * self.asked[who]) - self.on_spot[who]

    def _says(self, who: Who) -> str:
        table, name = ("classes", who[1]) if who[0] == "class" else ("teams", who[1])
        used, asked = self.on_spot[who] / MILLI_PER_GPU, self.asked[who] / MILLI_PER_GPU
        return (
            f"{used:g} of the {asked:g} GPUs of {who[0]} {name} are on spot, at most {self.limits[who]:%} may be "
            f"({table}.{name}.max_spot_share)"
        )


def limits(policy: Policy) -> dict[Who, Decimal]:
    """The shares that a policy names, by whom they bind."""
    rules: dict[Who, ClassPolicy | TeamPolicy] = {("class", name): one for name, one in policy.classes.items()}
    rules |= {("team", name): one for name, one in policy.teams.items()}
    return {who: one.max_spot_share for who, one in rules.items() if one.max_spot_share is not None}


def spot_shares(policy: Policy, view: ClusterView) -> SpotShares:
    """Shares asked for and on spot before a plan, which takes those pods itself whose node is on its way."""
    shares = SpotShares(limits(policy))
    for node in view.nodes:
        for pod in node.gpu_pods:
            milli = pod.gpu.total_milli if pod.gpu is not None else 0
            for who in (("class", pod.workload_class), ("team", pod.team)):
                shares.asked[who] += milli
                shares.on_spot[who] += milli if node.capacity_type == "spot" else 0
    for demand in view.pending:
        for who in (("class", demand.shape.workload_class), ("team", demand.shape.team)):
            shares.asked[who] += demand.shape.gpu.total_milli
    return shares


def limit_to_spot_share(
    shares: SpotShares, able: Eligible, shape: PodShape, off_spot: Callable[[], Eligible]
) -> Eligible:
    """Limit what a shape may be bought to its shares. ``off_spot`` is what it may be bought but spot."""
    why = shares.full(shape)
    spot = [c for c in able.candidates if c.offering.capacity_type == "spot"]
    if not why or not spot:
        return able
    other = off_spot()
    held = (*able.held, *((c, "spot-share", why) for c in spot))
    known = {c.offering.name for c, _, _ in held}
    more = tuple(one for one in other.held if one[0].offering.name not in known)
    return replace(able, candidates=other.candidates, held=(*held, *more))


def count_spot_shares(work: Work) -> None:
    """Count how much of each team's and class's work is on spot, and buy it no more than its share."""
    work.spot_shares = spot_shares(work.policy, work.view)
    work.filters = (*work.filters, _within_share)


def _within_share(run: Provisioner, able: Eligible, shape: PodShape, offerings: Sequence[Offering]) -> Eligible:
    shares = run.headroom.spot_shares
    if shares is None:
        return able
    others = [offering for offering in offerings if offering.capacity_type != "spot"]
    return limit_to_spot_share(shares, able, shape, lambda: run.eligible(shape, others))
