"""People beside the workers: they close and open nodes, pause, resume and approve, and what they said is respected.

The judge reads what was sent when, and the raw records of the store: nothing of the code that is on trial.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import Literal

import msgspec

from harness.judges.purchases import Purchases
from harness.scene import APART_S, START, Scene
from pilotlight.errors import BadInput
from pilotlight.facts.decisions import Record
from pilotlight.facts.limits.brakes import ALL
from pilotlight.facts.money.money_policy import ApproveOver
from pilotlight.facts.workload import PodDemand, Toleration, shape
from pilotlight.flow.records import brake_records
from pilotlight.ports.state import State
from pilotlight.units import HOUR, Seconds
from pilotlight.world.simulation import World

Ignored = Literal["ignored_people"]

ACTS, SOON = 0.3, 0.4
"""How likely a person does something in a minute, and puts all right again where people are at hand."""
BIND_S: Seconds = 2.0
"""Binds to a node land so long after it was closed."""
AT_ONCE_S: Seconds = 5.0
"""Nothing is sent later than so long after a pause was written."""
SEEN_S: Seconds = 30.0 + 2 * APART_S
"""A mark that is so old is on its node for certain: who takes it off then is a person."""

_EVERYTHING = (Toleration(operator="Exists"),)


class _Claim(msgspec.Struct):
    since: datetime


class _Mark(msgspec.Struct):
    owners: dict[str, _Claim] = {}


class Orders:
    """What people have said, and whether what is sent goes against it. ``broke`` is told what does."""

    def __init__(self, world: World, purchases: Purchases, broke: Callable[[Ignored, str], None]) -> None:
        self._world, self._purchases, self._broke = world, purchases, broke
        self._paused: dict[str, Seconds] = {}
        self._opened: dict[str, Seconds] = {}

    def paused(self, pool: str) -> None:
        """A pause was written."""
        self._paused.setdefault(pool, self._world.now_s)

    def resumed(self, pool: str) -> None:
        """It was taken back."""
        self._paused.pop(pool, None)

    def opened(self, node: str) -> None:
        """A person opened a node that was being given back."""
        self._opened[node] = self._world.now_s

    def sent(self, worker: str, call: str, pool: str, instance: str, at_s: Seconds) -> None:
        """A worker's request for a pool was let out at a second of the world."""
        for name in (ALL, pool):
            since_s = self._paused.get(name)
            if since_s is not None and at_s - since_s > AT_ONCE_S:
                self._broke("ignored_people", f"{worker} sent {call} at {at_s:.1f}, paused since {since_s:.1f}")
        opened_s = self._opened.get(instance)
        if opened_s is None or at_s - opened_s >= HOUR - SEEN_S:
            return
        record = self._purchases.records.get(self._purchases.decided(worker))
        later = record is not None and (record.at - START).total_seconds() > opened_s + APART_S
        if record is not None and later and not _forced(record, instance):
            self._broke("ignored_people", f"{worker} gave {instance} back, which a person opened at {opened_s:.1f}")


class People:
    """Does something now and then; ``go_home`` puts all right again, ``agree`` approves whatever waits for it."""

    def __init__(
        self, world: World, cluster: str, state: State, orders: Orders, purchases: Purchases, rng: Random
    ) -> None:
        self._world, self._cluster, self._state = world, cluster, state
        self._orders, self._purchases, self._rng = orders, purchases, rng
        self._acts = self._open, self._open, self._shut, self._pause, self._resume, self._resume, self.agree

    def minute(self) -> None:
        """One act, or none."""
        if self._rng.random() < ACTS:
            self._rng.choice(self._acts)()

    def go_home(self) -> None:
        """Every node that a person closed is opened, every pause taken back."""
        for node in self._world.nodes.values():
            if node.shut:
                self._world.cordon_by_hand(node.id, on=False)
        for pool in (ALL, *self._world.fleet.pools):
            self._take_back(pool)

    def attend(self) -> None:
        """They are at hand: what waits for them is approved in its minute, and a pause or a cordon lasts for a few."""
        self.agree()
        if self._rng.random() < SOON:
            self.go_home()

    def agree(self) -> None:
        """Approve what the newest decisions ask for."""
        now = self._state.now()
        for record in list(self._purchases.records.values())[-5:]:
            nodes: dict[str, int] = {}
            for held in record.plan.held:
                if held.code == "approval":
                    nodes[held.action.pool] = nodes.get(held.action.pool, 0) + held.count
            if nodes:
                with suppress(BadInput):
                    brake_records.approve(self._state, self._cluster, record.id, nodes, now)

    def _open(self) -> None:
        """Take our mark, or a person's cordon, off a node."""
        closed = [node for node in self._world.nodes.values() if node.joined and (node.cordoned or node.shut)]
        if not closed:
            return
        node = self._rng.choice(closed)
        if node.cordoned and self._only_released(node.id):
            self._orders.opened(node.id)
        self._world.open_by_hand(node.id)

    def _only_released(self, node: str) -> bool:
        """Whether it has been marked for its release for so long that everybody can see who opens it."""
        found = self._state.get(f"mark/{self._cluster}/{node}")
        owners = msgspec.json.decode(found.value, type=_Mark).owners if found else {}
        now = self._state.now()
        return set(owners) == {"release"} and (now - owners["release"].since).total_seconds() > SEEN_S

    def _shut(self) -> None:
        """Close a node by hand."""
        nodes = [node.id for node in self._world.nodes.values() if node.joined]
        if nodes:
            self._world.cordon_by_hand(self._rng.choice(nodes))

    def _pause(self) -> None:
        pool = self._rng.choice((ALL, *self._world.fleet.pools))
        brake_records.pause(self._state, self._cluster, pool, "a person said so", self._state.now())
        self._orders.paused(pool)

    def _resume(self) -> None:
        self._take_back(self._rng.choice((ALL, *self._world.fleet.pools)))

    def _take_back(self, pool: str) -> None:
        brake_records.resume(self._state, self._cluster, pool)
        self._orders.resumed(pool)


def with_people(scene: Scene, rng: Random) -> Scene:
    """The scene where some purchases wait for a person; where no budget holds, some pods tolerate everything.

    A pod that binds to a node which a budget keeps closed passes that budget, and nothing can stop it.
    """
    nodes = rng.choice((None, None, 1, 3))
    policy = msgspec.structs.replace(
        scene.policy, caps=msgspec.structs.replace(scene.policy.caps, approve_over=ApproveOver(nodes=nodes))
    )
    if policy.budgets:
        return scene._replace(policy=policy)
    jobs = tuple(
        job._replace(demands=tuple(map(_bearing, job.demands))) if rng.random() < 0.3 else job for job in scene.jobs
    )
    faults = msgspec.structs.replace(scene.faults, bind_s=rng.choice((0.0, BIND_S)))
    return scene._replace(policy=policy, jobs=jobs, faults=faults)


def _bearing(demand: PodDemand) -> PodDemand:
    fields = {name: getattr(demand.shape, name) for name in demand.shape.__struct_fields__ if name != "key"}
    return msgspec.structs.replace(demand, shape=shape(**fields | {"tolerations": _EVERYTHING}))


def _forced(record: Record, instance: str) -> bool:
    return any(node.forced for node in record.plan.releases if node.instance == instance)
