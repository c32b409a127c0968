"""Settings that taking a pool over changed at its cloud, so that somebody who knows no more can give it back.

A setting is a name and a text: "min" and "max" (sizes), "protects-new" and "rebalances" ("true", "false"), "hook"
(ours, as its cloud's own JSON), "warm" (where nodes stand by: ``KEPT`` where Pilotlight keeps it, else its cloud's own
JSON), "tag KEY" and "launch-tag KEY" (a tag of the group; one that its new nodes get too). Empty: there is none.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

OnSilence = Literal["keep", "hand-back"]
"""What becomes of a pool that was taken over when nothing is heard of Pilotlight any more."""


KEPT = "takes nodes back"
"""A place where nodes stand by that takes back what is scaled in, and is filled by nobody else."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a pool's group, as it ``was`` and as it is ``now`` that Pilotlight keeps the pool."""

    name: str
    was: str
    now: str


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that was taken over. ``pools`` is the address that leads to its cloud, ``group`` the cloud's name for it.

    ``role`` is whom it was taken over as, where that was another account's role.
    ``handed_back`` is when all of it was given back; None while Pilotlight keeps it, or a part is left to give.
    """

    pool: str
    group: str
    pools: str
    on_silence: OnSilence
    at: datetime
    settings: tuple[Setting, ...] = ()
    handed_back: datetime | None = None
    role: str = ""


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A group as it is. ``nodes`` count what runs, and what it still wants to launch.

    ``waiting`` end when a hook is answered.
    """

    group: str
    settings: Mapping[str, str]
    nodes: int = 0
    zones: int = 1
    waiting: int = 0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A setting to be set to ``to``; empty takes it out."""

    name: str
    to: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is left as it is, and why. ``passes``: it is given back when that is over."""

    name: str
    why: str
    passes: bool
