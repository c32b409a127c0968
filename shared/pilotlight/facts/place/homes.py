"""Homes: nodes that take only the pods that were given to them, by a taint that those pods tolerate."""

from collections.abc import Collection, Iterable

import msgspec

from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import HOME, NEW_HOME


class Tolerate(msgspec.Struct, frozen=True, kw_only=True):
    """One toleration to add: of a ``home``, to a pod that waits."""

    namespace: str
    pod: str
    uid: str
    home: str
    node: str = ""  # The ready node that has it; empty: on its way.


class HomePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Homes of one look: pods that get a toleration, nodes that get a home (by name), and nodes that are opened."""

    tolerate: tuple[Tolerate, ...] = ()
    name: dict[str, str] = {}
    open: tuple[str, ...] = ()


NO_HOMES = HomePlan()


def home_id(decision: str, step: int, node: int) -> str:
    """The home of a purchase's node: by decision, step, and the node's number in it. Valid as a taint's value."""
    return f"{decision}-{step}-{node}"


BIRTH_TAINT = Taint(key=HOME, value=NEW_HOME, effect="NoSchedule")
"""The taint that nodes of a homed pool are born with: in its policy entry, and at its cloud."""


def has_home_taint(taints: Collection[Taint]) -> bool:
    """True where nodes that are born with such taints are homed; pods are given a toleration of no other."""
    return BIRTH_TAINT in taints


def but_home(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Taints without ours, which no pod of a plan minds: the plan gives each its toleration."""
    return tuple(taint for taint in taints if taint.key != HOME)
