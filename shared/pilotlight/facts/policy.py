"""The policy file: the only place for behaviour. Later work only adds keys; unknown keys are refused.

Durations are text as people write them ("90s", "10m", "2h", "1d") or seconds; ``codec.policy_file`` turns the file
into these values. Sums of money are ``Decimal``.
"""

from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from pilotlight.facts.alerts.channel_policy import Alerts
from pilotlight.facts.capacity import CapacityType, Taint, digest
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.limits.policy_terms import (
    Dollars,
    Duration,
    ExactNumber,
    GpuMemory,
    WholeAmount,
    WrittenName,
)
from pilotlight.facts.limits.pool_handover import OnSilence
from pilotlight.facts.limits.rule_policy import Rule
from pilotlight.facts.modes import Mode, PoolMode
from pilotlight.facts.money.gates import GATE
from pilotlight.facts.money.money_policy import BillScope, Budget, BudgetScope, Caps, Prices
from pilotlight.facts.place.homes import has_home_taint
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds, UsdPerHour

CloudName = Literal["civo", "gke", "eks", "aks", "world"]
Placement = Literal["homes", "none"]
"""Way to keep small work off dear nodes: homes, by which nodes of pools with our birth taint take only their own pods,
or nobody.
"""
MoveReason = Literal["hard-cap", "max-age", "sick-gpu", "off-hours", "preempt"]
"""Why pods may be stopped or moved: a hard budget without room, an old node, GPUs that are not well, a rule's time."""
HandledBy = Literal["pilotlight", "cloud", "karpenter", "nth"]
"""Who replaces and drains an interrupted node: us, the cloud, Karpenter, or AWS' Node Termination Handler."""


class PaidPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes of a reserved pool that are paid for anyhow, as by a commitment, up to a moment: None is for good."""

    nodes: Annotated[int, msgspec.Meta(ge=1)]  # Nodes that are paid for.
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # When that ends; None: never.


class SparePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spares of a pool: nodes without work that are kept beside those that pay for themselves.

    ``stopped`` is how many of its idle nodes are stopped instead of given back, where its cloud can; "auto": as many
    as pay for themselves.
    """

    warm: Annotated[int, msgspec.Meta(ge=0)] = 0  # Idle nodes that stay lit.
    stopped: Annotated[int, msgspec.Meta(ge=0)] | Literal["auto"] = "auto"  # Idle nodes that stand by stopped.


class RenewPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which nodes of a pool are replaced, one at a time: idle ones, and those whose pods' classes ``may_move``.

    ``during`` are rules of time alone: outside of their windows none is replaced.
    """

    max_age: Duration | None = None  # Seconds after which a node is replaced; None: never.
    drifted: bool = False  # Nodes that an older launch template made are replaced too.
    during: tuple[str, ...] = ()  # Rules whose time it is done in; none named: any time.

    @property
    def asks(self) -> bool:
        """True where any node is ever to be replaced."""
        return self.drifted or self.max_age is not None


class CanaryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool that is acted on beside ``control``, for as long as it keeps within bounds; beyond one it is paused.

    ``max_wait``: how long a purchase may be on its way. ``max_usd_ratio``: what a GPU-hour that was used may cost, as a
    multiple of the control's.
    """

    control: str  # Pool that it is compared with.
    max_wait: Duration = 900  # Seconds that a purchase may be on its way.
    # Dollars of a used GPU-hour, as a multiple of the control's.
    max_usd_ratio: Annotated[float, msgspec.Meta(gt=0)] = 1.2


class PoolPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node pool that may be lit. ``cluster_pool`` is its name at the cloud (default: its key here); "karpenter:NAME"
    is a NodePool of Karpenter's: Karpenter buys there, and budgets set its limit of GPUs.

    ``labels`` and ``taints`` are what its nodes carry, so that a pool at zero can be matched.
    ``idle_timeout`` in seconds overrides the class's; None means the break-even.
    ``daemonsets`` is what its DaemonSets take from every node, as Kubernetes quantities.
    ``handled_by`` is who answers interruption notices of its nodes; ``relaunches``: its group starts a node by itself
    in the place of one that the cloud took. ``atomic``: the cloud grants a request for several nodes whole or refuses
    it whole, so that no part of a gang ever has to be given back. ``on_silence`` "hand-back": when nothing is heard
    of Pilotlight, whoever kept it before ``pilotlight takeover`` gets it again. ``paid`` says what a reserved pool may
    use, where its cloud tells no reservation. ``canary`` goes with mode "canary".
    """

    cloud: CloudName = "world"  # Cloud that sells its nodes.
    cluster_pool: str = ""  # Name at the cloud; empty: its key in the policy.
    instance_type: str  # The cloud's name of the machine.
    zones: tuple[str, ...] = ()  # Zones that it may be bought in; none named: the pool as one.
    capacity_type: CapacityType = "on-demand"  # How its nodes are paid for.
    labels: dict[str, str] = {}  # Labels that its nodes carry.
    taints: tuple[Taint, ...] = ()  # Taints that its nodes carry.
    min: int = 0  # Nodes that stay lit at least.
    max: int = 10  # Nodes at most.
    spares: SparePolicy = SparePolicy()  # Idle nodes that are kept, lit or stopped.
    mode: PoolMode | None = None  # Mode of its calls; None: the deployment's.
    canary: CanaryPolicy | None = None  # Bounds of mode "canary".
    idle_timeout: Duration | None = None  # Seconds that a node may idle; None: the class's.
    daemonsets: dict[str, str] = {}  # Taken of every node by DaemonSets, as quantities by resource.
    slices: dict[str, WholeAmount] = {}  # Counts of further resources on a node, such as MIG profiles.
    handled_by: HandledBy = "pilotlight"  # Answerer of interruption notices of its nodes.
    relaunches: bool = False  # Its group replaces by itself what the cloud took.
    atomic: bool = False  # The cloud grants a request whole or refuses it whole.
    on_silence: OnSilence = "keep"  # Its fate when nothing is heard of Pilotlight.
    paid: PaidPolicy | None = None  # Paid capacity that a reserved pool may use.
    renew: RenewPolicy = RenewPolicy()  # Nodes that are replaced for their age.

    def with_warm(self, nodes: int) -> "PoolPolicy":
        """The pool with so many idle nodes kept."""
        return msgspec.structs.replace(self, spares=msgspec.structs.replace(self.spares, warm=nodes))

    @property
    def nodepool(self) -> str:
        """Karpenter's NodePool whose limit budgets set; empty for a pool that is bought for."""
        return self.cluster_pool.removeprefix(GATE) if self.cluster_pool.startswith(GATE) else ""

    @property
    def acts_as(self) -> Mode | None:
        """The mode by which calls are judged: a canary acts, until it is paused."""
        return "act" if self.mode == "canary" else self.mode


class ReclaimPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When owners of idle pods of a class are put to rest: a Job suspended, others scaled to zero.

    All GPUs of all its pods were measured, and under the share ``under``, for ``idle``: then whoever it is of is told.
    It rests ``grace`` later, unless it works again or is snoozed by then. ``who`` "annotated": only owners with the
    annotation ``pilotlight.dev/reclaim: "true"``; "all": those without ``"false"``.
    """

    idle: Duration = 2 * 3600  # Seconds without use until its owner is told.
    grace: Duration = 3600  # Seconds from then until it rests.
    under: Annotated[float, msgspec.Meta(gt=0, le=0.5)] = 0.05  # Share of a GPU's time that counts as no use.
    who: Literal["annotated", "all"] = "annotated"  # Owners with the annotation, or all without its denial.


class ClassPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules of one workload class.

    ``capacity_types`` are those allowed, compared by cost; ``fallback`` "allow" adds on-demand when none of them can be
    had. ``idle_timeout`` None means the break-even against relighting. ``gpu_models`` is a list,
    "any" (whatever is cheapest per throughput), or None: then a pod that names none gets a finding.
    ``wait_scale`` times the policy's ``value_of_wait`` is what an hour of one of its waiting jobs is worth.
    ``require_checkpoint_over``: a longer run may use spot only where its pod tells its checkpoints; None asks nobody.
    ``max_runtime`` that is written is consent to end there. ``may_move`` says what else may end or move its pods.
    "hard-cap": a hard budget that has no room left may stop its nodes in order; they are then held for in stretches of
    ``hold``. "max-age": its pods may be moved off a node that its pool's ``renew`` replaces, those that
    save when asked and serving ones; "sick-gpu": such ones off a node whose GPUs are not well.
    "off-hours": a rule that says ``evict`` may evict them, as their disruption budgets allow. "preempt": a pod that
    saves when asked gives way to one of a higher priority that waits for money or capacity.
    ``max_spot_share``: spot is bought for at most this share of the GPUs that its pods ask for; None is no limit.
    ``reclaim``: what is idle may be put to rest; without it nothing of the class ever is.
    """

    capacity_types: tuple[CapacityType, ...] = ("on-demand",)  # Those allowed.
    fallback: Literal["deny", "allow"] = "deny"  # "allow" adds on-demand.
    idle_timeout: Duration | None = None  # Seconds; None: the break-even.
    max_idle_timeout: Duration = 3600  # Seconds that the break-even may come to.
    # Longest run: under a hard budget without more room pods end at it. Left out: no end; a day is held ahead.
    max_runtime: Duration | None = None
    may_move: tuple[MoveReason, ...] = ()  # Reasons that may stop or move its pods; none named: nothing.
    hold: Duration = 4 * 3600  # Seconds of a stretch that is held for.
    gpu_models: tuple[str, ...] | Literal["any"] | None = None  # Models for pods that name none; None: a finding.
    min_gpu_memory: GpuMemory = 0  # GiB of a device at least.
    wait_scale: ExactNumber = Decimal(1)  # Times the policy's value_of_wait.
    require_checkpoint_over: Duration | None = None  # Seconds; None asks nobody.
    max_spot_share: ExactNumber | None = None  # From 0 to 1; None is no limit.
    reclaim: ReclaimPolicy | None = None  # When idle owners rest; None: never.

    @property
    def longest_run_s(self) -> Seconds:
        """Seconds that a pod may run at most that names no deadline: a day, where nothing is written."""
        return 86_400 if self.max_runtime is None else self.max_runtime

    @property
    def stops(self) -> bool:
        """True where its nodes may be stopped at a hard cap."""
        return "hard-cap" in self.may_move


class TeamPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules of one team. ``max_spot_share`` is as that of a class: both hold."""

    max_spot_share: ExactNumber | None = None  # From 0 to 1; None is no limit.


HIGHEST_PRIORITY = 10**9
"""The highest priority that ``claims`` can permit: above are Kubernetes' own ``system-*`` classes."""


class Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims: what pods of a namespace may say of themselves that moves money. What else they say counts for nothing.

    ``team``: whose they are, before the namespace's own label. ``teams``: others, or patterns of others, that a pod's
    label may name. ``classes``: what they may be; a pod that would be another is the first of them. None: any, while no
    budget is of a class; else what they look like without their labels. ``priority``: the highest by which they are
    bought for.
    """

    team: WrittenName = ""  # Team of its pods.
    teams: tuple[str, ...] = ()  # Other teams, or patterns, that a pod's label may name.
    classes: tuple[WorkloadClass, ...] | None = None  # Classes that they may be; None: any.
    priority: int = 0  # Highest priority that they are bought for by.


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The whole file.

    ``value_of_wait`` is what one job's waiting is worth, in dollars an hour (a gang is one job; classes scale it): its
    cost and the dollars paid are together what decisions make least. 0 puts no price on waiting.
    Capacity that has not become ready by ``gpu_ready_deadline`` after its request is given back and replaced on
    another offering.
    ``placement`` "homes": nodes of pools whose ``taints`` list ``pilotlight.dev/home=new:NoSchedule`` take only the
    pods that are planned on them; "none": they are opened.
    ``events`` are the Events written on pods and nodes, where people look with ``kubectl describe``: all, only the
    warnings, or none. ``claims`` are by namespace, or by pattern of namespaces ("*" is every other); ``default_team``
    pays for work of teams that have no budget.
    """

    version: Literal[1]  # Of the file's format.
    value_of_wait: Dollars = Decimal(0)  # Dollars an hour of one job's waiting.
    pools: dict[str, PoolPolicy] = {}  # By the names that the policy gives them.
    classes: dict[WorkloadClass, ClassPolicy] = {}  # A class that is not named has its defaults.
    teams: dict[str, TeamPolicy] = {}  # By the team's name.
    claims: dict[str, Claims] = {}  # By namespace, or pattern of namespaces.
    default_team: WrittenName = ""  # Pays for teams without a budget.
    caps: Caps = Caps()  # Nodes, GPUs and dollars an hour of the cluster.
    budgets: tuple[Budget, ...] = ()  # Each is kept.
    rules: tuple[Rule, ...] = ()  # Settings while something holds; in order.
    queues: dict[str, QueueRules] = {}  # By a name of the policy's own.
    alerts: Alerts = Alerts()  # Channels, and how bursts are told.
    prices: Prices = Prices()  # Where prices come from.
    bill: BillScope | None = None  # Lines of a bill that are this cluster's; None: by tags.
    require_label: bool = False  # Only pods that carry the opt-in label are served.
    max_stranded_gpus: int | None = None  # GPUs of a purchase that nobody asked for; None is no limit.
    cooldown: Duration = 0  # Seconds from a purchase in which its pool gives nothing back.
    gpu_ready_deadline: Duration = 900  # Seconds from a request to GPUs that take pods.
    placement: Placement = "homes"  # Way to keep small work off dear nodes.
    events: Literal["all", "warnings", "none"] = "all"  # Events that are written on pods and nodes.
    ignored_drivers: tuple[str, ...] = ()  # Drivers of claims for devices (DRA) that no plan minds.

    @cached_property
    def digest(self) -> str:
        """Of all that it says: each record of a decision names it."""
        return digest(self)

    @cached_property
    def homed(self) -> frozenset[str]:
        """The pools whose nodes are born closed, and take only the pods that they are given."""
        pools = self.pools.items() if self.placement == "homes" else ()
        return frozenset(name for name, rules in pools if rules.taints and has_home_taint(rules.taints))

    @cached_property
    def budget_teams(self) -> frozenset[str | None]:
        """The teams that budgets name; asked for each pod."""
        return frozenset(budget.scope.team for budget in self.budgets if isinstance(budget.scope, BudgetScope))

    @cached_property
    def has_class_budgets(self) -> bool:
        """True where a budget is of a class; asked for each pod."""
        return any(isinstance(one.scope, BudgetScope) and one.scope.workload_class for one in self.budgets)

    @cached_property
    def gates(self) -> dict[str, str]:
        """Karpenter's NodePools whose limits budgets set, by pool."""
        return {name: rules.nodepool for name, rules in self.pools.items() if rules.nodepool}

    @property
    def asks_for_use(self) -> bool:
        """True where a rule goes by the use of GPUs."""
        return any(rule.when.use is not None for rule in self.rules)

    def of_class(self, name: WorkloadClass) -> ClassPolicy:
        """The rules of a class; a class the file does not name has the defaults of its kind."""
        return self.classes.get(name) or DEFAULT_CLASSES[name]

    def claims_of(self, namespace: str) -> Claims:
        """Claims that pods of a namespace may make: its own entry's, else that of the longest pattern it matches."""
        entry = self.claims_entry(namespace)
        return self.claims[entry] if entry else Claims()

    def claims_entry(self, namespace: str) -> str:
        """The key of ``claims`` that applies to a namespace, empty where none does. Entries do not merge."""
        if namespace in self.claims:
            return namespace
        fits = (pattern for pattern in self.claims if fnmatchcase(namespace, pattern))
        return max(fits, key=lambda pattern: (len(pattern), pattern), default="")

    def payer(self, team: str) -> str:
        """Team that pays for a team's work: the team itself, or the default one where it has no budget."""
        return team if not self.default_team or team in self.budget_teams else self.default_team

    def wait(self, name: WorkloadClass) -> UsdPerHour:
        """Worth of an hour of one waiting job of a class, in dollars an hour."""
        return self.value_of_wait * self.of_class(name).wait_scale

    def ends(self, name: WorkloadClass) -> bool:
        """True where the file says that a class's pods end: at a hard cap, or by a ``max_runtime`` that is written."""
        rules = self.classes.get(name)
        return rules is not None and (rules.stops or rules.max_runtime is not None)


DEFAULT_CLASSES: dict[WorkloadClass, ClassPolicy] = {
    "training": ClassPolicy(),
    "serving": ClassPolicy(),
    "notebook": ClassPolicy(gpu_models="any"),
    "batch": ClassPolicy(gpu_models="any"),
}
