"""Karpenter, as far as it minds a limit of GPUs, over the API stand-in: written from its documentation and source.

- Before it makes a claim it compares the limit with what it counts: the claims of a NodePool that it has not marked for
  deletion (documentation, "NodePools", spec.limits; kubernetes-sigs/karpenter, ``state.Cluster.NodePoolResourcesFor``).
- A claim counts what its capacity says; once its node is initialised, what the node's own capacity says
  (``StateNode.Capacity``).
- Drift and consolidation make the replacement first, while the old node is marked in memory and by a taint; expiry
  deletes the claim at once, and its pods ask for another node while it drains (documentation, "Disruption").
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api_server import ApiServer
from api_store import Json

GPU = "nvidia.com/gpu"
VERSION = "karpenter.sh/v1"


class Karpenter:
    """One Karpenter: NodePools of machines of one type, bought for whoever asks within their limits."""

    def __init__(self, server: ApiServer, gpus: int, now: Any = None) -> None:
        self.server, self.gpus, self._now, self._made = server, gpus, now, 0
        for name in ("karpenter", "karpenter-claims"):
            server.store.serve(name)

    def pool(self, name: str, kind: str, *, limit: str | None = None, spec: Mapping[str, Any] | None = None) -> None:
        """A NodePool as its owner writes it, whose nodes Karpenter replaces for no reason."""
        wanted = [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ]
        made: Json = {
            "template": {"spec": {"requirements": wanted, "expireAfter": "Never"}},
            "disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}]},
            **(spec or {}),
        }
        made |= {"limits": {GPU: limit}} if limit is not None else {}
        self.server.add({"apiVersion": VERSION, "kind": "NodePool", "metadata": {"name": name}, "spec": made})

    def limit(self, pool: str) -> str | None:
        """The limit that stands."""
        found = self.server.store.get("nodepools", pool)["spec"].get("limits", {}).get(GPU)
        return None if found is None else str(found)

    def counts(self, pool: str) -> int:
        """GPUs that it counts."""
        return sum(self._capacity(claim) for claim in self.claims(pool) if not self._marked(claim))

    def launch(self, pool: str, nodes: int = 1) -> int:
        """Buy so many nodes, as far as the limit lets it; how many it bought."""
        bought = 0
        for _ in range(nodes):
            limit = self.limit(pool)
            if limit is not None and self.counts(pool) + self.gpus > int(limit):
                break
            self._make(pool)
            bought += 1
        return bought

    def register(self, pool: str, *, shows: int | None = None) -> None:
        """Every machine becomes a node, whose device plugin shows so many GPUs, and is initialised."""
        for claim in self.claims(pool):
            if not claim["status"].get("nodeName"):
                self._join(claim, pool, self.gpus if shows is None else shows)

    def replace(self, pool: str) -> int:
        """Drift or consolidation: the oldest node is marked, and another bought before it goes; how many were."""
        old = next(claim for claim in self.claims(pool) if not self._marked(claim))
        node = self.server.store.get("nodes", old["status"]["nodeName"])
        node["spec"].setdefault("taints", []).append({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"})
        self.server.store.write(self.server.store.resource("nodes"), node)
        return self.launch(pool)

    def drain(self, pool: str) -> None:
        """Expiry, interruption or a person: the oldest claim is being deleted, and its node drains."""
        old = next(claim for claim in self.claims(pool) if not self._marked(claim))
        old["metadata"]["deletionTimestamp"] = self._stamp()
        self.server.store.write(self.server.store.resource("nodeclaims"), old)

    def end(self, pool: str) -> None:
        """What drains is gone."""
        for claim in self.claims(pool):
            if "deletionTimestamp" in claim["metadata"]:
                self.server.store.remove("nodeclaims", claim["metadata"]["name"])
                if claim["status"].get("nodeName"):
                    self.server.store.remove("nodes", claim["status"]["nodeName"])

    def machines(self, pool: str) -> int:
        """Machines that its cloud bills."""
        return len(self.claims(pool))

    def claims(self, pool: str) -> list[Json]:
        """The claims of a NodePool, the oldest first."""
        store = self.server.store
        return store.list(store.resource("nodeclaims"), "", "", f"karpenter.sh/nodepool={pool}")

    def _make(self, pool: str) -> None:
        self._made += 1
        meta = {"name": f"{pool}-{self._made:03d}", "labels": {"karpenter.sh/nodepool": pool}}
        meta["creationTimestamp"] = self._stamp()
        template = self.server.store.get("nodepools", pool)["spec"]["template"]["spec"]
        spec = {"expireAfter": template["expireAfter"], "requirements": template["requirements"]}
        status = {"capacity": {GPU: str(self.gpus)}, "providerID": f"aws:///a/i-{self._made:03d}"}
        self.server.add({"apiVersion": VERSION, "kind": "NodeClaim", "metadata": meta, "spec": spec, "status": status})

    def _join(self, claim: Json, pool: str, shows: int) -> None:
        name, kind = claim["metadata"]["name"], claim["spec"]["requirements"][0]["values"][0]
        labels = {
            "karpenter.sh/nodepool": pool,
            "karpenter.sh/initialized": "true",
            "karpenter.sh/capacity-type": "on-demand",
            "node.kubernetes.io/instance-type": kind,
        }
        room = {"cpu": "96", "memory": "1000Gi", "pods": "110", **({GPU: str(shows)} if shows else {})}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self._stamp()}
        self.server.add(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels, "creationTimestamp": self._stamp()},
                "spec": {"providerID": claim["status"]["providerID"]},
                "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
            }
        )
        claim["status"]["nodeName"] = name
        self.server.store.write(self.server.store.resource("nodeclaims"), claim)

    def _capacity(self, claim: Json) -> int:
        node = claim["status"].get("nodeName")
        found = self.server.store.get("nodes", node)["status"] if node else claim["status"]
        return int(found["capacity"].get(GPU, 0))

    def _marked(self, claim: Json) -> bool:
        if "deletionTimestamp" in claim["metadata"]:
            return True
        node = claim["status"].get("nodeName")
        taints = self.server.store.get("nodes", node)["spec"].get("taints", []) if node else []
        return any(taint["key"] == "karpenter.sh/disrupted" for taint in taints)

    def _stamp(self) -> str:
        now: datetime = self._now()
        return now.strftime("%Y-%m-%dT%H:%M:%SZ")
