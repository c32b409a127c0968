"""The policy file: the only place for behaviour. Later work only adds keys; unknown keys are refused.

Durations are text as people write them ("90s", "10m", "2h", "1d") or seconds; ``codec.policy_file`` turns the file
into these values. Sums of money are ``Decimal``.
"""

from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec

from pilotlight.facts.capacity import CapacityType, Mode, PoolMode, Taint
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.limits.policy_terms import Dollars, Duration, ExactNumber, GpuMemory, WholeAmount, WrittenName
from pilotlight.facts.limits.pool_handover import OnSilence
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds, UsdPerHour

CloudName = Literal["civo", "gke", "eks", "aks", "world"]
Placement = Literal["none", "taint"]
"""Who keeps small work off dear nodes: nobody, or a taint of ours on the nodes that are meant for other pods."""
HandledBy = Literal["pilotlight", "cloud", "karpenter", "nth"]
"""Who replaces and drains an interrupted node: us, the cloud, Karpenter, or AWS' Node Termination Handler."""


class _Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the policy file: unknown keys are refused."""


class PaidPolicy(_Keys, frozen=True, kw_only=True):
    """Nodes of a reserved pool that are paid for anyhow, as by a commitment, up to a moment: None is for good."""

    nodes: Annotated[int, msgspec.Meta(ge=1)]
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class CanaryPolicy(_Keys, frozen=True, kw_only=True):
    """A pool that is acted on beside ``control``, for as long as it keeps within bounds; beyond one it is paused.

    ``max_wait``: how long a purchase may be on its way. ``max_refusals``: how often in a row its cloud may refuse one.
    ``max_usd_ratio``: what a GPU-hour that was used may cost, as a multiple of the control's.
    """

    control: str
    max_wait: Duration = 900
    max_refusals: Annotated[int, msgspec.Meta(ge=1)] = 3
    max_usd_ratio: Annotated[float, msgspec.Meta(gt=0)] = 1.2


class PoolPolicy(_Keys, frozen=True, kw_only=True):
    """A node pool that may be lit. ``cluster_pool`` is its name at the cloud (default: its key here).

    ``labels`` and ``taints`` are what its nodes carry, so that a pool at zero can be matched.
    ``idle_timeout`` in seconds overrides the class's; None means the break-even.
    ``daemonsets`` is what its DaemonSets take from every node, as Kubernetes quantities.
    ``handled_by`` is who answers interruption notices of its nodes; ``relaunches``: its group starts a node by itself
    in the place of one that the cloud took. ``atomic``: the cloud grants a request for several nodes whole or refuses
    it whole, so that no part of a gang ever has to be given back. ``standby`` is how many of its idle nodes
    are stopped instead of given back, where its cloud can; "auto": as many as pay for themselves. ``on_silence``
    "hand-back": when nothing is heard of Pilotlight, whoever kept it before ``pilotlight takeover`` gets it again.
    ``paid`` says what a reserved pool may use, where its cloud tells no reservation. Nodes older than ``max_age``,
    and with ``drift`` "replace" those that an older launch template made, are replaced one at a time: idle ones, and
    those whose pods' classes say ``at_max_age`` "move". ``canary`` goes with mode "canary".
    """

    cloud: CloudName = "world"
    cluster_pool: str = ""
    instance_type: str
    zones: tuple[str, ...] = ()
    capacity_type: CapacityType = "on-demand"
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    min: int = 0
    max: int = 10
    warm: int = 0
    mode: PoolMode | None = None
    canary: CanaryPolicy | None = None
    idle_timeout: Duration | None = None
    daemonsets: dict[str, str] = {}
    slices: dict[str, WholeAmount] = {}
    handled_by: HandledBy = "pilotlight"
    relaunches: bool = False
    atomic: bool = False
    standby: Annotated[int, msgspec.Meta(ge=0)] | Literal["auto"] = "auto"
    on_silence: OnSilence = "keep"
    paid: PaidPolicy | None = None
    max_age: Duration | None = None
    drift: Literal["keep", "replace"] = "keep"

    @property
    def acts_as(self) -> Mode | None:
        """The mode by which calls are judged: a canary acts, until it is paused."""
        return "act" if self.mode == "canary" else self.mode


class ReclaimPolicy(_Keys, frozen=True, kw_only=True):
    """When owners of idle pods of a class are put to rest: a Job suspended, others scaled to zero.

    All GPUs of all its pods were measured, and under the share ``under``, for ``idle``: then whoever it is of is told.
    It rests ``grace`` later, unless it works again or is snoozed by then. ``who`` "annotated": only owners with the
    annotation ``pilotlight.dev/reclaim: "true"``; "all": those without ``"false"``.
    """

    idle: Duration = 2 * 3600
    grace: Duration = 3600
    under: Annotated[float, msgspec.Meta(gt=0, le=0.5)] = 0.05
    who: Literal["annotated", "all"] = "annotated"


class ClassPolicy(_Keys, frozen=True, kw_only=True):
    """Rules of one workload class.

    ``capacity_types`` are those allowed, compared by cost; ``fallback`` "allow" adds on-demand when none of them can be
    had. ``idle_timeout`` None means the break-even against relighting. ``gpu_models`` is a list,
    "any" (whatever is cheapest per throughput), or None: then a pod that names none gets a finding.
    ``wait_scale`` times the policy's ``value_of_wait`` is what an hour of one of its waiting jobs is worth.
    ``require_checkpoint_over``: a longer run may use spot only where its pod tells its checkpoints; None asks nobody.
    ``max_runtime`` that is written is consent to end there. ``at_hard_cap`` "stop": a hard budget that has no room left
    may stop its nodes in order; they are then held for in stretches of ``hold``. ``at_max_age`` "move": its pods may be
    moved off a node that its pool's ``max_age`` or ``drift`` replaces, those that save when asked and serving ones;
    ``at_sick_gpu`` "move": such ones off a node whose GPUs are not well.
    ``max_spot_share``: spot is bought for at most this share of the GPUs that its pods ask for; None is no limit.
    ``reclaim``: what is idle may be put to rest; without it nothing of the class ever is.
    """

    capacity_types: tuple[CapacityType, ...] = ("on-demand",)
    fallback: Literal["deny", "allow"] = "deny"
    idle_timeout: Duration | None = None
    max_idle_timeout: Duration = 3600
    max_runtime: Duration | None = None
    at_hard_cap: Literal["keep", "stop"] = "keep"
    at_max_age: Literal["keep", "move"] = "keep"
    at_sick_gpu: Literal["keep", "move"] = "keep"
    hold: Duration = 4 * 3600
    gpu_models: tuple[str, ...] | Literal["any"] | None = None
    min_gpu_memory: GpuMemory = 0
    wait_scale: ExactNumber = Decimal(1)
    require_checkpoint_over: Duration | None = None
    max_spot_share: ExactNumber | None = None
    reclaim: ReclaimPolicy | None = None

    @property
    def longest_run_s(self) -> Seconds:
        """How long a pod may run at most that names no deadline: a day, where nothing is written."""
        return 86_400 if self.max_runtime is None else self.max_runtime

    @property
    def stops(self) -> bool:
        """Whether its nodes may be stopped at a hard cap."""
        return self.at_hard_cap == "stop"


class TeamPolicy(_Keys, frozen=True, kw_only=True):
    """Rules of one team. ``max_spot_share`` is as that of a class: both hold."""

    max_spot_share: ExactNumber | None = None


HIGHEST_PRIORITY = 10**9
"""The highest priority that ``claims`` can permit: above are Kubernetes' own ``system-*`` classes."""


class Claims(_Keys, frozen=True, kw_only=True):
    """Claims: what pods of a namespace may say of themselves that moves money. What else they say counts for nothing.

    ``team``: whose they are, before the namespace's own label. ``teams``: others, or patterns of others, that a pod's
    label may name. ``classes``: what they may be; a pod that would be another is the first of them. None: any, while no
    budget is of a class; else what they look like without their labels. ``priority``: the highest by which they are
    bought for.
    """

    team: WrittenName = ""
    teams: tuple[str, ...] = ()
    classes: tuple[WorkloadClass, ...] | None = None
    priority: int = 0


class Caps(_Keys, frozen=True, kw_only=True):
    """What may be lit at once over all pools. None is no cap."""

    nodes: int | None = None
    gpus: int | None = None
    usd_per_hour: Dollars | None = None


class Limits(_Keys, frozen=True, kw_only=True):
    """How much may change within ten minutes: nodes and dollars an hour added, nodes removed. None is no limit."""

    nodes_added: int | None = None
    usd_per_hour_added: Dollars | None = None
    nodes_removed: int | None = None


class ApproveOver(_Keys, frozen=True, kw_only=True):
    """A purchase that would light more than this in all waits for a person. None asks nobody."""

    nodes: int | None = None
    usd_per_hour: Dollars | None = None


class BudgetScope(_Keys, frozen=True, kw_only=True):
    """Whose spending a budget counts: that of one team, one class or one pool. Exactly one of them."""

    team: str | None = None
    workload_class: WorkloadClass | None = msgspec.field(default=None, name="class")
    pool: str | None = None

    def __str__(self) -> str:
        """As people say it: "team research"."""
        named = (("team", self.team), ("class", self.workload_class), ("pool", self.pool))
        return next((f"{kind} {name}" for kind, name in named if name is not None), "nobody")


StepDoes = Literal["notify", "spot-only", "no-new-buys"]


class LadderStep(_Keys, frozen=True, kw_only=True):
    """What is done once a share ``at`` of a budget is spent (1 is all of it)."""

    at: ExactNumber
    do: StepDoes


class Budget(_Keys, frozen=True, kw_only=True):
    """A cap on spending: dollars held before each purchase, never above the limit.

    ``usd`` and ``gpu_hours`` count over a ``period`` of the calendar in ``timezone`` (weeks begin on Monday);
    ``usd_per_hour`` is what may be lit at once. ``hard`` is never passed: nodes of classes that may be stopped are
    held for in stretches, the others for their longest run; without it the typical run is held, and what goes beyond
    is reported. The steps of ``ladder`` are taken as spending goes on; in a dry run they are only announced. None
    touches serving. ``queues`` of Kueue admit no more while nothing more is bought: "name" is a ClusterQueue,
    "namespace/name" a LocalQueue. What it counts is kept under ``id``, its name where none is written: one that is
    renamed and keeps its id keeps that.
    """

    name: str
    id: WrittenName = ""
    scope: BudgetScope | Literal["all"] = "all"
    usd: Dollars | None = None
    gpu_hours: ExactNumber | None = None
    usd_per_hour: Dollars | None = None
    period: Literal["day", "week", "month"] = "month"
    timezone: str = "UTC"
    hard: bool = True
    ladder: tuple[LadderStep, ...] = (
        LadderStep(at=Decimal("0.5"), do="notify"),
        LadderStep(at=Decimal("0.8"), do="spot-only"),
        LadderStep(at=Decimal(1), do="no-new-buys"),
    )
    ladder_dry_run: bool = True
    queues: tuple[str, ...] = ()

    @property
    def account(self) -> str:
        """What its accounts are kept under."""
        return self.id or self.name


class Schedule(_Keys, frozen=True, kw_only=True):
    """A window in which rules change. ``days`` as "mon".."sun"; ``start``/``end`` local "HH:MM" in ``timezone``.

    A window whose end is not after its start runs over midnight. ``warm`` sets warm minimums by pool, ``max`` the
    pools' most nodes, ``caps`` the caps, ``capacity_types`` a class's; each only tightens or replaces inside it. Old
    nodes of a pool that ``renew`` of any schedule names are replaced only inside such a window.
    """

    name: str
    timezone: str = "UTC"
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = (
        "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    )  # fmt: skip
    start: str
    end: str
    warm: dict[str, int] = {}
    max: dict[str, int] = {}
    caps: Caps | None = None
    capacity_types: dict[WorkloadClass, tuple[CapacityType, ...]] = {}
    renew: tuple[str, ...] = ()


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class RuleTime(_Keys, frozen=True, kw_only=True):
    """A window of the day, as a schedule's: over midnight where its end is not after its start."""

    start: str
    end: str
    timezone: str = "UTC"
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = (
        "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    )  # fmt: skip


class RuleBudget(_Keys, frozen=True, kw_only=True):
    """A budget of the policy, and the share of it, settled and held, from which on the rule holds."""

    name: str
    at: Share


class RuleWhen(_Keys, frozen=True, kw_only=True):
    """When a rule holds: all that is written must, and at least one thing is. What is not known does not hold.

    ``waiting``: so many pods wait for a GPU, of the rule's ``classes`` where it has some; ``waited``: the oldest of
    them for so long. Of the ready nodes of the rule's pools: ``utilisation_below`` and ``utilisation_above`` of their
    GPUs (measured over half an hour, else the share that pods hold), and ``node_age``: the oldest is so old.
    ``budget`` is spent so far, and ``time`` is the time of day.
    """

    waiting: Annotated[int, msgspec.Meta(ge=1)] | None = None
    waited: Duration | None = None
    utilisation_below: Share | None = None
    utilisation_above: Share | None = None
    node_age: Duration | None = None
    budget: RuleBudget | None = None
    time: RuleTime | None = None


class Rule(_Keys, frozen=True, kw_only=True):
    """What is done with pools while something holds.

    ``grow``: so many ``nodes`` without work are kept ready in each. ``keep``: idle nodes stay. ``release``: idle nodes
    go at once, beyond the pool's ``min``; where another rule keeps a pool it is kept. ``move``: for pods of ``classes``
    nothing is bought there, so that they run elsewhere. Neither growth nor release comes within ``cooldown`` of the
    pool's last purchase.
    """

    name: str
    when: RuleWhen
    do: Literal["grow", "keep", "release", "move"]
    pools: tuple[str, ...]
    classes: tuple[WorkloadClass, ...] = ()
    nodes: Annotated[int, msgspec.Meta(ge=1)] = 1
    cooldown: Duration = 600


class BillScope(_Keys, frozen=True, kw_only=True):
    """Which lines of a bill are this cluster's: those of its ``accounts`` and ``services`` (none named: of all) with
    all of its ``tags``, where "{cluster}" stands for the cluster's name. Of lines in them that lack these tags
    ``shared`` is this cluster's part; 0 leaves them out.
    """

    accounts: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    shared: ExactNumber = Decimal(0)


class CurrencyRate(_Keys, frozen=True, kw_only=True):
    """What one unit of a currency was worth in dollars from a day (yyyy-mm-dd) on, and who says so."""

    currency: str
    usd: Dollars
    date: str
    source: str


class Prices(_Keys, frozen=True, kw_only=True):
    """Where prices come from: catalogue files, then ``overrides`` ("instance type/capacity type": $/h).

    ``charges`` are files of what a bill's codes cost, for clouds that bill hours without money; ``currencies`` what
    lines of a bill are worth that are in another currency. ``throughput`` adds GPU models to the catalogue's by class,
    and replaces those that it names, on the same scale.
    """

    files: tuple[str, ...] = ()
    charges: tuple[str, ...] = ()
    overrides: dict[str, Dollars] = {}
    currencies: tuple[CurrencyRate, ...] = ()
    max_age_days: int = 30
    throughput: dict[str, dict[str, float]] = {}


Severity = Literal["info", "warning", "critical"]


class QuietHours(_Keys, frozen=True, kw_only=True):
    """When a channel stays quiet: what is less severe than ``let_through`` waits for the end, or infos are dropped.

    A window as a schedule's: local "HH:MM" in ``timezone``, over midnight where its end is not after its start.
    """

    timezone: str = "UTC"
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = (
        "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    )  # fmt: skip
    start: str
    end: str
    let_through: Severity = "critical"
    drop_info: bool = False


class Channel(_Keys, frozen=True, kw_only=True):
    """One place alerts go to. ``*_env`` name the environment variables that hold its secrets.

    ``webhook``, ``slack``, ``teams``, ``discord`` and ``apprise`` have their URL in ``url_env``; ``secret_env`` signs a
    web hook's posts. ``telegram``, and ``slack`` by a bot, have the bot's token in ``token_env`` and the ``chat``;
    ``pagerduty`` has its routing key in ``token_env``. With a token ``url_env`` names another server.
    ``teams`` and ``kinds`` are those it wants (``capacity-*`` is every kind that begins so); empty means all. What
    nobody has acknowledged after ``escalate_after`` goes on to the channel ``escalate_to``, from warnings on; what
    cannot be told goes to ``fallback``. With ``direct`` false a channel gets nothing but that.
    ``again_after`` is how long one fingerprint is not told again. ``allow_private`` lets the URL lead to loopback,
    link-local and private addresses.
    """

    kind: Literal["console", "webhook", "slack", "telegram", "pagerduty", "teams", "discord", "apprise"]
    url_env: str = ""
    secret_env: str = ""
    token_env: str = ""
    chat: str = ""
    min_severity: Severity = "info"
    teams: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    quiet_hours: QuietHours | None = None
    again_after: Duration = 6 * 3600
    escalate_to: str = ""
    escalate_after: Duration = 600
    fallback: str = ""
    direct: bool = True
    timeout: Duration = 10
    allow_private: bool = False


class Alerts(_Keys, frozen=True, kw_only=True):
    """Channels by name. More than ``group_after`` alerts of one kind within ``group_window`` are told as one, with
    their count, when the window ends; 0 tells each. ``page`` is the address of the home's page, which alerts link."""

    channels: dict[str, Channel] = {}
    page: str = ""
    group_after: int = 10
    group_window: Duration = 60


class Policy(_Keys, frozen=True, kw_only=True):
    """The whole file.

    ``value_of_wait`` is what one job's waiting is worth, in dollars an hour (a gang is one job; classes scale it): its
    cost and the dollars paid are together what decisions make least. 0 puts no price on waiting.
    Capacity that has not become ready by ``gpu_ready_deadline`` after its request is given back and replaced on
    another offering. An event older than ``max_event_age`` is only a hint that a cluster should be looked at.
    ``placement`` "taint": ready nodes are closed to pods that belong on a cheaper type.
    ``events`` are the Events written on pods and nodes, where people look with ``kubectl describe``: all, only the
    warnings, or none. ``claims`` are by namespace, or by pattern of namespaces ("*" is every other); ``default_team``
    pays for work of teams that have no budget.
    """

    version: Literal[1]
    value_of_wait: Dollars = Decimal(0)
    pools: dict[str, PoolPolicy] = {}
    classes: dict[WorkloadClass, ClassPolicy] = {}
    teams: dict[str, TeamPolicy] = {}
    claims: dict[str, Claims] = {}
    default_team: WrittenName = ""
    caps: Caps = Caps()
    budgets: tuple[Budget, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    rules: tuple[Rule, ...] = ()
    queues: dict[str, QueueRules] = {}
    alerts: Alerts = Alerts()
    prices: Prices = Prices()
    bill: BillScope | None = None
    require_label: bool = False
    max_stranded_gpus: int | None = None
    cooldown: Duration = 0
    gpu_ready_deadline: Duration = 900
    max_event_age: Duration = 600
    placement: Placement = "none"
    events: Literal["all", "warnings", "none"] = "all"
    limits: Limits = Limits()
    approve_over: ApproveOver = ApproveOver()

    def of_class(self, name: WorkloadClass) -> ClassPolicy:
        """The rules of a class; a class the file does not name has the defaults of its kind."""
        return self.classes.get(name) or DEFAULT_CLASSES[name]

    def claims_of(self, namespace: str) -> Claims:
        """What pods of a namespace may claim: its own entry's, else that of the longest pattern it matches."""
        entry = self.claims_entry(namespace)
        return self.claims[entry] if entry else Claims()

    def claims_entry(self, namespace: str) -> str:
        """The key of ``claims`` that applies to a namespace, empty where none does. Entries do not merge."""
        if namespace in self.claims:
            return namespace
        fits = (pattern for pattern in self.claims if fnmatchcase(namespace, pattern))
        return max(fits, key=lambda pattern: (len(pattern), pattern), default="")

    def payer(self, team: str) -> str:
        """Who pays for a team's work: the team itself, or the default one where it has no budget."""
        if not self.default_team:
            return team
        paying = {b.scope.team for b in self.budgets if isinstance(b.scope, BudgetScope)}
        return team if team in paying else self.default_team

    def wait(self, name: WorkloadClass) -> UsdPerHour:
        """What an hour of one waiting job of a class is worth."""
        return self.value_of_wait * self.of_class(name).wait_scale

    def ends(self, name: WorkloadClass) -> bool:
        """Whether the file says that pods of a class end: at a hard cap, or with a ``max_runtime`` that is written."""
        rules = self.classes.get(name)
        return rules is not None and (rules.stops or rules.max_runtime is not None)


DEFAULT_CLASSES: dict[WorkloadClass, ClassPolicy] = {
    "training": ClassPolicy(),
    "serving": ClassPolicy(max_runtime=7 * 86_400),
    "notebook": ClassPolicy(gpu_models="any"),
    "batch": ClassPolicy(gpu_models="any"),
}
