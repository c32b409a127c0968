"""Cost of listing a cluster's pods: ours against the official client, in processes of their own, in one run.

``bench_listing.py [--pods 10000] [--runs 3]``. CPU is that of the listing alone, imports left out; memory is the whole
process's peak. Exits 1 when a bound is passed: 4 % of the official client's CPU and 13 % of its memory for every pod
(a page of 24 MB is in it, so that a look takes 12 calls), 1 % of its CPU for those that wait, 2 % for a look with
a node for ten pods; also when a look takes more calls, or grows by more than its exponent from a tenth of it on.

The collector comes as seldom as in a worker (``wiring``). Of a look the first and the third of a process are measured.
Causes of its CPU, timed part by part in a look of its own: 33 % reads and decodes pages, 14 % keeps once what pods of a
template have alike, 22 % makes facts of nodes and their pods, 4 % of the pods that wait; the rest looks each pod
through for times, gangs and claims. A pod that says what others of its template say is copied from their fact.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from math import log10
from statistics import median
from typing import TypeVar

from pod_pages import PODS_A_NODE, serving

T = TypeVar("T")

WAYS = {
    "official": "the official client, every pod",
    "ours": "ours, every pod",
    "look": "ours, a whole look (every pod, nodes, what is free)",
    "later": "ours, the third look of a process",
    "tenth": "ours, a look at a tenth of it",
    "waiting": "ours, only those that wait",
}
BOUNDS = (
    *(("ours", "cpu_s", 0.04), ("ours", "peak_mb", 0.13), ("waiting", "cpu_s", 0.01)),
    *(("look", "cpu_s", 0.02), ("look", "peak_mb", 0.13)),
)
CALLS, EXPONENT = 12, 1.1


def main() -> int:
    """Print medians and ratios; 1 when a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_measured(*given.one)))
        return 0
    with serving(given.pods, given.pods // PODS_A_NODE) as url, serving(given.pods // 10, given.pods // 100) as tenth:
        at = {way: tenth if way == "tenth" else url for way in WAYS}
        found = {way: [_in_a_process(way, at[way]) for _ in range(given.runs)] for way in WAYS}
    kinds = ("cpu_s", "peak_mb", "calls")
    middle = {way: {k: median(run[k] for run in runs) for k in kinds} for way, runs in found.items()}
    official = middle["official"]
    print(f"{given.pods} pods of 7.8 KB, medians of {given.runs}")
    for way, name in WAYS.items():
        cpu, peak = middle[way]["cpu_s"], middle[way]["peak_mb"]
        shares = f"{cpu / official['cpu_s']:7.2%} {peak / official['peak_mb']:7.2%}"
        print(f"{name:52} {cpu:8.3f} s CPU {peak:8.1f} MB  {shares}")
    passed = [f"{w} {k}" for w, k, most in BOUNDS if middle[w][k] > most * official[k]]
    exponent, calls = log10(middle["look"]["cpu_s"] / middle["tenth"]["cpu_s"]), middle["look"]["calls"]
    print(f"a look: {calls:.0f} calls (most {CALLS}), exponent {exponent:.2f} (most {EXPONENT})")
    passed += ["calls"] * (calls > CALLS) + ["exponent"] * (exponent > EXPONENT)
    print(f"over the bound: {', '.join(passed)}" if passed else "every bound holds")
    return 1 if passed else 0


def _in_a_process(way: str, url: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--one", way, url], capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _measured(way: str, url: str) -> dict[str, float]:
    called: list[str] = []
    gc.set_threshold(500_000)
    list_pods = _official(url) if way == "official" else _ours(way, url, called)
    for _ in range(2 if way == "later" else 0):
        list_pods()
        called.clear()
    began = time.process_time()
    kept = list_pods()
    cpu = time.process_time() - began
    assert kept is not None
    return {"cpu_s": cpu, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "calls": len(called)}


def _official(url: str) -> Callable[[], object]:
    from kubernetes import client

    configuration = client.Configuration()
    configuration.host = url
    listed: Callable[[], object] = client.CoreV1Api(client.ApiClient(configuration)).list_pod_for_all_namespaces
    return listed


def _ours(way: str, url: str, called: list[str]) -> Callable[[], object]:
    from pilotlight.adapters.clocks import SystemClock
    from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
    from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
    from pilotlight.adapters.cluster.kubernetes.reads import Reads
    from pilotlight.adapters.cluster.kubernetes.transport import Api, Decodes
    from pilotlight.facts.policy import Policy

    class Local:
        def access(self, *, anew: bool = False) -> Access:
            return Access(server=url)

    class Counted(Api):
        def get(self, path: str, decoder: Decodes[T], **query: str) -> T:
            called.append(path)
            return super().get(path, decoder, **query)

    api, policy = Counted(Local()), Policy(version=1)
    reads = Reads(api, policy)
    calls: dict[str, Callable[[], object]] = {
        "ours": reads.everywhere,
        **dict.fromkeys(("look", "later", "tenth"), KubernetesCluster(api, policy, SystemClock()).observe),
        "waiting": reads.waiting,
    }
    return calls[way]


if __name__ == "__main__":
    sys.exit(main())
