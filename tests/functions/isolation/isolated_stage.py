"""A stage whose events and ticks go through the front door, and errors planted in it by an object's name."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import msgspec
import pytest
from stage import START, Stage

from pilotlight.codec.events import encode
from pilotlight.doorway import Function, Response
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.limits.isolated_objects import Isolations
from pilotlight.facts.messages import Alert, Message, PodPending, Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.state_schema.cluster_records import ISOLATED
from pilotlight.units import HOUR
from pilotlight.wiring import App

STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))


class OddError(RuntimeError):
    """An error that nobody foresaw."""


class DoorStage(Stage):
    """A cluster in the world, under a hard budget of so many dollars a day, that is served as a deployment is."""

    def __init__(self, usd: str = "6", **rules: Any) -> None:
        budget = Budget(name="all", usd=Decimal(usd), period="day")
        super().__init__(budgets=(budget,), **{"classes": {"batch": STOP}, **rules})
        was = self.deps
        self.app = App(
            Settings(mode="act", cluster="c"),
            cluster=was.cluster,
            pools=was.pools,
            state=was.state,
            outbox=self.outbox,
            clock=was.clock,
            policy=was.policy,
            catalog=self.catalog,
        )
        self.answers: list[Response] = []

    def post(self, function: Function, message: Message) -> Response:
        """A message arrives at a function."""
        self.answers.append(self.app.receive(function, encode(message, id=f"m{len(self.answers)}"), {}))
        return self.answers[-1]

    def pod(self, name: str, run_s: float = 3600.0, **fields: Any) -> PodDemand:
        """A pod is created, and the event about it arrives."""
        traits = {key: fields.pop(key) for key in ("team", "workload_class") if key in fields}
        made = shape(gpu=GpuRequest(count=fields.pop("gpus", 1)), **traits)
        now = self.world.clock.now()
        pod = PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=made, created_at=now, **fields)
        self.world.submit(pod, run_s)
        self.post("pod_pending", PodPending(cluster="c", namespace="ml", name=name, uid=pod.uid, identity=name))
        return pod

    def look(self) -> Response:
        """The schedule's tick for looks."""
        return self.post("capacity_reconcile", Tick(cluster="c"))

    def count(self) -> Response:
        """The schedule's tick for money."""
        return self.post("billing_tick", Tick(cluster="c", what="billing"))

    def play(self, minutes: int, every: Callable[[], object] | None = None) -> None:
        """So many minutes pass with a look in each, and what else."""
        for _ in range(minutes):
            self.wait(60)
            self.look()
            if every is not None:
                every()

    @property
    def told(self) -> list[Alert]:
        """What people were told of objects that cannot be judged."""
        return [alert for alert in self.alerts if alert.kind == "isolated"]

    @property
    def isolations(self) -> Isolations:
        """What the state has of them."""
        entry = ISOLATED.get(self.deps.state, "c")
        return entry.value if entry else Isolations()

    def cost(self) -> Decimal:
        """What the nodes have really cost so far, by the world's log alone."""
        ends = {record["node"]: record["t"] for record in self.events("terminate")}
        total = Decimal(0)
        for record in self.events("launch"):
            price = self.catalog.instance_types[record["type"]].prices["on-demand"].usd_per_hour
            lived = ends.get(record["node"], self.world.now_s) - record["t"]
            total += price * Decimal(lived) / 3600
        return total

    def finished(self) -> list[str]:
        """The jobs that ran to their end."""
        return sorted(job.id for job in self.world.finished)

    def killed(self) -> list[str]:
        """Why jobs were stopped before their end, by the world's log."""
        return [str(record["reason"]) for record in self.events("stop") if record["reason"] not in ("done", "finished")]


def names_of(value: object) -> set[str]:
    """What an argument of a decision is called, or what it is about: the test's own reading."""
    known = ("uid", "name", "id") if hasattr(value, "name") else ("id", "instance")
    found = {name for each in known if isinstance(name := getattr(value, each, None), str)}
    pods = value if isinstance(value, list | tuple) and not hasattr(value, "_fields") else getattr(value, "pods", ())
    found |= (
        {pod.uid for pod in pods if isinstance(pod, BoundPod | PodDemand)} if isinstance(pods, list | tuple) else set()
    )
    for inner in ("node", "found"):
        part = getattr(value, inner, None)
        found |= names_of(part) if isinstance(part, msgspec.Struct) else set()
    return found


@contextmanager
def planted(name: str, *places: str, error: type[BaseException] = OddError) -> Iterator[list[str]]:
    """These functions ("module:function") raise for an object of this name; gives the places that did."""
    met: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for place in places:
            module, _, function = place.partition(":")
            _plant(patch, import_module(module), function, name, error, met)
        yield met


@cache
def _open_every_room() -> None:
    """A module that is imported while something is planted would keep that for good."""
    import pilotlight

    for room in ("codec", "decide", "doorway", "flow", "state_schema"):
        for found in walk_packages([f"{pilotlight.__path__[0]}/{room}"], f"pilotlight.{room}."):
            import_module(found.name)


def _plant(
    patch: pytest.MonkeyPatch, module: Any, function: str, name: str, error: type[BaseException], met: list[str]
) -> None:
    _open_every_room()
    owner, _, method = function.rpartition(".")
    holder = getattr(module, owner) if owner else module
    real = getattr(holder, method)

    def odd(*given: Any, **named: Any) -> Any:
        if any(name in names_of(value) for value in (*given, *named.values())):
            met.append(f"{module.__name__}:{function}")
            raise error(f"planted at {function}")
        return real(*given, **named)

    patch.setattr(holder, method, odd)
    for other in [m for key, m in sys.modules.items() if key.startswith("pilotlight.")]:
        if not owner and getattr(other, method, None) is real:
            patch.setattr(other, method, odd)


def moment(seconds: float) -> Any:
    """A moment of the stage's time."""
    return START + timedelta(seconds=seconds)
