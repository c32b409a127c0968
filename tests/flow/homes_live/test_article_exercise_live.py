"""Article 002's exercise on the control plane that KUBECONFIG names: its own scheduler preempts; the victim returns.

``tests/flow/test_article_exercise.py`` plays the same with dollars on the world.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest
from homes_scene import LIVE, Object, Scene, scenes, site, until

from homes_live import pod
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.reconcile import reconcile

__all__ = ["scenes", "site"]
pytestmark = LIVE
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def _pod(name: str, priority: str, run_s: int = 0) -> Object:
    """A pod of one T4, of a priority class; it succeeds after so many seconds where that is given."""
    made = pod(name, 1, ("T4",))
    made["spec"]["priorityClassName"] = priority
    if run_s:
        made["metadata"]["annotations"] = {"testbed/run-seconds": str(run_s)}
        made["spec"]["restartPolicy"] = "Never"
    return made


@pytest.fixture
def priorities(site: object) -> Iterator[tuple[str, str]]:
    """The article's classes for experiments and for production training, by names of this run."""
    api, mark = site.api, uuid.uuid4().hex[:8]  # type: ignore[attr-defined]
    names = {f"low-{mark}": 10_000, f"high-{mark}": 100_000}
    for name, value in names.items():
        body = {
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": name},
            "value": value,
        }
        api.ask("POST", CLASSES, NOTHING, body, JSON)
    low, high = names
    yield low, high
    for name in names:
        api.ask("DELETE", f"{CLASSES}/{name}", NOTHING)


def test_the_exercise_on_a_real_scheduler(scenes: Callable[..., Scene], priorities: tuple[str, str]) -> None:
    """Four jobs get nodes; at quota the scheduler gives one's GPU to a job of higher priority; its new pod runs after
    that one, on the same node; then nothing is lit.
    """
    low, high = priorities
    scene = scenes([_pod(f"experiment-{n}", low) for n in range(4)])
    on = scene.until_bound()
    lit = {machine.name for machine in scene.cloud.machines.values()}

    scene.make([_pod("production", high, run_s=3)])  # At quota: nobody buys for it.
    until(lambda: bool(scene.pods_there()["production"]["spec"].get("nodeName")))
    there = scene.pods_there()
    (victim,) = set(on) - set(there)
    assert there["production"]["spec"]["nodeName"] == on[victim]

    scene.make([_pod(f"{victim}-again", low)])  # As its Job would.
    until(lambda: bool(scene.pods_there()[f"{victim}-again"]["spec"].get("nodeName")))
    assert scene.pods_there()[f"{victim}-again"]["spec"]["nodeName"] == on[victim]
    assert {machine.name for machine in scene.cloud.machines.values()} == lit

    scene.delete(*scene.pods_there())
    policy = scene.app.deps.policy
    soon = msgspec.structs.replace(policy, classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=1.0)})
    deps = replace(scene.app.deps, policy=soon)
    until(lambda: reconcile(deps, Tick(cluster=scene.mark)).outcome != "at-work" and not scene.cloud.machines)
