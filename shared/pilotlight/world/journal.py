"""The world's log: one flat record per happening, from which a stranger can work out every figure."""

from collections.abc import Callable
from typing import Any, Literal

from pilotlight.units import Seconds
from pilotlight.world.world_nodes import WorldJob, WorldNode

StopReason = Literal["done", "reclaimed", "evicted", "rested", "deleted"]
Log = Callable[[dict[str, Any]], None]


class Journal:
    """Writes the records of a replay's log, times in seconds from the start, to ``log`` where there is one."""

    def __init__(self, log: Log | None) -> None:
        self._log = log

    def launch(self, t: Seconds, node: WorldNode) -> None:
        if self._log:
            kind = {"type": node.instance_type, "capacity_type": node.capacity_type}
            kind |= {"zone": node.zone} if node.zone else {}
            self._log({"t": t, "event": "launch", "node": node.id, **kind})

    def ready(self, t: Seconds, node: WorldNode) -> None:
        if self._log:
            self._log({"t": t, "event": "ready", "node": node.id})

    def start(self, t: Seconds, job: WorldJob) -> None:
        if self._log:
            placement = [
                {"node": p.node.id, "gpus": p.demand.shape.gpu.count, "share": p.demand.shape.gpu.milli}
                | {"devices": list(p.devices)}
                for p in job.placement
            ]
            self._log({"t": t, "event": "start", "job": job.id, "placement": placement})

    def stop(self, t: Seconds, job: WorldJob, reason: StopReason) -> None:
        if self._log:
            saved = 0.0 if reason == "done" else job.saved_s
            self._log({"t": t, "event": "stop", "job": job.id, "reason": reason, "saved_s": saved})

    def standby(self, t: Seconds, node: WorldNode) -> None:
        if self._log:
            self._log({"t": t, "event": "standby", "node": node.id})

    def wake(self, t: Seconds, node: WorldNode) -> None:
        if self._log:
            self._log({"t": t, "event": "wake", "node": node.id})

    def terminate(self, t: Seconds, node: WorldNode, reason: str) -> None:
        if self._log:
            self._log({"t": t, "event": "terminate", "node": node.id, "reason": reason})
