"""The world's default scoring beside that of the kube-scheduler of the control plane that KUBECONFIG names.

It makes a namespace and nodes of its own, which only its pods tolerate, and takes them away again.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from small_cloud import pod

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import JSON, Api
from pilotlight.errors import PilotlightError
from pilotlight.facts.capacity import Resources
from pilotlight.world.scheduling.scoring import score, unsaid
from pilotlight.world.world_nodes import Room

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
GIB = 1 << 30
SIZES = {"small": (4000, 16 * GIB), "middle": (32_000, 244 * GIB), "large": (96_000, 1152 * GIB)}
PODS = 40
GPUS = 8
TAINT = "scoring.test/only"


class Bed:
    """Nodes of three sizes, four of each and none quite like another, and what is on them as we count it."""

    def __init__(self, api: Api, rng: Random) -> None:
        self.api, self.mark = api, f"scoring-{uuid.uuid4().hex[:8]}"
        self.whole = {
            f"{self.mark}-{size}-{n}": Resources(
                cpu_milli=cpu_milli - rng.randrange(400), memory=memory - rng.randrange(2 * GIB)
            )
            for size, (cpu_milli, memory) in SIZES.items()
            for n in range(4)
        }
        self.free = dict(self.whole)
        self.unsaid = dict.fromkeys(self.whole, (0, 0))
        self.gpus = dict.fromkeys(self.whole, GPUS)

    @property
    def pods(self) -> str:
        """The path of its pods."""
        return f"/api/v1/namespaces/{self.mark}/pods"

    def make(self, path: str, body: dict[str, Any]) -> None:
        """Create an object, as soon as the API server lets us."""
        until = time.monotonic() + 30
        while True:
            try:
                self.api.ask("POST", path, ANY, body, JSON)
                return
            except PilotlightError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def nodes(self) -> None:
        """Make them all."""
        self.make("/api/v1/namespaces", {"metadata": {"name": self.mark}})
        for name, room in self.whole.items():
            amounts = {
                "cpu": f"{room.cpu_milli}m",
                "memory": str(room.memory),
                "pods": "110",
                "nvidia.com/gpu": str(GPUS),
            }
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
            spec = {"taints": [{"key": TAINT, "value": self.mark, "effect": "NoSchedule"}]}
            self.make(
                "/api/v1/nodes",
                {"metadata": {"name": name, "labels": {TAINT: self.mark}}, "spec": spec, "status": status},
            )

        for name in self.whole:
            self.await_untainted(name)

    def await_untainted(self, name: str) -> None:
        """A node is born with the not-ready taint: wait until the control plane has taken it off."""
        until = time.monotonic() + 60
        while len(self.api.ask("GET", f"/api/v1/nodes/{name}", ANY)["spec"]["taints"]) > 1:
            assert time.monotonic() < until, f"{name} is still tainted"
            time.sleep(0.1)

    def place(self, name: str, cpu_milli: int, memory: int) -> str:
        """A pod of one GPU; the node that the scheduler has for it."""
        asks = {"cpu": f"{cpu_milli}m"} if cpu_milli else {}
        asks |= {"memory": str(memory)} if memory else {}
        gpu = {"nvidia.com/gpu": "1"}
        spec = {
            "containers": [
                {"name": "c", "image": "example.invalid/c", "resources": {"requests": asks | gpu, "limits": gpu}}
            ],
            "nodeSelector": {TAINT: self.mark},
            "tolerations": [{"key": TAINT, "operator": "Equal", "value": self.mark}],
            "terminationGracePeriodSeconds": 0,
        }
        self.make(self.pods, {"metadata": {"name": name}, "spec": spec})
        until = time.monotonic() + 30
        while time.monotonic() < until:
            found = self.api.ask("GET", f"{self.pods}/{name}", ANY)
            if on := found["spec"].get("nodeName"):
                return str(on)
            time.sleep(0.05)
        raise AssertionError(f"{name} has not been bound")

    def best(self, cpu_milli: int, memory: int) -> set[str]:
        """The nodes that score highest for such a pod, of those that hold it."""
        shape = pod("a", cpu_milli=cpu_milli, memory=memory).shape
        scores = {
            name: score(shape, Room("", (), (), free, self.unsaid[name]), self.whole[name])
            for name, free in self.free.items()
            if self.gpus[name] and free.cpu_milli >= cpu_milli and free.memory >= memory
        }
        return {name for name, value in scores.items() if value == max(scores.values())}

    def take(self, name: str, cpu_milli: int, memory: int) -> None:
        """Count such a pod on a node."""
        free, counts = self.free[name], unsaid(pod("a", cpu_milli=cpu_milli, memory=memory).shape)
        self.free[name] = Resources(cpu_milli=free.cpu_milli - cpu_milli, memory=free.memory - memory)
        self.unsaid[name] = (self.unsaid[name][0] + counts[0], self.unsaid[name][1] + counts[1])
        self.gpus[name] -= 1

    def clear(self) -> None:
        """Take everything away."""
        for path in (*(f"/api/v1/nodes/{name}" for name in self.whole), f"/api/v1/namespaces/{self.mark}"):
            with suppress(PilotlightError):
                self.api.ask("DELETE", path, ANY)


@pytest.fixture
def bed() -> Iterator[Bed]:
    """Nodes on the control plane, taken away again."""
    path = Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])
    made = Bed(Api(of_file(path)), Random(7))
    try:
        made.nodes()
        yield made
    finally:
        made.clear()


def test_kube_scheduler_takes_one_of_those_that_score_highest(bed: Bed) -> None:
    """Pods of many sizes, one after the other: each goes to a node that has the best score here."""
    rng = Random(11)
    for number in range(PODS):
        asks = rng.choice([0, 0, 500, 2000, 7000]), rng.choice([0, 0, GIB, 3 * GIB, 30 * GIB])
        expected = bed.best(*asks)
        found = bed.place(f"p{number}", *asks)
        assert found in expected, f"pod {number} of {asks}"
        bed.take(found, *asks)
