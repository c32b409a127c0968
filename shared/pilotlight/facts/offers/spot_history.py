"""History of spot of one type in one zone: how long nodes ran, how many were taken, what was refused."""

import msgspec

from pilotlight.units import Seconds

HOURS_A_DAY = 24


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    """All that is remembered of it, faded, as of ``at`` (seconds from the epoch). ``nodes`` were ready then.

    By hour of the day (UTC): ``hours`` in which a node was there, and ``lost``, the shares of its nodes that were
    taken: a zone that takes four nodes of four at once is one loss, and so is one that takes one of one.
    ``asked`` for a node, ``refused`` of them for want of capacity. ``away`` are the spells without any that ended, and
    ``away_h`` their hours in all; one that goes on began at ``short_since``, 0 where it is not known to be short.
    """

    at: Seconds
    nodes: int = 0
    hours: tuple[float, ...] = (0.0,) * HOURS_A_DAY
    lost: tuple[float, ...] = (0.0,) * HOURS_A_DAY
    asked: float = 0.0
    refused: float = 0.0
    away: float = 0.0
    away_h: float = 0.0
    short_since: Seconds = 0.0


class Survival(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of how often a node of one type is taken in one zone at one hour: ``rate`` an hour.

    It rests on ``losses`` seen in ``hours`` of that type and zone, and on a ``prior`` rate where that is little.
    ``up`` is the share of its asks that were served, None where it was never asked.
    """

    rate: float
    losses: float = 0.0
    hours: float = 0.0
    prior: float = 0.0
    up: float | None = None

    def __str__(self) -> str:
        """As people read it: the rate with its sample and prior."""
        seen = f"{self.losses:.1f} losses in {self.hours:,.1f} h seen"
        return f"{self.rate:.3g} an hour by {seen} and a prior of {self.prior:.3g}"
