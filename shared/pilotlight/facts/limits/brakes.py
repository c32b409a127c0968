"""Brakes: what a person or the policy sets against calls that were decided."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from pilotlight.facts.memory import Turn
from pilotlight.facts.modes import Mode
from pilotlight.units import Seconds

APPROVAL_S: Seconds = 3600.0
"""An approval that is not used within so long allows nothing any more."""

ALL = "*"
"""In place of a pool: all of them."""


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Why, since when and by whom every effect of a pool, or of all, is stopped; ``by`` is empty where nobody said."""

    reason: str
    at: datetime
    by: str = ""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that a person allowed one decision to buy beyond ``approve_over``: by pool.

    ``spent_by`` is the decision that bought by it; an approval is used once, and cannot be granted again. ``by`` is who
    gave it, as they said; empty where nobody did.
    """

    decision: str
    nodes: dict[str, int]
    granted_at: datetime
    spent_by: str = ""
    by: str = ""


class Brakes(msgspec.Struct, frozen=True, kw_only=True):
    """All brakes as one look reads them.

    ``modes`` and ``paused`` (with its reason) are by pool; ``paused`` knows ``ALL`` too. ``advice`` says why modes are
    less than was asked for. ``gives`` are instances that go back though their pool is paused, which no person did;
    ``shut`` are pools that their cloud alone keeps from being bought from. ``approvals`` are those that still allow
    something, by pool each one's decision and its nodes; ``used_up`` is by pool the last that allows nothing any more.
    ``turns`` are calls of the last ten minutes.
    """

    modes: Mapping[str, Mode] = {}
    advice: str = ""
    paused: Mapping[str, str] = {}
    gives: frozenset[str] = frozenset()
    shut: frozenset[str] = frozenset()
    approvals: Mapping[str, tuple[tuple[str, int], ...]] = {}
    used_up: Mapping[str, str] = {}
    turns: tuple[Turn, ...] = ()


NO_BRAKES = Brakes()
"""Nothing is held: what a dry run over files decides under."""
