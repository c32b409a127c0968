"""Calls that a served world takes, by their paths: what a client posts to each, its keys checked."""

from collections.abc import Mapping

import msgspec

from pilotlight.facts.utilisation.reclaim_steps import PodOwner
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds


class _Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body: unknown keys are refused."""


class Nothing(_Call, frozen=True, kw_only=True):
    """A call without arguments."""


class OfNode(_Call, frozen=True, kw_only=True):
    """A call about one node."""

    node: str


class Cordon(OfNode, frozen=True, kw_only=True):
    """A node to close, by a decision."""

    by: str = ""


class NameHome(OfNode, frozen=True, kw_only=True):
    """A node that gets a home."""

    home: str


class Evict(_Call, frozen=True, kw_only=True):
    """One pod to evict, within ``grace_s`` or its own grace."""

    namespace: str
    pod: str
    uid: str
    grace_s: Seconds | None = None


class Delete(_Call, frozen=True, kw_only=True):
    """One pod to delete within its grace."""

    namespace: str
    pod: str
    uid: str
    grace_s: Seconds


class Interrupt(_Call, frozen=True, kw_only=True):
    """An instance that the cloud takes back after ``notice_s``; 0 takes it at once."""

    instance: str
    notice_s: Seconds = 120


class Tell(_Call, frozen=True, kw_only=True):
    """An Event on a pod, or on a node where ``namespace`` is empty."""

    namespace: str
    name: str
    reason: str
    message: str
    change: str = ""


class OfPod(_Call, frozen=True, kw_only=True):
    """A call about one pod."""

    namespace: str
    pod: str
    uid: str


class Tolerate(OfPod, frozen=True, kw_only=True):
    """A pod that gets the toleration of a home."""

    home: str


class OfOwner(_Call, frozen=True, kw_only=True):
    """A call about one owner of pods."""

    owner: PodOwner


class Rest(OfOwner, frozen=True, kw_only=True):
    """An owner to put to rest that asks for so many pods."""

    count: int


class Grid(_Call, frozen=True, kw_only=True):
    """Moments from one to another, in Unix seconds."""

    start_s: float
    end_s: float
    step_s: Seconds


class Grow(_Call, frozen=True, kw_only=True):
    """A pool's least desired size."""

    pool: str
    to: int
    zone: str = ""


class OfInstance(_Call, frozen=True, kw_only=True):
    """One named instance of a pool."""

    pool: str
    instance: str


class Release(_Call, frozen=True, kw_only=True):
    """One named instance of a pool, to be given back or stopped."""

    pool: str
    instance: str


CALLS: Mapping[str, type[_Call]] = {
    "cluster/observe": Nothing,
    "cluster/cordon": Cordon,
    "cluster/uncordon": OfNode,
    "cluster/forget_opened": OfNode,
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


class NewPods(_Call, frozen=True, kw_only=True):
    """Pods to create, which run so long once they have started. The pods of one gang come together.

    Their GPUs do something for ``busy_s`` after each start; None is always.
    """

    demands: tuple[PodDemand, ...]
    run_s: Seconds
    busy_s: Seconds | None = None
