"""Settings that taking a pool over changed at its cloud, so that somebody who knows no more can give it back.

A setting is a name and a text: "min" and "max" (sizes), "protects-new" and "rebalances" ("true", "false"), "hook"
(ours, as its cloud's own JSON), "warm" (where nodes stand by: "takes nodes back" where Pilotlight keeps it, else its
cloud's own JSON), "tag KEY" and "launch-tag KEY" (a tag of the group; one that its new nodes get too), "autoscaling"
(the bounds of its cloud's own autoscaler, as its JSON), "repairs" ("true", "false"). Empty: none.
"""

from datetime import datetime
from typing import Literal

import msgspec

OnSilence = Literal["keep", "hand-back"]
"""What becomes of a pool that was taken over when nothing is heard of Pilotlight any more."""


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
