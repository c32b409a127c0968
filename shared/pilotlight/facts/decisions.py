"""Decisions: plans with the figures used, the calls that carry them out, and records. Doing nothing is one too."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Literal

import msgspec

from pilotlight.facts.messages import Outgoing
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.money.gates import GateLimit
from pilotlight.facts.offers.paid_capacity import PaidIdle
from pilotlight.facts.place.homes import NO_HOMES, HomePlan
from pilotlight.facts.place.pod_verdicts import PodGroup, Verdict
from pilotlight.facts.workload import Finding
from pilotlight.units import Seconds, Usd, UsdPerHour


class Buy(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes to ask a pool for: ``count`` more of ``offering``."""

    pool: str  # The policy's pool.
    offering: str  # ``Offering.name``.
    zone: str  # Empty: any of the pool's.
    count: int  # Nodes more.
    usd_per_hour: UsdPerHour  # Of one node.
    boot_s: Seconds  # Seconds until a node takes pods.
    demands: tuple[str, ...]  # Uids of the pods that it is for.
    shapes: tuple[str, ...]  # Keys of their shapes.
    homes: tuple[int, ...] = ()  # For each of ``demands`` the number of its node; empty where nodes are open to all.
    why: str  # In words.
    workload_class: str = ""  # That of the pods that lead it.
    gangs: tuple[str, ...] = ()  # Keys of the gangs that it is for.
    terms: tuple[Terms, ...] = ()  # One a node, where there are budgets.
    approval: str = ""  # Decision whose approval it uses up, or empty.


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One node, kept or released, with the reasons."""

    node: str  # Its name; of an instance that never joined the instance's.
    pool: str  # The policy's pool.
    instance: str  # The cloud's id.
    verdict: Literal["keep", "release"]  # Kept, or given back.
    why: str  # In words.
    usd_per_hour: UsdPerHour | None  # None where its price is not known.
    idle_s: Seconds = 0  # Seconds that it has been idle.
    break_even_s: Seconds = 0  # Idle seconds that it may have.
    blockers: tuple[str, ...] = ()  # Pods that would stop a drain, with the reason.
    blocked: bool = False  # Only the blockers keep it lit.
    learned: bool = False  # The idle time is from the pool's own history.
    failed: bool = False  # Paid for without help: it never became ready, or its gang did not come together.
    stop: bool = False  # Released, it is stopped and stands by, not given back.
    registered: bool = True  # False for an instance that never joined the cluster.
    frozen: bool = False  # A budget lets nothing bind to it: it stays cordoned whether it goes or not.
    capped: bool = False  # A hard budget ends here and it is empty: no limit of ten minutes holds it.
    forced: bool = False  # It goes whatever runs on it: the cloud takes it, or its time is over.
    unless_busy: bool = False  # Forced, unless a GPU pod is bound to it after all.
    due: bool = False  # Its cloud ends it soon in any case: no pause after a refusal is waited out.
    taken: bool = False  # Its cloud takes spot back, which counts as the end of its life.
    flight: str = ""  # Entry in flight ("<decision>.<n>") that has one less by it: of a broken gang, or in vain.
    offering: str = ""  # ``Offering.name`` of what it is, where known.
    spent_usd: Usd | None = Decimal(0)  # What one that goes has cost; None where its price is not known.


BrakeCode = Literal["mode", "paused", "limit", "approval", "settling"]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was decided and that a brake holds: ``count`` nodes of it. ``why`` has the brake's figures.

    ``mode``: the pool's mode is advice only. ``paused`` by a person. ``limit``: that of ten minutes. ``approval``: a
    person must allow it; ``after`` is the pool's last approval, used up or lapsed. ``settling``: an earlier call for
    the pool may still land. Exactly one of ``buy`` and ``node`` is set.
    """

    code: BrakeCode
    why: str
    count: int
    buy: Buy | None = None
    node: NodeVerdict | None = None
    after: str = ""

    @property
    def action(self) -> Buy | NodeVerdict:
        """The purchase or the release that is held."""
        held = self.buy or self.node
        assert held is not None
        return held

    @property
    def call(self) -> Literal["grow", "release"]:
        """The call that is not made."""
        return "grow" if self.buy is not None else "release"

    @property
    def target(self) -> str:
        """The offering, or the node."""
        return self.buy.offering if self.buy is not None else self.node.node if self.node is not None else ""


def known_per_hour(nodes: Iterable[NodeVerdict]) -> UsdPerHour:
    """Dollars an hour of the nodes whose price is known: no others are in a plan's sums."""
    return sum((node.usd_per_hour for node in nodes if node.usd_per_hour is not None), Decimal(0))


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool that pods ask for which were not counted before. ``jobs`` is how many wait, scaled by class."""

    pool: str
    nodes: int
    jobs: float


Again = Literal["fit", "quotas"]
"""Reasons for one new plan: doubt whether pods that fit are bound, and the quotas of the cloud's account."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One decision over one view: ``buys`` and the nodes to release are what is to be done."""

    buys: tuple[Buy, ...] = ()  # Purchases to make.
    pods: tuple[PodGroup, ...] = ()  # Groups of pods, each with its verdict.
    nodes: tuple[NodeVerdict, ...] = ()  # Every node, kept or to release.
    findings: tuple[Finding, ...] = ()  # Things that a person must mend.
    usd_per_hour_before: UsdPerHour = Decimal(0)  # Of what is lit, where prices are known.
    usd_per_hour_after: UsdPerHour = Decimal(0)  # The same with the calls made.
    look_again_at: datetime | None = None  # When it could change with no new event, if ever.
    held: tuple[Held, ...] = ()  # What would be done, but for a brake.
    homes: HomePlan = NO_HOMES  # Tolerations of pods, and homes of nodes. No record has it.
    demands: tuple[Demand, ...] = ()  # Of pods created up to ``counted_to``, which no earlier plan counted.
    counted_to: datetime | None = None  # Creation of the youngest pod in ``demands``.
    paid_idle: tuple[PaidIdle, ...] = ()  # What is paid for and would still be unused.
    again: tuple[Again, ...] = ()  # Reasons why it was made anew; until that is done, reasons to ask for.
    gates: tuple[GateLimit, ...] = ()  # Limits of Karpenter's NodePools. Previews alone have them.

    @property
    def releases(self) -> tuple[NodeVerdict, ...]:
        """The nodes to give back."""
        return tuple(n for n in self.nodes if n.verdict == "release")

    @property
    def unpriced(self) -> tuple[NodeVerdict, ...]:
        """The lit nodes whose price is not known: its dollars an hour are at least what they say."""
        return tuple(n for n in self.nodes if n.usd_per_hour is None and n.registered)

    @property
    def unpriced_after(self) -> int:
        """Those of them that stay."""
        return sum(node.verdict == "keep" for node in self.unpriced)

    @property
    def calls(self) -> tuple[Buy | NodeVerdict, ...]:
        """Everything to be done, in order: purchases, then releases. A record has one step for each."""
        return (*self.buys, *self.releases)

    @property
    def empty(self) -> bool:
        """True where nothing is to be done."""
        return not self.buys and not self.releases


StepState = Literal["planned", "sent", "done", "denied", "unknown", "revoked"]
"""``planned``: not sent, and may be revoked. ``sent``: its request was let out; what became of it is not known yet.
``done``. ``denied``: the cloud said no. ``unknown``: for as long as it could land, nothing came of it. ``revoked``: it
was never sent, and never will be.
"""

StepCode = Literal[
    "", "refused", "last-node", "budget", "paused", "taken", "drain", "gone", "failed", "overtaken", "late", "there"
]
"""Why a step ended without all that it asked for. ``refused`` by the cloud, whose pool ``last-node`` it may be.
``budget``: what it costs could not be held. ``paused`` by a person at the last moment. ``taken``: a GPU pod bound to
the node meanwhile. ``drain``: it could not be emptied. ``gone``: it left by itself. ``failed``: an earlier call did, or
its own connection. ``overtaken``: another worker took over. ``late``: it was sent, and its answer never came.
``there``: nothing was sent, for the pool had what was asked for already.
"""


class CallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a decision, and what became of it: number ``n`` of its plan's ``calls``."""

    n: int  # Number of its call in the plan's ``calls``.
    call: Literal["grow", "release"]  # What is asked of the cloud.
    pool: str  # The policy's pool.
    target: str  # An offering or a node.
    instance: str = ""  # The cloud's id of a node to release.
    count: int = 1  # Nodes it is for; of one that ended, how many came or went.
    to: int = 0  # Size that a pool is grown to at least.
    state: StepState = "planned"  # How far it has come.
    code: StepCode = ""  # Why it ended without all that it asked for.
    note: str = ""  # The same in words.
    sent_at: datetime | None = None  # By the store's time.
    since: datetime | None = None  # When what it releases began to cost; None where nothing tells.

    @property
    def open(self) -> bool:
        """True while it may still be sent, or may still land."""
        return self.state in ("planned", "sent")

    @property
    def answer(self) -> str:
        """The answer to a request that was not done at once."""
        return self.note or "its answer was lost"


class PriceUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Price of an offering when it was weighed. ``priced_at`` is None for the policy's own figure."""

    offering: str
    usd_per_hour: UsdPerHour
    priced_at: datetime | None = None


class BudgetSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A limit, and how far it was used up: settled and held, by the meter's key."""

    meter: str
    limit: Decimal
    total: Decimal


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """Basis of a decision: digests of what was looked at and of the policy, the prices of the offerings that its
    plan names, and the budgets."""

    facts: str
    policy: str
    prices: tuple[PriceUsed, ...] = ()
    budgets: tuple[BudgetSeen, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The write-ahead record: written before the first call, closed after the last is known."""

    id: str  # Unique in its cluster.
    cluster: str  # Its name.
    flow: str  # The flow that decided.
    trigger: str  # What made the flow look.
    at: datetime  # When it was decided, by the store's time.
    status: Literal["open", "closed"]  # Open until its last call is known.
    plan: Plan  # As it was decided.
    steps: tuple[CallStep, ...]  # One for each of the plan's calls.
    messages: tuple[Outgoing, ...] = ()  # Published once it is carried out.
    # Groups, nodes, findings and messages that are not in it, counted, where all would be too large.
    left_out: dict[str, int] = {}
    basis: Basis | None = None  # None in records from before there was one.

    @property
    def calls_with_steps(self) -> tuple[tuple[Buy | NodeVerdict, CallStep], ...]:
        """Every step with the purchase or the release that it carries out."""
        calls = self.plan.calls
        return tuple((calls[step.n], step) for step in self.steps)

    def became(self, group: PodGroup) -> tuple[Verdict, str]:
        """Verdict on a group's pods after its steps, and why: what was not bought is never called bought."""
        if group.verdict != "bought":
            return group.verdict, group.why
        steps = [step for call, step in self.calls_with_steps if step.call == "grow" and step.target == group.where]
        missed = next((step for step in steps if step.state not in ("planned", "done")), None)
        if missed is None or any(step.state == "done" for step in steps):
            return group.verdict, group.why
        return "waiting", f"not bought: {missed.note or missed.state}"


LinkKind = Literal["decision", "cost", "checkpoint"]
"""``decision``: it was filed. ``cost``: what a node came to. ``checkpoint``: what is older was dropped with its age."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One place in a cluster's audit chain: ``digest`` is of the record ``id``, ``prev`` the hash of the link before.

    Digests and hashes are SHA-256 in hex: of a record's bytes as they are stored, of a link's own JSON.
    """

    seq: int
    prev: str
    kind: LinkKind
    id: str
    at: datetime
    digest: str

    @property
    def hash(self) -> str:
        """Hash of the link's JSON, which the next link names."""
        return sha256(msgspec.json.encode(self)).hexdigest()


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The newest links of a cluster, the last of them its head."""

    links: tuple[Link, ...] = ()

    def next_link(self, kind: LinkKind, id: str, at: datetime, digest: str) -> Link:
        """The link that goes on from here."""
        last = self.links[-1] if self.links else None
        seq, prev = (last.seq + 1, last.hash) if last else (1, "")
        return Link(seq=seq, prev=prev, kind=kind, id=id, at=at, digest=digest)
