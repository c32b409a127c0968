"""The scenes of the interleavings: a world small enough for every order, and two deliveries that meet in it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

import msgspec
from harness.scene import ALERTS, START
from harness.scene import CATALOG as WRITTEN

from pilotlight.codec.events import encode
from pilotlight.doorway import Function
from pilotlight.facts.messages import InterruptionNotice, Message, PodPending, Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.settings import EMBEDDED_CLUSTER
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

BOOT_S: Seconds = 60
IDLE_S: Seconds = 120
RUN_S: Seconds = 600

T = TypeVar("T", bound=msgspec.Struct)


def as_read(value: T) -> T:
    """A value as a file would give it: seconds are never whole numbers, which are written otherwise in a record."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


CATALOG = as_read(WRITTEN)

Request = tuple[Any, ...]
"""A call of a port, or a change of the world: the port, the method, its arguments."""


class Script(NamedTuple):
    """A delivery to a function; ``before`` is what happens in the world first, as calls."""

    name: str
    function: Function
    body: bytes
    before: tuple[Request, ...] = ()


class Scene(NamedTuple):
    """``setup`` is played first, by one worker: seconds that pass, changes of the world, deliveries. Then ``scripts``
    meet. ``calm`` are the faults once it settles down.

    What is right, for the judge: at most ``launches`` nodes are launched in all, and every job of ``runs`` ends well.
    Those of ``stops`` may be made to leave.
    """

    name: str
    about: str
    policy: Policy
    jobs: tuple[tuple[PodDemand, ...], ...]
    setup: tuple[Seconds | Request | Script, ...]
    scripts: tuple[Script, Script]
    launches: int
    runs: tuple[str, ...]
    faults: Faults = Faults(boot_s=BOOT_S, reclaim=False)
    calm: Faults = Faults(boot_s=BOOT_S, reclaim=False)
    run_s: Seconds = RUN_S
    stops: tuple[str, ...] = ()
    catalog: Catalog = CATALOG
    start: datetime = START

    @property
    def pools(self) -> tuple[WorldPool, ...]:
        """The cloud's pools are the policy's."""
        return tuple(WorldPool.from_policy(name, rules) for name, rules in self.policy.pools.items())

    def submit(self, world: World, index: int) -> None:
        """Create the pods of one of its jobs."""
        now = world.clock.now()
        world.submit([msgspec.structs.replace(pod, created_at=now) for pod in self.jobs[index]], self.run_s)


def _event(name: str, function: Function, message: Message, *before: Request) -> Script:
    return Script(name, function, encode(message, id=name), before)


def tick(name: str) -> Script:
    """A schedule's tick of ``capacity_reconcile``."""
    return _event(name, "capacity_reconcile", Tick(cluster=EMBEDDED_CLUSTER, what="reconcile", identity=name, at=START))


def rescues(name: str) -> Script:
    """A schedule's tick of ``spot_interruption``."""
    return _event(name, "spot_interruption", Tick(cluster=EMBEDDED_CLUSTER, what="rescue", identity=name, at=START))


def _pending(pod: str, *before: Request) -> Script:
    event = PodPending(
        cluster=EMBEDDED_CLUSTER, namespace="default", name=pod, uid=pod, identity=f"{pod}/pending", at=START
    )
    return _event(f"{pod} waits", "pod_pending", event, *before)


def _notice(instance: str, at_s: Seconds, *before: Request) -> Script:
    at = START + timedelta(seconds=at_s + 120)
    event = InterruptionNotice(
        cluster=EMBEDDED_CLUSTER, instance=instance, kind="spot-interruption", cloud="world", at=START, deadline=at
    )
    return _event(f"{instance} goes", "spot_interruption", event, *before)


def _pod(name: str, gang: Gang | None = None, run_s: Seconds = RUN_S) -> PodDemand:
    traits: dict[str, Any] = {"gang": gang, "workload_class": "training"} if gang else {}
    made = shape(gpu=GpuRequest(count=4), max_run_s=run_s + 120, team="red", **traits)
    return as_read(PodDemand(uid=name, namespace="default", name=name, shape=made, created_at=START))


def _policy(pools: Mapping[str, PoolPolicy], budgets: Sequence[Budget] = (), **rules: Any) -> Policy:
    either = ClassPolicy(
        capacity_types=("on-demand", "spot"), gpu_models="any", idle_timeout=IDLE_S, max_runtime=3600, **rules
    )
    classes: Any = {"batch": either, "training": either}
    return as_read(Policy(version=1, pools=dict(pools), classes=classes, budgets=tuple(budgets), alerts=ALERTS))


FOUR = PoolPolicy(instance_type="four", max=3)
SPOT = PoolPolicy(instance_type="four", capacity_type="spot", max=3)


def _buy() -> Scene:
    return Scene(
        name="buy",
        about="a pod waits: its event and a tick arrive together",
        policy=_policy({"four": FOUR, "four-spot": SPOT}),
        jobs=((_pod("p0"),),),
        setup=(("world", "submit", 0),),
        scripts=(_pending("p0"), tick("tick")),
        launches=1,
        runs=("p0",),
    )


def _release() -> Scene:
    return Scene(
        name="release",
        about="a tick finds a node idle past its timeout; a pod comes that would fit on it",
        policy=_policy({"four": FOUR}),
        jobs=((_pod("p0"),), (_pod("p1"),)),
        setup=(("world", "submit", 0), tick("first"), 61.0, tick("second"), 10.0 + RUN_S, tick("third"), IDLE_S + 10),
        scripts=(tick("tick"), _pending("p1", ("world", "submit", 1))),
        launches=2,
        runs=("p0", "p1"),
    )


def _hard_cap() -> Scene:
    budget = Budget(name="day", scope="all", period="day", usd=Decimal(5))
    return Scene(
        name="hard-cap",
        about="two pods wait, and a hard budget has room for one node",
        policy=_policy({"four": FOUR}, [budget]),
        jobs=((_pod("p0"),), (_pod("p1"),)),
        setup=(("world", "submit", 0),),
        scripts=(_pending("p0"), _pending("p1", ("world", "submit", 1))),
        launches=2,
        runs=("p0",),
    )


def _gang() -> Scene:
    gang = Gang(key="g", size=2)
    lacking = Faults(boot_s=BOOT_S, reclaim=False, quota_nodes=1)
    return Scene(
        name="gang",
        about="a gang of two waits, and the cloud has one node: its event and a tick arrive together",
        policy=_policy({"four": FOUR}),
        jobs=((_pod("g0", gang), _pod("g1", gang)),),
        setup=(("world", "submit", 0),),
        scripts=(_pending("g0"), tick("tick")),
        launches=9,
        runs=("g0",),
        faults=lacking,
    )


def _taken() -> Scene:
    return Scene(
        name="notice",
        about="a spot node with a pod is taken in two minutes: the notice and a tick arrive together",
        policy=_policy({"four-spot": SPOT}),
        jobs=((_pod("p0"),),),
        setup=(("world", "submit", 0), tick("first"), 61.0, tick("second"), 60.0, ("world", "interrupt", "n1", 120.0)),
        scripts=(_notice("n1", 121.0), tick("tick")),
        launches=2,
        runs=("p0",),
    )


def _cap_end() -> Scene:
    """Held for by stretches of ten minutes: four dollars end twenty minutes after the launch; the stop begins."""
    budget = Budget(name="day", scope="all", period="day", usd=Decimal(4))
    minutes = [step for n in range(15) for step in (tick(f"minute {n}"), rescues(f"rescues {n}"), 60.0)]
    return Scene(
        name="cap-end",
        about="what a hard budget holds for a node ends: the tick that stops it, and a look at rescues",
        policy=_policy({"four": FOUR}, [budget], may_move=("hard-cap",), hold=600),
        jobs=((_pod("p0", run_s=3000),),),
        setup=(("world", "submit", 0), *minutes),
        scripts=(tick("tick"), rescues("rescues")),
        launches=1,
        runs=(),
        stops=("p0",),
        run_s=3000,
    )


MAKE: Mapping[str, Callable[[], Scene]] = {
    "buy": _buy,
    "release": _release,
    "hard-cap": _hard_cap,
    "cap-end": _cap_end,
    "gang": _gang,
    "notice": _taken,
}
"""Scenes by name."""
