"""Rules in the policy file: what is set while something holds, a time of the week among it."""

from typing import Annotated, Literal

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.limits.policy_terms import Duration
from pilotlight.facts.money.money_policy import LitCaps
from pilotlight.facts.workload import WorkloadClass

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class RuleTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window of the week by the clocks of ``timezone``: over midnight where its end is not after its start."""

    start: str  # Local "HH:MM".
    end: str  # Local "HH:MM".
    timezone: str = "UTC"  # Zone of these clocks.
    # Days that it begins on.
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = (
        "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    )  # fmt: skip


class RuleUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Use of the GPUs of some pools' ready nodes: measured over half an hour, else the share that pods hold."""

    pools: tuple[str, ...]  # Pools whose ready nodes count.
    below: Share | None = None  # Less than this share is used.
    above: Share | None = None  # More than this share is used.


class RuleWaiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods that wait for a GPU: so many, the first of them for so long."""

    pods: Annotated[int, msgspec.Meta(ge=1)] = 1  # Pods at least.
    since: Duration = msgspec.field(default=0, name="for")  # Seconds that the first of them waits at least.
    classes: tuple[WorkloadClass, ...] = ()  # Classes that count; none named: all.


class RuleBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget of the policy, and the share of it, settled and held, from which on the rule holds."""

    name: str  # The budget's name.
    at: Share  # Share of it, from 0 to 1.


class RuleWhen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a rule holds: all that is written must, and at least one thing is. What is not known does not hold."""

    time: RuleTime | None = None  # Window of the week.
    use: RuleUse | None = None  # Use of GPUs.
    waiting: RuleWaiting | None = None  # Pods that wait.
    budget: RuleBudget | None = None  # Share of a budget that is spent or held.

    @property
    def is_time_alone(self) -> bool:
        """True where nothing but the clock decides."""
        return self == RuleWhen(time=self.time)


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is set while a rule holds, in the file's order; what it does not name stays as it is.

    ``idle`` "keep": idle nodes stay. "release": they go at once, beyond the pool's ``min``; where another rule keeps or
    warms the pool they stay. ``avoid``: for pods of these classes nothing is bought there, so that they run elsewhere.
    ``evict``: those that run there, and whose class's ``may_move`` says "off-hours", are evicted as the time begins; it
    is told half an hour before.
    """

    warm: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}  # Idle nodes that are kept, by pool.
    max: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}  # Nodes at most, by pool.
    caps: LitCaps | None = None  # Caps on what is lit at once.
    capacity_types: dict[WorkloadClass, tuple[CapacityType, ...]] = {}  # Those allowed, by class.
    idle: dict[str, Literal["keep", "release"]] = {}  # Whether idle nodes stay, by pool.
    avoid: dict[str, tuple[WorkloadClass, ...]] = {}  # Classes for which nothing is bought, by pool.
    evict: bool = False  # Running pods of these classes leave these pools too.


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule: what is set while something holds.

    Where more than the clock decides, idle nodes are neither warmed nor released within ``cooldown`` of the pool's last
    purchase.
    """

    name: str  # Its own; decisions that it made say it.
    when: RuleWhen  # When it holds.
    does: RuleSet = msgspec.field(default=RuleSet(), name="set")  # Settings of that time.
    cooldown: Duration = 600  # Seconds from a purchase.
