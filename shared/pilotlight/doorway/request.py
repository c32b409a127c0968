"""What comes to the door, and what the door opens to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pilotlight.facts.policy import Policy
from pilotlight.flow.deps import Deps
from pilotlight.ports import Channel, Clock, Outbox, State
from pilotlight.settings import Settings

Function = Literal["pod_pending", "capacity_reconcile", "spot_interruption", "billing_tick", "alert_fanout"]


class House(Protocol):
    """What the door opens to; ``wiring.App`` is one."""

    settings: Settings

    @property
    def clusters(self) -> Sequence[str]:
        """The clusters it serves, by name."""
        ...

    def at(self, cluster: str) -> "House":
        """What serves one of them."""
        ...

    @property
    def late(self) -> Deps:
        """The one cluster's ports and policy, opened as they are used; of many, only ``at`` one has them."""
        ...

    @property
    def policy(self) -> Policy:
        """The policy; its alerts are those of every cluster."""
        ...

    @property
    def state(self) -> State:
        """What survives between events, of every cluster."""
        ...

    @property
    def outbox(self) -> Outbox:
        """Where messages go out."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Where alerts go, by the policy's names."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in, and where to."""

    house: House
    function: Function
    body: bytes
    headers: Mapping[str, str]
    dryrun: bool

    @property
    def deps(self) -> Deps:
        """The ports and policy of the one cluster it is about."""
        return self.house.late
