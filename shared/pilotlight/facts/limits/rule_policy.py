"""Windows and rules in the policy file: schedules of the week, and rules that hold while something is so."""

from typing import Annotated, Literal

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.limits.policy_terms import Duration
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.workload import WorkloadClass


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class RuleTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window of the day, as a schedule's: over midnight where its end is not after its start."""

    start: str
    end: str
    timezone: str = "UTC"
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = (
        "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    )  # fmt: skip


class RuleBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget of the policy, and the share of it, settled and held, from which on the rule holds."""

    name: str
    at: Share


class RuleWhen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule: what is done with pools while something holds.

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
