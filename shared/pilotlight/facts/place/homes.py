"""Homes: nodes that take only the pods that were given to them, by a taint that those pods tolerate."""

import msgspec


class Tolerate(msgspec.Struct, frozen=True, kw_only=True):
    """One toleration to add: of a ``home``, to a pod that waits."""

    namespace: str
    pod: str
    uid: str
    home: str


class HomePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Homes of one look: pods that get a toleration, nodes that get a home (by name), and nodes that are opened."""

    tolerate: tuple[Tolerate, ...] = ()
    name: dict[str, str] = {}
    open: tuple[str, ...] = ()


NO_HOMES = HomePlan()


def home_id(decision: str, step: int, node: int) -> str:
    """The home of a purchase's node: by decision, step, and the node's number in it. Valid as a taint's value."""
    return f"{decision}-{step}-{node}"
