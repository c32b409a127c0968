"""A plan in the making: the look that it is made from, the work that its steps read and write, rows, and the plan."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.decisions import Again, Buy, NodeVerdict, Plan, known_per_hour
from pilotlight.facts.demand.worker_queues import NodesAhead
from pilotlight.facts.limits.brakes import NO_BRAKES, Brakes
from pilotlight.facts.limits.rule_policy import RuleWhen
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import NO_BUDGETS, Money
from pilotlight.facts.money.money_policy import ApproveOver, Limits
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.paid_capacity import PaidIdle
from pilotlight.facts.offers.pool_quota import NO_QUOTAS, Quota
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding, PodShape
from pilotlight.units import UsdPerHour

if TYPE_CHECKING:
    from pilotlight.decide.limits.policy_rules import Ruled
    from pilotlight.decide.nodes.spares.spare_nodes import Spares
    from pilotlight.decide.offers.selection import Eligible
    from pilotlight.decide.offers.spot_share import SpotShares
    from pilotlight.decide.place.provision import Provisioner
    from pilotlight.facts.utilisation.pool_use import PoolUse

    Filter = Callable[[Provisioner, Eligible, PodShape, Sequence[Offering]], Eligible]
    """Eligibility of a shape among some offerings, narrowed."""

NOTHING_UNSETTLED: Mapping[str, str] = {}
NOBODY_AHEAD: Mapping[str, NodesAhead] = {}


class Look(msgspec.Struct, frozen=True):
    """Everything that is known when a plan is made; equal looks give equal plans."""

    view: ClusterView
    """Nodes and pods that wait, in any order."""
    pools: Sequence[PoolState]
    """Pools as their cloud tells them."""
    offerings: Sequence[Offering]
    """Capacity for sale: a type of a pool, in a zone, at a price in dollars an hour."""
    policy: Policy
    """The policy as its file has it: rules are applied by the plan."""
    memory: Memory
    """The cluster's memory of earlier looks."""
    now: datetime  # The moment of the look, by the state's clock.
    throughput: Mapping[str, Mapping[str, float]] = {}
    """Relative speed by workload class and GPU model."""
    money: Money = NO_BUDGETS
    """Budgets, and how far each is used."""
    releases: bool = True
    """False leaves nodes alone: a pod-pending event only ever adds."""
    explain: bool = True
    """False leaves out the verdicts of busy nodes, which a reconcile of a thousand nodes has no use for."""
    brakes: Brakes = NO_BRAKES
    """Pauses and limits that hold now: of people, and of pools at which another autoscaler is."""
    leaving: Collection[str] = ()
    """Nodes that may be gone at any moment: no room, and nothing is done to them."""
    unsettled: Mapping[str, str] = NOTHING_UNSETTLED
    """Pools that are not grown, each with the reason."""
    gives: Sequence[NodeVerdict] = ()
    """Nodes that go in any case."""
    quotas: Mapping[str, Quota] = NO_QUOTAS
    """Quotas of the cloud's account, by pool: beyond them nothing is bought."""
    ahead: Mapping[str, NodesAhead] = NOBODY_AHEAD
    """Nodes without work, by pool, for workers that queues will ask for: kept and bought as warm ones are."""
    untaken: Collection[str] = ()
    """Pods (uid) that the scheduler does not bind at their homes: others come before them there."""
    asks: Collection[Again] = ()
    """Questions that a plan may ask for one new plan."""
    again: tuple[Again, ...] = ()
    """Questions that are answered: this is the new plan."""
    use: "PoolUse | None" = None
    """Use of the pools' GPUs, for rules; None where telemetry is absent."""


class Work:
    """One plan in the making. Each step of the plan's table reads and writes the parts that its row names."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.now = look.now
        self.view = look.view
        self.policy = look.policy  # The policy of this hour, under its rules.
        self.offerings = look.offerings
        """Capacity for sale with everything known of it: room for volumes and daemons, boot times, lifetimes."""
        self.memory = look.memory
        self.ruled: Ruled | None = None  # Rules of the policy that hold, with what each did.
        self.filters: tuple[Filter, ...] = ()
        """Filters of what a shape may be bought, in the order of the steps that added them."""
        self.steered: Collection[str] = ()  # Pools whose nodes are kept for the pods that they are given.
        self.paid: dict[tuple[str, str], int] = {}  # Nodes that are paid for and not lit, by pool and zone.
        self.failed: list[NodeVerdict] = []  # Releases of capacity that never worked, or no longer does.
        self.in_doubt: Counter[str] = Counter()  # Instances by pool of which it is not known whether they are nodes.
        self.no_room = look.leaving  # Nodes that take no pods.
        self.spot_shares: SpotShares | None = None
        """Shares of teams and classes in spot; None where the policy names none."""
        self.findings: list[Finding] = []  # Findings about nodes and prices; those about pods are the run's.
        self.infeasible: Collection[str] = ()
        """Pods (uid) whose deadline could not be met when they came: nothing is bought for them."""
        self.run: Provisioner  # Room, headroom, verdicts on pods and purchases.
        self.usd_per_hour_before: UsdPerHour
        self.counted_to: datetime | None = None  # When the newest pod was created of which demand is counted.
        self.spares: Mapping[str, Spares] = {}  # Spares that pay for themselves, by pool.
        self.spare_buys: tuple[Buy, ...] = ()
        self.buys: tuple[Buy, ...] = ()
        self.nodes: list[NodeVerdict] = []
        self.reserved: Mapping[str, str] = {}  # Nodes whose free room planned pods will take, each with the reason.
        self.times: list[datetime] = []
        """Moments at which a plan may come out otherwise though nothing happened meanwhile."""
        self.pods: Sequence[PodGroup] = ()
        """Verdicts on pods with what idle nodes lack for them; the run's own where no node is lit."""
        self.paid_idle: tuple[PaidIdle, ...] = ()
        self.plan: Plan
        self.again = look.again  # Reasons for one new plan.
        self.by_hours = all(  # Rules, if any, are of time alone and set sizes: no figure is asked for.
            one.when == RuleWhen(time=one.when.time) and not (one.does.idle or one.does.avoid)
            for one in self.policy.rules
        )
        self._by_pool: tuple[Sequence[Offering], Mapping[str, Offering]] | None = None

    @property
    def by_pool(self) -> Mapping[str, Offering]:
        """One offering a pool: those of a pool differ by zone alone."""
        if self._by_pool is None or self._by_pool[0] is not self.offerings:
            found: dict[str, Offering] = {}
            for offering in sorted(self.offerings, key=lambda o: o.name):
                found.setdefault(offering.pool, offering)
            self._by_pool = self.offerings, found
        return self._by_pool[1]

    @property
    def relit(self) -> Mapping[str, Offering]:
        """One offering a pool, with what lighting a node takes now: a start, where one stands by, whose disk has its
        images still.
        """
        by_pool = self.by_pool
        wakes = {
            s.name: msgspec.structs.replace(offering, boot_s=offering.wake_s, ready_s=None, pull_s=0.0)
            for s in self.look.pools
            if s.standby and (offering := by_pool.get(s.name)) is not None and offering.wake_s is not None
        }
        return {**by_pool, **wakes} if wakes else by_pool

    @property
    def staying(self) -> Sequence[Node]:
        """Nodes but those that may be gone at any moment."""
        leaving = self.look.leaving
        return [node for node in self.view.nodes if node.name not in leaving] if leaving else self.view.nodes

    @property
    def standing(self) -> Sequence[Node]:
        """Nodes but those that failed."""
        gone = {verdict.node for verdict in self.failed}
        return [node for node in self.view.nodes if node.name not in gone] if gone else self.view.nodes

    @property
    def limited(self) -> bool:
        """True where purchases of one plan are limited, or wait for approval."""
        caps = self.policy.caps
        return caps.ten_minutes != Limits() or caps.approve_over != ApproveOver()

    def wake_at(self, at: datetime | None) -> None:
        """Note a moment at which the plan may come out otherwise."""
        if at is not None:
            self.times.append(at)


def doubts_fit(work: Work) -> bool:
    """True where pods are said to fit a lit node, or were: whether they are bound there is known outside."""
    fits = work.memory.believing or any(group.verdict == "fits" for group in work.plan.pods)
    return "fit" in work.look.asks and fits


def doubts_quotas(work: Work) -> bool:
    """True where purchases, or those that would come of a doubt, may pass the quotas of the cloud's account."""
    return "quotas" in work.look.asks and bool(work.plan.buys or work.again)


def ask_about_fit(work: Work) -> None:
    """Ask for one new plan without beliefs that nothing bears out."""
    work.again += ("fit",)


def ask_for_quotas(work: Work) -> None:
    """Ask for one new plan within the quotas of the cloud's account."""
    work.again += ("quotas",)


def has_unhealthy(work: Work) -> bool:
    """True where GPUs may not be well: it is said, the node is lost with its pods, or shows fewer than its type has."""
    by_pool = work.by_pool
    for pool, devices, ready, ill in {node.shows for node in work.staying}:
        if ill or (ready and pool in by_pool and 0 < devices < len(by_pool[pool].devices)):
            return True
    return False


def has_deadlines(work: Work) -> bool:
    """True where a job here has a deadline."""
    return any(shape.due for shape in work.view.shapes) or any(node.has_due_job for node in work.view.nodes)


def has_homes(work: Work) -> bool:
    """True where nodes are born closed, or one still is."""
    return bool(work.policy.homed) or any(node.home for node in work.view.nodes)


def has_images(work: Work) -> bool:
    """True where a node has an image that a pod waits with."""
    wanted = {pod.image for pod in work.view.pending if pod.image}
    return bool(wanted) and not all(wanted.isdisjoint(node.images) for node in work.view.nodes)


def order_purchases(work: Work) -> None:
    """Purchases for pods, then spares; where no limit cuts them, the cheapest nodes are launched first, so that small
    pods find them ready before dear ones.
    """
    buys = work.run.buys() + work.spare_buys
    work.buys = buys if work.limited else tuple(sorted(buys, key=lambda buy: buy.usd_per_hour))


def write_plan(work: Work) -> None:
    """The plan of all that the steps found."""
    run, look = work.run, work.look
    released = known_per_hour([n for n in work.nodes if n.verdict == "release"])
    times = (*work.times, look.money.look_again_at, *_rests(work))
    work.plan = Plan(
        buys=work.buys,
        pods=tuple(work.pods or run.outcomes),
        nodes=tuple(work.nodes),
        findings=(*work.view.findings, *run.findings, *work.findings),
        usd_per_hour_before=work.usd_per_hour_before,
        usd_per_hour_after=run.headroom.usd_per_hour - released,
        look_again_at=min((at for at in times if at is not None), default=None),
        demands=tuple(run.demands),
        counted_to=work.counted_to,
        paid_idle=work.paid_idle,
    )


def _rests(work: Work) -> list[datetime]:
    """Ends of rests and deadlines' turns that keep waiting pods from a purchase."""
    run, memory = work.run, work.memory
    if not any(group.verdict in ("waiting", "refused") for group in run.outcomes):
        return []
    ends = [b.until for b in memory.backoffs] + [q.until for q in memory.quarantines] + run.due
    if run.headroom.purse is not None:
        ends += run.headroom.purse.frees_at()
    return [until for until in ends if until > work.now]


class Step(NamedTuple):
    """One row of the plan's table."""

    name: str
    when: Callable[[Work], bool]
    """True where there is anything to do: cheap, and the only place that asks."""
    load: Callable[[], Callable[[Work], None]]
    """The work itself; a step that few plans need is imported when it is first due."""
    reads: frozenset[str]
    writes: frozenset[str]
    """Parts of the work by name; a step that writes a part may read it."""


def step(
    name: str, when: Callable[[Work], bool], load: Callable[[], Callable[[Work], None]], reads: str, writes: str
) -> Step:
    """A row, its parts of the work written as words."""
    return Step(name, when, load, frozenset(reads.split()), frozenset(writes.split()))


def late(room: str, name: str) -> Callable[[], Callable[[Work], None]]:
    """A loader of ``name`` in ``pilotlight.decide.{room}``: a test loads every one and checks that it takes a Work."""
    return partial(_imported, f"pilotlight.decide.{room}", name)


def _imported(module: str, name: str) -> Callable[[Work], None]:
    return cast(Callable[[Work], None], getattr(import_module(module), name))
