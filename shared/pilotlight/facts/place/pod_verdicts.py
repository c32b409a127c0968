"""Verdicts on pods that wait: where each group goes, or the rule that keeps it from a node."""

from decimal import Decimal
from typing import Literal

import msgspec

Verdict = Literal[
    "fits", "booting", "bought", "waiting", "refused", "finding", "noticed", "snoozed", "rested", "woken", "spared"
]
"""The last five are of idle pods, in records of the flow ``reclaim``."""

NOT_HELPED: tuple[Verdict, ...] = ("waiting", "refused", "finding")
"""The verdicts of pods that have no room and for which nothing is bought."""

Code = Literal[
    "",
    "selector",
    "volume",
    "toleration",
    "device",
    "resource",
    "model",
    "gpu-memory",
    "size",
    "neighbours",
    "class",
    "spot",
    "throughput",
    "which-gpu",
    "no-pool",
    "price-age",
    "quarantine",
    "backoff",
    "zone",
    "step",
    "cap",
    "budget",
    "unpaid",
    "quota",
    "stranded",
    "paid",
    "dearer",
    "gang",
    "unbound",
    "deadline",
    "spot-share",
    "rule",
]
"""The rule that kept an offering from being chosen, or pods from getting a node; empty in records older than codes.

The pod and the node: ``selector``, ``volume`` (where its volumes can be), ``toleration``, ``device`` (the GPU's
resource name), ``resource`` (another, as hugepages), ``model``, ``gpu-memory``, ``size``, ``neighbours`` (other pods).
The policy: ``class``, ``spot``, ``throughput`` (models that do not compare), ``which-gpu``, ``no-pool``. Not now:
``price-age``, ``quarantine``, ``backoff``, ``zone`` (every zone is short: waiting costs less than what is dearer),
``unbound`` (its node is ready), ``gang`` (all or none), ``deadline`` (of its job: other capacity costs less, or it
cannot be met), ``spot-share`` (as much of its team's or class's work is on spot as may be),
``rule`` (of the policy, which closes the pool for its class while it holds). Money and counts:
``step`` of a budget's ladder, ``cap``, ``budget``, ``unpaid`` (their team has none), ``quota`` of the cloud's account,
``stranded``,
``dearer`` than the choice; ``paid`` capacity that is full, or ends too soon.
"""

NOT_NOW: tuple[Code, ...] = ("price-age", "quarantine", "backoff", "paid", "deadline", "spot-share", "rule")
"""The codes of offerings that may be had later."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An offering that was not chosen, and why. ``usd_per_useful_hour`` per pod, where it could be worked out."""

    offering: str
    why: str
    code: Code = ""
    usd_per_useful_hour: Decimal | None = None


IdleCode = Literal[
    "leaving",
    "mark",
    "cordon",
    "not-ready",
    "misfit",
    "toleration",
    "volume",
    "zone",
    "selector",
    "model",
    "room",
    "planned",
]
"""Why an idle node does not do. It goes (``leaving``), carries our ``mark``, is cordoned or ``not-ready``.

``misfit``: the scheduler does not use it for this pod. ``room``: too little of a resource. ``planned``: other waiting
pods take it. The others are as in ``Code``; ``zone`` is a selector that only the zone does not meet.
"""


class IdleNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node without work that does not do for pods that wait, and why."""

    node: str
    why: str
    code: IdleCode


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one shape, and the verdict on them. ``where`` is a node, an offering, or empty.

    ``fits``: a ready node has room. ``booting``: capacity on its way will hold them. ``bought``: a purchase of
    this plan. ``waiting``: allowed, not obtainable now. ``refused``: a cap or rule forbids. ``finding``: mend the pod.
    ``code`` is the rule that keeps them from a node, where one does; a finding's too.
    ``idle`` are nodes without work that do not do, a few of them.
    ``unnamed`` counts pods beyond those named, in a record that would else be too large.
    """

    verdict: Verdict  # What becomes of them.
    pods: tuple[str, ...]  # As "namespace/name".
    uids: tuple[str, ...]  # Kubernetes' own of them.
    where: str  # A node, an offering, or empty.
    why: str  # In words.
    code: Code = ""  # Rule that keeps them from a node, where one does; a finding's too.
    rejected: tuple[Rejected, ...] = ()  # Offerings that were not chosen.
    usd_per_useful_hour: Decimal | None = None  # Of the chosen offering, per pod.
    workload_class: str = ""  # Theirs.
    class_reason: str = ""  # Why they are of that class.
    team: str = ""  # The team that pays.
    unnamed: int = 0  # Pods beyond those named, in a record that would else be too large.
    idle: tuple[IdleNode, ...] = ()  # Nodes without work that do not do, a few of them.
