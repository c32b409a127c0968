"""Answers of a served world, as JSON. Errors travel by their names in the tree of ``errors``."""

from datetime import datetime

import msgspec

from pilotlight import errors
from pilotlight.errors import Failed, PilotlightError, Throttled
from pilotlight.units import Seconds, Usd

_KINDS: dict[str, type[PilotlightError]] = {
    kind.__name__: kind
    for kind in (
        errors.BadInput,
        errors.Busy,
        errors.Throttled,
        errors.Unavailable,
        errors.Unsure,
        errors.Conflict,
        errors.NoCapacity,
        errors.QuotaExceeded,
        errors.Forbidden,
        errors.LastNode,
        errors.BadRequest,
        errors.Failed,
    )
}


class _Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer: unknown keys are refused."""


class Doomed(_Wire, frozen=True, kw_only=True):
    """An instance that the cloud takes back, and when."""

    instance: str
    pool: str
    zone: str
    deadline: datetime


class Created(_Wire, frozen=True, kw_only=True):
    """The pods that were not there before, as "namespace/name"."""

    created: tuple[str, ...]


class Time(_Wire, frozen=True, kw_only=True):
    """The world's moment, and its seconds per second of the wall's clock: 0 where it moves only when told to."""

    now: datetime
    speed: float


class PodStatus(_Wire, frozen=True, kw_only=True):
    """Where a pod is: "pending", "running" on ``node``, or "finished"."""

    uid: str
    name: str
    state: str
    node: str = ""


class Report(_Wire, frozen=True, kw_only=True):
    """The world so far.

    ``resizes`` counts by pool the calls that made it grow; ``surplus`` the nodes asked for while what was on its way
    could hold every pod that waited: bought twice, unless the policy keeps warm nodes. ``peak_gpus`` and
    ``peak_nodes`` are the most that were ever paid for at once.
    """

    now: datetime  # The world's moment.
    cost_usd: Usd  # Of every node so far.
    launches: int  # Nodes requested so far.
    terminations: int  # Nodes ended so far.
    nodes: int  # Live now.
    gpus: int  # Of live nodes.
    peak_nodes: int  # The most that were ever paid for at once.
    peak_gpus: int  # The most that were ever paid for at once.
    surplus: int  # Nodes asked for beyond need.
    resizes: dict[str, int]  # Calls that made a pool grow, by pool.
    pods: dict[str, int]  # Number of pods by phase.


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error: its kind, its one line, and when to come again where it says so."""

    error: str
    message: str
    after_s: Seconds | None = None


def error_of(problem: Problem) -> PilotlightError:
    """The error that travelled; ``Failed`` for a kind that is not in the tree."""
    kind = _KINDS.get(problem.error, Failed)
    if kind is Throttled and problem.after_s is not None:
        return Throttled(problem.message, problem.after_s)
    return kind(problem.message)
