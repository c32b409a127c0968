"""Queues of Kueue with our check on them and teams with budgets, over any API server: a real Kueue's, or a stand-in.

Dollars and machines are those of the built-in world; Workloads, queues and nodes are objects of that server.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api
from pilotlight.facts.labels import INSTANCE_TYPE, OPT_IN, POOL, TEAM
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.budgets import Balance
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import Claims, ClassPolicy, PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.reconcile import reconcile
from pilotlight.tools.install import queue_checks

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
HOUR = 3600.0
TWO_HOURS = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)
KINDS = {"pods": "Pod", "workloads": "Workload", "jobs": "Job", "nodes": "Node", "namespaces": "Namespace"}
KINDS |= {"clusterqueues": "ClusterQueue", "localqueues": "LocalQueue", "resourceflavors": "ResourceFlavor"}


class QueueSite:
    """A pool of one-GPU nodes at $1 an hour, a ClusterQueue of so many GPUs, a namespace and a LocalQueue a team.

    ``teams`` have so many dollars a day. ``settle`` lets Kueue's controllers go on.
    """

    def __init__(
        self,
        api: Api,
        settle: Callable[[], object],
        teams: dict[str, str],
        *,
        name: str = "q",
        gpus: int = 1,
        strategy: str = "BestEffortFIFO",
        mode: Any = "act",
        batch: ClassPolicy = TWO_HOURS,
    ) -> None:
        self.api, self.settle, self.name = api, settle, name
        pools = {name: PoolPolicy(instance_type="one", max=400, mode=mode)}
        budgets = [Budget(name=t, scope=BudgetScope(team=t), usd=Decimal(u), period="day") for t, u in teams.items()]
        claims = {self.space(team): Claims(team=team) for team in teams}
        self.stage = Stage(
            pools=pools, budgets=tuple(budgets), classes={"batch": batch}, claims=claims, require_label=True
        )
        on = self.stage.deps
        self.deps = replace(on, cluster=KubernetesCluster(api, on.policy, on.clock))
        self._made: list[str] = []
        self._queues(teams, gpus, strategy)

    def space(self, team: str) -> str:
        """The namespace of a team."""
        return f"{self.name}-{team}"

    def _queues(self, teams: Iterable[str], gpus: int, strategy: str) -> None:
        self.make(f"{KUEUE}/resourceflavors", {"metadata": {"name": self.name}, "spec": {}})
        resources = [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]
        group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": self.name, "resources": resources}]}
        spec = {"namespaceSelector": {}, "resourceGroups": [group], "queueingStrategy": strategy}
        self.make(f"{KUEUE}/clusterqueues", {"metadata": {"name": self.name}, "spec": spec})
        list(queue_checks.take(self.api, [self.name], self.deps.clock.now(), dry_run=False))
        for team in teams:
            space = self.space(team)
            self.make("/api/v1/namespaces", {"metadata": {"name": space, "labels": {TEAM[0]: team}}})
            local = {"metadata": {"name": "q"}, "spec": {"clusterQueue": self.name}}
            self.make(f"{KUEUE}/namespaces/{space}/localqueues", local)
        self.settle()

    def make(self, path: str, body: dict[str, Any]) -> None:
        """Create an object, which goes again."""
        group = "v1" if path.startswith("/api/v1") else path.split("/namespaces/")[0].removeprefix("/apis/")
        group = group if path.startswith("/api/v1") else "/".join(group.split("/")[:2])
        full = {"apiVersion": group, "kind": KINDS[path.rpartition("/")[2]], **body}
        self.api.ask("POST", path, NOTHING, full, JSON)
        self._made.append(f"{path}/{body['metadata']['name']}")

    def node(self, name: str) -> None:
        """A ready node of the pool."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "1"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": self.now}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        labels = {POOL: self.name, INSTANCE_TYPE: "one"}
        meta = {"name": name, "labels": labels, "creationTimestamp": self.now}
        self.make("/api/v1/nodes", {"metadata": meta, "spec": {"providerID": f"x://{name}"}, "status": status})

    @property
    def now(self) -> str:
        """The world's clock, as an object has it."""
        return f"{self.deps.clock.now():%Y-%m-%dT%H:%M:%SZ}"

    def pod_spec(self, gpus: int) -> dict[str, Any]:
        """A pod that asks for GPUs."""
        resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
        return {"containers": [{"name": "c", "image": "x", "resources": resources}], "restartPolicy": "Never"}

    def submit(self, team: str, name: str, *, pods: int = 1, priority: int = 0, owner: Any = None) -> None:
        """A Workload waits in its team's queue."""
        template = {"metadata": {"labels": {OPT_IN[0]: OPT_IN[1]}}, "spec": self.pod_spec(1)}
        sets = [{"name": "main", "count": pods, "template": template}]
        spec = {"queueName": "q", "podSets": sets, "active": True, **({"priority": priority} if priority else {})}
        path = f"{KUEUE}/namespaces/{self.space(team)}/workloads"
        meta = {"name": name, "creationTimestamp": self.now, "ownerReferences": [owner] if owner else []}
        self.make(path, {"metadata": meta, "spec": spec})

    def pod(self, team: str, name: str, node: str, owner: Any = None) -> None:
        """A pod of a team runs on a node."""
        meta = {"name": name, "labels": {OPT_IN[0]: OPT_IN[1]}, "uid": f"pod-{name}", "creationTimestamp": self.now}
        meta |= {"ownerReferences": [owner]} if owner else {}
        status = {"phase": "Running", "startTime": self.now}
        body = {"metadata": meta, "spec": {**self.pod_spec(1), "nodeName": node}, "status": status}
        self.make(f"/api/v1/namespaces/{self.space(team)}/pods", body)

    def tick(self, after_s: float = 0) -> Answer:
        """A look, so much later, and what Kueue makes of it."""
        self.stage.wait(after_s)
        answer = reconcile(self.deps, Tick(cluster="c"))
        self.settle()
        return answer

    def work(self, team: str, name: str) -> dict[str, Any]:
        """A Workload as it is."""
        return self.api.get(f"{KUEUE}/namespaces/{self.space(team)}/workloads/{name}", ANY)

    def patch(self, team: str, name: str, change: dict[str, Any], sub: str = "") -> None:
        """Change a Workload as a person does."""
        path = f"{KUEUE}/namespaces/{self.space(team)}/workloads/{name}{sub}"
        self.api.ask("PATCH", path, NOTHING, change, MERGE_PATCH)

    def has(self, team: str, name: str, kind: str) -> bool:
        """Whether a condition of a Workload is True."""
        found = self.work(team, name).get("status", {}).get("conditions") or ()
        return any(each["type"] == kind and each["status"] == "True" for each in found)

    def stands(self, team: str, name: str) -> str:
        """How a Workload stands: out (of its queue), waits, reserved, admitted."""
        if not self.work(team, name)["spec"].get("active", True):
            return "out"
        return next(
            (s for c, s in (("Admitted", "admitted"), ("QuotaReserved", "reserved")) if self.has(team, name, c)),
            "waits",
        )

    def events(self, team: str, name: str) -> list[str]:
        """What its owners were told, as "Reason: message"."""
        found = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.space(team)}/events", ANY)["items"]
        mine = [
            e
            for e in found
            if e.get("regarding", {}).get("name") == name and e.get("reportingController") == "pilotlight"
        ]
        return [f"{e['reason']}: {e['note']}" for e in mine]

    def raise_budget(self, team: str, usd: str) -> None:
        """A team's budget is so many dollars a day from now on."""
        policy = self.deps.policy
        budgets = tuple(msgspec.structs.replace(b, usd=Decimal(usd)) if b.name == team else b for b in policy.budgets)
        self.deps = replace(self.deps, policy=msgspec.structs.replace(policy, budgets=budgets))

    @property
    def balances(self) -> tuple[Balance, ...]:
        """Settled and held in each budget."""
        return budget_holds.balances(self.deps, self.deps.state.now()).balances

    def clear(self) -> None:
        """Take all of it away."""
        for path in reversed(self._made):
            self.api.ask("DELETE", path, NOTHING, {"gracePeriodSeconds": 0}, JSON)
