"""Settings of node pools at the local GKE: what autoscales and repairs them, changed by operations."""

from typing import Any

from gke_answers import Refused
from google_documents import COMPUTE, Call


class PoolSettings:
    """A part of the project. ``extra`` are fields of pools by pool; ``insists`` on auto-repair, as release channels do.

    ``works`` operations are still at work when they are first asked after; ``fails`` is what the next one ends with.
    ``spot`` has by machine type the records of its prices, others are none that Google knows; ``uptimes``
    have by type and zone how long most of it runs, ``preempted`` the share of each day's stops that preemption made.
    ``young``: v1 of advice refuses spot.
    """

    def __init__(self) -> None:
        self.extra: dict[str, dict[str, Any]] = {}
        self.insists = False
        self.works = 0
        self.fails = ""
        self.spot: dict[str, list[dict[str, Any]]] = {}
        self.uptimes: dict[tuple[str, str], str] = {}
        self.preempted: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.young = False
        self._settled: dict[str, dict[str, Any]] = {}

    def _container_projects_locations_clusters_nodePools_setAutoscaling(self, call: Call, asked: Any) -> dict[str, Any]:
        wanted = asked["autoscaling"]
        if wanted.get("enabled") and not (wanted.get("maxNodeCount") or wanted.get("totalMaxNodeCount")):
            raise Refused(400, "badRequest", "max_nodes must be greater than zero when autoscaling is enabled.")
        return self._set(call, {"autoscaling": wanted}, "UPDATE_CLUSTER")

    def _container_projects_locations_clusters_nodePools_setManagement(self, call: Call, asked: Any) -> dict[str, Any]:
        if self.insists and not asked["management"].get("autoRepair"):
            raise Refused(400, "badRequest", "Auto_repair cannot be false when release channel REGULAR is set.")
        return self._set(call, {"management": asked["management"]}, "SET_NODE_POOL_MANAGEMENT")

    def _set(self, call: Call, fields: dict[str, Any], kind: str) -> dict[str, Any]:
        pool = call.path["nodePoolsId"].removesuffix("-pool")
        name = f"operation-{len(self._settled) + 1}-settings"
        done: dict[str, Any] = {"name": name, "operationType": kind, "status": "DONE"}
        if self.fails:
            done["error"], self.fails = {"code": 13, "message": self.fails}, ""
        else:
            self.extra[pool] = {**self.extra.get(pool, {}), **fields}
        self._settled[name] = done
        return {**done, "status": "RUNNING"} if self.works else done

    def _container_projects_locations_operations_get(self, call: Call, asked: Any) -> dict[str, Any]:
        done = self._settled[call.path["operationsId"]]
        self.works = max(0, self.works - 1)
        return {**done, "status": "RUNNING"} if self.works else done

    def _compute_advice_capacity(self, call: Call, asked: Any) -> dict[str, Any]:
        (zone,) = asked["distributionPolicy"]["zones"]
        (selection,) = asked["instanceFlexibilityPolicy"]["instanceSelections"].values()
        ((machine,), at) = selection["machineTypes"], zone["zone"].rpartition("/")[2]
        if self.young and call.document == COMPUTE:
            raise Refused(400, "invalid", "Invalid value for field 'instanceProperties.scheduling': 'SPOT'")
        if (machine, at) not in self.uptimes:
            raise Refused(400, "invalid", f"Machine type '{machine}' does not exist in zone '{at}'.")
        shard = {"zone": zone["zone"], "machineType": machine, "instanceCount": 1, "provisioningModel": "SPOT"}
        uptime = self.uptimes[machine, at]
        scores = {"obtainability": 0.7, **({"estimatedUptime": uptime} if uptime else {})}
        return {"recommendations": [{"scores": scores, "shards": [shard]}]} if uptime != "none" else {}

    def _compute_advice_capacityHistory(self, call: Call, asked: Any) -> dict[str, Any]:
        machine = asked["instanceProperties"]["machineType"]
        if asked["instanceProperties"]["scheduling"]["provisioningModel"] != "SPOT" or machine not in self.spot:
            raise Refused(400, "invalid", f"Invalid value for field 'instanceProperties.machineType': '{machine}'")
        at = asked["locationPolicy"]["location"]
        records = {"PRICE": self.spot[machine], "PREEMPTION": self.preempted.get((machine, at.rpartition("/")[2]), [])}
        told = {f"{kind.lower()}History": records[kind] for kind in asked["types"] if records[kind]}
        return {"machineType": machine, "location": f"https://www.googleapis.com/compute/v1/{at}", **told}
