"""The chaos harness with the Auto Scaling adapter as its cloud: real requests to the account's stand-in, which fail.

A call's luck becomes what the server does: it loses the connection, answers late, half, with another status or with
what is no answer, before or after it acted; it refuses; or it launches a part of what was asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any, Protocol, TypeVar

import msgspec
import pytest
from aws_server import EKS, REGION, Aws, error, serving
from civo_server import Fault

from harness import deployment, setting
from harness.faults.hazard_ports import ANSWERED, ON_ITS_WAY, Hazard
from harness.faults.luck import Fault as Luckless
from harness.faults.luck import _faults
from harness.judges.invariants import Invariants
from harness.scene import CATALOG, Scene, Skew, draw
from harness.serial_run import SeedResult
from pilotlight.adapters.aws_api import services
from pilotlight.adapters.pools import asg
from pilotlight.errors import Busy, NoCapacity, PilotlightError, QuotaExceeded, Throttled, Unsure
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.policy import SparePolicy
from pilotlight.ports.clouds import OPEN, CloudAccount, Gate, NamingPools, Pools, SizeGate, StandbyPools
from pilotlight.units import Seconds
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode

T = TypeVar("T")

LOOK = "DescribeAutoScalingGroups"
LOST: Sequence[Any] = (
    "reset",
    "cut",
    "drip",
    "hang",
    (500, error("InternalFailure", "no").decode()),
    (503, "<html>bad gateway</html>"),
    (200, "<html>thanks</html>"),
    (200, "<LaunchInstancesResponse><LaunchInstancesResult><Instances>3</Instances></LaunchInstancesResult>"),
    (200, ""),
    (302, ""),
)
"""What tells nobody whether AWS acted."""
MOST = 8
"""So many changes of an account fail beside those that the seed's luck lets fail, also after that is calm."""
SILENT, SILENT_MORE = 4, 12
"""So many shares of them are answers that are lost: of more, more is bought, for what is refused rests."""
TRIES = 0.3
"""In so many of the looks at it a group has tried again meanwhile."""
STARTING = msgspec.structs.replace(
    CATALOG,
    instance_types={
        name: msgspec.structs.replace(kind, wake_s=40.0, standby_usd_per_hour=Decimal(0))
        for name, kind in CATALOG.instance_types.items()
    },
)
"""What is stopped starts in less than a minute, and its disks are of no account."""
REFUSALS: dict[type[PilotlightError], Any] = {
    Throttled: (429, ""),
    Busy: (400, error("ScalingActivityInProgress", "busy").decode()),
    NoCapacity: (400, error("InsufficientInstanceCapacity", "none left").decode()),
    QuotaExceeded: (400, error("VcpuLimitExceeded", "no more").decode()),
}


class ChaosAws(Aws):
    """An account whose answers a seed decides. ``around`` is what the harness does around an effect.

    ``late`` is around one that comes when the group tries again: nobody can call it off any more.
    """

    def __init__(self, world: World, dice: Random, *, at_once: bool) -> None:
        super().__init__(world, at_once=at_once)
        self.dice, self.short, self.left = dice, False, MOST
        self.protects = True  # A size that comes late may be smaller than the group by then.
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        self.late: Callable[[], AbstractContextManager[object]] = nullcontext
        self.tries = TRIES
        self.owed: dict[str, Callable[[], AbstractContextManager[object]]] = {}

    def answer(self, action: str, asked: dict[str, Any]) -> dict[str, Any]:
        """As the account answers; what it changes is looked at."""
        with nullcontext() if action.startswith("Describe") else self.around():
            return super().answer(action, asked)

    def owes(self, pool: str) -> int:
        """The nodes that a group has been asked for and could not launch so far."""
        return max(0, self.world.fleet.desired[pool] - len(self._nodes(pool)))

    def _SetDesiredCapacity(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.owed[self._pool(asked["AutoScalingGroupName"])] = self.late
        return super()._SetDesiredCapacity(asked)

    def _DescribeAutoScalingGroups(self, asked: dict[str, Any]) -> dict[str, Any]:
        for pool, around in self.owed.items():
            if self.owes(pool) and self.dice.random() < self.tries:
                with around():
                    self.try_again(pool)
        return super()._DescribeAutoScalingGroups(asked)

    def _instance(self, node: WorldNode) -> dict[str, Any]:
        # No hook: what EC2 takes is in service until it is gone.
        return {**super()._instance(node), "LifecycleState": "InService"}

    def _scale_in(self, pool: str, to: int) -> dict[str, Any]:
        # A pod that was bound meanwhile holds no instance up.
        for node in self._nodes(pool):
            if node.id in self.unprotected and node.jobs:
                self.world.terminate(node.id, "released", evict=True)
        return super()._scale_in(pool, to)

    def _launch(self, pool: str, count: int, zone: str = "") -> list[dict[str, Any]]:
        if not self.short:
            return super()._launch(pool, count, zone)
        if count > 1 and not self.world.fleet.pools[pool].atomic:
            super()._launch(pool, 1, zone)
        return [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "none left after the first"}]


class _StoppingPools(Pools, StandbyPools, Protocol):
    """A cloud whose nodes can be stopped."""


class AsgHazard:
    """What ``HazardPools`` is to the world's cloud: a worker's way to it, looked at and full of faults."""

    cloud = "world"  # Whose notices come: the world's, behind AWS's calls.
    look: str = LOOK
    tries: float = TRIES
    lost: Sequence[Any] = LOST
    refusals: Mapping[type[PilotlightError], Any] = REFUSALS

    def __init__(self, aws: Any, environ: Any, hazard: Hazard, invariants: Invariants, off_s: Seconds) -> None:
        self._aws, self._hazard, self._invariants, self._off = aws, hazard, invariants, timedelta(seconds=off_s)
        clock = setting.SkewedClock(aws.world.clock, Skew(off_s))
        self._pools: _StoppingPools = self._open(CloudAccount(aws.names(), clock, str, environ))

    def _open(self, account: CloudAccount) -> Any:
        pools = asg.open_pools(f"{REGION}/{EKS}", account)
        assert isinstance(pools, StandbyPools)
        return pools

    def describe(self) -> Sequence[PoolState]:
        """Every pool as the account tells it. Once the faults are over a group has what it tried for."""
        self._aws.tries = self.tries if any(self._hazard.luck._rates.values()) else 1.0
        return self._through("describe", lambda gate: self._pools.describe())

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """Asked beside the worker: no turn of its own."""
        return self._pools.instance(pool, instance)

    def grow(self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, **more: Any) -> PoolState:
        """Looked at around what AWS launches."""
        worker, seen = self._hazard.worker, self._invariants
        decision = seen.purchases.decided(worker)

        def let_out(size: int) -> None:
            gate(size)
            seen.sent(worker, f"grow {pool} to {to}", pool)

        return self._through(
            f"grow {pool} to {to}",
            lambda asked: self._pools.grow(pool, to, zone, gate=asked, **more),
            let_out,
            lambda: seen.launching(worker, decision, pool, zone),
        )

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Looked at before AWS ends an instance."""
        worker, seen = self._hazard.worker, self._invariants
        sent_s = self._aws.world.now_s

        def let_out() -> None:
            nonlocal sent_s
            gate()
            sent_s = seen.sent(worker, f"release {instance}", pool, instance)

        @contextmanager
        def releasing() -> Iterator[None]:
            with self._aws.world.lock:
                seen.releasing(worker, pool, instance, sent_s)
                yield

        self._through(
            f"release {pool} {instance}",
            lambda asked: self._pools.release(pool, instance, gate=asked),
            let_out,
            releasing,
        )

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Looked at before AWS stops an instance, or ends it where it cannot be stopped."""
        worker, seen = self._hazard.worker, self._invariants
        sent_s = self._aws.world.now_s

        def let_out() -> None:
            nonlocal sent_s
            gate()
            sent_s = seen.sent(worker, f"stop {instance}", pool, instance)

        @contextmanager
        def stopping() -> Iterator[None]:
            with self._aws.world.lock:
                seen.releasing(worker, pool, instance, sent_s)
                yield

        self._through(
            f"stop {pool} {instance}", lambda asked: self._pools.stop(pool, instance, gate=asked), let_out, stopping
        )

    def _through(
        self,
        what: str,
        call: Callable[[Callable[..., None]], T],
        let_out: Callable[..., None] = OPEN,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> T:
        hazard, aws = self._hazard, self._aws
        now_s = hazard.pause(what)
        method = what.split(" ", 1)[0]
        fault = hazard.luck.fault("pools", method, False, now_s)
        if fault is None and let_out is not OPEN and aws.left and aws.dice.random() < 0.8:
            aws.left -= 1
            lost = (Luckless("after", Unsure("lost")),) * (SILENT_MORE if hazard.luck.thinned else SILENT)
            fault = aws.dice.choice([*_faults(method, False), *lost])
        early = fault is not None and (let_out is OPEN or (fault.when == "before" and _is_silence(fault)))

        def gate(*size: int) -> None:
            aws.faults = []
            let_out(*size)
            hazard.pause(what + ON_ITS_WAY)
            aws.around, aws.late = around, partial(self._late, around)
            aws.short = fault is not None and fault.when == "half"
            aws.faults = [] if fault is None or early or aws.short else [self._http(fault)]

        aws.faults = [self._http(fault, self.look)] if fault is not None and early else []
        try:
            result = call(gate)
        except PilotlightError as no:
            hazard.say(f"{what} -> {type(no).__name__}: {no}")
            raise
        finally:
            aws.faults, aws.around, aws.late, aws.short = [], nullcontext, nullcontext, False
        hazard.say(what)
        hazard.pause(what + ANSWERED)
        return result

    @contextmanager
    def _late(self, around: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
        """Around what comes when nobody can call it off any more; another request on its way stays what it is."""
        with self._invariants.trying_again(self._hazard.worker), around():
            yield

    def _http(self, fault: Luckless, method: str = "") -> Fault:
        known = self.refusals.get(type(fault.error))
        return Fault(known or self._aws.dice.choice(self.lost), "after" if fault.when == "after" else "before", method)


class NamingHazard(AsgHazard):
    """The way to a cloud that names nodes by their purchase."""

    def came(self, pool: str, to: int, token: str) -> int | None:
        """Nodes of a purchase."""
        pools = self._pools
        assert isinstance(pools, NamingPools)
        return self._through(f"came {pool}", lambda gate: pools.came(pool, to, token))


def _is_silence(fault: Luckless) -> bool:
    """Whether the call does not get as far as the cloud."""
    return type(fault.error) not in REFUSALS


def _standing_by(rng: Random, jobs: int, over_s: Seconds) -> Scene:
    """As any seed's, with one node of each pool that may stand by."""
    scene = draw(rng, jobs, over_s)
    pools = {
        name: msgspec.structs.replace(rules, spares=SparePolicy(stopped=1))
        for name, rules in scene.policy.pools.items()
    }
    policy = msgspec.structs.replace(scene.policy, pools=pools)
    return scene._replace(policy=policy, pools=tuple(WorldPool.from_policy(name, pool) for name, pool in pools.items()))


@contextmanager
def on_asg(seed: int, *, at_once: bool, patch: pytest.MonkeyPatch, stops: bool = False) -> Iterator[list[ChaosAws]]:
    """Runs of the harness have the adapter as their cloud: the accounts that they opened, in order.

    Where it ``stops``, the groups' warm pools take nodes back: one of each pool is to stand by.
    """
    opened: dict[int, tuple[ChaosAws, Any]] = {}
    with ExitStack() as stack:

        def pools(
            world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
        ) -> AsgHazard:
            if id(world) not in opened:
                aws = ChaosAws(world, Random(f"aws/{seed}/{len(opened)}"), at_once=at_once)
                if stops:
                    aws.reuse = {pool: {"MaxGroupPreparedCapacity": 0, "MinSize": 0} for pool in world.fleet.pools}
                opened[id(world)] = aws, stack.enter_context(serving(aws))
                invariants.owed = aws.owes
            return AsgHazard(*opened[id(world)], hazard, invariants, off_s)

        for module in (setting, deployment):
            patch.setattr(module, "HazardPools", pools)
            if stops:
                patch.setattr(module, "CATALOG", STARTING)
        if stops:
            patch.setattr(setting, "draw", _standing_by)
        patch.setattr(services, "QUERY_PAUSES_S", ())
        accounts: list[ChaosAws] = []
        yield accounts
        accounts += [aws for aws, _ in opened.values()]


def broken(outcome: SeedResult) -> list[str]:
    """What a run broke. A tick that says "later" is none: AWS may fail after the rest is calm."""
    return [str(v) for v in outcome.violations if not (v.kind == "internal_errors" and "answered 503" in v.text)]
