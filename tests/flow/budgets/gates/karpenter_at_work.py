"""A real Karpenter behind KUBECONFIG: whether one is at work there, and a cluster whose NodePool budgets gate.

It is Karpenter's kwok provider, started with INSTANCE_TYPES_FILE_PATH=tests/flow/budgets/gates/gpu_types.json. Its
machines are nodes without kubelets: ``LiveGate`` makes them ready, as a kubelet would.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from threading import Event, Thread
from typing import Any

import msgspec
from karpenter import GPU
from stage import Stage

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.nodepool_limits import KARPENTER, NODE_CLAIMS, NODE_POOLS
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import BadRequest, Denied, Retry
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.deps import Answer
from pilotlight.flow.reconcile import reconcile

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
NODE_CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
RUN_S = 600
MINUTES = ClassPolicy(max_runtime=RUN_S, idle_timeout=60, gpu_models="any")
Json = dict[str, Any]


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes true in time."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.2)
    return True


@cache
def is_at_work(api: Api) -> bool:
    """True where a Karpenter of the kwok provider writes its hash on a NodePool; False where none does, or can."""
    with LiveGate(api, "0") as gate:
        try:
            gate.pool(limit="0")
        except (Missing, BadRequest):
            return False
        return within(10, lambda: "karpenter.sh/nodepool-hash" in gate.nodepool()["metadata"].get("annotations", {}))


class LiveGate:
    """A NodePool of eight-GPU machines of $32 an hour behind one hard budget of so many dollars a month."""

    def __init__(self, api: Api, usd: str, **rules: Any) -> None:
        self.api, self.name = api, f"pilotlight-test-{uuid.uuid4().hex[:8]}"
        budgets = (Budget(name="all", usd=Decimal(usd), period="month"),)
        pools = {"gpu": PoolPolicy(cluster_pool=f"karpenter:{self.name}", instance_type="eight", max=40)}
        stage = Stage(pools=pools, budgets=budgets, classes=dict.fromkeys(DEFAULT_CLASSES, MINUTES), **rules)
        clock, self.stage = SystemClock(), stage
        self.deps = replace(
            stage.deps,
            cluster=KubernetesCluster(api, stage.deps.policy, clock),
            clock=clock,
            state=MemoryState(clock),
            pools=KarpenterPools(None, {}),
        )
        self.most_machines = 0
        self.over: list[str] = []
        self._made: list[str] = []
        self._over = Event()
        self._kubelet = Thread(target=self._keep, daemon=True)

    def __enter__(self) -> "LiveGate":
        self._kubelet.start()
        return self

    def __exit__(self, *_: object) -> None:
        now = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for path in reversed(self._made):
            with suppress(Missing, BadRequest):
                self.api.ask("DELETE", path, NOTHING, now, JSON)
        within(60, lambda: not self.claims())
        self._over.set()
        self._kubelet.join()

    def pool(self, limit: str | None = None, **spec: Any) -> None:
        """The NodePool as its owner writes it, whose nodes Karpenter replaces for no reason."""
        self._make(NODE_CLASSES, {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "spec": {}})
        wanted = [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["eight"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]
        ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": self.name}
        template = {"nodeClassRef": ref, "requirements": wanted, "expireAfter": "Never", **spec.pop("template", {})}
        budgets = [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]
        made: Json = {"template": {"spec": template}, "disruption": {"consolidateAfter": "5s", "budgets": budgets}}
        made |= {"limits": {GPU: limit}} if limit is not None else {}
        self._make(NODE_POOLS, {"apiVersion": KARPENTER, "kind": "NodePool", "spec": made | spec})

    def pods(self, count: int, run_s: int = 0, prefix: str = "p", stays: bool = False) -> None:
        """Pods of a GPU each for this NodePool's machines. They run for so long, or for ever; they may stay on."""
        for n in range(count):
            meta: Json = {"name": f"{self.name}-{prefix}{n}", "labels": {"run": self.name}}
            meta |= {"annotations": {"testbed/run-seconds": str(run_s)}} if run_s else {}
            meta |= {"annotations": {"testbed/stuck": ""}} if stays else {}
            box = {"name": "c", "image": "none", "resources": {"limits": {GPU: "1"}}}
            spec = {"nodeSelector": {"karpenter.sh/nodepool": self.name}, "containers": [box], "restartPolicy": "Never"}
            self._make("/api/v1/namespaces/default/pods", {"kind": "Pod", "metadata": meta, "spec": spec})

    def tick(self) -> Answer:
        """The schedule ticks."""
        return reconcile(self.deps, Tick(cluster="c"))

    def ticks(self, seconds: float, until: Callable[[], bool] = lambda: False, every: float = 2.0) -> bool:
        """Ticks, until something holds or the time is over; whether it held."""
        ends = time.monotonic() + seconds
        while not until():
            if time.monotonic() > ends:
                return False
            self.tick()
            self.over += [] if self.within_budget() else [str(self.balances())]
            time.sleep(every)
        return True

    def balances(self) -> list[tuple[Decimal, Decimal]]:
        """Settled and held of each limit, with that limit."""
        found = budget_holds.balances(self.deps, self.deps.now()).balances
        return [(each.total, each.meter.limit) for each in found]

    def within_budget(self) -> bool:
        """Nothing is settled or held beyond a limit."""
        return all(total <= limit for total, limit in self.balances())

    def nodepool(self) -> Json:
        """The NodePool as it stands."""
        return self.api.get(f"{NODE_POOLS}/{self.name}", ANY)

    def limit(self) -> str | None:
        """Its limit of GPUs."""
        found = (self.nodepool()["spec"].get("limits") or {}).get(GPU)
        return None if found is None else str(found)

    def set_limit(self, limit: str) -> None:
        """Another hand sets it."""
        self.patch({"spec": {"limits": {GPU: limit}}})

    def patch(self, body: Json) -> None:
        """Another hand changes the NodePool."""
        self.api.ask("PATCH", f"{NODE_POOLS}/{self.name}", NOTHING, body, MERGE_PATCH)

    def claims(self) -> list[Json]:
        """The machines that its cloud bills, and those that it was asked for."""
        try:
            every = self.api.get(f"{NODE_CLAIMS}?labelSelector=karpenter.sh/nodepool={self.name}", ANY)["items"]
        except (Missing, BadRequest):
            return []
        return list(every)

    def gpus(self) -> list[int]:
        """GPUs that Karpenter counts of each."""
        live = [claim for claim in self.claims() if "deletionTimestamp" not in claim["metadata"]]
        return [int(claim.get("status", {}).get("capacity", {}).get(GPU, 0)) for claim in live]

    def remove_claim(self, name: str) -> None:
        """A person deletes a machine."""
        self.api.ask("DELETE", f"{NODE_CLAIMS}/{name}", NOTHING, {}, JSON)

    def phases(self) -> dict[str, int]:
        """How many of its pods are in which phase."""
        path = f"/api/v1/namespaces/default/pods?labelSelector=run={self.name}"
        out: dict[str, int] = {}
        for pod in self.api.get(path, ANY)["items"]:
            out[pod["status"]["phase"]] = out.get(pod["status"]["phase"], 0) + 1
        return out

    def told(self, code: str) -> list[str]:
        """What alerts of a finding's code say."""
        return [alert.why for alert in self.stage.alerts if alert.kind == f"finding-{code}"]

    def _make(self, where: str, body: Json) -> None:
        meta = {"name": self.name, **body.get("metadata", {})}
        self.api.ask("POST", where, NOTHING, body | {"metadata": meta}, JSON)
        self._made.append(f"{where}/{meta['name']}")

    def _keep(self) -> None:
        """Every machine of ours becomes ready; how many there are at once is counted."""
        while not self._over.wait(0.3):
            with suppress(Denied, Retry, Missing):
                self.most_machines = max(self.most_machines, len(self.claims()))
                found = self.api.get(f"/api/v1/nodes?labelSelector=karpenter.sh/nodepool={self.name}", ANY)["items"]
                for node in found:
                    if not node["status"].get("conditions"):
                        self._ready(node["metadata"]["name"])

    def _ready(self, node: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": now}
        status = {"conditions": [{**ready, "lastTransitionTime": now}]}
        self.api.ask("PATCH", f"/api/v1/nodes/{node}/status", NOTHING, {"status": status}, MERGE_PATCH)
