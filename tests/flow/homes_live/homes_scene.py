"""Pods, Pilotlight in act and a cloud on the control plane that KUBECONFIG names, and the judge of what came of it.

The account and the cloud are those of ``bench/scheduler/homes_live.py``: nodes are objects that join within seconds.
A cluster without other GPU nodes and waiting pods, please.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from homes_live import pod
from live_cloud import ANY, LiveCloud, Machine
from live_run import NO_SEAMS, Figures, Live, Site, admitted, counted, policy_of
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING
from pilotlight.errors import PilotlightError
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import HOME, NEW_HOME
from pilotlight.facts.messages import Tick
from pilotlight.flow.reconcile import reconcile
from pilotlight.ports.seams import Seams

LIVE = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
ANYWHERE = ("T4", "A10G", "V100", "A100")
WITHIN_S = 120.0
Object = dict[str, Any]


class Scene(Live):
    """Pods, Pilotlight that looks when it is told to, and a cloud whose nodes join after one to three seconds."""

    def __init__(
        self,
        site: Site,
        writes: Counter[str],
        pods: Sequence[Object],
        made: type[KubernetesCluster] = KubernetesCluster,
        cloud: type[LiveCloud] = LiveCloud,
        seams: Seams = NO_SEAMS,
    ) -> None:
        super().__init__(Figures("", "homes", False, 1, len(pods)), site)
        self.cloud_made, self.seams, self.writes, self.asked = cloud, seams, writes, 0
        self.make(pods)
        self.app, self.cloud = self.begin(KubernetesCluster(self.api, policy_of("homes"), SystemClock()), (1, 3), made)

    def make(self, pods: Sequence[Object], over_s: float = 0.0) -> None:
        """Create the pods."""
        self.asked += len(pods)
        super().make(pods, over_s)

    def look(self) -> None:
        """One tick."""
        reconcile(self.app.deps, Tick(cluster=self.mark))

    def planned(self) -> Plan:
        """The plan of now."""
        plan = reconcile(self.app.deps, Tick(cluster=self.mark), dry_run=True).plan
        assert plan is not None
        return plan

    def pods_there(self) -> dict[str, Object]:
        """Pods by name."""
        return {found["metadata"]["name"]: found for found in self.api.get(self.space, ANY)["items"]}

    def delete(self, *names: str) -> None:
        """Pods go at once, as those do that run nowhere."""
        for name in names:
            self.api.ask("DELETE", f"{self.space}/{name}", NOTHING, {"gracePeriodSeconds": 0}, JSON)

    def homes_of_nodes(self) -> dict[str, str]:
        """Homes of nodes by name; of those without the taint an empty one."""
        nodes = self.api.get("/api/v1/nodes", ANY)["items"]
        mine = [each for each in nodes if each["metadata"]["labels"].get("homes-live") == self.mark]
        return {each["metadata"]["name"]: _value(each["spec"].get("taints", ())) for each in mine}

    def untaint(self, node: str) -> None:
        """A human takes every taint off a node."""
        self.api.ask("PATCH", f"/api/v1/nodes/{node}", NOTHING, {"spec": {"taints": None}}, MERGE_PATCH)

    def joined(self, *but: str) -> list[Machine]:
        """Machines whose node is ready with its GPUs, once all but some are."""
        until(lambda: all(m.ready or m.name in but for m in self.cloud.machines.values()))
        return [machine for machine in self.cloud.machines.values() if machine.ready]

    def until_bound(self, *but: str) -> dict[str, str]:
        """Look twice a second until every pod is bound, but some; the node of each. A failed look is tried again."""
        ends, there = time.monotonic() + WITHIN_S, dict[str, Object]()
        while True:
            with suppress(PilotlightError):
                self.look()
                there = self.pods_there()
            on = {name: found["spec"].get("nodeName", "") for name, found in there.items()}
            on = {name: node for name, node in on.items() if name not in but}
            if on and all(on.values()):
                return on
            assert time.monotonic() < ends, f"not bound: {[name for name, node in on.items() if not node]}"
            time.sleep(0.5)

    def judge(self, on: dict[str, str], *, unused: int = 0, again: int = 0) -> None:
        """No node is without a pod, but so many; none is kept for nobody or for another's pod; each node and each pod
        was written to once, and so many ``again``.
        """
        nodes, there = self.homes_of_nodes(), self.pods_there()
        empty = set(nodes) - set(on.values())
        assert len(empty) <= unused, f"never used: {empty}"
        assert NEW_HOME not in nodes.values(), f"without a home: {nodes}"
        for name, node in on.items():
            assert not nodes[node] or {nodes[node], "*"} & {*homes_of(there[name])}, f"{name} is uninvited on {node}"
        assert self.writes["PATCH pods"] <= self.asked + again, self.writes
        assert self.writes["PATCH nodes"] <= len(nodes) + again, self.writes

    def end(self) -> None:
        """Take everything away."""
        self.api.ask("DELETE", self.space, NOTHING)
        self.cloud.close()
        self.api.ask("DELETE", f"/api/v1/namespaces/{self.mark}", NOTHING)


def _value(taints: Sequence[Object]) -> str:
    return next((taint.get("value", "") for taint in taints if taint["key"] == HOME), "")


def homes_of(found: Object) -> list[str]:
    """Homes that a pod tolerates."""
    return [each.get("value", "*") for each in found["spec"].get("tolerations", ()) if each.get("key") == HOME]


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < ends, "it never came to be"
        time.sleep(0.1)


def three_shapes() -> list[Object]:
    """Twelve pods: five that fit anything, four of a model, three of eight GPUs."""
    small = [pod(f"small-{n}", 1, ANYWHERE) for n in range(5)]
    picky = [pod(f"picky-{n}", 1, ("V100", "A100")) for n in range(4)]
    return [*small, *picky, *(pod(f"large-{n}", 8, ANYWHERE) for n in range(3))]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Our account, with its limits."""
    with admitted() as found:
        yield found


@pytest.fixture
def scenes(site: Site) -> Iterator[Callable[..., Scene]]:
    """Makes scenes, and takes them away."""
    with making(site) as make:
        yield make


@contextmanager
def making(site: Site) -> Iterator[Callable[..., Scene]]:
    """Makes scenes at a site, and takes them away."""
    made: list[Scene] = []

    def make(pods: Sequence[Object], *rest: Any, **more: Any) -> Scene:
        made.append(Scene(site, writes, pods, *rest, **more))
        return made[-1]

    with counted(site.api) as writes:
        try:
            yield make
        finally:
            for each in made:
                each.end()
