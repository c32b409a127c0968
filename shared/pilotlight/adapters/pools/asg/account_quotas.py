"""Room that an account's Service Quotas leave to pools, asked only before something is bought.

Limits change when AWS agrees to it, and are kept for ten minutes, as is that they could not be read; what runs is
read anew each time.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, members
from pilotlight.adapters.pools.asg.service_quotas import Quotas, quota_usage, read_quotas
from pilotlight.errors import Forbidden, Retry
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

KEEP_S: Seconds = 600


class _Cpus(msgspec.Struct, frozen=True):
    defaultVCpus: int = 0


class _Type(msgspec.Struct, frozen=True):
    instanceType: str
    vCpuInfo: _Cpus = _Cpus()


class _Types(msgspec.Struct, frozen=True):
    instanceTypeSet: tuple[_Type, ...] = ()


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
