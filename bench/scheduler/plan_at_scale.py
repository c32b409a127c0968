"""``pilotlight plan`` on a real API server with 5,000 pods and 500 nodes: its CPU seconds, calls, Events.

``KUBECONFIG=... python bench/scheduler/plan_at_scale.py`` makes a tenth of the nodes with four GPUs and the rest
without, binds all pods but a hundred, which want GPUs (half of them apart by host, half spread by zone), takes the plan
three times, counts what the API server was asked, has three ticks act on it (on a world's machines, which never join)
and counts the Events that they wrote, and takes away what it made. Exit code 1 where a plan takes over 2 s of CPU, or a
pod has an Event twice. An otherwise empty cluster, please.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from agreement_bed import ANY, CATALOG, POOLS, Bed, api_of
from agreement_objects import HOST, ZONE, near, pod, spread
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.messages import Tick
from pilotlight.flow.reconcile import reconcile
from pilotlight.settings import Settings
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_pools import WorldPools

WAITING, ABREAST, TICKS, MOST_CPU_S = 100, 16, 3, 2.0


def main(words: Sequence[str] | None = None) -> int:
    """Make the cluster, plan, and say what it took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pods", type=int, default=5000)
    options.add_argument("--nodes", type=int, default=500)
    asked = options.parse_args(words)
    kubeconfig = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not kubeconfig:
        print("plan_at_scale: KUBECONFIG names no API server", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "catalog.yaml").write_text(CATALOG)
        made = Bed(api_of(kubeconfig), kubeconfig, f"scale-{os.getpid()}", Path(folder))
        made.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.space}})
        try:
            _make(made, asked.pods, asked.nodes)
            slow, doubled = _measure(made), _tell(made)
        finally:
            made.clear()
    return int(slow or doubled)


def _make(made: Bed, pods: int, nodes: int) -> None:
    def node(n: int) -> None:
        gpus = {"nvidia.com/gpu": "4"} if n % 10 == 0 else {}
        made.node(f"{made.space}-{n}", {ZONE: f"zone-{'abc'[n % 3]}"}, {"cpu": "64", "memory": "256Gi", **gpus}, ())

    def one(n: int) -> None:
        if n < WAITING:
            app: Any = {"labels": {"app": f"train-{n % 2}"}}
            selector = {"matchLabels": app["labels"]}
            apart = {"affinity": near("podAntiAffinity", HOST, selector)}
            rules = apart if n % 2 else {"topologySpreadConstraints": [spread(ZONE, selector)]}
            made.make(pod(f"p{n}", 4, **app, **rules))
        else:
            where = f"{made.space}-{n % nodes}"
            holds: Any = 4 if n % nodes % 10 == 0 and n < WAITING + nodes else None
            made.make(pod(f"p{n}", holds, labels={"app": f"web-{n % 50}"}, node=where))

    with ThreadPoolExecutor(ABREAST) as crowd:
        for work, count in ((node, nodes), (one, pods)):
            for done, _ in enumerate(crowd.map(work, range(count)), 1):
                if done % 100 == 0:
                    print(f"\r\033[K{done} of {count} made", end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr)
    time.sleep(5)


def _policy(made: Bed) -> Path:
    return made.policy({name: {**pool, "max": 200} for name, pool in POOLS.items()})[0]


def _measure(made: Bed) -> bool:
    """True where any plan took too long."""
    path = _policy(made)
    calls: Counter[str] = Counter()
    ask = Api.ask

    def counted(self: Api, method: str, where: str, *rest: Any, **more: Any) -> Any:
        calls[f"{method} {where.partition('?')[0]}"] += 1
        return ask(self, method, where, *rest, **more)

    Api.ask = counted  # type: ignore[method-assign, assignment]
    took = []
    for _ in range(3):
        calls.clear()
        before = resource.getrusage(resource.RUSAGE_SELF)
        plan = made.plan(path)
        after = resource.getrusage(resource.RUSAGE_SELF)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    Api.ask = ask  # type: ignore[method-assign]
    verdicts = Counter(group["verdict"] for group in plan["pods"] for _ in group["pods"])
    bought = sum(buy["count"] for buy in plan["buys"])
    print(f"CPU s of a plan: {', '.join(f'{s:.2f}' for s in took)}; {sum(calls.values())} calls of the API server")
    print(f"{dict(verdicts)} pods, {bought} nodes to buy")
    for name, count in sorted(calls.items()):
        print(f"  {count:3} {name}")
    return max(took) > MOST_CPU_S


def _tell(made: Bed) -> bool:
    """True where any pod has an Event twice."""
    given = {"API": f"kubeconfig:{made.kubeconfig}", "POLICY": str(_policy(made)), "STATE": "memory:"}
    given |= {"CATALOG": str(made.folder / "catalog.yaml"), "OUTBOX": "memory:", "CLUSTER": "scale", "POOLS": "advisor"}
    settings = Settings.from_environ({f"PILOTLIGHT_{name}": value for name, value in given.items()})
    plain = App(settings)
    pools = [WorldPool(name=n, instance_type=p.instance_type) for n, p in plain.policy.pools.items()]
    world = World(plain.catalog, pools, clock=VirtualClock(datetime.now(UTC)))
    cluster = KubernetesCluster(made.api, plain.policy, plain.clock)
    deps = replace(plain.deps, policy=plain.policy, cluster=cluster, pools=WorldPools(world), mode="act")
    told = Counter[str]()
    for n in range(TICKS):
        answer = reconcile(deps, Tick(cluster="scale", identity=f"t{n}"))
        events = made.api.get(f"/api/v1/namespaces/{made.space}/events", ANY)["items"]
        ours = [e for e in events if "pilotlight" in e.get("reportingComponent", "")]
        told = Counter(f"{e['involvedObject']['name']} {e['reason']}" for e in ours for _ in range(e.get("count") or 1))
        print(f"tick {n + 1}: {answer.outcome}, {len(ours)} Events on pods")
    print(f"Events of a pod for one reason: at most {max(told.values(), default=0)}")
    return max(told.values(), default=0) > 1


if __name__ == "__main__":
    sys.exit(main())
