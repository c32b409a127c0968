"""The settings by which a cloud's groups keep themselves, as taking pools over and handing them back changes them."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

KEPT = "takes nodes back"
"""A place where nodes stand by that takes back what is scaled in, and is filled by nobody else."""


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A group as it is. ``nodes`` count what runs, and what it still wants to launch.

    ``waiting`` end when a hook is answered. ``managed``: another service of its cloud makes it, and keeps its warm
    pool. ``busy`` says what replaces or sizes its nodes now, and cannot be held up; empty where nothing does.
    ``never`` says why it cannot be taken over at all, with the way out. ``marks``: it can say that it was handed back.
    """

    group: str
    settings: Mapping[str, str]
    nodes: int = 0
    zones: int = 1
    waiting: int = 0
    managed: bool = False
    busy: str = ""
    never: str = ""
    marks: bool = True


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A setting to be set to ``to``; empty takes it out."""

    name: str
    to: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is left as it is, and why. ``passes``: it is given back when that is over."""

    name: str
    why: str
    passes: bool


class Handover(Protocol):
    """Settings of scaling of a cloud's groups, named as in ``pool_handover``. Raises ``Denied`` or ``Retry``."""

    def read(self) -> Mapping[str, GroupState]:
        """Every pool of the account's names that has a group."""
        ...

    def put(self, group: str, name: str, to: str) -> None:
        """Set one setting; empty takes it out. Repeating it is harmless."""
        ...
