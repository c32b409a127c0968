"""The chaos harness with Karpenter's claims as its cloud: real requests to an API server's stand-in, which fail.

As ``asg_hazard``, whose luck decides. Here a claim is taken on whatever there is: it is deleted at once, or waits to be
launched in the middle of any later look, until it is called off. Karpenter deletes by itself what it did not launch in
5 minutes, and machines that are no node in 15, of which some stay a while and bill; in one seed of three it keeps no
deadline. It says why in an Event, never, or later; some pools have nothing left for many claims in a row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from api_server import Asked, api_server
from api_store import Json
from civo_server import Fault
from karpenter_claims import KarpenterWorld
from msgspec.structs import replace

from harness import deployment, setting
from harness.asg_hazard import MOST, NamingHazard
from harness.faults.hazard_ports import Hazard
from harness.judges.invariants import Invariants
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api, Patience
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.errors import Busy, NoCapacity, QuotaExceeded, Throttled
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.ports.clouds import OPEN, CloudAccount, Gate
from pilotlight.units import HOUR, Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World

WAITS, NONE_LEFT, TRIES = 0.3, 0.3, 0.05
"""So many claims wait, or find nothing left; in so many of the looks one that waits is launched meanwhile."""
HOPELESS = 2
"""So many that wait are launched never, also after the seed's luck is calm: they are to be called off."""
NEVER_JOIN, DRY = 0.08, 0.15
"""So many machines never join; so many claims begin a drought of their pool, which ends after ``DROUGHT`` claims."""
DROUGHT = 8
REST_S, FORGOT_S, UNHEARD = 54.0, 1800.0, 2
"""What is refused in a row rests twice as long each time, but for so many: a worker died before it noted one."""
CHANGE = "(POST|DELETE) .*/nodeclaims"
ONCE = Patience(tries=1)


@dataclass
class ChaosKarpenter(KarpenterWorld):
    """A Karpenter whose luck a seed decides. ``around`` is what the harness does around an effect, ``late`` around one
    that comes when a claim is launched later."""

    dice: Random = field(kw_only=True)
    short: bool = False
    left: int = MOST
    tries: float = TRIES
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    late: Callable[[], AbstractContextManager[object]] = nullcontext
    asked_by: dict[str, Callable[[], AbstractContextManager[object]]] = field(default_factory=dict)
    called_off: int = 0
    hopeless: int = HOPELESS
    never: set[str] = field(default_factory=set)
    vanished: Counter[str] = field(default_factory=Counter)
    claim_of: dict[str, str] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    dry: Counter[str] = field(default_factory=Counter)
    asked_s: dict[str, Seconds] = field(default_factory=dict)
    refused_s: dict[str, Seconds] = field(default_factory=dict)
    in_a_row: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        told = self.world.set_faults

        def alone(faults: Faults) -> None:
            told(replace(faults, replace_lost=False))

        setattr(self.world, "set_faults", alone)  # noqa: B010  # No group replaces what spot took: a claim goes with it.
        alone(self.world.faults)

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """As Karpenter answers; what it changes is looked at."""
        name = asked.path.rpartition("/")[2]
        if "/nodeclaims" in asked.path and asked.method == "GET":
            self._launch_some()
            self._say_some()
        if "/nodeclaims" not in asked.path or asked.method == "GET":
            return super().answer(asked)
        if asked.method == "POST":
            posted = asked.json()["metadata"]["name"]
            self.asked_by[posted], self.asked_s[posted] = self.late, self.world.now_s
            self.slow = (self.tries < 1.0 or self.hopeless > 0) and self.dice.random() < WAITS
            if self.slow and self.hopeless and self.dice.random() < 0.7:
                self.hopeless -= 1
                self.never.add(posted)
        else:
            self.called_off += name in self.stuck
            self.stuck.discard(name)
        with self.around():
            return super().answer(asked)

    def none_left(self) -> bool:
        """Some find nothing, until all is calm; a drought goes on."""
        pool = _pool_of(self.kept[-1])
        if self.tries < 1.0 and not self.dry[pool] and self.dice.random() < DRY:
            self.dry[pool] = DROUGHT
        if self.dry[pool]:
            self.dry[pool] -= 1
            return True
        if self.short or (self.tries < 1.0 and self.dice.random() < NONE_LEFT):
            self.short = False
            return True
        return False

    def _launch_some(self) -> None:
        for name in sorted(self.stuck - self.never):
            if self.dice.random() < self.tries:
                with self.asked_by[name]():
                    self.stuck.discard(name)
                    self.launch()

    def _say_some(self) -> None:
        """Events come by and by, and ends that were stuck."""
        if self.dice.random() < self.tries:
            self.events = "later"
            self.tell()
            self.end()

    def give_up(self, claim: Json) -> None:
        """By its deadline; some machines stay a while, and bill."""
        launched = claim["metadata"]["name"] in self.machines
        self.draining = launched and self.dice.random() < 0.3
        self.given_up |= {self.machines[claim["metadata"]["name"]]} if launched else set()
        self.vanished[_pool_of(claim)] += not launched
        self._note_refused(claim)
        super().give_up(claim)
        self.draining = False

    def _note_refused(self, claim: Json) -> None:
        pool, now_s = _pool_of(claim), self.world.now_s
        last_s = self.refused_s.get(pool, now_s - 2 * FORGOT_S)
        if self.asked_s[claim["metadata"]["name"]] > last_s:
            self.in_a_row[pool] = 1 if now_s - last_s > FORGOT_S else self.in_a_row[pool] + 1
        self.refused_s[pool] = now_s

    def asked_too_soon(self, pool: str, looked_s: Seconds) -> bool:
        """Whether a pool is asked for in its rest, by a look that began after its last claim was gone."""
        gone_s, refused = self.refused_s.get(pool, looked_s), self.in_a_row[pool] - UNHEARD
        rests_s = min(FORGOT_S, REST_S * 2 ** (refused - 1)) if refused > 0 else 0.0
        return gone_s < looked_s and self.world.now_s < gone_s + rests_s

    def launch(self) -> None:
        """As Karpenter launches; whose claim each node is stays known. Some never join."""
        faults = self.world.faults
        if self.tries < 1.0 and not self.idle and self.dice.random() < NEVER_JOIN:
            self.world.set_faults(replace(faults, boot_s=24 * HOUR))
        super().launch()
        self.world.set_faults(faults)
        self.claim_of |= {node: claim for claim, node in self.machines.items()}

    def _drains(self, asked: Asked) -> bool:
        return False  # Its pods are evicted at once: the judges look at whom it takes along.

    def names(self) -> dict[str, str]:
        """Pools by their own names."""
        return {name: name for name in self.world.fleet.pools}

    def event(self, claim: str, why: str) -> None:
        """Karpenter deletes a claim by itself: what was asked for is never made, and never called off."""
        self.events = self.dice.choice(("told", "never", "later"))
        super().event(claim, why)
        (posted,) = [one for one in self.kept if one["metadata"]["name"] == claim]
        self.vanished[_pool_of(posted)] += 1
        self._note_refused(posted)

    def owes(self, pool: str) -> int:
        """Claims of a pool that wait."""
        waiting = [claim for claim in self.claims() if claim["metadata"]["name"] in self.stuck]
        return sum(_pool_of(claim) == pool for claim in waiting)

    def changes(self) -> list[str]:
        """What was asked for."""
        return self.lines(CHANGE)

    @property
    def faults(self) -> list[Fault]:
        """None is told: they are planned and taken."""
        return []

    @faults.setter
    def faults(self, planned: list[Fault]) -> None:
        self._faults.clear()
        for fault in planned:
            assert isinstance(fault.what, int | str)
            self.fail(fault.what, on=fault.method or CHANGE)


class KarpenterHazard(NamingHazard):
    """A worker's way to it, looked at and full of faults."""

    look = "GET .*/nodeclaims"
    tries = TRIES
    refusals = {Throttled: 429, Busy: 429, NoCapacity: 403, QuotaExceeded: 403}  # noqa: RUF012  # As the class above.

    looked_s: Seconds = 0.0

    def describe(self) -> Sequence[PoolState]:
        """As it tells it: what was gone before is known."""
        began_s = self._aws.world.now_s
        told = super().describe()
        self.looked_s = began_s
        return told

    def grow(self, pool: str, to: int, zone: str = "", *, gate: Gate = OPEN, token: str = "", **more: Any) -> PoolState:
        """Looked at: what was refused a moment ago rests."""
        karpenter: ChaosKarpenter = self._aws
        if karpenter.asked_too_soon(pool, self.looked_s):
            refused = f"{karpenter.in_a_row[pool]} refusals in a row"
            self._invariants.broke("ignored_refusals", f"{pool} is asked for again in its rest after {refused}")
        with self._invariants.piecemeal(self._hazard.worker):
            return super().grow(pool, to, zone, gate=gate, token=token, **more)

    def _open(self, account: CloudAccount) -> Any:
        source = source_of("kubeconfig-env:TEST", {"TEST": self._aws.kubeconfig()})
        fleet = self._aws.world.fleet.pools
        pools = {
            name: PoolPolicy(instance_type=pool.instance_type, capacity_type=pool.capacity_type)
            for name, pool in fleet.items()
        }
        return KarpenterPools(Api(source, patience=ONCE, pause=lambda _: None), pools)

    def _http(self, fault: Any, method: str = "") -> Fault:
        after = fault.when == "after"
        lost = ("cut", "truncated", "not json") if after else ("reset", 500, 503, 302)
        known = None if after else self.refusals.get(type(fault.error))
        return Fault(known or self._aws.dice.choice(lost), "after" if after else "before", method)


def _pool_of(claim: Json) -> str:
    name: str = claim["metadata"]["labels"]["pilotlight.dev/pool"]
    return name


@contextmanager
def on_karpenter(seed: int, *, patch: pytest.MonkeyPatch) -> Iterator[list[ChaosKarpenter]]:
    """Runs of the harness have the adapter as their cloud: the servers that they opened, in order."""
    opened: dict[int, ChaosKarpenter] = {}
    with ExitStack() as stack:

        def pools(
            world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
        ) -> KarpenterHazard:
            if id(world) not in opened:
                made = ChaosKarpenter(world=world, dice=Random(f"karpenter/{seed}/{len(opened)}"), idle=seed % 3 == 1)
                stack.enter_context(api_server(made))
                opened[id(world)] = made
                invariants.owed, invariants.vanished = made.owes, made.vanished.__getitem__
                invariants.late.claims = made.claim_of
                invariants.late.given_up = invariants.purchases.given_up = made.given_up
            return KarpenterHazard(opened[id(world)], {}, hazard, invariants, off_s)

        for module in (setting, deployment):
            patch.setattr(module, "HazardPools", pools)
        servers: list[ChaosKarpenter] = []
        yield servers
        servers += opened.values()
