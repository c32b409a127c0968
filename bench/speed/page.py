"""Cost of the live page with 500 nodes and 5,000 pods: processor time of the server, and of a browser.

The cluster is objects in memory, so reading a real one is not in it; metered days of a month and forty decisions are in
the state. Each figure is the median of its rounds, in milliseconds of processor time of this process, or of the page.
"""

import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.bill import CostLine, LineKind, MeterDay
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import call_steps, ledger
from pilotlight.tools.serve import request_gate
from pilotlight.tools.serve.http_server import HttpServer
from pilotlight.tools.serve.live import live_stream
from pilotlight.tools.serve.live.live_look import Looks
from pilotlight.tools.serve.live.live_page import all_of, news_of, page
from pilotlight.tools.serve.live.live_view import Live
from pilotlight.units import MILLI_PER_GPU
from pilotlight.world.world_clock import VirtualClock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "flow"), str(ROOT / "tests" / "tools" / "serve")]

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NODES, PODS, WAITING, DECISIONS = 500, 5_000, 200, 40
ROUNDS, OPENED = 15, 5
CHANGED = 25
"""Nodes that are other than they were at an update."""
RENDER_MS, UPDATE_MS = 300.0, 50.0
MODELS = {"T4": "0.526", "A10G": "1.01", "L4": "0.80", "A100": "4.10", "H100": "12.29"}


class Still:
    """A cluster and a cloud that are as they were made."""

    def __init__(self, nodes: Sequence[Node], pending: Sequence[PodDemand]) -> None:
        self.view = ClusterView(nodes=tuple(nodes), pending=tuple(pending))

    def observe(self) -> ClusterView:
        """The same every time."""
        return self.view

    def describe(self) -> Sequence[PoolState]:
        """The pools' sizes."""
        return [PoolState(name=name.lower(), desired=NODES // len(MODELS)) for name in MODELS]


class Site:
    """The parts of a deployment that looks need."""

    def __init__(self, deps: Deps, clock: VirtualClock) -> None:
        self.deps, self.clock, self.alerts, self.speed = deps, clock, deps.state, 1.0


def site() -> Site:
    """A deployment over the cluster in memory."""
    clock = VirtualClock(NOW)
    types = {
        name: InstanceType(
            cloud="world",
            gpu_model=name,
            gpus=8,
            prices={"on-demand": Price(usd_per_hour=Decimal(usd) * 8, source="bench", date="2026-11-01")},
        )
        for name, usd in MODELS.items()
    }
    catalog = Catalog(name="bench", as_of=NOW, instance_types=types)
    policy = Policy(
        version=1,
        pools={name.lower(): PoolPolicy(instance_type=name, max=200) for name in MODELS},
        classes={"batch": ClassPolicy(gpu_models="any")},
        budgets=(Budget(name="all", usd=Decimal(4_000_000)),),
    )
    still = Still([_node(n) for n in range(NODES)], [_waits(n) for n in range(WAITING)])
    deps = Deps(
        name="bench",
        cluster=still,  # type: ignore[arg-type]
        pools=still,  # type: ignore[arg-type]
        state=MemoryState(clock),
        outbox=MemoryOutbox(),
        clock=clock,
        policy=policy,
        offerings=offerings(policy, catalog)[0],
        throughput={"batch": dict.fromkeys(MODELS, 1.0)},
        mode="act",
    )
    return Site(deps, clock)


def _node(n: int) -> Node:
    """Ten pods each: up to eight hold a GPU, the rest none."""
    model = list(MODELS)[n % len(MODELS)]
    used = 0 if n % 20 == 0 else 8 if n % 3 else 5
    each = PODS // NODES
    pods = [_bound(n, i, gpu=i < used) for i in range(each)]
    return Node(
        name=f"ip-10-0-{n // 250}-{n % 250}.ec2.internal",
        pool=model.lower(),
        instance_type=model,
        capacity_type="on-demand",
        zone=f"us-east-1{'abc'[n % 3]}",
        created_at=NOW - timedelta(hours=2),
        ready=True,
        devices=(0,) * used + (MILLI_PER_GPU,) * (8 - used),
        pods=tuple(pods),
        idle_since=None if used else NOW - timedelta(minutes=1),
    )


def _bound(n: int, i: int, *, gpu: bool) -> BoundPod:
    wants = GpuRequest(count=1) if gpu else None
    return BoundPod(uid=f"u{n}-{i}", namespace=f"team-{n % 7}", name=f"train-{n:03}-{i}-abcde", gpu=wants, team="ml")


def _waits(n: int) -> PodDemand:
    wants = shape(gpu=GpuRequest(count=16 if n % 50 == 0 else 4), workload_class="batch", team=f"team-{n % 7}")
    since = NOW - timedelta(seconds=n)
    return PodDemand(uid=f"w{n}", namespace=f"team-{n % 7}", name=f"wait-{n}", shape=wants, created_at=since)


def later(was: Live) -> Live:
    """The same with some nodes that others work on."""
    names = list(was.nodes)[:CHANGED]
    other = {name: msgspec.structs.replace(was.nodes[name], used=3, why="as it is now") for name in names}
    return msgspec.structs.replace(
        was, nodes={**was.nodes, **other}, at=was.at + timedelta(seconds=5), used=was.used - 9
    )


def past(of: Site) -> None:
    """A month of metered days, an hour of this one, and decisions."""
    deps, today = of.deps, NOW.date()
    names = [node.name for node in deps.cluster.observe().nodes]
    for back in range(1, 20):
        lines = [_line(name, kind) for name in names for kind in KINDS]
        meter_nodes.close_day(
            deps.state, deps.name, MeterDay(day=today - timedelta(days=back), until=NOW, lines=tuple(lines))
        )
    for _ in range(2):
        billing(deps, Tick(cluster=deps.name, what="billing"))
        of.clock.advance(of.clock.elapsed_s() + 3600.0)
    _, plan = preview(deps, releases=True, explain=False)
    made = call_steps.of_plan(plan, {name.lower(): 0 for name in MODELS})
    done = tuple(msgspec.structs.replace(step, state="done") for step in made)
    for n in range(DECISIONS):
        at = NOW - timedelta(minutes=n)
        ledger.close(
            deps.state,
            Record(
                id=ledger.new_id(at, str(n)),
                cluster=deps.name,
                flow="provision",
                trigger="bench",
                at=at,
                status="closed",
                plan=plan,
                steps=done,
            ),
        )


KINDS: tuple[LineKind, ...] = ("used", "idle")


def _line(node: str, kind: LineKind) -> CostLine:
    return CostLine(
        kind=kind,
        pool="a100",
        node=node,
        instance_type="A100",
        capacity_type="on-demand",
        team="ml" if kind == "used" else "",
        gpu_hours=Decimal(96),
        usd=Decimal(393),
    )


def in_browser(of: Site, now: Live) -> tuple[float, float]:
    """Milliseconds that the page's thread works to show all of it, and for one update, its layout with it."""
    from live_site import App

    from chromium import Chromium

    pages = live_stream.pages(App(of))  # type: ignore[arg-type]
    listener, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()
    server = HttpServer(request_gate.guard_paths(pages, {}), listener)
    threading.Thread(target=server.serve, args=(lambda: not stop.is_set(),), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Chromium(Path(folder))
        try:
            return _shown(browser, address, now)
        finally:
            browser.end()
            stop.set()


def _shown(browser: Any, address: str, now: Live) -> tuple[float, float]:
    renders, updates = [], []
    for _ in range(OPENED):
        with browser.page(1600, 1000) as shown:
            shown.open(address)
            shown.until("!document.getElementById('all').hidden && document.getElementById('all').offsetHeight > 0")
            renders.append(shown.busy_ms())
            old = {name: now.nodes[name] for name in list(now.nodes)[CHANGED : 2 * CHANGED]}
            for nodes in ({name: now.nodes[name] for name in list(now.nodes)[:CHANGED]}, old):
                data = msgspec.json.encode({"used": 1, "nodes": nodes}).decode()
                before = shown.busy_ms()
                shown.run(f"take('news', {data}); document.body.offsetHeight")
                updates.append(shown.busy_ms() - before)
    return statistics.median(renders), statistics.median(updates)


def main() -> int:
    """Print the figures; exit 1 where one is over its limit."""
    of = site()
    past(of)
    looks = Looks(of, ["bench"])  # type: ignore[arg-type]
    first = looks.newest()
    pods = sum(len(tile.pods) + tile.more for tile in first.nodes.values())
    print(f"{len(first.nodes)} nodes, {PODS:,} pods on them ({pods:,} hold a GPU), {WAITING} wait")
    now = later(first)
    render = _show("server, first view: the page and all of the cluster, written", lambda: (page(), all_of(first)))
    update = _show(f"server, update: what is new with {CHANGED} nodes changed, written", lambda: news_of(first, now))
    look = _show("server, look: state, plan, tiles and words", lambda: looks._look(-1.0))
    _show("server, look with money, once a minute", lambda: looks._look(float("inf")))
    sizes = [len(page()[0]), len(all_of(first)), len(news_of(first, now))]
    print("  {:,} bytes of page, {:,} of first view, {:,} of update".format(*sizes))
    met = render + look <= RENDER_MS and update + look <= UPDATE_MS
    if shutil.which("chromium"):
        shown, changed = in_browser(of, now)
        print(f"  {shown:8.1f}  browser, from nothing to all of it\n  {changed:8.1f}  browser, update with its layout")
        met = met and shown <= RENDER_MS and changed <= UPDATE_MS
    print(f"limits {RENDER_MS:.0f} and {UPDATE_MS:.0f} ms: {'met' if met else 'MISSED'}")
    return int(not met)


def _show(what: str, work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1000)
    middle = statistics.median(taken)
    print(f"  {middle:8.1f}  {what}")
    return middle


if __name__ == "__main__":
    raise SystemExit(main())
