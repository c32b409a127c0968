"""Words of EC2 on one instance: its state, what is scheduled for it, whether spot is taken back."""

from contextlib import suppress
from datetime import datetime

import msgspec

from pilotlight.adapters.aws_api.services import QueryApi, members
from pilotlight.adapters.pools.asg.groups import Instance, Seen
from pilotlight.errors import Denied
from pilotlight.facts.nodes.pool_state import InstanceState

ENDS = ("shutting-down", "stopping", "stopped", "terminated")
"""The states of an instance that goes or has gone."""
RUNS = "running"
TAKEN = "marked-for-"
"""So begins the status of a spot request whose instance EC2 takes: "marked-for-termination", "marked-for-stop"."""
ORDERS = ("instance-stop", "instance-retirement")
"""The scheduled events after which an instance is not there. One that reboots comes back."""
OVER = ("[Completed]", "[Canceled]")
"""So begin the words of a scheduled event that is over; EC2 goes on telling it for a week."""


class _Status(msgspec.Struct, frozen=True):
    code: str = ""


class _Request(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class _Requests(msgspec.Struct, frozen=True):
    spotInstanceRequestSet: tuple[_Request, ...] = ()


class _Event(msgspec.Struct, frozen=True):
    code: str = ""
    description: str = ""
    notBefore: datetime | None = None


class _Health(msgspec.Struct, frozen=True):
    eventsSet: tuple[_Event, ...] = ()


class _Statuses(msgspec.Struct, frozen=True):
    instanceStatusSet: tuple[_Health, ...] = ()


def state_of(ec2: QueryApi, member: Instance, seen: Seen | None) -> InstanceState:
    """State of a group's ``member`` that EC2 shows as ``seen``.

    That a spot instance is marked, that its block ends, or that an event is scheduled confirms a notice; EC2 never says
    that an instance will run on, only that it runs now. A right that is missing confirms nothing.
    """
    since = seen.launchTime if seen else None
    state = seen.instanceState.name if seen else ""
    if member.LifecycleState.startswith("Terminat") or state in ENDS:
        return InstanceState(there=state != "terminated", created_at=since, going=True, runs=False)
    ends: datetime | None = None
    taken = False
    if seen is not None:
        with suppress(Denied):
            taken, ends = _announced(ec2, seen)
    runs = state == RUNS and not taken
    return InstanceState(there=True, created_at=since, going=True if taken or ends else None, deadline=ends, runs=runs)


def _announced(ec2: QueryApi, seen: Seen) -> tuple[bool, datetime | None]:
    """True where EC2 takes an instance now, and the moment at which it says that the instance goes."""
    if seen.capacityReservationId:
        from pilotlight.adapters.pools.asg.reservations import block_ends

        if (ends := block_ends(ec2, seen.capacityReservationId)) is not None:
            return False, ends
    if seen.spotInstanceRequestId:
        asked = members("SpotInstanceRequestId", [seen.spotInstanceRequestId], "")
        found = ec2.read("DescribeSpotInstanceRequests", _Requests, asked).spotInstanceRequestSet
        if any(one.status.code.startswith(TAKEN) for one in found):
            return True, None
    health = ec2.read("DescribeInstanceStatus", _Statuses, members("InstanceId", [seen.instanceId], ""))
    events = [event for one in health.instanceStatusSet for event in one.eventsSet]
    coming = [e.notBefore for e in events if e.code in ORDERS and not e.description.startswith(OVER)]
    return False, min((at for at in coming if at is not None), default=None)
