"""Runs of ``homes_live.py``: pods on a real API server, Pilotlight in act on them, and what came of it."""

import json
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import msgspec

from live_cloud import ANY, JOIN_S, LiveCloud, access_of, account, eventually, kubeconfig, watch
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING, Api, Missing
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.events import encode
from pilotlight.codec.kubernetes.nodes.nodes import NOT_READY
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.offers.offerings import offerings
from pilotlight.doorway import receive
from pilotlight.facts.capacity import Offering
from pilotlight.facts.messages import Tick
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import is_gpu
from pilotlight.flow.reconcile import reconcile
from pilotlight.ports.seams import Seams
from pilotlight.settings import Settings
from pilotlight.tools.checkup.pool_homes import homed_pools
from pilotlight.wiring import App

CATALOG = Path(__file__).resolve().parents[2] / "data" / "catalogs" / "aws-us-east-1.yaml"
TYPES = (
    *("g4dn.xlarge", "g4dn.12xlarge", "g4dn.metal", "g5.xlarge", "g5.12xlarge", "g5.48xlarge"),
    *("p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p4d.24xlarge"),
)
MOST_RATIO, MOST_AFTER_S = 1.02, 5.0
CREATORS, DELIVERERS = 16, 4
WAITED_S = 240.0

Object = dict[str, Any]
NO_SEAMS: Seams = {}


@dataclass
class Figures:
    """What a run came to."""

    trace: str
    placement: str
    events: bool
    joins: int
    pods: int
    bound: int = 0
    plan_usd: float = 0.0
    lit_usd: float = 0.0
    bound_s: float = 0.0
    after_ready_s: float = 0.0
    nodes: int = 0
    unused: int = 0
    writes: dict[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Dollars lit to dollars planned."""
        return self.lit_usd / self.plan_usd if self.plan_usd else 0.0

    @property
    def missed(self) -> bool:
        """True where homes do not hold what they are to."""
        late = self.after_ready_s > MOST_AFTER_S
        return self.placement == "homes" and (self.ratio > MOST_RATIO or late or self.unused > 0 or not self.bound_s)


def policy_of(placement: str, homed: Sequence[str] = ()) -> Policy:
    """A policy with a pool for each type; nodes of those that are ``homed`` are born closed."""
    return read_policy(json.dumps(policy_text(placement, homed)).encode(), "homes_live")


def policy_text(placement: str, homed: Sequence[str] = ()) -> Object:
    """As a file has it."""
    birth = msgspec.to_builtins(BIRTH_TAINT)
    pools = {
        name.replace(".", "-"): {"instance_type": name, "max": 2000, "cloud": "eks"}
        | ({"taints": [birth]} if name.replace(".", "-") in homed else {})
        for name in TYPES
    }
    text: Object = {"version": 1, "pools": pools, "classes": {"batch": {"gpu_models": "any"}}, "placement": placement}
    alike = {"batch": dict.fromkeys(("T4", "A10G", "V100", "A100"), 1)}
    text["prices"] = {"max_age_days": 10_000, "throughput": alike}
    return text


class Site(NamedTuple):
    """An API server as its admin, and the path of a kubeconfig of Pilotlight's account."""

    api: Api
    access: Access
    path: str


class Live:
    """One run: its namespace, its pods, Pilotlight and its cloud."""

    cloud_made = LiveCloud
    seams: Seams = NO_SEAMS
    """What Pilotlight works with beside its cluster and cloud."""

    def __init__(self, one: Figures, site: Site) -> None:
        self.one, self.api, self.access, self.path = one, site.api, site.access, site.path
        self.mark = f"h{uuid.uuid4().hex[:8]}"
        self.space = f"/api/v1/namespaces/{self.mark}/pods"
        self.over, self.all_bound = threading.Event(), threading.Event()
        self.bound: dict[str, str] = {}
        self.seen_s: dict[str, float] = {}
        self.last_bind_s = 0.0
        self.usable_s: dict[str, float] = {}
        self.events: SimpleQueue[bytes] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self.errors: list[str] = []
        space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": self.mark}}
        self.api.ask("POST", "/api/v1/namespaces", NOTHING, space, JSON)
        eventually(lambda: self.api.get(f"/api/v1/namespaces/{self.mark}/serviceaccounts/default", NOTHING))

    def make(self, pods: Sequence[Object], over_s: float = 0.0) -> None:
        """Create the pods, at once or one after another."""
        if over_s:
            for each in pods:
                self.api.ask("POST", self.space, NOTHING, each, JSON)
                time.sleep(over_s / len(pods))
            return
        with ThreadPoolExecutor(CREATORS) as crowd:
            list(crowd.map(lambda each: self.api.ask("POST", self.space, NOTHING, each, JSON), pods))

    def begin(
        self, cluster: KubernetesCluster, join_s: tuple[float, float] = JOIN_S, made: type = KubernetesCluster
    ) -> tuple[App, LiveCloud]:
        """Pilotlight in act, and its cloud, with the pools homed that should be for what waits."""
        catalog = read_catalog(CATALOG.read_bytes(), str(CATALOG))
        plain = policy_of(self.one.placement)
        offered, _ = offerings(plain, catalog)
        shapes = [each.shape for each in cluster.observe().pending]
        homed = (
            homed_pools(shapes, offered, plain, plain.prices.throughput, datetime.now(UTC))
            if self.one.placement == "homes"
            else {}
        )
        policy = policy_of(self.one.placement, tuple(homed))
        by_pool: dict[str, Offering] = {each.pool: each for each in offered}
        cloud = self.cloud_made(self.api, policy, by_pool, self.one.joins, self.mark, join_s)
        ours = made(Api(of_file(Path(self.path))), policy, SystemClock())
        given = {"CLUSTER": self.mark, "STATE": "memory:", "OUTBOX": "memory:", "MODE": "act"}
        settings = Settings.from_environ({f"PILOTLIGHT_{name}": value for name, value in given.items()})
        own: Seams = {**self.seams, "cluster": ours, "pools": cloud, "policy": policy, "catalog": catalog}
        return App(settings, **own), cloud

    def follow(self) -> None:
        """Note where pods are bound and nodes may be used, and keep the Events of both to be delivered."""
        for watched in (self._pods, self._nodes, self._events):
            threading.Thread(target=watched, daemon=True).start()

    def _pods(self) -> None:
        for event in watch(self.access, self.space, self.over):
            name, node = event["object"]["metadata"]["name"], event["object"]["spec"].get("nodeName", "")
            if node and name not in self.bound:
                self.seen_s[name] = self.last_bind_s = time.monotonic()
                self.bound[name] = node
                if len(self.bound) == self.one.pods:
                    self.all_bound.set()

    def _nodes(self) -> None:
        for event in watch(self.access, "/api/v1/nodes", self.over):
            meta, spec, status = (event["object"].get(key, {}) for key in ("metadata", "spec", "status"))
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
            kept = any(taint["key"] == NOT_READY for taint in spec.get("taints", ()))
            ours = meta.get("labels", {}).get("homes-live") == self.mark
            if ours and ready and not kept and any(is_gpu(name) for name in status.get("allocatable", ())):
                self.usable_s.setdefault(meta["name"], time.monotonic())

    def _events(self) -> None:
        for event in watch(self.access, "/api/v1/events", self.over):
            about = event["object"].get("involvedObject", {})
            if event["type"] != "DELETED" and self.mark in (
                about.get("namespace"),
                about.get("name", "").split("-")[0],
            ):
                self.events.put(json.dumps(event["object"]).encode())

    def serve(self, app: App, tick_s: float) -> None:
        """Deliver ticks, and Events where they are, until it is over."""
        self._workers = [threading.Thread(target=self._tick, args=(app, tick_s), daemon=True)]
        for _ in range(DELIVERERS if self.one.events else 0):
            self._workers.append(threading.Thread(target=self._deliver, args=(app,), daemon=True))
        for worker in self._workers:
            worker.start()

    def end(self) -> None:
        """No tick and no delivery goes on; one that waits for nodes would act on the pods of the next run."""
        self.over.set()
        for worker in self._workers:
            worker.join()

    def _tick(self, app: App, tick_s: float) -> None:
        n = 0
        if self.one.events:
            self.over.wait(tick_s)
        while not self.over.is_set():
            due = time.monotonic() + tick_s
            body = encode(Tick(cluster=self.mark, what="reconcile", identity=f"t{n}"), id=f"t{n}")
            answer = receive(app, "capacity_reconcile", body, {}, spare_s=inf)
            if answer.status >= HTTPStatus.BAD_REQUEST:
                self.errors.append(str(answer.body))
            n += 1
            self.over.wait(max(0.0, due - time.monotonic()))

    def _deliver(self, app: App) -> None:
        while not self.over.is_set():
            with suppress(Empty):
                answer = app.receive("pod_pending", self.events.get(timeout=0.5), {"content-type": "application/json"})
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    self.errors.append(str(answer.body))


@contextmanager
def admitted(config: str = "") -> Iterator[Site]:
    """The API server with Pilotlight's account let in, and limited; by the kubeconfig of its admin."""
    config = config or kubeconfig()
    access, api = access_of(config), Api(of_file(Path(config)))
    pools = [name.replace(".", "-") for name in TYPES]
    with tempfile.TemporaryDirectory() as folder, account(api, access, pools, Path(folder)) as path:
        yield Site(api, access, path)


def run(site: Site, one: Figures, pods: Sequence[Object], *, tick_s: float, arriving_s: float = 0.0) -> None:
    """One run, with everything that it made taken away."""
    api, live = site.api, Live(one, site)
    live.make(pods)
    app, cloud = live.begin(KubernetesCluster(api, policy_of(one.placement), SystemClock()))
    try:
        planned = reconcile(app.deps, Tick(cluster=live.mark), dry_run=True).plan
        one.plan_usd = float(sum(buy.count * buy.usd_per_hour for buy in planned.buys)) if planned else 0.0
        if arriving_s:
            api.ask("DELETE", live.space, NOTHING)
            eventually(lambda: none_left(api, live.space))
        with counted(api) as calls:
            begun = time.monotonic()
            live.follow()
            live.serve(app, tick_s)
            if arriving_s:
                live.make(pods, arriving_s)
            live.all_bound.wait(WAITED_S)
            _measure(one, live, cloud, begun)
        one.writes = dict(sorted(calls.items()))
    finally:
        live.end()
        eventually(lambda: api.ask("DELETE", live.space, NOTHING))
        cloud.close()
        api.ask("DELETE", f"/api/v1/namespaces/{live.mark}", NOTHING)


def _measure(one: Figures, live: Live, cloud: LiveCloud, begun: float) -> None:
    machines = {each.name for each in cloud.machines.values()}
    one.bound, one.nodes = len(live.bound), len(machines)
    one.lit_usd = float(cloud.usd_per_hour())
    one.unused = len(machines - set(live.bound.values()))
    one.bound_s = round(live.last_bind_s - begun, 1) if live.all_bound.is_set() else 0.0
    one.after_ready_s = round(live.last_bind_s - max(live.usable_s.values(), default=0.0), 1)
    one.errors = (*live.errors, *cloud.failed)


@contextmanager
def counted(*admins: Api, reads: bool = False) -> Iterator[Counter[str]]:
    """Calls by which Pilotlight changes something, by verb and kind, dry runs by themselves; with ``reads`` all of its
    calls. Those of the bench are none.
    """
    calls: Counter[str] = Counter()
    ask = Api.ask

    def noted(self: Api, method: str, where: str, *rest: Any, **more: Any) -> Any:
        if (reads or method != "GET") and self not in admins:
            path, _, query = where.partition("?")
            calls[f"{'dry-run ' if 'dryRun' in query else ''}{method} {_kind(path)}"] += 1
        return ask(self, method, where, *rest, **more)

    Api.ask = noted  # type: ignore[method-assign, assignment]
    try:
        yield calls
    finally:
        Api.ask = ask  # type: ignore[method-assign]


def _kind(path: str) -> str:
    """The kind that a path is about, with its subresource: "pods", "pods/eviction"."""
    parts = path.strip("/").split("/")
    rest = parts[2 if parts[0] == "api" else 3 :]
    rest = rest[2:] if rest[:1] == ["namespaces"] and len(rest) > 2 else rest
    return "/".join(rest[::2])


def none_left(api: Api, path: str) -> None:
    """Raises while some objects of a list are there."""
    if api.get(path, ANY)["items"]:
        raise Missing("some are still there")
