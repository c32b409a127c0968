"""Which nodes to put out: those whose keeping costs more than relighting. Never because nothing is pending.

A node goes when no GPU pod is on it or bound to it, nothing planned needs its room, it has been idle for its
break-even (or the policy's ``idle_timeout``), its paid billing step is nearly used up, the pool keeps its warm and
least number, and the pool's cooldown after a purchase is over.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.money.economics import billed_cost, paid_until_s
from pilotlight.decide.nodes.spares.spare_nodes import Allowance, allowance, spares_coming
from pilotlight.decide.place.purchase import nodes_bought
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import RefusedRelease
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import IDLE_BLOCKED, Finding
from pilotlight.units import Seconds, UsdPerHour, cents, human

PAID_MARGIN_S = 120.0
"""A node billed by the hour goes this long before its paid hour ends: a tick a minute, and the drain."""

CLOCKS = timedelta(minutes=5)
"""A moment of the past that lies further ahead was written by a clock that was wrong."""

NAMED = 5
"""A verdict names so many pods that are in the way."""

NOT_OURS = "not in any pool of the policy: not ours to release"
UNPRICED = "its pool's price is not known: nothing is decided of it until the price file or prices.overrides has it"
SPENT_UP = "its budget has no room for it to idle, and nothing may bind to it"


def verdicts(
    nodes: Sequence[Node], offerings: Mapping[str, Offering], work: Work, coming: Mapping[str, int]
) -> tuple[list[NodeVerdict], datetime | None]:
    """Verdicts on the nodes, and the next moment an idle one could fall due.

    ``offerings`` by node name's offering (``offering_of``); the work's ``reserved`` nodes hold room for planned pods,
    with the reason. Verdicts of busy nodes are left out unless the look is to ``explain``. Nodes of pools without
    offering are kept, and always told: a decision's dollars are a least then. Of those that ``money`` has frozen the
    ones said to be true go at once: their idling would pass it. ``coming`` are spares on their way, by pool; the work's
    ``spares`` say how many of a pool pay for themselves.
    """
    out: list[NodeVerdict] = []
    due: list[datetime] = []
    idle: dict[str, list[Node]] = defaultdict(list)
    lit, explain = Counter([node.pool for node in nodes]), work.look.explain
    told = nodes if explain else [node for node in nodes if not node.gpu_pods or node.pool not in offerings]
    for node in sorted(told, key=lambda n: n.name) if explain else told:
        offering = offerings.get(node.pool)
        if offering is not None and node.ready and not node.gpu_pods:
            idle[node.pool].append(node)
        elif explain or offering is None:
            out.append(_keep(node, offering, _not_idle(node, offering, work.policy)))
    for pool in sorted(idle):
        judge = _Judge(work, offerings[pool], lit[pool], coming.get(pool, 0))
        for verdict, at in judge.judge(idle[pool]):
            out.append(verdict)
            due += [at] if at is not None else []
    return out, min(due, default=None)


def judge_nodes(work: Work) -> None:
    """Judge each node that stays, by what it costs to keep and what relighting it would."""
    run, leaving = work.run, work.look.leaving
    work.reserved = {
        b.where: f"{sum(n for _, n in b.taken)} waiting pod(s) will bind to it" for b in run.ready if b.taken
    }
    coming = spares_coming(run, work.by_pool) + nodes_bought(work.spare_buys)
    found, at = verdicts([node for node in work.standing if node.name not in leaving], work.relit, work, coming)
    work.nodes = work.failed + found
    work.wake_at(at)


def release_named(work: Work) -> None:
    """Give back the nodes that go in any case. What its cloud refused to give back is kept until it is asked again:
    nothing is drained for that meanwhile."""
    here, nodes = {node.name for node in work.view.nodes}, list[NodeVerdict]()
    named = [n for n in work.look.gives if n.node in here and n.node not in work.look.leaving]
    for node in (*work.nodes, *named):
        refusal = work.memory.live_refusal(node.node, node.instance, work.now)
        if refusal is not None and node.verdict == "release" and not node.due:
            node = replace(node, verdict="keep", why=_refused(refusal))
            work.wake_at(refusal.until)
        nodes.append(node)
    work.nodes = nodes


def tell_blocked(work: Work) -> None:
    """Tell of idle nodes that pods without GPUs keep lit."""
    work.findings += blocked_idle_nodes(work.nodes)


def idle_from(known: datetime | None, shown: datetime | None, now: datetime) -> datetime:
    """Since when a node without a GPU pod is idle, as far as anything tells: from now on, where nothing does.

    ``shown`` is what its cluster shows: the later of its readiness and of its last pod that finished. A pod that was
    deleted shows nothing; ``known`` is what looks remember.
    """
    return now if known is None else min(now, max(known, shown or known))


_Kept = tuple[str, datetime | None]
"""Why a node stays, and when it may no longer."""


class _Judge:
    """Judges the idle nodes of one pool: the longest idle goes first, warm ones stay.

    Where images take long to pull, those whose images save the next pod the least go before all others.
    """

    def __init__(self, work: Work, offering: Offering, lit: int, coming: int) -> None:
        money, policy = work.look.money, work.policy
        self.frozen, self.capped, self.visited, self.coming = money.frozen, money.capped, money.visited, coming
        self.offering, self.memory, self.reserved, self.now = offering, work.memory, work.reserved, work.now
        self.policy, self.spares, self.lit = policy, work.spares.get(offering.pool), lit
        self.saved: dict[str, Seconds] = {}  # By node, seconds of a pull that its images save.
        self._may: dict[Seconds, Allowance] = {}
        self.fades: datetime | None = None
        pool = policy.pools.get(offering.pool)
        self.least, self.warm = (pool.min, pool.spares.warm) if pool is not None else (0, 0)
        bought = work.memory.last_buy.get(offering.pool)
        real = bought is not None and bought - work.now < CLOCKS
        self.cool = bought + timedelta(seconds=policy.cooldown) if bought is not None and real else None

    def judge(self, nodes: list[Node]) -> list[tuple[NodeVerdict, datetime | None]]:
        """A verdict for each, and when it could change."""
        out = []
        left = sum(1 for node in nodes if node.name not in self.reserved)
        if self.offering.pull_s:
            from pilotlight.decide.offers.first_work import pulls_saved

            self.saved = pulls_saved(self.memory.first_work, nodes)
        for node in sorted(nodes, key=lambda node: (self.saved.get(node.name, 0.0), self._since(node))):
            self.may = self._allowance(self.saved.get(node.name, 0.0))
            verdict, due = self._one(node, left)
            left -= verdict.verdict == "release"
            out.append((verdict, due))
        return out

    def _allowance(self, pull_s: Seconds) -> Allowance:
        """The idle time of a node whose images save so many seconds of a pull."""
        if pull_s not in self._may:
            self._may[pull_s] = allowance(self.offering, self.policy, self.memory, self.spares, pull_s)
        return self._may[pull_s]

    def _since(self, node: Node) -> tuple[datetime, str]:
        idle = idle_from(self.memory.idle_since.get(node.name), node.idle_since, self.now)
        return min(idle, self.visited.get(node.name, idle)), node.name

    def _one(self, node: Node, idle_left: int) -> tuple[NodeVerdict, datetime | None]:
        since = self._since(node)[0]
        idle_s = (self.now - since).total_seconds()
        frozen = self.frozen.get(node.name)
        blockers = tuple(f"{p.namespace}/{p.name}: {p.blocks}" for p in node.pods if p.blocks)
        kept = self._meant(node) or (None if frozen else self._pays(node, since, idle_left))
        if kept is None and not blockers:
            self.lit -= 1
            return self._release(node, idle_s, SPENT_UP if frozen else self._no_longer(node, idle_s, idle_left)), None
        an_hour = cents(self.offering.usd_per_hour)
        why, at = kept or (f"idle, but {'; '.join(blockers[:NAMED])} stops the drain: {an_hour}/h", None)
        return _keep(node, self.offering, why, idle_s, self.may.seconds, blockers, blocked=kept is None), at

    def _meant(self, node: Node) -> _Kept | None:
        """Why a node stays whatever its idling costs: for pods that wait, by a person's word, or by its cloud's."""
        if node.name in self.reserved:
            return self.reserved[node.name], None
        rests = self.memory.rests.get(node.name)
        if rests is not None and rests > self.now:
            return "idle, but a person opened it while it was being given back: it rests", rests
        refusal = self.memory.live_refusal(node.name, node.instance, self.now)
        if refusal is not None:
            return _refused(refusal), refusal.until
        floor = self.memory.floors.get(self.offering.pool)
        if floor is not None and floor > self.now and self.lit <= 1:
            price = cents(self.offering.usd_per_hour)
            return f"idle, but the cloud keeps this pool's last node: {price}/h; asked again then", floor
        return None

    def _pays(self, node: Node, since: datetime, idle_left: int) -> _Kept | None:
        """Why an idle node is worth its price, and until when; None where it is not."""
        spares, spare = self.may.spares, idle_left + self.coming
        if idle_left <= self.warm or self.lit <= self.least:
            return f"kept warm: {max(self.warm, self.least)} of this pool stay lit", None
        if spares is not None and spare <= spares.count:
            self.fades = self.fades or spares.paying_until(spare)
            pay = f"kept warm, {spare} of {spares.count} of this pool that pay for themselves"
            return f"{pay}: {spares.explain(spare)}", self.fades
        idle_s, longest_s = (self.now - since).total_seconds(), self.may.seconds
        if idle_s < longest_s:
            idle = f"{self._idle(node, idle_s)} of {human(longest_s)} ({self.may.why})"
            return idle, since + timedelta(seconds=longest_s)
        if self.cool is not None and self.now < self.cool:
            return "the pool was added to just now (cooldown)", self.cool
        paid = self._paid_until(node)
        if paid is not None and self.now < paid:
            ends = paid + timedelta(seconds=PAID_MARGIN_S)
            return f"paid for until {ends:%H:%M}: going earlier saves nothing", paid
        return None

    def _no_longer(self, node: Node, idle_s: Seconds, idle_left: int) -> str:
        """Why an idle node is not worth its price any more."""
        idle, spares, spare = self._idle(node, idle_s), self.may.spares, idle_left + self.coming
        if spares is None:
            return f"{idle}, longer than {human(self.may.seconds)} ({self.may.why})"
        return f"{idle}; spare {spare} would not pay for itself: {spares.explain(spare)}"

    def _idle(self, node: Node, idle_s: Seconds) -> str:
        """For how long it is idle; of a node that no look has seen so yet for how long it is ready."""
        ready_s = (self.now - node.ready_since).total_seconds() if node.ready_since is not None else 0.0
        if idle_s > 0 or ready_s <= 0:
            return f"idle for {human(idle_s)}"
        return f"ready for {human(ready_s)}; idle time is not known and counts from now: 0 s"

    def _paid_until(self, node: Node) -> datetime | None:
        """When a node that is billed in long steps should go, or None where steps are short."""
        if self.offering.increment_s <= 2 * PAID_MARGIN_S:
            return None
        age = (self.now - node.created_at).total_seconds()
        return node.created_at + timedelta(seconds=paid_until_s(self.offering, age) - PAID_MARGIN_S)

    def _release(self, node: Node, idle_s: Seconds, why: str) -> NodeVerdict:
        return NodeVerdict(
            node=node.name,
            pool=node.pool,
            instance=node.instance,
            verdict="release",
            why=why,
            usd_per_hour=self.offering.usd_per_hour,
            idle_s=idle_s,
            break_even_s=self.may.seconds,
            learned=self.may.spares is not None,
            frozen=node.name in self.frozen,
            capped=node.name in self.capped,
            spent_usd=billed_cost(self.offering, (self.now - node.created_at).total_seconds()),
        )


def blocked_idle_nodes(nodes: Sequence[NodeVerdict]) -> tuple[Finding, ...]:
    """Idle nodes whose time is over and that pods without GPUs keep lit: who they are, and what that costs a day."""
    return tuple(
        Finding(subject=f"node {node.node}", code=IDLE_BLOCKED, message=_kept_by(node, node.usd_per_hour))
        for node in nodes
        if node.blocked and node.usd_per_hour
    )


def _kept_by(node: NodeVerdict, price: UsdPerHour) -> str:
    who = "; ".join(node.blockers[:NAMED])
    more = f" and {len(node.blockers) - NAMED} more" if len(node.blockers) > NAMED else ""
    return f"{who}{more} keeps it lit without GPU work, {cents(24 * price)} a day: move it, or let it be evicted"


def _not_idle(node: Node, offering: Offering | None, policy: Policy) -> str:
    """Why a node that is not idle, or whose price nobody knows, stays."""
    pods = node.gpu_pods
    if offering is None:
        return UNPRICED if node.pool in policy.pools else NOT_OURS
    if not pods:
        return "not ready yet: still booting"
    more = f" and {len(pods) - 1} more hold" if len(pods) > 1 else " holds"
    return f"busy: {pods[0].namespace}/{pods[0].name}{more} GPUs"


def _refused(refusal: RefusedRelease) -> str:
    tries = f" {refusal.tries} times" if refusal.tries > 1 else ""
    return f"its cloud did not give it back{tries} ({refusal.why}); asked again at {refusal.until:%H:%M}"


def _keep(
    node: Node,
    offering: Offering | None,
    why: str,
    idle_s: Seconds = 0,
    break_even: Seconds = 0,
    blockers: tuple[str, ...] = (),
    blocked: bool = False,
) -> NodeVerdict:
    return NodeVerdict(
        node=node.name,
        pool=node.pool,
        instance=node.instance,
        verdict="keep",
        why=why,
        usd_per_hour=offering.usd_per_hour if offering is not None else None,
        idle_s=idle_s,
        break_even_s=break_even,
        blockers=blockers,
        blocked=blocked,
    )
