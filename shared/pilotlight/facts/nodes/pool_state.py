"""Node pools as their cloud tells them: sizes, instances on their way or stopped, and refusals that come late."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.paid_capacity import Paid


class Booting(msgspec.Struct, frozen=True, kw_only=True):
    """An instance the cloud has begun and the cluster does not have yet.

    ``doubt`` says why it may be a node all the same, empty where nothing does: such a one never counts as failed.
    ``unmade`` is one that only has a name: its machine is not there, and costs nothing. Its cloud does not tell since
    when: a look counts from when it was first seen. ``going`` is since when it is being ended without us: it costs
    until it is gone, and is no part of its pool's size. ``billed_from`` is where it costs from before deadlines count.
    """

    instance: str
    requested_at: datetime
    billed_from: datetime | None = None
    doubt: str = ""
    unmade: bool = False
    going: datetime | None = None


Reason = Literal["no-capacity", "quota", "other"]
"""Why a launch failed, as far as its cloud says."""


class LateRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that its cloud took on and told later had failed. ``identity`` is the launch's, as in its events."""

    identity: str
    reason: Reason
    message: str = ""
    zone: str = ""
    at: datetime | None = None


class AskedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node as it was asked for, by a name of ours; or several, by their one request.

    Gone before it ``joined``, and not by us, it was refused.
    """

    name: str
    instance: str = ""  # Empty until its cloud has made it.
    made_at: datetime | None = None  # None until then.
    zone: str = ""
    joined: bool = False
    waits: LateRefusal | None = None  # What is told of it once it has not been made for too long; None where it is.
    asked_at: datetime | None = None  # By the store's time, as far as it is remembered: no cloud's clock.

    def is_called(self, name: str) -> bool:
        """True for its name, its instance, and each node ``NAME.N`` of a request."""
        return bool(name) and (name in (self.name, self.instance) or name.startswith(f"{self.name}."))


class PoolRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which a cloud keeps a pool by itself, where it tells."""

    group: str  # Its cloud's own name for it.
    least: int = 0  # Bound of its size below.
    most: int | None = None  # Bound above; None where its cloud bounds none.
    zones: tuple[str, ...] = ()  # Where its nodes may be.
    rebalances: bool = False  # It ends nodes in order to spread them over its zones.
    protects: bool = True  # A lower size of another hand's ends none of its new nodes.
    claimed: bool = False  # Tags give it to cluster-autoscaler.
    handed_back: str = ""  # When it was given back to whoever kept it before Pilotlight; empty where it is ours.
    at_once: bool = False  # One node more in a named zone is launched or refused at once; else it goes on trying.
    closed: str = ""  # Why nothing is bought there now, with the way out; empty where it may be.
    starves: bool = False  # Nobody else makes nodes there meanwhile: its pods go elsewhere.
    silent: bool = False  # It is closed for a part of it that does not answer, which may be over in minutes.
    gives: tuple[str, ...] = ()  # Instances that go back all the same while nothing is bought there.
    names_zone: bool = False  # It has several zones, and each purchase must name its own.
    kind: CapacityType | None = None  # How its nodes are paid for; None where its cloud does not tell.
    surges: str = ""  # What an upgrade lights beside its nodes, with the command that makes it light none.
    queues: bool = False  # Its nodes come by its cloud's queue, by whose autoscaler too.
    forgets: bool = False  # What was asked for and refused is gone from it, as what was never asked for.


class _Shown(Protocol):
    """A node, or an instance that is lit."""

    @property
    def instance(self) -> str: ...
    @property
    def pool(self) -> str: ...


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """A node pool as the cloud tells it. Instances that stand by are no nodes and no part of its size."""

    name: str  # The policy's name of it.
    desired: int  # Its size, as it was asked for.
    booting: tuple[Booting, ...] = ()  # Instances on their way.
    queued: tuple[Booting, ...] = ()  # Nodes that wait in its cloud's queue, and cost nothing yet.
    leaves: tuple[str, ...] = ()  # Instances of its nodes that its cloud is ending: no part of its size.
    standby: int = 0  # Instances that stand stopped and are started first.
    stops: bool = False  # Its nodes may be stopped to stand by.
    stopped: tuple[str, ...] = ()  # Instances that were stopped, whether they can be started yet or not.
    refusal: LateRefusal | None = None  # Why it is smaller than desired, where the last launch failed.
    owed: int = 0  # Nodes that are missing so: the cloud may launch them at any time, or never.
    refused: tuple[str, ...] = ()  # Instances that are missing so, by names that call them off: not among ``owed``.
    asked: tuple[AskedNode, ...] = ()  # Its nodes by the names that they were asked for, where its cloud keeps those.
    ended: tuple[LateRefusal, ...] = ()  # What is said of such that go or are gone; the name, then "/", begins each.
    lagging: int = 0  # Nodes of its size that its cloud does not list, by no name.
    unread: str = ""  # Why a part of it could not be read, which its size is without; empty where all was.
    hidden: bool = False  # That part may be there and have nodes; else it is gone.
    rules: PoolRules | None = None  # None where the cloud tells none.
    paid: tuple[Paid, ...] = ()  # What its nodes may run on at no further cost.
    paid_unread: str = ""  # Why that may not be read, by the right that is missing; empty where it may.
    drifted: tuple[str, ...] = ()  # Instances that an older version of its launch template made.

    def size_beside(self, shown: Iterable[_Shown]) -> int:
        """Its size, and those of its nodes that are shown and no part of it any more."""
        return self.desired + sum(one.pool == self.name and one.instance in self.leaves for one in shown)

    @property
    def ending(self) -> int:
        """What its cloud is ending, costs, and is no node any more."""
        return sum(one.going is not None and not one.unmade for one in self.booting)


class InstanceState(msgspec.Struct, frozen=True, kw_only=True):
    """One instance as its cloud tells it: ``there`` or not, and ``going``, None where it never says that.

    ``runs``: it is in service now, whatever comes later. ``at_risk``: the cloud says that it may take it; None where it
    never says that. ``created_at`` and ``deadline`` (when it goes) are None where they are not said.
    """

    there: bool
    created_at: datetime | None = None
    going: bool | None = None
    deadline: datetime | None = None
    runs: bool | None = None
    at_risk: bool | None = None


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity asked for and not yet ready, and the demands and gangs it was asked for."""

    decision: str  # The one that asked for it.
    offering: str  # ``Offering.name``.
    pool: str  # The policy's pool.
    count: int  # Nodes.
    requested_at: datetime  # When it was asked for.
    ready_by: datetime  # Past this it has failed.
    demands: tuple[str, ...] = ()  # Uids of the pods that it was asked for.
    homes: tuple[int, ...] = ()  # For each of ``demands`` the number of its node; empty where nodes are open to all.
    gangs: tuple[str, ...] = ()  # Keys of the gangs that it was asked for.
    n: int = 0  # Number of its step.
    broken: bool = False  # A part of its gangs could not be had, so all of it goes back.
    vain_since: datetime | None = None  # Since when none of ``demands`` waits or runs.
    woken: bool = False  # As many nodes stood by in its pool, so all of it was to be started.
