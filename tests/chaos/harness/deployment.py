"""One deployment of a run: its clusters, each with a world, a cloud, events and people of its own, on one state.

One seed in five has two. What they have bears the same names in both (pools, budgets, pods, instances), and in the
second the cloud or the API server does not answer for a while.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from harness.deliveries import Delivery, Post
from harness.faults.hazard_ports import HazardChannel, HazardCluster, HazardOutbox, HazardPools, HazardState
from harness.faults.luck import outage
from harness.judges.crossing import Crossing, OneCluster
from harness.judges.deadlines import with_deadlines
from harness.people import People, with_people
from harness.scene import CATALOG, CHANNEL
from harness.setting import Setting, SkewedClock, drawn
from pilotlight.ports.seams import Seams
from pilotlight.settings import ClusterSettings, Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app
from pilotlight.world.world_cluster import WorldCluster

SECOND = "second"
EVERY = 5


class Site(NamedTuple):
    """One cluster of a run: its world, what is sent about it, and the people beside it."""

    setting: Setting
    post: Post
    people: People | None = None


class Deployment:
    """Its clusters pass the same time. The first one's store is the store of all."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = tuple(sites)
        self.first = sites[0].setting
        self._ids: dict[str, str] = {}
        for site in sites:
            site.setting.lines = self.first.lines

    @property
    def now_s(self) -> Seconds:
        """The second of the worlds."""
        return self.first.world.now_s

    @property
    def due(self) -> list[Post]:
        """Whose events are there."""
        return [site.post for site in self.sites if site.post.due]

    def of(self, delivery: Delivery) -> Site:
        """Whose event it is."""
        return next(site for site in self.sites if site.setting.cluster == delivery.cluster)

    def until_next_s(self) -> Seconds:
        """How long it is until something comes, if nobody does anything."""
        return min(site.post.until_next_s() for site in self.sites)

    def advance(self, to_s: Seconds) -> None:
        """Let time pass, and let come what comes until then."""
        while (next_s := min(site.post.next_s() for site in self.sites)) <= to_s:
            self._pass(next_s)
        self._pass(to_s)

    def _pass(self, to_s: Seconds) -> None:
        for site in self.sites:
            site.post.advance(to_s)

    def died(self, worker: str) -> None:
        """A worker died."""
        for site in self.sites:
            site.setting.invariants.died(worker)

    def app(self, worker: int, pause: Callable[[str], None], at: Callable[[], Delivery | None]) -> App:
        """A new process of a worker, which works on the delivery that ``at`` gives: nothing of an earlier one is left
        but the store."""
        if len(self.sites) == 1:
            return self.first.app(worker, pause)
        judges = {site.setting.cluster: site.setting.invariants for site in self.sites}
        crossing = Crossing(judges, lambda: _cluster(at()), self._ids)
        hazard = self.first.hazard(worker, pause)
        return app(
            Settings(mode="act", clusters={site.setting.cluster: ClusterSettings() for site in self.sites}),
            state=HazardState(OneCluster(self.first.store(), crossing), hazard, crossing),
            outbox=HazardOutbox(hazard, crossing),
            channels={CHANNEL: HazardChannel(hazard, crossing)},
            clock=SkewedClock(self.first.world.clock, self.first.scene.skews[worker]),
            policy=self.first.scene.policy,
            catalog=CATALOG,
            sites={site.setting.cluster: self._seams(site.setting, worker, pause, crossing) for site in self.sites},
        )

    def _seams(self, setting: Setting, worker: int, pause: Callable[[str], None], crossing: Crossing) -> Seams:
        def before(call: str) -> None:
            crossing.named(setting.cluster, call)
            pause(call)

        hazard = setting.hazard(worker, before)
        return {
            "cluster": HazardCluster(WorldCluster(setting.world), hazard, setting.invariants, setting.scene.cluster_s),
            "pools": HazardPools(setting.world, hazard, setting.invariants, setting.scene.cloud_s),
            "policy": setting.scene.policy,
        }


def _cluster(delivery: Delivery | None) -> str:
    """The cluster that a delivery is worked on for; alerts are told for all."""
    return "" if delivery is None or delivery.function == "alert_fanout" else delivery.cluster


def drawn_deployment(seed: int, deliveries: int, file: Path) -> tuple[Random, Deployment]:
    """A seed's generator, and its clusters."""
    rng, scene, luck = drawn(seed, deliveries)
    people = Random(f"people/{seed}")
    scene = with_deadlines(with_people(scene, people), Random(f"deadlines/{seed}"))
    first = Setting(seed, scene, luck, file)
    sites = [_site(first, rng, people)]
    if seed % EVERY == EVERY - 1:
        sites.append(_second(seed, deliveries, first))
    return rng, Deployment(sites)


def _second(seed: int, deliveries: int, first: Setting) -> Site:
    rng, scene, luck = drawn(f"{seed}/{SECOND}", deliveries)
    # Their store is one, and what befalls it is the first one's luck.
    shared = [each for each in first.luck.outages if each.port == "state"]
    own = [each for each in luck.outages if each.port != "state"]
    luck.outages = (*shared, *own, outage(rng, rng.choice(("pools", "cluster"))))
    people = Random(f"people/{seed}/{SECOND}")
    scene = with_people(scene, people)._replace(store_s=first.scene.store_s)
    return _site(Setting(seed + 1, scene, luck, first.file, cluster=SECOND), rng, people)


def _site(setting: Setting, rng: Random, own: Random) -> Site:
    post, seen = Post(setting, rng), setting.invariants
    people = People(setting.world, setting.cluster, setting.store(), seen.orders, seen.purchases, own)
    post.on_minute.append(people.minute)
    return Site(setting, post, people)
