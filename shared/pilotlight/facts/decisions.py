"""What was decided: values with the figures used and the options rejected. Doing nothing is one too."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.budget import Terms
from pilotlight.facts.messages import Outgoing
from pilotlight.facts.workload import Finding
from pilotlight.units import Seconds, Usd, UsdPerHour

Verdict = Literal["fits", "booting", "bought", "waiting", "refused", "finding"]

Code = Literal[
    "",
    "selector",
    "toleration",
    "device",
    "model",
    "gpu-memory",
    "size",
    "class",
    "spot",
    "throughput",
    "which-gpu",
    "no-pool",
    "price-age",
    "quarantine",
    "backoff",
    "step",
    "cap",
    "budget",
    "stranded",
    "dearer",
    "gang",
    "unbound",
]
"""The rule that kept an offering from being chosen, or pods from getting a node; empty in records older than codes.

The pod and the node: ``selector``, ``toleration``, ``device`` (resource name), ``model``, ``gpu-memory``, ``size``.
The policy: ``class``, ``spot``, ``throughput`` (models that do not compare), ``which-gpu``, ``no-pool``. Not now:
``price-age``, ``quarantine``, ``backoff``, ``unbound`` (its node is ready), ``gang`` (all or none). Money and counts:
``step`` of a budget's ladder, ``cap``, ``budget``, ``stranded``, ``dearer`` than the choice.
"""

NOT_NOW: tuple[Code, ...] = ("price-age", "quarantine", "backoff")
"""The codes of offerings that may be had later."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An offering that was not chosen, and why. ``usd_per_useful_hour`` per pod, where it could be worked out."""

    offering: str
    why: str
    code: Code = ""
    usd_per_useful_hour: Decimal | None = None


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of pods of one shape. ``where`` is a node, an offering, or empty.

    ``fits``: a ready node has room. ``booting``: capacity on its way will hold them. ``bought``: a purchase of
    this plan. ``waiting``: allowed, not obtainable now. ``refused``: a cap or rule forbids. ``finding``: mend the pod.
    ``code`` is the rule that keeps them from a node, where one does; a finding's too.
    ``unnamed`` counts pods beyond those named, in a record that would else be too large.
    """

    verdict: Verdict
    pods: tuple[str, ...]
    uids: tuple[str, ...]
    where: str
    why: str
    code: Code = ""
    rejected: tuple[Rejected, ...] = ()
    usd_per_useful_hour: Decimal | None = None
    workload_class: str = ""
    class_reason: str = ""
    team: str = ""
    unnamed: int = 0


class Buy(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes to ask a pool for: ``count`` more of ``offering``. ``terms`` are one a node, where there are budgets."""

    pool: str
    offering: str
    zone: str
    count: int
    usd_per_hour: UsdPerHour
    boot_s: Seconds
    demands: tuple[str, ...]
    shapes: tuple[str, ...]
    why: str
    workload_class: str = ""
    gangs: tuple[str, ...] = ()
    terms: tuple[Terms, ...] = ()


class NodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one node. ``blockers`` would stop a drain. ``break_even_s`` is the idle time it may have,
    ``learned`` where the pool's own history says so.

    ``frozen``: a budget lets nothing bind to it, so it stays cordoned whether it goes or not.
    ``failed`` marks capacity that was paid for and did not help: it never became ready, or its gang did not come
    together. ``registered`` is false for an instance that never joined the cluster. ``spent_usd`` is what one that goes
    has cost.
    """

    node: str
    pool: str
    instance: str
    verdict: Literal["keep", "release"]
    why: str
    usd_per_hour: UsdPerHour
    idle_s: Seconds = 0
    break_even_s: Seconds = 0
    blockers: tuple[str, ...] = ()
    learned: bool = False
    failed: bool = False
    registered: bool = True
    frozen: bool = False
    offering: str = ""
    spent_usd: Usd = Decimal(0)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One decision over one view. ``look_again_at`` is when it could change with no new event, if ever."""

    buys: tuple[Buy, ...] = ()
    pods: tuple[PodGroup, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    usd_per_hour_before: UsdPerHour = Decimal(0)
    usd_per_hour_after: UsdPerHour = Decimal(0)
    look_again_at: datetime | None = None

    @property
    def releases(self) -> tuple[NodeVerdict, ...]:
        """The nodes to give back."""
        return tuple(n for n in self.nodes if n.verdict == "release")

    @property
    def empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self.buys and not self.releases


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a decision and what came of it. ``to`` is the size a pool is grown to at least.

    ``planned``: not known yet. ``done``. ``denied``: the cloud said no, ``note`` says why. ``advised``: the pool's mode
    does not allow it. ``stopped``: a brake holds it, ``note`` says which. ``kept``: a node turned out to be needed.
    ``undone``: given back again, or never asked for.
    """

    call: Literal["grow", "release"]
    pool: str
    target: str
    count: int = 0
    to: int = 0
    outcome: Literal["planned", "done", "denied", "advised", "stopped", "kept", "undone"] = "planned"
    note: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The write-ahead record: written before the first effect, closed after the last.

    ``left_out`` counts the groups, nodes, findings and messages that are not in it, where all would be too large.
    """

    id: str
    cluster: str
    flow: str
    trigger: str
    at: datetime
    status: Literal["open", "closed"]
    plan: Plan
    effects: tuple[Effect, ...]
    messages: tuple[Outgoing, ...]
    left_out: dict[str, int] = {}
