"""Records of alerts on their way to a channel, and of those that have arrived."""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.facts.messages import Alert


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """One alert on one channel: who works on it, then what became of it.

    ``claimed`` until ``due`` by who delivers it; ``waits`` until then; ``told``, with the provider's ``receipt`` as
    proof; ``gave up``, and ``why``; ``over`` where its end came first, and nothing is told. ``attempts`` failed, of
    which ``unsure`` may have been shown all the same: so often people may have read it too much. ``held``: a burst
    holds it back, to be told as one of ``grouped``. ``began`` is what an end put an end to, as it was told before.
    ``after`` is the channel that it comes from: told there and not acknowledged, or given up. ``late``: it was given
    up, and is tried now and then while it matters.
    """

    channel: str
    alert: Alert
    status: Literal["claimed", "waits", "told", "gave up", "over"]
    since: datetime
    at: datetime
    due: datetime | None = None
    held: bool = False
    attempts: int = 0
    unsure: int = 0
    grouped: int = 0
    receipt: str = ""
    why: str = ""
    began: "Telling | None" = None
    after: str = ""
    late: bool = False


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A channel that failed so often in a row, and is left alone until then."""

    until: datetime
    fails: int


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts of one kind on one channel, counted since a window began."""

    begun: datetime
    count: int
