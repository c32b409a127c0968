"""The composition root: settings -> adapters -> flows. Nothing is read or opened before it is asked for.

Whatever is given by name replaces what the settings would make: that is the seam for tests and replays.
"""

import gc
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from threading import RLock
from typing import TYPE_CHECKING, Unpack, cast

from pilotlight.adapters import logs
from pilotlight.settings import Settings, address_beside, default_file, deployed_settings, read

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from pilotlight.adapters.world_client import WorldClient
    from pilotlight.doorway import Function, Response
    from pilotlight.doorway.web import Answered
    from pilotlight.facts.capacity import Offering
    from pilotlight.facts.limits.checks import Token
    from pilotlight.facts.offers.catalog import Catalog, LivePrices
    from pilotlight.facts.policy import Policy
    from pilotlight.facts.workload import Finding
    from pilotlight.flow.deps import Deps
    from pilotlight.ports.clouds import Bills, Pools
    from pilotlight.ports.cluster import Cluster, GpuTelemetry, Queues
    from pilotlight.ports.delivery import AlertChannel, Outbox
    from pilotlight.ports.seams import Seams
    from pilotlight.ports.state import Clock, State
    from pilotlight.world.simulation import World

ADVISOR = "advisor"
DEFAULT_POLICY, DEFAULT_CATALOG = "examples/policy.yaml", "data/catalogs/articles.yaml"

TOLD_FOR = timedelta(minutes=10)
"""A process that lives longer than this reads again what its cloud said of prices."""

_log = logging.getLogger(logs.LOGGER)
_deploying = RLock()


@cache
def _deployed() -> "App":
    gc.set_threshold(500_000)  # A look makes as many objects, and leaves a few of them in cycles.
    logs.begin()
    return App(deployed_settings())


def app(settings: Settings | None = None, **seams: "Unpack[Seams]") -> "App":
    """The app of this process's environment, made once; or a new one of other settings and seams."""
    if settings is None and not seams:
        with _deploying:
            return _deployed()
    return App(settings or Settings(), **seams)


class App:
    """One deployment: one cluster, its policy and its ports; or many clusters, each of them ``at`` its name."""

    def __init__(self, settings: Settings, **seams: "Unpack[Seams]") -> None:
        self.settings = settings
        self._seams = seams
        # Requests come on many threads, and there must be one world, one store.
        self._lock = RLock()
        self._sites: dict[str, App] = {}
        self._credential: Callable[[], Token | None] = lambda: None
        self._told: LivePrices | None = None

    @cached_property
    def clusters(self) -> Sequence[str]:
        """The clusters it serves, by name."""
        return tuple(self.settings.clusters) or (self.settings.cluster_name,)

    def for_cluster(self, cluster: str) -> "App":
        """App of one cluster: its own policy, mode, credential and ports; state, outbox and clock are of all."""
        if not self.settings.clusters:
            return self
        with self._lock:
            if cluster not in self._sites:
                seams: Seams = {**self._seams, "state": self.state, "outbox": self.outbox, "clock": self.clock}
                if self.settings.alerts:
                    seams["alerts"] = self.alerts
                seams.update(seams.pop("sites", {}).get(cluster, {}))
                self._sites[cluster] = App(self.settings.for_cluster(cluster), **seams)
            return self._sites[cluster]

    def receive(
        self, function: "Function", body: bytes, headers: Mapping[str, str], *, dryrun: bool = False
    ) -> "Response":
        """Answer one request to a function. Never raises."""
        from pilotlight.doorway import receive

        return receive(self, function, body, headers, dryrun=dryrun)

    def respond(self, function: "Function", request: "Request") -> "Answered":
        """Answer one HTTP request to a function, as Flask takes it. Never raises."""
        from pilotlight.doorway.web import respond

        return respond(self, function, request)

    @property
    def deps(self) -> "Deps":
        """The one cluster's ports, its policy, and the offerings that it and the catalogue make."""
        with self._lock:
            if "_deps" in self.__dict__:
                self._price_anew()
            return self._deps

    def _price_anew(self) -> None:
        """A process that lives for days goes on at the prices that were told since it began."""
        if not (self._reserves or self._deps.live_prices) or self.clock.now() - self._told_at < TOLD_FOR:
            return
        if self._told != (self._read_told() or self._told):
            self._deps = replace(self._deps, offerings=self._offered())

    @property
    def late(self) -> "Deps":
        """The same for a request: opened as far as it is used. Raises what is wrong with the state or the outbox."""
        from pilotlight.doorway.functions import LateDeps

        with self._lock:
            name, clock, outbox = self.settings.cluster_name, self.clock, self.outbox
            late = LateDeps(lambda: self.deps, self._bills, name=name, state=self.state, outbox=outbox, clock=clock)
            return cast("Deps", late)

    def _bills(self) -> "Bills | None":
        from pilotlight.connections import bills_at

        return bills_at(self.settings, self.policy, self.clock)

    @cached_property
    def _deps(self) -> "Deps":
        from pilotlight.connections import advisory_policy, prices_at, spot_prices_at
        from pilotlight.facts.offers.catalog import speeds
        from pilotlight.flow.deps import Deps

        self._read_told()
        cluster, pools = self._cluster_and_pools()
        policy, mode, advice = self.policy, self.settings.mode, ""
        if self.settings.pools == ADVISOR:
            if mode in ("act", "scale-up"):
                advice = f"PILOTLIGHT_MODE is {mode}, and PILOTLIGHT_POOLS is {ADVISOR}: no cloud is asked"
                _log.warning("advice only", extra={"data": {"why": advice}})
            policy, mode = advisory_policy(policy), "observe" if mode == "observe" else "advise"
        return Deps(
            name=self.settings.cluster_name,
            cluster=cluster,
            pools=pools,
            state=self.state,
            outbox=self.outbox,
            clock=self.clock,
            policy=policy,
            offerings=self._offered(),
            throughput=speeds(self.catalog.throughput, self.policy.prices.throughput),
            mode=mode,
            advice=advice,
            bills=self._bills(),
            queues=self._queues,
            alerts=self.alerts,
            credential=self._credential,
            pause=self._pause,
            live_prices=prices_at(self.settings, self.policy),
            spot_prices=spot_prices_at(self.settings),
            telemetry=self._telemetry,
        )

    def _offered(self) -> "tuple[Offering, ...]":
        """Offerings of the policy's pools, at the catalogue's prices or those that the cloud told since."""
        offered, findings = self._priced()
        for finding in findings:
            _log.warning("finding", extra={"data": {"subject": finding.subject, "why": finding.message}})
        return offered

    def price_offerings(self) -> "tuple[tuple[Offering, ...], tuple[Finding, ...]]":
        """Offerings of the policy's pools, and findings on their types and prices, without the cluster."""
        with self._lock:
            self._read_told()
            return self._priced()

    def _priced(self) -> "tuple[tuple[Offering, ...], tuple[Finding, ...]]":
        from pilotlight.connections import region_at
        from pilotlight.decide.offers.offerings import offerings

        region, told = region_at(self.settings), self._told
        if told is None:
            return offerings(self.policy, self.catalog, region)
        from pilotlight.decide.offers.live_prices import told_offerings

        return told_offerings(self.policy, self.catalog, told, region)

    @property
    def _reserves(self) -> bool:
        return any(pool.capacity_type == "reserved" for pool in self.policy.pools.values())

    def _read_told(self) -> "LivePrices | None":
        """Prices that its cloud, or a bill of what is reserved, told the state; None where it does not tell, or does
        not open: the known stay."""
        from pilotlight.connections import prices_at

        if not self._reserves and prices_at(self.settings, self.policy) is None:
            return None
        self._told_at = self.clock.now()
        from pilotlight.errors import PilotlightError
        from pilotlight.state_schema.billing_records import PRICES

        try:
            entry = PRICES.get(self.state, self.settings.cluster_name)
        except PilotlightError as no:
            _log.warning("prices as they were known", extra={"data": {"why": str(no)}})
            return None
        self._told = entry.value if entry is not None else self._told
        return entry.value if entry is not None else None

    @cached_property
    def _queues(self) -> "Queues | None":
        """The policy's queues, whose lengths can be read."""
        if "queues" in self._seams or not self.policy.queues:
            return self._seams.get("queues")
        from pilotlight.adapters.queues import PolicyQueues

        return PolicyQueues(self.policy.queues, self.settings.secret, self.settings.environ)

    @cached_property
    def _telemetry(self) -> "GpuTelemetry | None":
        """Telemetry of GPUs, where it is set up or asked for."""
        if "telemetry" in self._seams:
            return self._seams["telemetry"]
        from pilotlight.connections import telemetry_at

        return telemetry_at(self.settings, self.policy, self.served_world)

    @cached_property
    def speed(self) -> float:
        """Seconds of the clock in one of the wall's; 0 where it is led by hand."""
        if "clock" in self._seams:
            return 0.0
        return self.served_world.time().speed if self.served_world else 1.0

    def _pause(self, seconds: float) -> None:
        if self.speed:
            time.sleep(seconds / self.speed)

    @cached_property
    def policy(self) -> "Policy":
        """The policy file's; raises ``BadPolicy`` or ``BadInput``."""
        if "policy" in self._seams:
            return self._seams["policy"]
        from pilotlight.codec.policy_file import read_policy

        where = self.settings.policy or str(default_file(DEFAULT_POLICY))
        return read_policy(read(where), where)

    @cached_property
    def catalog(self) -> "Catalog":
        """The catalogue with the policy's price files; raises ``BadInput``."""
        if "catalog" in self._seams:
            return self._seams["catalog"]
        from pilotlight.adapters.prices.price_files import FilePrices

        first = self.settings.catalog or str(default_file(DEFAULT_CATALOG))
        policy = self.settings.policy or str(default_file(DEFAULT_POLICY))
        return FilePrices([first, *(address_beside(policy, name) for name in self.policy.prices.files)], read).catalog()

    @cached_property
    def clock(self) -> "Clock":
        """The one given, or that of the world outside, or the wall's."""
        if "clock" in self._seams:
            return self._seams["clock"]
        from pilotlight.adapters.clocks import ServedClock, SystemClock

        return ServedClock(self.served_world) if self.served_world else SystemClock()

    @cached_property
    def state(self) -> "State":
        """The state that survives between events."""
        if "state" in self._seams:
            return self._seams["state"]
        from pilotlight.adapters.state.counted import CountedState

        return CountedState(self._state_at(self.settings.state))

    def _state_at(self, address: str) -> "State":
        from pilotlight.connections import state_at

        of_a_world = "clock" in self._seams or self.served_world is not None
        return state_at(address, self.clock if of_a_world else None, self.settings.environ)

    @cached_property
    def alerts(self) -> "State":
        """State of alerts on their way: the state, or one of their own, whose rights are others."""
        if "alerts" in self._seams:
            return self._seams["alerts"]
        return self._state_at(self.settings.alerts) if self.settings.alerts else self.state

    @cached_property
    def outbox(self) -> "Outbox":
        """Where messages go out."""
        if "outbox" in self._seams:
            return self._seams["outbox"]
        from pilotlight.connections import outbox_at

        return outbox_at(self.settings.outbox, self.settings.environ)

    @cached_property
    def channels(self) -> "Mapping[str, AlertChannel]":
        """Where alerts go, by the policy's names."""
        if "channels" in self._seams:
            return self._seams["channels"]
        from pilotlight.adapters.channels import channel_of

        named = self.policy.alerts.channels.items()
        return {name: channel_of(one, self.settings.secret, self.clock, self.alerts) for name, one in named}

    @cached_property
    def world(self) -> "World":
        """The embedded default's cluster and cloud, with the policy's pools, on the wall's clock."""
        from pilotlight.world.machines import WorldPool
        from pilotlight.world.simulation import World
        from pilotlight.world.world_clock import WallClock

        pools = [WorldPool.from_policy(name, rules) for name, rules in self.policy.pools.items()]
        return World(self.catalog, pools, clock=WallClock(datetime.now(UTC)))

    @cached_property
    def served_world(self) -> "WorldClient | None":
        """The world outside this process, where the settings name one."""
        if not self.settings.world:
            return None
        from pilotlight.adapters.world_client import WorldClient

        return WorldClient(self.settings.world)

    def _cluster_and_pools(self) -> "tuple[Cluster, Pools]":
        if "cluster" in self._seams and "pools" in self._seams:
            return self._seams["cluster"], self._seams["pools"]
        from pilotlight.connections import open_cluster

        if (opened := open_cluster(self.settings, self.policy, self.clock, self.served_world)) is not None:
            cluster, pools, self._credential = opened
            return cluster, pools
        from pilotlight.world.world_cluster import WorldCluster
        from pilotlight.world.world_pools import WorldPools

        return WorldCluster(self.world), WorldPools(self.world)
