"""The same pods on a real scheduler under one buyer at a time: a real Karpenter, Cluster Autoscaler, or Pilotlight.

Pods are drawn by a seed and come over minutes; each asks for GPUs of any model and runs 20 to 120 s once it is bound.
Whoever buys chooses among the same instance types at the catalogue's prices. A machine is usable BOOT_S after it was
asked for, and is paid for from then until it is given back, a minute at the least. Printed: dollars, waits, machines.

  KUBECONFIG=... python bench/scheduler/real_peers.py pilotlight
  ... karpenter      Karpenter of the kwok provider, started with INSTANCE_TYPES_FILE_PATH=(what `types` prints)
  ... autoscaler     Cluster Autoscaler with --cloud-provider=kwok --expander=priority, after `templates` was applied
  ... trace, policy  the same pods and types for the models: `pilotlight replay TRACE --policy POLICY --catalog
                     data/catalogs/aws-us-east-1.yaml --boot-seconds 10 --detect-seconds 1 --against PEER`

A cluster without other GPU nodes and waiting pods, please, and no other buyer at work on it. A quiet machine too: all
of them run by the wall's clock.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from live_cloud import LiveCloud, access_of, eventually, kubeconfig, room_of, watch
from live_run import CATALOG, Figures, Live, Object, Site, admitted, none_left, policy_of, policy_text
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import Conflict, PilotlightError
from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import WORKLOAD_CLASS
from pilotlight.tools.replay.traces.trace_file import COLUMNS

TYPE = "node.kubernetes.io/instance-type"
BOOT_S, RUN_S, PAID_S, LATER_S, TICK_S = 10.0, (20.0, 120.0), 60.0, 300.0, 20.0
SIZES = (1, 1, 1, 1, 2, 2, 4, 8)
"""GPUs of a pod, drawn evenly."""
NODES = "/api/v1/nodes"
POOLS, CLASSES = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NAME = "real-peers"


@dataclass
class Lit:
    """A machine: its instance type, and by the monotonic clock when it was asked for and given back."""

    kind: str
    since_s: float
    until_s: float | None = None


@dataclass
class Ledger:
    """Machines by name."""

    lit: dict[str, Lit] = field(default_factory=dict)

    def usd(self, prices: Mapping[str, float], now_s: float) -> float:
        """What they cost until now."""
        return sum(
            max(PAID_S, (one.until_s or now_s) - one.since_s) / 3600 * prices[one.kind] for one in self.lit.values()
        )

    def begin(self, name: str, kind: str) -> None:
        """It was asked for."""
        self.lit.setdefault(name, Lit(kind, time.monotonic()))

    def end(self, name: str) -> None:
        """It was given back."""
        if name in self.lit and self.lit[name].until_s is None:
            self.lit[name].until_s = time.monotonic()


def sold() -> dict[str, Offering]:
    """Every instance type as it is sold on demand."""
    found, _ = offerings(policy_of("homes"), read_catalog(CATALOG.read_bytes(), str(CATALOG)))
    return {each.instance_type: each for each in found}


def drawn(count: int, minutes: float, seed: int) -> list[tuple[float, int, float]]:
    """Second of arrival, GPUs and seconds of run of each pod."""
    rng = Random(f"real-peers/{seed}")
    whole = [(n + rng.random()) * 60 * minutes / count for n in range(count)]
    return [(at, rng.choice(SIZES), rng.uniform(*RUN_S)) for at in whole]


def pod(n: int, gpus: int, run_s: float) -> Object:
    """A pod as every buyer meets it; nobody moves it."""
    room = {"cpu": f"{500 * gpus}m", "memory": f"{2 * gpus}Gi", "nvidia.com/gpu": str(gpus)}
    box = {"name": "main", "image": "example.invalid/x", "resources": {"requests": room, "limits": room}}
    notes = {"testbed/run-seconds": f"{run_s:.1f}", "karpenter.sh/do-not-disrupt": "true"}
    notes["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
    spec = {"containers": [box], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    meta = {"name": f"p{n:04}", "labels": {WORKLOAD_CLASS[0]: "batch"}, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def karpenter_types() -> list[Object]:
    """The types in the form of Karpenter's kwok provider."""

    def needs(**values: str) -> list[Object]:
        keys = {"capacity": "karpenter.sh/capacity-type", "zone": "topology.kubernetes.io/zone"}
        return [{"key": keys[name], "operator": "In", "values": [value]} for name, value in values.items()]

    return [
        {
            "name": name,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": {**room_of(one), "nvidia.com/gpu": str(one.gpus), "ephemeral-storage": "200Gi"},
            "offerings": [
                {
                    "Price": float(one.usd_per_hour),
                    "Available": True,
                    "Requirements": needs(capacity="on-demand", zone="test-zone-a"),
                }
            ],
        }
        for name, one in sold().items()
    ]


def autoscaler_templates() -> Object:
    """ConfigMaps of Cluster Autoscaler's kwok provider: a group for each type, from none on."""
    asked = {"apiVersion": "v1alpha1", "readNodesFrom": "configmap", "nodegroups": {"fromNodeLabelKey": TYPE}}
    asked |= {"nodes": {"skipTaint": True}, "configmap": {"name": "kwok-provider-templates", "key": "templates"}}
    limits = {"cluster-autoscaler.kwok.nodegroup/min-count": "0", "cluster-autoscaler.kwok.nodegroup/max-count": "200"}
    limits["cluster-autoscaler.kwok.nodegroup/desired-count"] = "0"
    nodes: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {TYPE: name}, "annotations": limits},
            "status": {
                "capacity": {**room_of(one), "nvidia.com/gpu": str(one.gpus)},
                "allocatable": {**room_of(one), "nvidia.com/gpu": str(one.gpus)},
                "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}],
            },
        }
        for name, one in sold().items()
    ]
    cheapest = sorted(sold(), key=lambda name: sold()[name].usd_per_hour / sold()[name].gpus)
    order = "".join(f'{100 - n}: ["^{name.replace(".", "[.]")}-?"]\n' for n, name in enumerate(cheapest))
    texts = {
        "cluster-autoscaler-priority-expander": {"priorities": order},
        "kwok-provider-config": {"config": json.dumps(asked)},
        "kwok-provider-templates": {"templates": "\n---\n".join(json.dumps(each) for each in nodes)},
    }
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}
        for name, data in texts.items()
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


class Bought(LiveCloud):
    """Pilotlight's cloud, with a ledger."""

    ledger: Ledger

    def release(self, pool: str, instance: str, **how: Any) -> None:
        """Give a machine back."""
        super().release(pool, instance, **how)
        self.ledger.end(instance)

    def _buy(self, pool: str, n: int) -> None:
        super()._buy(pool, n)
        self.ledger.begin(self.ever[-1].name, self.offerings[pool].instance_type)


class Run(Live):
    """Arrivals of the pods, and how long each waited."""

    def __init__(self, site: Site, pods: Sequence[tuple[float, int, float]]) -> None:
        super().__init__(Figures("", "homes", True, 1, len(pods)), site)
        self.pods, self.ledger = pods, Ledger()
        self.came: dict[str, float] = {}

    def go(self) -> None:
        """Until every pod has run, and for as long as machines are lit, within bounds."""
        began = time.monotonic()
        for n, (at, gpus, run_s) in enumerate(self.pods):
            time.sleep(max(0.0, began + at - time.monotonic()))
            self.came[f"p{n:04}"] = time.monotonic()
            self.api.ask("POST", self.space, NOTHING, pod(n, gpus, run_s), JSON)
        ends = time.monotonic() + LATER_S
        while time.monotonic() < ends and not (self.all_bound.is_set() and self._dark()):
            time.sleep(1.0)

    def _dark(self) -> bool:
        return all(one.until_s is not None for one in self.ledger.lit.values())

    def figures(self, buyer: str, began: float) -> Object:
        """What it came to."""
        waits = sorted(self.seen_s[name] - self.came[name] for name in self.bound)
        prices = {name: float(one.usd_per_hour) for name, one in sold().items()}
        work = sum(gpus * run_s for _, gpus, run_s in self.pods) / 3600
        kinds = [one.kind for one in self.ledger.lit.values()]
        return {
            "buyer": buyer,
            "pods": len(self.pods),
            "bound": len(waits),
            "usd": round(self.ledger.usd(prices, time.monotonic()), 2),
            "gpu_hours_of_work": round(work, 3),
            "mean_wait_s": round(sum(waits) / max(1, len(waits)), 1),
            "p95_wait_s": round(waits[int(0.95 * (len(waits) - 1))], 1) if waits else None,
            "machines": len(kinds),
            "machines_by_type": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
            "lit_at_the_end": sum(one.until_s is None for one in self.ledger.lit.values()),
            "took_s": round(time.monotonic() - began),
        }


def _pilotlight(pods: Sequence[tuple[float, int, float]]) -> Object:
    with admitted() as site:
        run = Run(site, pods)
        run.cloud_made = Bought
        run.make([pod(n, gpus, run_s) for n, (_, gpus, run_s) in enumerate(pods)])
        watched = KubernetesCluster(site.api, policy_of("homes"), SystemClock())
        app, cloud = run.begin(watched, (BOOT_S - 1, BOOT_S - 1))
        cloud.ledger = run.ledger  # type: ignore[attr-defined]
        site.api.ask("DELETE", run.space, NOTHING)
        eventually(lambda: none_left(site.api, run.space))
        run.follow()
        run.serve(app, TICK_S)
        try:
            began = time.monotonic()
            run.go()
            return run.figures("pilotlight", began)
        finally:
            run.end()
            eventually(lambda: site.api.ask("DELETE", run.space, NOTHING))
            cloud.close()
            site.api.ask("DELETE", f"/api/v1/namespaces/{run.mark}", NOTHING)


def _peer(buyer: str, pods: Sequence[tuple[float, int, float]], idle_s: int) -> Object:
    config = kubeconfig()
    site = Site(Api(of_file(Path(config))), access_of(config), "")
    run = Run(site, pods)
    with _node_pool(site.api, idle_s) if buyer == "karpenter" else nullcontext():
        for watched in (run._pods, lambda: _keep(run, buyer), lambda: _bill(run, buyer)):
            threading.Thread(target=watched, daemon=True).start()
        try:
            began = time.monotonic()
            run.go()
            return run.figures(f"{buyer}:{idle_s}" if buyer == "karpenter" else buyer, began)
        finally:
            run.over.set()
            with suppress(PilotlightError):
                site.api.ask("DELETE", run.space, NOTHING)
            site.api.ask("DELETE", f"/api/v1/namespaces/{run.mark}", NOTHING)


@contextmanager
def _node_pool(api: Api, idle_s: int) -> Iterator[None]:
    """A NodePool of every type, whose empty machines go; nothing that runs is moved."""
    meta = {"metadata": {"name": NAME}}
    wanted = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": NAME}
    spec = {
        "template": {"spec": {"nodeClassRef": ref, "requirements": wanted, "expireAfter": "Never"}},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{idle_s}s",
            "budgets": [{"nodes": "100%"}],
        },
    }
    made = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", **meta}
    made |= {"spec": {"nodeRegistrationDelay": f"{BOOT_S:.0f}s"}}
    api.ask("POST", CLASSES, NOTHING, made, JSON)
    api.ask("POST", POOLS, NOTHING, {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **meta, "spec": spec}, JSON)
    try:
        yield
    finally:
        api.ask("DELETE", f"{POOLS}/{NAME}", NOTHING)
        eventually(lambda: none_left(api, CLAIMS))
        api.ask("DELETE", f"{CLASSES}/{NAME}", NOTHING)


def _bill(run: Run, buyer: str) -> None:
    """Machines from the asking until they are gone: Karpenter's claims, Cluster Autoscaler's nodes."""
    for event in watch(run.access, CLAIMS if buyer == "karpenter" else NODES, run.over):
        meta = event["object"]["metadata"]
        if event["type"] == "DELETED":
            run.ledger.end(meta["name"])
        elif kind := meta.get("labels", {}).get(TYPE):
            run.ledger.begin(meta["name"], kind)


def _keep(run: Run, buyer: str) -> None:
    """Every machine is ready BOOT_S after it joined, as by its kubelet."""
    seen: set[str] = set()
    for event in watch(run.access, NODES, run.over):
        meta, status = event["object"]["metadata"], event["object"].get("status", {})
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))
        if event["type"] != "DELETED" and TYPE in meta.get("labels", {}) and not ready and meta["name"] not in seen:
            seen.add(meta["name"])
            late_s = 0.0 if buyer == "karpenter" else BOOT_S  # Nodes of Karpenter's join only then.
            threading.Timer(late_s, _ready, (run.api, meta["name"])).start()


def _ready(api: Api, node: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now}
    with suppress(Missing, Conflict):
        api.ask("PATCH", f"{NODES}/{node}/status", NOTHING, {"status": {"conditions": [ready]}}, MERGE_PATCH)


def _trace(pods: Sequence[tuple[float, int, float]]) -> str:
    models = "|".join(sorted({one.gpu_model for one in sold().values()}))
    rows = [f"p{n:04},{at:.1f},{run_s:.1f},{gpus},1000,{models},,," for n, (at, gpus, run_s) in enumerate(pods)]
    return "\n".join([",".join(COLUMNS), *rows])


def _policy() -> Object:
    """The policy of the live runs, for every class alike: a trace says none."""
    text = policy_text("homes")
    speeds = text["prices"]["throughput"]["batch"]
    alike = dict.fromkeys(("batch", "training", "notebook", "serving"))
    text["classes"] = {name: {"gpu_models": "any"} for name in alike}
    text["prices"]["throughput"] = dict.fromkeys(alike, speeds)
    return text


PRINTED: Mapping[str, Callable[[Sequence[tuple[float, int, float]]], str]] = {
    "types": lambda _: json.dumps(karpenter_types(), indent=1),
    "templates": lambda _: json.dumps(autoscaler_templates(), indent=1),
    "policy": lambda _: json.dumps(_policy(), indent=1),
    "trace": _trace,
}


def main(words: Sequence[str] | None = None) -> int:
    """One buyer, or what it needs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=(*PRINTED, "pilotlight", "karpenter", "autoscaler"))
    options.add_argument("--pods", type=int, default=200)
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--idle", type=int, default=0, help="seconds that Karpenter keeps an empty machine")
    asked = options.parse_args(words)
    pods = drawn(asked.pods, asked.minutes, asked.seed)
    if asked.what in PRINTED:
        print(PRINTED[asked.what](pods))
        return 0
    if not kubeconfig():
        print("real_peers: KUBECONFIG names no API server", file=sys.stderr)
        return 2
    found = _pilotlight(pods) if asked.what == "pilotlight" else _peer(asked.what, pods, asked.idle)
    print(json.dumps(found, indent=1))
    return int(found["bound"] < found["pods"])


if __name__ == "__main__":
    sys.exit(main())
