"""Promises of a cloud, tried on the cloud itself: one node of one pool bought, doubled, refused and given back,
and once more stopped and started where nodes of the pool can stand by; and one of a pool that the account's quota
leaves no room for, which must be refused.

Nothing that was there before is touched, and whatever was bought is given back, however a step ends. A node on which a
GPU pod has been bound is left, and said so.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

import msgspec

from pilotlight.errors import Conflict, Denied, Failed, PilotlightError, QuotaExceeded, Retry
from pilotlight.flow.records import brake_records
from pilotlight.ports.clouds import QuotaPools, StandbyPools
from pilotlight.tools.cli.stop_in_order import InOrder
from pilotlight.tools.conformance.sandbox import Sandbox

if TYPE_CHECKING:
    from pilotlight.wiring import App

KILLED = 9
"""The exit code of a process that dies between its check and its call."""
CHILD = "from pilotlight.tools.conformance.conformance_run import die; import sys; die(*sys.argv[1:])"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One promise: what was done, what came of it, and how long that took. ``calls`` are the changes that were sent."""

    promise: str
    kept: bool
    what: str
    seconds: float
    calls: tuple[str, ...] = ()


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. ``left`` are instances that could not be given back, with why."""

    pool: str
    began: datetime
    results: tuple[Result, ...]
    bought: tuple[str, ...] = ()
    lit_s: float = 0.0
    left: Mapping[str, str] = {}

    @property
    def kept(self) -> bool:
        """True where every promise was kept, and nothing is left."""
        return all(result.kept for result in self.results) and not self.left


class Run(Sandbox):
    """The steps on one pool, in order. ``environ`` is a process's that is to die."""

    def __init__(self, site: "App", pool: str, environ: Mapping[str, str], short: str = "") -> None:
        super().__init__(site, pool, short)
        self.environ = environ
        self.results: list[Result] = []
        self.bought_at: float | None = None

    def go(self) -> Tried:
        """Every step, then the sweep. The pool is paused meanwhile: Pilotlight's own functions leave it alone."""
        began = self.deps.now()
        with InOrder("stopping: what was bought is given back first") as order:
            for name in self.befores:
                brake_records.pause(self.deps.state, self.cluster, name, "conformance", began)
            try:
                order.steps(self._steps)
            finally:
                left = {one: why for name in self.befores for one, why in self._sweep(name).items()}
                for name in self.befores:
                    brake_records.resume(self.deps.state, self.cluster, name)
            for instance, why in left.items():
                sys.stderr.write(f"LEFT {instance}: {why}\n")
        lit_s = 0.0 if self.bought_at is None else time.monotonic() - self.bought_at
        return Tried(
            pool=self.pool, began=began, results=tuple(self.results), bought=tuple(self.mine), lit_s=lit_s, left=left
        )

    def _steps(self) -> bool:
        parts = (self._before_buying, self._no_quota, self._bought, self._stood_by)
        return all(self._all(part()) for part in parts)

    def _all(self, steps: "Sequence[tuple[str, Callable[[], str]]]") -> bool:
        """Each in turn, until one is not kept."""
        for promise, step in steps:
            since, self.calls = time.monotonic(), []
            try:
                kept, what = True, step()
            except (PilotlightError, OSError) as error:
                kept, what = False, f"{type(error).__name__}: {error}"
            self.results.append(
                Result(
                    promise=promise,
                    kept=kept,
                    what=what,
                    seconds=round(time.monotonic() - since, 3),
                    calls=tuple(self.calls),
                )
            )
            if not kept:
                return False
        return True

    def _before_buying(self) -> Sequence[tuple[str, Callable[[], str]]]:
        return (
            ("a call that is stopped at its gate changes nothing", self._stopped),
            ("a process that dies between its check and its call buys nothing", self._died),
            ("a purchase above the pool's max is refused", self._too_many),
        )

    def _no_quota(self) -> Sequence[tuple[str, Callable[[], str]]]:
        if not self.short:
            return ()
        return (
            ("the account's quota is read, and leaves no room", self._no_room),
            ("a purchase above the account's quota is refused, and buys nothing", self._over_quota),
        )

    def _no_room(self) -> str:
        rules, pools = self.deps.policy.pools[self.short], self.deps.pools
        kinds = {self.short: (rules.instance_type, rules.capacity_type)}
        quota = pools.quotas(kinds).get(self.short) if isinstance(pools, QuotaPools) else None
        if quota is None:
            raise Failed(
                f"no quota of {rules.instance_type} is told: may the role call servicequotas:ListServiceQuotas?"
            )
        said = f"{quota.name}: {quota.used} of {quota.limit} {quota.unit} run, a node takes {quota.takes}"
        if quota.limit - quota.used >= quota.takes:
            raise Failed(f"{said}: a node would be bought; name a pool that it has no room for")
        there = self.befores[self.short].rules
        if there is None or not there.at_once or not (self._zone_of(self.short) or len(there.zones) == 1):
            raise Failed(
                f"pool {self.short} would go on trying for what it is refused: it needs a launch template, no warm "
                "pool and one zone"
            )
        return said

    def _over_quota(self) -> str:
        size = self.befores[self.short].desired
        gate = self._sent(f"grow {self.short} to {size + 1}")
        try:
            zone = self._zone_of(self.short)
            self.deps.pools.grow(self.short, size + 1, zone, gate=gate, token=f"{self.token}/quota")
        except QuotaExceeded as no:
            if (now := self.state(self.short).desired) != size or self._new(self.short):
                raise Failed(f"it was refused, and the size of {self.short} is {now}, not {size}") from None
            return str(no)
        raise Failed(f"it was granted: what came of {self.short} is given back")

    def _bought(self) -> Sequence[tuple[str, Callable[[], str]]]:
        return (
            ("one node is bought, by one call", self._buy),
            ("the same purchase again buys nothing", self._again),
            ("the instance is told", self._told),
            ("the named instance goes, and the size with it", self._release),
            ("the same release again is no error", self._released_again),
        )

    def _stood_by(self) -> Sequence[tuple[str, Callable[[], str]]]:
        if not self.before.stops or not isinstance(self.deps.pools, StandbyPools):
            return ()
        return (
            ("a node is bought that is to stand by", self._buy_one_more),
            ("the named node is stopped, and stands by", self._stop),
            ("the next purchase starts it, and launches none", self._start),
            ("a node that stood by goes as any", self._release),
        )

    def _buy_one_more(self) -> str:
        self._grow("standby")
        self._until(lambda: self._ready() != "", "no node of it is ready")
        return self._ready()

    def _stop(self) -> str:
        (instance,) = self._new()
        pools = self.deps.pools
        assert isinstance(pools, StandbyPools)
        pools.stop(self.pool, instance, gate=self._sent(f"stop {instance}"))
        self._until(lambda: instance not in self._new(), f"{instance} still runs")
        if instance not in self.state().stopped:
            raise Failed(f"{instance} does not stand by: it was given back, or ends")
        return self._sized(self.size)

    def _start(self) -> str:
        self._until(lambda: self.state().standby > self.before.standby, "nothing that stands by can be started")
        self._grow("start")
        self._until(lambda: bool(self._new()), "no instance of it is told")
        (instance,) = self._new()
        if instance in self.state().stopped or len(self.mine) > 2:
            raise Failed(f"{instance} was launched: what stood by was not started")
        return instance

    def _stopped(self) -> str:
        def no(size: int) -> NoReturn:
            raise Conflict("stopped")

        with _expected(Conflict):
            self.deps.pools.grow(self.pool, self.size + 1, self._zone, gate=no, token=f"{self.token}/stopped")
        return self._same()

    def _died(self) -> str:
        words = [sys.executable, "-c", CHILD, self.cluster, self.pool, str(self.size + 1), self._zone]
        ended = subprocess.run(words, env=dict(self.environ), capture_output=True, check=False, timeout=120)
        if ended.returncode != KILLED:
            raise Failed(f"the process ended with {ended.returncode}, not at its gate")
        return self._same()

    def _too_many(self) -> str:
        rules = self.before.rules
        if rules is None or rules.most is None:
            return "not tried: this cloud tells no max"
        with _expected(Denied):
            self.deps.pools.grow(self.pool, rules.most + 1, self._zone, token=f"{self.token}/many")
        return self._same()

    def _buy(self) -> str:
        self.bought_at, before = time.monotonic(), self.gates
        self._grow()
        if self.gates != before + 1:
            raise Failed(f"its gate was asked {self.gates - before} times")
        return self._sized(self.size + 1)

    def _again(self) -> str:
        before = self.gates
        self._grow()
        if self.gates != before:
            raise Failed("it was sent again")
        return self._sized(self.size + 1)

    def _told(self) -> str:
        self._until(lambda: bool(self._new()), "no instance of it is told")
        (instance,) = self._new()
        seen = self.deps.pools.instance(self.pool, instance)
        if seen is None or not seen.there:
            raise Failed(f"{instance} is told, and is not there")
        return instance

    def _release(self) -> str:
        (instance,) = self._new()
        self._give_back(instance)
        self._until(lambda: instance not in self._new(), f"{instance} is still there")
        return self._sized(self.size)

    def _released_again(self) -> str:
        for instance in self.mine:
            self.deps.pools.release(self.pool, instance)
        return self._sized(self.size)


@contextmanager
def _expected(kind: type[PilotlightError]) -> Iterator[None]:
    """Demand that an error of this kind is raised."""
    try:
        yield
    except kind:
        return
    except Retry as error:
        raise Failed(f"{error}; nothing is proven: try again") from None
    raise Failed(f"no {kind.__name__} was raised: it was done")


def die(cluster: str, pool: str, to: str, zone: str) -> None:
    """In a process of its own: connect, check, and end before the first byte."""
    from pilotlight.settings import deployed_settings
    from pilotlight.wiring import App

    site = App(deployed_settings()).for_cluster(cluster)
    site.deps.pools.grow(pool, int(to), zone, gate=lambda size: os._exit(KILLED), token=f"died/{time.time_ns()}")
