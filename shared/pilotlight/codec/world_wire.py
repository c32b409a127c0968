"""Wire format of a served world: its requests and answers as JSON. Errors travel by their names in the tree of
``errors``."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from pilotlight import errors
from pilotlight.errors import Failed, PilotlightError, Throttled
from pilotlight.facts.utilisation.reclaim_steps import PodOwner
from pilotlight.facts.workload import PodDemand
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
    """A body: unknown keys are refused."""


class Nothing(_Wire, frozen=True, kw_only=True):
    """A call without arguments."""


class OfNode(_Wire, frozen=True, kw_only=True):
    """A call about one node."""

    node: str


class NameHome(OfNode, frozen=True, kw_only=True):
    """A node that gets a home."""

    home: str


class Evict(_Wire, frozen=True, kw_only=True):
    """One pod to evict, within ``grace_s`` or its own grace."""

    namespace: str
    pod: str
    uid: str
    grace_s: Seconds | None = None


class Delete(_Wire, frozen=True, kw_only=True):
    """One pod to delete within its grace."""

    namespace: str
    pod: str
    uid: str
    grace_s: Seconds


class Interrupt(_Wire, frozen=True, kw_only=True):
    """An instance that the cloud takes back after ``notice_s``; 0 takes it at once."""

    instance: str
    notice_s: Seconds = 120


class Doomed(_Wire, frozen=True, kw_only=True):
    """An instance that the cloud takes back, and when."""

    instance: str
    pool: str
    zone: str
    deadline: datetime


class Tell(_Wire, frozen=True, kw_only=True):
    """An Event on a pod, or on a node where ``namespace`` is empty."""

    namespace: str
    name: str
    reason: str
    message: str
    change: str = ""


class OfPod(_Wire, frozen=True, kw_only=True):
    """A call about one pod."""

    namespace: str
    pod: str
    uid: str


class Tolerate(OfPod, frozen=True, kw_only=True):
    """A pod that gets the toleration of a home."""

    home: str


class OfOwner(_Wire, frozen=True, kw_only=True):
    """A call about one owner of pods."""

    owner: PodOwner


class Rest(OfOwner, frozen=True, kw_only=True):
    """An owner to put to rest that asks for so many pods."""

    count: int


class Grid(_Wire, frozen=True, kw_only=True):
    """Moments from one to another, in Unix seconds."""

    start_s: float
    end_s: float
    step_s: Seconds


class Grow(_Wire, frozen=True, kw_only=True):
    """A pool's least desired size."""

    pool: str
    to: int
    zone: str = ""


class OfInstance(_Wire, frozen=True, kw_only=True):
    """One named instance of a pool."""

    pool: str
    instance: str


class Release(_Wire, frozen=True, kw_only=True):
    """One named instance of a pool, to be given back or stopped."""

    pool: str
    instance: str


CALLS: Mapping[str, type[_Wire]] = {
    "cluster/observe": Nothing,
    "cluster/cordon": OfNode,
    "cluster/uncordon": OfNode,
    "cluster/open": OfNode,
    "cluster/name_home": NameHome,
    "cluster/tolerate": Tolerate,
    "cluster/beat": Nothing,
    "cluster/scheduler_beat": Nothing,
    "cluster/bound_pods": OfNode,
    "cluster/drain": OfNode,
    "cluster/evict": Evict,
    "cluster/delete": Delete,
    "cluster/tell": Tell,
    "cluster/owner_of": OfPod,
    "cluster/owner_now": OfOwner,
    "cluster/rest": Rest,
    "cluster/wake": OfOwner,
    "cluster/telemetry": Grid,
    "pools/describe": Nothing,
    "pools/instance": OfInstance,
    "pools/grow": Grow,
    "pools/release": Release,
    "pools/stop": Release,
}
"""``port/method`` and what it takes; it gives what the port's method returns."""


class NewPods(_Wire, frozen=True, kw_only=True):
    """Pods to create, which run so long once they have started. The pods of one gang come together.

    Their GPUs do something for ``busy_s`` after each start; None is always.
    """

    demands: tuple[PodDemand, ...]
    run_s: Seconds
    busy_s: Seconds | None = None


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
