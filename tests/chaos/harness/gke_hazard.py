"""The chaos harness with the GKE adapter as its cloud: real requests to the project's stand-in, which fail.

As ``asg_hazard``, whose luck decides. Here what is refused is refused late: a group takes everything on, goes on trying
for what it could not make, and makes it in the middle of any later look. While faults last, it is DONE before anything
is made or even listed; instances that are there tell errors of old attempts; pools are upgraded blue-green for a while,
and both colours listed; and once a project another hand resizes a group, or makes a resize request that is rolled back.
Another hand closes pools for a while, too, or deletes their groups; these cannot be read (403, 503), or take instances
on and make none without a word; lists tell one instance twice, and attempts end with several errors, of which a general
one leads.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from random import Random
from typing import Any

import pytest
from gke_answers import WHERE, ZONE, attempt, error
from gke_server import Gke
from gke_site import serving
from google_documents import Call

from harness import deployment, setting
from harness.asg_hazard import MOST, NamingHazard
from harness.faults.hazard_ports import Hazard
from harness.judges.invariants import Invariants
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Busy, NoCapacity, QuotaExceeded, Throttled
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import CloudAccount
from pilotlight.units import Seconds
from pilotlight.world.simulation import World

CHANGES = ("createInstances", "deleteInstances")
TRIES = 0.05
"""In so many of the looks at it a group has tried again meanwhile."""
LATER, OLD, UPGRADED, OVER, BESIDE, BACK = 0.3, 0.1, 0.01, 0.1, 0.01, 0.1
"""So many instances are made in a later look, and tell an old error in a look; in so many looks a pool is upgraded, or
that is over; another hand comes, or its request is rolled back."""
CLOSES, UNREAD, NEVER, TWICE, SEVERAL = 0.02, 0.005, 0.1, 0.05, 0.5
"""In so many looks a pool is closed, or its group cannot be read; so many instances are never made while faults last;
in so many looks lists shift between pages; so many looks are told several errors of an attempt."""
SHUT: tuple[dict[str, Any], ...] = (
    {"management": {"autoRepair": True}},
    {"autoscaling": {"enabled": True, "maxNodeCount": 3}},
    {"status": "ERROR"},
)
NONE_LEFT = 0.3
"""A group finds nothing for so many of the instances that it is to make, beside what the world refuses."""


class ChaosGke(Gke):
    """A project whose answers a seed decides. ``around`` is what the harness does around an effect, ``late`` around
    one that comes when a group tries again: nobody has called it off."""

    def __init__(self, world: World, dice: Random, seen: Invariants) -> None:
        super().__init__(world)
        self.dice, self.short, self.left, self.tries = dice, False, MOST, TRIES
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        self.late: Callable[[], AbstractContextManager[object]] = nullcontext
        self.asked_by: dict[str, Callable[[], AbstractContextManager[object]]] = {}
        self.called_off = 0
        self.beside, self.seen = 1, seen
        self.met: Counter[str] = Counter()
        self.stuck: set[str] = set()

    def answer(self, call: Call, asked: Any) -> dict[str, Any]:
        """As the project answers; what it changes is looked at."""
        with self.lock:
            if call.method.endswith("createInstances"):
                self.asked_by |= {one["name"]: self.late for one in asked["instances"]}
                self.slow = self._meets("made later", LATER)
                if self._meets("never made", NEVER):
                    self.slow, self.stuck = True, {*self.stuck, *(one["name"] for one in asked["instances"])}
                self.hidden = self.slow and self.dice.random() < 0.5
            if call.method.endswith("deleteInstances"):
                named = {url.rpartition("/")[2] for url in asked["instances"]}
                self.called_off += len(named & self.tried.keys())
            if call.method.endswith("clusters.get"):
                self._try_some()
                self.misbehave()
            with self.around() if call.method.endswith(CHANGES) else nullcontext():
                return super().answer(call, asked)

    def _try_some(self) -> None:
        for name, (pool, zone, _) in list(self.tried.items()):
            if self.dice.random() < self.tries:
                with self.asked_by[name]():
                    del self.tried[name]
                    self._make(name, pool, zone)

        for name, (pool, zone) in list(self.unmade.items()):
            stuck = name in self.stuck and self.tries < 1.0
            if name in self.asked_by and not stuck and (self.tries == 1.0 or self.dice.random() < LATER):
                with self.asked_by[name]():
                    del self.unmade[name]
                    self._make(name, pool, zone)

    def misbehave(self) -> None:
        """What becomes of groups beside what they are asked for."""
        self._upgrade()
        self._close()
        self._another_comes()

    def _upgrade(self) -> None:
        """A pool is upgraded for a while, and nodes that are there tell errors of old attempts."""
        calm = self.tries == 1.0
        self.doubled = {pool for pool in self.doubled if not calm and self.dice.random() >= OVER}
        if self._meets("upgraded", UPGRADED):
            self.doubled.add(self.dice.choice(sorted(self.world.fleet.pools)))
        there = [node for node in self.world.nodes if not calm and self.dice.random() < OLD]
        self.met["old error"] += len(there)
        self.stale = {node: [attempt("", NoCapacity("none left then"))] for node in there}

    def _close(self) -> None:
        """Another hand closes a pool for a while, or takes its group from our eyes; lists and errors are odd."""
        calm, pools = self.tries == 1.0, sorted(self.world.fleet.pools)
        self.extra = {pool: shut for pool, shut in self.extra.items() if not calm and self.dice.random() >= OVER}
        self.refuses = {pool: no for pool, no in self.refuses.items() if not calm and self.dice.random() >= OVER}
        if self._meets("closed", CLOSES):
            self.extra[self.dice.choice(pools)] = self.dice.choice(SHUT)
        if self._meets("unread", UNREAD):
            hidden = len(pools) > 1 and not self.refuses  # An account that may see none is told so, and looks at none.
            status, pool = self.dice.choice((403, 404, 503)) if hidden else 404, self.dice.choice(pools)
            if status != 404 or self._delete(pool):
                self.refuses[pool] = status
        unread = [pool for pool, status in self.refuses.items() if status != 404]  # A group that is gone makes nothing.
        self.seen.books.unread.note(unread, self.world.now_s)
        self.shifts = int(self._meets("told twice", TWICE))
        self.codes = [attempt("RESOURCE_OPERATION_FAILED", NoCapacity("it failed")), attempt("", NoCapacity("none"))]
        self.codes = self.codes if self._meets("several errors", SEVERAL) else []

    def _delete(self, pool: str) -> bool:
        """Another hand deletes a group with its instances, and makes it again later: only then Compute Engine answers
        404. Whether it is deleted: none is while it makes anew what went, which the world would go on with."""
        of = [name for name, (own, *_) in (*self.tried.items(), *self.unmade.items()) if own == pool]
        there = [node.id for node in self.world.nodes.values() if node.pool == pool]
        if self.world.fleet.desired[pool] > len(of) + len(there):
            return False
        for name in of:
            self.tried.pop(name, None)
            self.unmade.pop(name, None)
            self.world.fleet.desired[pool] -= 1
            self.seen.purchases.lost.add(pool)  # It was told as bought, and nobody gives it back.
        for name in there:
            self.world.terminate(name, "its group was deleted", evict=True)
        self.met["deleted"] += 1
        return True

    def _another_comes(self) -> None:
        """Another hand resizes a group once, or makes a resize request that is rolled back in the end."""
        if self.once and (self.tries == 1.0 or self.dice.random() < BACK):
            self.rolls_back()
            self.once.clear()
        if not self.beside or not self._meets("another hand", BESIDE):
            return
        self.beside -= 1
        pool = self.dice.choice(sorted(self.world.fleet.pools))
        if self.refuses.get(pool) == 404:
            return
        self.resize_request(pool, 1)
        self.seen.purchases.lost.add(pool)
        if self.dice.random() < 0.5:
            (name,), self.once = self.once, []
            del self.unmade[name]
            self._make(name, pool, ZONE)
            if self.tried.pop(name, None):  # That hand gives up at once.
                self.world.fleet.desired[pool] -= 1
            else:
                self.seen.purchases.came_late(pool, (self.world.nodes[name],))

    def _meets(self, what: str, share: float) -> bool:
        """Whether a fault is met, while there are any."""
        met = self.tries < 1.0 and self.dice.random() < share
        self.met[what] += met
        return met

    def launch(self, pool: str, zone: str) -> None:
        """One instance, unless the group finds none."""
        if self.short or (self.tries < 1.0 and self.dice.random() < NONE_LEFT):
            self.short = False
            raise NoCapacity("none left")
        super().launch(pool, zone)

    def owes(self, pool: str) -> int:
        """The instances that a group has been asked for and could not make so far."""
        waiting = (
            *(of for of, _, _ in self.tried.values()),
            *(self.unmade[n][0] for n in self.unmade if n in self.asked_by),
        )
        return sum(of == pool for of in waiting)


class GkeHazard(NamingHazard):
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

    def describe(self) -> Sequence[PoolState]:
        """A pool of which nothing is told, for a call for it failed, shows no look what boots there."""
        told = super().describe()
        for pool in told:
            if pool.unread and not pool.booting:
                self._invariants.books.unread.untold(pool.name, self._aws.world.now_s)
        return told


@contextmanager
def on_gke(seed: int, *, patch: pytest.MonkeyPatch) -> Iterator[list[ChaosGke]]:
    """Runs of the harness have the adapter as their cloud: the projects that they opened, in order."""
    opened: dict[int, tuple[ChaosGke, Any]] = {}
    with ExitStack() as stack:

        def pools(
            world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
        ) -> GkeHazard:
            if id(world) not in opened:
                gke = ChaosGke(world, Random(f"gke/{seed}/{len(opened)}"), invariants)
                opened[id(world)] = gke, stack.enter_context(serving(gke))
                invariants.owed = gke.owes
            return GkeHazard(*opened[id(world)], hazard, invariants, off_s)

        for module in (setting, deployment):
            patch.setattr(module, "HazardPools", pools)
        patch.setattr(google_rest, "PAUSES_S", ())
        projects: list[ChaosGke] = []
        yield projects
        projects += [gke for gke, _ in opened.values()]
