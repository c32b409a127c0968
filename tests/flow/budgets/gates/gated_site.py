"""A cluster where Karpenter buys behind budgets: the flow over the real adapter, and an API server."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from api_server import ApiServer
from karpenter import GPU, Karpenter
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.deps import Deps
from pilotlight.flow.reconcile import reconcile

NODE = Decimal(780)
"""A little more than a node of $32 an hour is held for: a boot, a day's run, and its idle time."""
CLASSES = {name: ClassPolicy(max_runtime=86_400, idle_timeout=300, gpu_models="any") for name in DEFAULT_CLASSES}
GATED = PoolPolicy(cluster_pool="karpenter:gpu", instance_type="eight", max=20)


class GatedSite:
    """A cluster with Karpenter, one NodePool that budgets gate, and dollars for so many nodes."""

    def __init__(self, server: ApiServer, nodes: int, **rules: Any) -> None:
        budgets = rules.pop("budgets", (Budget(name="all", usd=nodes * NODE + 400, period="month"),))
        pools = rules.pop("pools", {"gpu": GATED})
        self.server, self.stage = server, Stage(pools=pools, budgets=budgets, classes=CLASSES, **rules)
        clock = self.stage.world.clock
        self.karpenter = Karpenter(server, 8, clock.now)
        self.api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        cluster = KubernetesCluster(self.api, self.stage.deps.policy, clock)
        self.deps: Deps = replace(self.stage.deps, cluster=cluster)

    def tick(self, after: float = 60.0) -> Answer:
        """A minute passes, and the schedule ticks."""
        self.stage.wait(after)
        return reconcile(self.deps, Tick(cluster="c"))

    def pod(self, name: str, gpus: int = 1) -> None:
        """A pod that waits for so many GPUs."""
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        self.server.add(
            {
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "ml", "uid": f"u-{name}"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {GPU: str(gpus)}}}]},
                "status": {"phase": "Pending", "conditions": [waits]},
            }
        )

    def within_budget(self) -> bool:
        """Nothing is settled or held beyond a limit, and a node of each machine is held for."""
        balances = budget_holds.balances(self.deps, self.deps.now()).balances
        return all(0 < balance.total <= balance.meter.limit for balance in balances)

    def notes(self, pool: str = "gpu") -> dict[str, str]:
        """The annotations of a NodePool."""
        found: dict[str, str] = self.server.store.get("nodepools", pool)["metadata"].get("annotations", {})
        return found

    def told(self, code: str) -> list[str]:
        """What alerts of a finding's code say."""
        return [alert.why for alert in self.stage.alerts if alert.kind == f"finding-{code}"]
