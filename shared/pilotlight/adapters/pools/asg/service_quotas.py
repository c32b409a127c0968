"""Service Quotas: how many vCPUs of a family an account may run, on demand and on spot, and how many it does.

A quota is found by its name, in AWS's words: "Running On-Demand P instances", "All P4, P3 and P2 Spot Instance
Requests". What instances count against which is in skypilot-catalog, catalogs/v5/aws/instance_quota_mapping.csv.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, members, pages
from pilotlight.adapters.pools.asg.groups import Seen, running_instances
from pilotlight.errors import Forbidden, Retry
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

_NAMES: Mapping[CapacityType, re.Pattern[str]] = {
    "on-demand": re.compile(r"Running On-Demand (.+) instances"),
    "spot": re.compile(r"All (.+) Spot Instance Requests"),
}
_FAMILY = re.compile(r"[A-Z]+\d*")
KEEP_S: Seconds = 600
"""Limits change when AWS agrees to it. They are kept so long, as is that they could not be read; what runs is not."""


class _Quota(msgspec.Struct, frozen=True):
    QuotaName: str = ""
    Value: float = 0.0


class _Page(msgspec.Struct, frozen=True):
    Quotas: tuple[_Quota, ...] = ()
    NextToken: str | None = None


class _Cpus(msgspec.Struct, frozen=True):
    defaultVCpus: int = 0


class _Type(msgspec.Struct, frozen=True):
    instanceType: str
    vCpuInfo: _Cpus = _Cpus()


class _Types(msgspec.Struct, frozen=True):
    instanceTypeSet: tuple[_Type, ...] = ()


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


class AccountQuotas:
    """The quotas of one region. Safe for many threads. A role without the right to them is told nothing of them."""

    def __init__(self, ec2: QueryApi, api: JsonApi, clock: Clock) -> None:
        self._ec2, self._api, self._clock = ec2, api, clock
        self._lock = Lock()
        self._limits = Quotas({})
        self._age: Callable[[], Seconds] | None = None
        self._cores: dict[str, int] = {}

    def read(self, types: Mapping[str, tuple[str, CapacityType]]) -> Mapping[str, Quota]:
        """By pool, those that have a quota: ``types`` says by pool what it is made of."""
        with self._lock:
            limits = self._known_limits()
            named = {pool: name for pool, (type_, kind) in types.items() if (name := limits.quota_for(type_, kind))}
            if not named:
                return {}
            self._learn([types[pool][0] for pool in named])
            running = quota_usage(self._ec2, limits, sorted({f"{types[pool][0][:1]}*" for pool in named}))
            return {
                pool: Quota(name=name, limit=running[name][0], used=running[name][1], takes=self._cores[types[pool][0]])
                for pool, name in named.items()
                if self._cores[types[pool][0]]
            }

    def _known_limits(self) -> Quotas:
        if self._age is None or self._age() > KEEP_S:
            try:
                self._limits = read_quotas(self._api)
            except (Forbidden, Retry) as no:
                self._limits = Quotas({}) if isinstance(no, Forbidden) else self._limits
            self._age = self._clock.stopwatch()
        return self._limits

    def _learn(self, types: Sequence[str]) -> None:
        """Numbers of vCPUs of types: 0 where EC2 does not tell."""
        if new := sorted(set(types) - self._cores.keys()):
            found = self._ec2.read("DescribeInstanceTypes", _Types, members("InstanceType", new, "")).instanceTypeSet
            self._cores |= dict.fromkeys(new, 0) | {one.instanceType: one.vCpuInfo.defaultVCpus for one in found}


def read_quotas(api: JsonApi) -> Quotas:
    """Every quota on instances of the account."""
    found = pages(api.read, "ListServiceQuotas", _Page, {"ServiceCode": "ec2"})
    wanted = (q for page in found for q in page.Quotas if any(p.fullmatch(q.QuotaName) for p in _NAMES.values()))
    return Quotas({quota.QuotaName: int(quota.Value) for quota in wanted})


def quota_usage(ec2: QueryApi, quotas: Quotas, families: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Each quota with its limit and the vCPUs that run against it, of types whose names are like ``families``."""
    running = _counted(quotas, running_instances(ec2, families))
    return {name: (limit, running[name]) for name, limit in quotas.limits.items()}


def _counted(quotas: Quotas, instances: Iterable[Seen]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in instances:
        name = quotas.quota_for(one.instanceType, "spot" if one.instanceLifecycle == "spot" else "on-demand")
        found[name] += one.cpuOptions.coreCount * one.cpuOptions.threadsPerCore
    return found
