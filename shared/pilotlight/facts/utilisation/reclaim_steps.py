"""Owners of GPU pods that do nothing: what they are, and how far each has come on the way to rest and back."""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.units import Seconds, UsdPerHour

OwnerKind = Literal["Deployment", "StatefulSet", "Job", "Notebook"]
Stage = Literal["telling", "advised", "noticed", "going", "resting"]
"""``telling``: it is being told, which may have been done or not. ``advised``: its pool is not acted on, so nothing
follows. ``noticed``: whoever it is of was told. ``going``: it is being put to rest, which may have been done or not.
``resting``: it was.
"""


class PodOwner(msgspec.Struct, frozen=True, kw_only=True):
    """An owner that makes pods: a Notebook is Kubeflow's."""

    kind: OwnerKind
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """As records name it: "ml/Notebook/ada"."""
        return f"{self.namespace}/{self.kind}/{self.name}"

    def __str__(self) -> str:
        """As people say it: "Notebook ml/ada"."""
        return f"{self.kind} {self.namespace}/{self.name}"


class OwnerState(msgspec.Struct, frozen=True, kw_only=True):
    """An owner as it is now.

    ``count`` is how many pods it asks for: of a Job that runs its parallelism, of a Notebook 1, 0 where it rests.
    ``before`` is the count that it had when we put it to rest, where we did. ``opted`` is its annotation.
    """

    owner: PodOwner
    count: int
    before: int | None = None
    opted: bool | None = None
    snoozed_until: datetime | None = None


class SilentPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod whose GPUs are idle by their telemetry, for how long, and the evidence in words."""

    namespace: str  # Of the pod.
    name: str  # Of the pod.
    uid: str  # Of the pod.
    pool: str  # Of its node.
    workload_class: str  # By its labels.
    team: str  # That pays for it.
    gpus: str  # What it asks for, in words.
    silent_s: Seconds  # How long all of its GPUs did nothing.
    evidence: str  # By what metric, and what such silences came to before.
    usd_per_hour: UsdPerHour | None  # Of its GPUs; None where no price is known.
    called: bool  # The evidence alone calls it idle, as ``waste`` does; else nothing speaks against it.

    @property
    def full_name(self) -> str:
        """As "namespace/name"."""
        return f"{self.namespace}/{self.name}"


class Reclaim(msgspec.Struct, frozen=True, kw_only=True):
    """An owner on its way to rest. ``due_at`` is when it rests at the earliest; ``count`` what it is woken to.

    ``usd_per_hour`` is what its GPUs cost, None where no price is known. ``evidence`` is of ``at``, the last step.
    ``noticed_at`` is when whoever it is of was told.
    """

    owner: PodOwner  # The one that makes the pods.
    stage: Stage  # How far it has come.
    at: datetime  # When it last moved on.
    noticed_at: datetime  # When the people whose it is were told.
    workload_class: str  # Its pods'.
    team: str  # The team that pays.
    pool: str  # Pool of its pods.
    pods: tuple[str, ...]  # Their names.
    count: int  # Pods that it is woken to.
    due_at: datetime  # When it rests at the earliest.
    evidence: str  # In words, of ``at``.
    usd_per_hour: UsdPerHour | None = None  # Of its GPUs; None where no price is known.
    snoozed_until: datetime | None = None  # Until then it is left alone.


class ReclaimStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that is to be done about an owner, and why: ``notice`` tells it, ``rest`` puts it to rest.

    ``was`` is its record, ``became`` what that is after it; None where it has none.
    """

    do: Literal["advise", "notice", "snooze", "rest", "drop"]
    why: str
    was: Reclaim | None
    became: Reclaim | None
