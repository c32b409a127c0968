"""LaunchInstances: the instances or the reasons at once, and nothing tried later."""

import hashlib

import msgspec

from pilotlight.adapters.aws_api import refusals
from pilotlight.errors import BadRequest, Denied, NoCapacity
from pilotlight.units import count_of

TOKEN = 64
"""Letters of a ClientToken at most."""


class _Launched(msgspec.Struct, frozen=True):
    InstanceIds: tuple[str, ...] = ()


class _Refused(msgspec.Struct, frozen=True):
    ErrorCode: str = ""
    ErrorMessage: str = ""
    InstanceType: str = ""
    AvailabilityZone: str = ""


class Launch(msgspec.Struct, frozen=True):
    """An answer."""

    AutoScalingGroupName: str
    Instances: tuple[_Launched, ...] = ()
    Errors: tuple[_Refused, ...] = ()

    @property
    def instances(self) -> tuple[str, ...]:
        """The ids of what came."""
        return tuple(one for launched in self.Instances for one in launched.InstanceIds)


def client_token(token: str) -> str:
    """A request's name as AWS takes one: the same for the same, at most 64 letters of [A-Za-z0-9-_/]."""
    return hashlib.sha256(token.encode()).hexdigest()[:TOKEN]


def missing(launch: Launch, wanted: int, group: str) -> Denied | None:
    """Why fewer came than were asked for; None where all did."""
    came = len(launch.instances)
    if came >= wanted:
        return None
    first = launch.Errors[0] if launch.Errors else _Refused()
    where = f" in {first.AvailabilityZone}" if first.AvailabilityZone else ""
    why = f": {first.ErrorCode} ({first.ErrorMessage[:160]})" if first.ErrorCode else ""
    said = f"{group}: {came} of {count_of(wanted, 'instance')} could be launched{where}{why}"
    known = [no for error in launch.Errors if (no := refusals.shortage(error.ErrorCode, said))]
    if known:
        return known[0]
    return NoCapacity(said) if not first.ErrorCode else BadRequest(said)
