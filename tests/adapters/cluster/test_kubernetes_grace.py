"""The grace of an eviction through a Kubernetes API server: what is sent, and when the pod is gone by it."""

from collections.abc import Iterator

import msgspec
import pytest
from api_server import api_server
from small_cloud import pod, world
from world_as_kubernetes import ANY_CLAIM, WorldApi

from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.world.simulation import World

OWN_S = 7200.0


@pytest.fixture
def api() -> Iterator[WorldApi]:
    """A node with a pod of two hours' grace, which takes all the grace that it is given."""
    here = world()
    here.launch("one")
    here.submit(msgspec.structs.replace(pod("a"), grace_s=OWN_S), 400_000)
    here.advance(3700)
    here.evictions.lingers = True
    here.cordon("n1")
    with api_server(WorldApi(world=here)) as server:
        assert isinstance(server, WorldApi)
        yield server


def _uid(world: World) -> str:
    (job,) = world.running.values()
    return job.demands[0].uid


def _left_after_s(world: World) -> float:
    """How long the pod runs on from now."""
    begun_s = world.now_s
    while world.running:
        world.advance(world.now_s + 1)
    return world.now_s - begun_s


@pytest.mark.parametrize("call", ["evict", "delete"])
@pytest.mark.parametrize(
    ("grace_s", "sent"), [(45.9, 45), (OWN_S, 7200), (1.0, 1), (0.4, 1), (0.0, 1), (-300.0, 1)], ids=str
)
def test_a_grace_reaches_the_pod_and_is_never_none(api: WorldApi, call: str, grace_s: float, sent: int) -> None:
    """A clipped grace is what the pod has, rounded down; one that is used up or below zero is a second."""
    cluster: KubernetesCluster = api.cluster(ANY_CLAIM)
    getattr(cluster, call)("default", "a", _uid(api.world), grace_s)
    assert _left_after_s(api.world) == pytest.approx(sent, abs=1.0)
    (asked,) = [each for each in api.requests if each.line.startswith(("DELETE", "POST")) and "/pods/a" in each.path]
    options = asked.json().get("deleteOptions", asked.json())
    assert options["gracePeriodSeconds"] == sent


def test_without_a_grace_the_pod_has_its_own(api: WorldApi) -> None:
    """Nothing is said of it where the pod's own grace will do."""
    api.cluster(ANY_CLAIM).evict("default", "a", _uid(api.world))
    (asked,) = [each for each in api.requests if "/eviction" in each.path]
    assert "gracePeriodSeconds" not in asked.json()["deleteOptions"]
    assert _left_after_s(api.world) == pytest.approx(OWN_S, abs=1.0)
