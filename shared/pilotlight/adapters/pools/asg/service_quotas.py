"""Service Quotas: how many vCPUs of a family an account may run, on demand and on spot, and how many it does.

A quota is found by its name, in AWS's words: "Running On-Demand P instances", "All P4, P3 and P2 Spot Instance
Requests". What instances count against which is in skypilot-catalog, catalogs/v5/aws/instance_quota_mapping.csv.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, members
from pilotlight.facts.capacity import CapacityType

_NAMES: Mapping[CapacityType, re.Pattern[str]] = {
    "on-demand": re.compile(r"Running On-Demand (.+) instances"),
    "spot": re.compile(r"All (.+) Spot Instance Requests"),
}
_FAMILY = re.compile(r"[A-Z]+\d*")


class _Quota(msgspec.Struct, frozen=True):
    QuotaName: str = ""
    Value: float = 0.0


class _Page(msgspec.Struct, frozen=True):
    Quotas: tuple[_Quota, ...] = ()
    NextToken: str | None = None


class _Cpu(msgspec.Struct, frozen=True):
    coreCount: int = 0
    threadsPerCore: int = 1


class _Instance(msgspec.Struct, frozen=True):
    instanceType: str = ""
    instanceLifecycle: str = ""
    cpuOptions: _Cpu = _Cpu()


class _Reservation(msgspec.Struct, frozen=True):
    instancesSet: tuple[_Instance, ...] = ()


class _Reservations(msgspec.Struct, frozen=True):
    reservationSet: tuple[_Reservation, ...] = ()
    nextToken: str = ""


class Quotas:
    """An account's quotas on instances in one region: the name of each by capacity type and family."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.limits = limits
        self._of: dict[tuple[CapacityType, str], str] = {}
        for name in limits:
            for kind, pattern in _NAMES.items():
                named = pattern.fullmatch(name)
                for family in _FAMILY.findall(named[1]) if named else ():
                    self._of[kind, family] = name

    def quota_for(self, instance_type: str, kind: CapacityType) -> str:
        """The quota that an instance counts against: of its generation ("P5"), else of its letter; empty for none."""
        generation = re.match(r"[A-Z]+\d+", instance_type.upper())
        keys = (generation[0] if generation else "", instance_type[:1].upper())
        return next((self._of[kind, key] for key in keys if (kind, key) in self._of), "")

    def takes(self, instance_type: str, cores: int) -> dict[CapacityType, Mapping[str, int]]:
        """Quota that one node takes. A reservation is held on demand already."""
        kinds: tuple[CapacityType, ...] = ("on-demand", "spot")
        return {kind: {name: cores} for kind in kinds if (name := self.quota_for(instance_type, kind))}


def read_quotas(api: JsonApi) -> Quotas:
    """Every quota on instances of the account."""
    limits: dict[str, int] = {}
    asked = {"ServiceCode": "ec2"}
    while True:
        page = api.read("ListServiceQuotas", _Page, asked)
        wanted = (q for q in page.Quotas if any(p.fullmatch(q.QuotaName) for p in _NAMES.values()))
        limits |= {quota.QuotaName: int(quota.Value) for quota in wanted}
        if not page.NextToken:
            return Quotas(limits)
        asked = {**asked, "NextToken": page.NextToken}


def quota_usage(ec2: QueryApi, quotas: Quotas, families: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Each quota with its limit and the vCPUs that run against it, of types whose names are like ``families``."""
    states = {"Filter.1.Name": "instance-state-name", **members("Filter.1.Value", ("pending", "running"), "")}
    asked = {**states, "Filter.2.Name": "instance-type", **members("Filter.2.Value", families, "")}
    running: Counter[str] = Counter()
    token = ""
    while True:
        page = ec2.read("DescribeInstances", _Reservations, asked | ({"NextToken": token} if token else {}))
        running += _counted(quotas, (one for each in page.reservationSet for one in each.instancesSet))
        token = page.nextToken
        if not token:
            return {name: (limit, running[name]) for name, limit in quotas.limits.items()}


def _counted(quotas: Quotas, instances: Iterable[_Instance]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in instances:
        name = quotas.quota_for(one.instanceType, "spot" if one.instanceLifecycle == "spot" else "on-demand")
        found[name] += one.cpuOptions.coreCount * one.cpuOptions.threadsPerCore
    return found
