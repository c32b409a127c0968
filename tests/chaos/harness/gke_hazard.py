"""The chaos harness with the GKE adapter as its cloud: real requests to the project's stand-in, which fail.

As ``asg_hazard``, whose luck decides. Here what is refused is refused late: a group takes everything on, goes on trying
for what it could not make, and makes it in the middle of any later look.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from random import Random
from typing import Any

import pytest
from gke_answers import WHERE, error
from gke_server import Gke
from gke_site import serving
from google_documents import Call

from harness import deployment, setting
from harness.asg_hazard import MOST, AsgHazard
from harness.faults.hazard_ports import Hazard
from harness.judges.invariants import Invariants
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Busy, NoCapacity, QuotaExceeded, Throttled
from pilotlight.ports.clouds import CloudAccount
from pilotlight.units import Seconds
from pilotlight.world.simulation import World

CHANGES = ("createInstances", "deleteInstances")
TRIES = 0.05
"""In so many of the looks at it a group has tried again meanwhile."""
NONE_LEFT = 0.3
"""A group finds nothing for so many of the instances that it is to make, beside what the world refuses."""


class ChaosGke(Gke):
    """A project whose answers a seed decides. ``around`` is what the harness does around an effect, ``late`` around
    one that comes when a group tries again: nobody has called it off."""

    def __init__(self, world: World, dice: Random) -> None:
        super().__init__(world)
        self.dice, self.short, self.left, self.tries = dice, False, MOST, TRIES
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        self.late: Callable[[], AbstractContextManager[object]] = nullcontext
        self.asked_by: dict[str, Callable[[], AbstractContextManager[object]]] = {}
        self.called_off = 0

    def answer(self, call: Call, asked: Any) -> dict[str, Any]:
        """As the project answers; what it changes is looked at."""
        with self.lock:
            if call.method.endswith("createInstances"):
                self.asked_by |= {one["name"]: self.late for one in asked["instances"]}
            if call.method.endswith("deleteInstances"):
                named = {url.rpartition("/")[2] for url in asked["instances"]}
                self.called_off += len(named & self.tried.keys())
            if call.method.endswith("clusters.get"):
                self._try_some()
            with self.around() if call.method.endswith(CHANGES) else nullcontext():
                return super().answer(call, asked)

    def _try_some(self) -> None:
        for name, (pool, zone, _) in list(self.tried.items()):
            if self.dice.random() < self.tries:
                with self.asked_by[name]():
                    del self.tried[name]
                    self._make(name, pool, zone)

    def launch(self, pool: str, zone: str) -> None:
        """One instance, unless the group finds none."""
        if self.short or (self.tries < 1.0 and self.dice.random() < NONE_LEFT):
            self.short = False
            raise NoCapacity("none left")
        super().launch(pool, zone)

    def owes(self, pool: str) -> int:
        """The instances that a group has been asked for and could not make so far."""
        return sum(of == pool for of, _, _ in self.tried.values())


class GkeHazard(AsgHazard):
    """A worker's way to the project, looked at and full of faults."""

    look = "listManagedInstances"
    tries = TRIES
    lost = (
        "reset",
        "cut",
        "drip",
        "hang",
        (500, error(500, "backendError", "Internal error")),
        (503, b"<html>bad gateway</html>"),
        (200, b"<html>thanks</html>"),
        (200, b"[]"),
        (200, b""),
        (302, b""),
    )
    refusals = {  # noqa: RUF012  # As the class above declares it.
        Throttled: (429, error(429, "rateLimitExceeded", "slow down")),
        Busy: (409, error(409, "resourceInUseByAnotherResource", "busy")),
        NoCapacity: (400, error(400, "ZONE_RESOURCE_POOL_EXHAUSTED", "none left")),
        QuotaExceeded: (403, error(403, "quotaExceeded", "no more")),
    }

    def _open(self, account: CloudAccount) -> Any:
        return gke_cloud.open_pools(WHERE, account)


@contextmanager
def on_gke(seed: int, *, patch: pytest.MonkeyPatch) -> Iterator[list[ChaosGke]]:
    """Runs of the harness have the adapter as their cloud: the projects that they opened, in order."""
    opened: dict[int, tuple[ChaosGke, Any]] = {}
    with ExitStack() as stack:

        def pools(
            world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
        ) -> GkeHazard:
            if id(world) not in opened:
                gke = ChaosGke(world, Random(f"gke/{seed}/{len(opened)}"))
                opened[id(world)] = gke, stack.enter_context(serving(gke))
                invariants.owed = gke.owes
            return GkeHazard(*opened[id(world)], hazard, invariants, off_s)

        for module in (setting, deployment):
            patch.setattr(module, "HazardPools", pools)
        patch.setattr(google_rest, "PAUSES_S", ())
        projects: list[ChaosGke] = []
        yield projects
        projects += [gke for gke, _ in opened.values()]
