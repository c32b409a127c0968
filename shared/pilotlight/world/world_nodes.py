"""Parts of the world: nodes with their devices, and jobs."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.facts.capacity import CapacityType, Node, Resources
from pilotlight.facts.labels import (
    HOSTNAME,
    NODE_NAME,
)
from pilotlight.facts.workload import PodDemand
from pilotlight.units import MILLI_PER_GPU, Seconds
from pilotlight.world.machines import Machine


class Room(NamedTuple):
    """Room that is free on a node, devices sorted: nodes of one pool with equal room are alike to the scheduler.

    ``unsaid`` are its pods that ask for no CPU, and those that ask for no memory.
    """

    resource: str
    devices: tuple[int, ...]
    slices: tuple[tuple[str, int], ...]
    free: Resources
    unsaid: tuple[int, int] = (0, 0)


class Binding(NamedTuple):
    """One pod on one node. ``devices`` are indexes; empty when the pod holds slices."""

    node: "WorldNode"
    demand: PodDemand
    devices: tuple[int, ...]


REFUSED = "no node is available"
"""What the scheduler says of a pod that it finds no node for."""


class WorldJob:
    """One pod, or the pods of one gang, that run ``run_s`` seconds once all are placed.

    ``saved_s`` is the run time kept by its last checkpoint, ``starts`` how often it was started. ``saves_s`` is when a
    checkpoint of ``saving_s`` of run time that it was asked for will be safe; ``asked_s`` is what such a one keeps.
    ``busy_s`` is for how long its GPUs do something after each start; None is always, also of one that was woken.
    ``ttl_s`` is for how long its pods are shown once they have finished; None is for ever, 0 not at all. ``pull_s`` is
    how long its images take at this start: it works, and waits no more, once they are there.
    """

    __slots__ = (
        "asked_s",
        "busy_s",
        "demands",
        "finish_s",
        "first_start_s",
        "id",
        "order",
        "original",
        "placement",
        "priority",
        "pull_s",
        "refused",
        "restore_s",
        "run_s",
        "saved_s",
        "saves_s",
        "saving_s",
        "start_s",
        "starts",
        "submit_s",
        "ttl_s",
    )

    def __init__(self, id: str, demands: Sequence[PodDemand], run_s: Seconds, submit_s: Seconds, order: int) -> None:
        self.id = id
        self.original = self.demands = tuple(demands)
        self.run_s = run_s
        self.submit_s = submit_s
        self.order = order
        self.priority = self.demands[0].shape.priority
        self.refused = any(demand.refused for demand in self.demands)
        self.placement: list[Binding] = []
        self.first_start_s: Seconds | None = None
        self.start_s: Seconds = 0.0
        self.finish_s: Seconds | None = None
        self.saved_s: Seconds = 0.0
        self.asked_s: Seconds = 0.0
        self.saves_s: Seconds | None = None
        self.saving_s: Seconds = 0.0
        self.restore_s: Seconds = 0.0
        self.pull_s: Seconds = 0.0
        self.starts = 0
        self.busy_s: Seconds | None = None
        self.ttl_s: Seconds | None = None

    @property
    def milli(self) -> int:
        """Thousandths of GPUs it holds while it runs."""
        return sum(d.shape.gpu.total_milli for d in self.demands)

    @property
    def wait_s(self) -> Seconds:
        """From submit to the first start; 0 before that."""
        return 0.0 if self.first_start_s is None else self.first_start_s - self.submit_s

    @property
    def delay_s(self) -> Seconds:
        """Seconds that it finished later than a run at submit would have; 0 before that."""
        return 0.0 if self.finish_s is None else self.finish_s - self.submit_s - self.run_s

    @property
    def tells(self) -> bool:
        """True where its pods say that they save."""
        return bool(self.demands[0].shape.checkpoint_s or self.demands[0].checkpoint_takes_s)

    @property
    def due_s(self) -> Seconds:
        """When the current run ends if nothing takes its nodes."""
        return self.start_s + self.ahead_s + self.run_s - self.saved_s

    @property
    def ahead_s(self) -> Seconds:
        """Seconds of a start before it goes on with its work: the pull of its images, and the restore."""
        return self.pull_s + self.restore_s

    def begin(self, now_s: Seconds, placement: list[Binding], restore_s: Seconds, pull_s: Seconds = 0.0) -> None:
        """Start on these nodes; the pull of its images comes first, and after an interruption the restore."""
        self.placement = placement
        self.pull_s = pull_s
        self.start_s = now_s
        self.restore_s = restore_s if self.starts else 0.0
        self.starts += 1
        if self.first_start_s is None:
            self.first_start_s = now_s + pull_s

    def reached_s(self, now_s: Seconds) -> Seconds:
        """The run time it would have if it were saved now."""
        elapsed_s = now_s - self.start_s
        return self.saved_s + elapsed_s - min(elapsed_s, self.ahead_s)

    def kept_s(self, now_s: Seconds, checkpoint_s: Seconds) -> Seconds:
        """The run time that its last checkpoint keeps."""
        return max(self.saved_s, self.asked_s, self.reached_s(now_s) // checkpoint_s * checkpoint_s)

    def next_kept_s(self, now_s: Seconds, checkpoint_s: Seconds) -> Seconds:
        """When it writes its next checkpoint by itself, if it runs until then."""
        due_s = (self.reached_s(now_s) // checkpoint_s + 1) * checkpoint_s
        return self.start_s + self.ahead_s + due_s - self.saved_s

    def interrupt(self, now_s: Seconds, checkpoint_s: Seconds) -> Seconds:
        """Stop before the end: keep the last checkpoint, and tell the seconds lost (run time since it, restore)."""
        elapsed_s = now_s - self.start_s
        restored_s = min(elapsed_s, self.ahead_s)
        reached_s = self.reached_s(now_s)
        self.saved_s, self.saves_s = self.kept_s(now_s, checkpoint_s), None
        return reached_s - self.saved_s + restored_s

    def refuse(self) -> None:
        """The scheduler finds no node for its pods, and says so."""
        self.demands = tuple(d if d.said else msgspec.structs.replace(d, said=REFUSED) for d in self.demands)

    def tolerate(self, uid: str, home: str) -> None:
        """A pod of it tolerates a home too."""
        self.demands = tuple(
            msgspec.structs.replace(d, homes=(*d.homes, home)) if d.uid == uid else d for d in self.demands
        )

    def respawn(self, now: datetime, order: int) -> None:
        """New pods for those that were stopped, as a job controller makes them: new uids and names, no homes but those
        of its template, and a turn of their own.
        """
        self.order = order
        suffix = f"r{self.starts}"
        self.demands = tuple(
            msgspec.structs.replace(d, uid=f"{d.uid}-{suffix}", name=f"{d.name}-{suffix}", created_at=now)
            for d in self.original
        )


class WorldNode:
    """A node from its launch request to its termination. ``devices`` holds free thousandths by device index.

    ``joined`` is when it registers, ``ready`` when it takes work, unless the not-ready taint is on it still: it is
    ``fresh``. ``idle_since_s`` is None while it boots or works;
    ``ends`` are when pods on it finished that are still shown, each with until when.
    ``stopped_s`` is when it was stopped, of one that stands by. ``doomed_s`` is when the cloud takes it, once it has
    said so; ``at_risk`` once it has said that it may. ``cordoned`` by us or ``shut``
    by a person it is ``closed`` to pods but those that tolerate everything; binds on their way then still land.
    ``closed_by`` is noted beside our mark, and left there where a person takes that off.
    ``home`` is the value of our home taint: but for pods that tolerate it, it is closed; empty: it has none.
    ``groups`` counts its pods by group of ``Near``. ``images`` are those that it has pulled.
    """

    __slots__ = (
        "at_risk",
        "closed",
        "closed_by",
        "cordoned",
        "devices",
        "doomed_s",
        "ends",
        "free",
        "fresh",
        "groups",
        "home",
        "id",
        "idle_since_s",
        "images",
        "jobs",
        "joined",
        "launched_s",
        "machine",
        "ready",
        "ready_s",
        "room",
        "seq",
        "shut",
        "slices",
        "stopped_s",
        "unsaid",
        "value",
        "value_until_s",
    )

    def __init__(self, seq: int, machine: Machine, launched_s: Seconds, ready_s: Seconds) -> None:
        self.id = f"n{seq}"
        self.seq = seq
        self.machine = machine
        self.launched_s = launched_s
        self.ready_s = ready_s
        self.joined = self.ready = self.fresh = False
        self.cordoned = self.shut = self.closed = False
        self.home = self.closed_by = ""
        self.at_risk = False
        self.doomed_s: Seconds | None = None
        self.stopped_s: Seconds = 0.0
        self.idle_since_s: Seconds | None = None
        self.ends: list[tuple[Seconds, Seconds]] = []
        self.devices = [MILLI_PER_GPU] * machine.whole_gpus
        self.slices = dict(machine.slices)
        self.free = machine.resources
        self.unsaid = (0, 0)
        self.jobs: dict[str, WorldJob] = {}
        self.groups: Counter[str] = Counter()
        self.images: set[str] = set()
        self.value: Node | None = None
        """The frozen value last shown to an observer; None after a change."""
        self.value_until_s: Seconds = 0.0
        """When the value is another though nothing happened: a checkpoint is written."""
        self.room = Room("", (), (), self.free)
        self.update_room()

    @property
    def pool(self) -> str:
        """Its pool's name."""
        return self.machine.pool.name

    @property
    def zone(self) -> str:
        """Its zone."""
        return self.machine.zone

    @property
    def instance_type(self) -> str:
        """Its type's name in the catalogue."""
        return self.machine.pool.instance_type

    @property
    def capacity_type(self) -> CapacityType:
        """Capacity type by which it is bought."""
        return self.machine.pool.capacity_type

    @property
    def model(self) -> str:
        """Its GPU model."""
        return self.machine.gpu_model

    @property
    def gpus(self) -> int:
        """Whole devices it has."""
        return self.machine.gpus

    @property
    def price(self) -> Decimal:
        """Dollars an hour."""
        return self.machine.price

    @property
    def labels(self) -> dict[str, str]:
        """Its labels: its machine's, and its name."""
        return {**self.machine.labels, HOSTNAME: self.id, NODE_NAME: self.id}

    @property
    def keeps_closed(self) -> bool:
        """True where it is to be closed."""
        return self.cordoned or self.shut

    @property
    def used_milli(self) -> int:
        """Thousandths of GPUs in use."""
        return MILLI_PER_GPU * len(self.devices) - sum(self.devices)

    def show_finished(self, now_s: Seconds, ttl_s: Seconds | None) -> None:
        """A pod on it has finished, and is shown for so long. What says no more than another is forgotten."""
        until_s = math.inf if ttl_s is None else now_s + ttl_s
        self.ends = [one for one in self.ends if one[1] > until_s]
        if ttl_s != 0:
            self.ends.append((now_s, until_s))

    def shown_idle_s(self, now_s: Seconds) -> Seconds:
        """Since when it looks idle: since the last pod that finished and is shown, else since it was ready."""
        return max([end_s for end_s, until_s in self.ends if until_s > now_s], default=self.ready_s)

    def update_room(self) -> None:
        """Work out its room anew after a pod came or went, or its state changed."""
        devices, slices = tuple(sorted(self.devices)), tuple(self.slices.items())
        self.room = Room(self.machine.resource, devices, slices, self.free, self.unsaid)
        self.value = None
