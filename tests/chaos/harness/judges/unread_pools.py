"""When a pool's cloud did not tell of it: what its group made anew meanwhile nobody could know, until it was a node.

A node that was there before is one of the cluster's, or was listed: only what was launched meanwhile, or a tick before,
is unknown. No name of it was told, so nothing could give it back.
"""

from collections.abc import Collection

from harness.scene import BOOT_S
from pilotlight.units import Seconds

Stretch = tuple[Seconds, Seconds]
TICK_S: Seconds = 60


class UnreadPools:
    """Told of the pools that cannot be read; asked when a node could first be known."""

    def __init__(self) -> None:
        self._since: dict[str, Seconds] = {}
        self._over: dict[str, list[Stretch]] = {}
        self._untold: dict[str, list[Seconds]] = {}

    def note(self, pools: Collection[str], now_s: Seconds) -> None:
        """These pools cannot be read from now on, and all others can."""
        for pool in self._since.keys() - set(pools):
            self._over.setdefault(pool, []).append((self._since.pop(pool), now_s))
        for pool in pools:
            self._since.setdefault(pool, now_s)

    def untold(self, pool: str, now_s: Seconds) -> None:
        """One call to a pool's group failed: a look at that moment learned nothing of what boots there."""
        self._untold.setdefault(pool, []).append(now_s)

    def told(self, pool: str, launched_s: Seconds, look: Stretch) -> bool:
        """Whether a look could learn of a node: its pool's group was read, or it had joined."""
        from_s, to_s = look
        joined = from_s >= launched_s + BOOT_S
        return joined or not any(from_s <= at_s <= to_s for at_s in self._untold.get(pool, ()))

    def known_s(self, pool: str, launched_s: Seconds) -> Seconds:
        """When a node of a pool can be known of: once it is launched, where its pool can be read then."""
        joins_s: Seconds = launched_s + BOOT_S
        going_on = [(self._since[pool], joins_s)] if pool in self._since else []
        for from_s, to_s in (*self._over.get(pool, ()), *going_on):
            if from_s - TICK_S <= launched_s < to_s:
                return to_s if to_s < joins_s else joins_s
        return launched_s
