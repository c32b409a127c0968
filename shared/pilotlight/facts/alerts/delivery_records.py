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

    channel: str  # The policy's name of it.
    alert: Alert  # As it is shown.
    status: Literal["claimed", "waits", "told", "gave up", "over"]  # How far it has come.
    since: datetime  # When the alert came.
    at: datetime  # When it last moved on.
    due: datetime | None = None  # Until when a claim holds, or when it is tried next.
    held: bool = False  # A burst holds it back, to be told as one of ``grouped``.
    attempts: int = 0  # Deliveries that failed.
    unsure: int = 0  # Those of them that may have been shown all the same.
    grouped: int = 0  # Alerts that it is told together with.
    receipt: str = ""  # The provider's proof.
    why: str = ""  # Why it was given up.
    began: "Telling | None" = None  # What an end put an end to, as it was told before.
    after: str = ""  # Channel that it comes from: told there and not acknowledged, or given up.
    late: bool = False  # It was given up, and is tried now and then while it matters.


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A channel that failed so often in a row, and is left alone until then."""

    until: datetime
    fails: int


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts of one kind on one channel, counted since a window began."""

    begun: datetime
    count: int
