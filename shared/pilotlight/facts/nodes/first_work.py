"""Steps from a node's request to a pod that works on it: boot, device plugin, image pull and start, as they were seen.

Kept in a cluster's memory: few entries of few figures each, whatever tenants write.
"""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.units import HOUR, Seconds

NewNodeStep = Literal["boot", "plugin", "pull", "start"]
"""``boot``: from the request until the node is Ready; ``plugin``: until a pod that waited is bound, which needs its
GPUs; ``pull``: of the pod's images; ``start``: all else until its containers run.
"""
STEPS: tuple[NewNodeStep, ...] = ("boot", "plugin", "pull", "start")


MOST_S: Seconds = HOUR
"""No step counts for longer: what takes an hour is a fault, not a habit."""
SEEN = 9
"""Of so many last ones of a step the median counts."""


def with_seen(last: tuple[Seconds, ...], one: Seconds) -> tuple[Seconds, ...]:
    """The last ones of a step after one more, the newest last."""
    return (*last, round(min(max(0.0, one), MOST_S), 1))[-SEEN:]


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """Pull of a pod's images, as its kubelet told it: 0 seconds where they were there."""

    seconds: Seconds
    size: int = 0  # Bytes of what was pulled; 0 where it is not told.


class ImageLoad(msgspec.Struct, frozen=True, kw_only=True):
    """An image on one type of node. ``uses`` and the like are counts that fade, as of ``at``."""

    at: int  # Seconds from the epoch of the last use.
    uses: float = 0.0  # Looks that saw pods which began with it.
    pulled: float = 0.0  # Pods that pulled it,
    late: float = 0.0  # and of these the ones on a node that had been Ready for long enough to have pulled it before.
    pulls: tuple[Seconds, ...] = ()  # Seconds of its last pulls, the newest last.
    starts: tuple[Seconds, ...] = ()  # Seconds of its last starts beside the pull.
    size: int = 0  # Bytes as pulled; 0 where it is not known.


class FirstWork(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the steps: boot and device plugin by pool, pull and start by "type image"."""

    images: dict[str, ImageLoad] = {}
    boots: dict[str, tuple[Seconds, ...]] = {}
    plugins: dict[str, tuple[Seconds, ...]] = {}
    counted_to: datetime | None = None  # Pods that began to work before are counted.


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """Usual seconds of each step in a pool; None where too little was seen of it."""

    boot: Seconds | None = None
    plugin: Seconds | None = None
    pull: Seconds | None = None
    start: Seconds | None = None
    images: tuple[str, ...] = ()  # Those that are used most on its type, the most used first.

    def step(self, name: NewNodeStep) -> Seconds | None:
        """One step by its name."""
        found: Seconds | None = getattr(self, name)
        return found

    @property
    def known(self) -> tuple[tuple[NewNodeStep, Seconds], ...]:
        """The steps that are known, in their order."""
        return tuple((name, seconds) for name in STEPS if (seconds := self.step(name)) is not None)
