"""Pulls of images as an API server's Events tell them, read pod by pod."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from api_server import ApiServer, api_server
from test_kubernetes_reads import POLICY, node, pod

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.nodes.first_work import Pull
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A cluster with two GPU pods on a node."""
    with api_server() as made:
        made.add(node("n"), pod("a", node="n"), pod("b", node="n"))
        yield made


def _told(server: ApiServer, name: str, message: str, reason: str = "Pulled") -> None:
    """An Event on a pod."""
    about = server.store.get("pods", name, "ml")["metadata"]
    server.add(
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{name}.{reason}.{len(message)}", "namespace": "ml"},
            "involvedObject": {"kind": "Pod", "name": name, "namespace": "ml", "uid": about["uid"]},
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet"},
        }
    )


def test_each_pod_has_its_own_pull(server: ApiServer) -> None:
    """By uid; a pod without such Events has none, and other Events say nothing."""
    cluster = KubernetesCluster(
        Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda _: None), POLICY, VirtualClock(NOW)
    )
    _told(server, "a", 'Successfully pulled image "x" in 61s (1m2s including waiting). Image size: 7 bytes.')
    _told(server, "b", "Started container c", reason="Started")
    pods = cluster.bound_pods("n")
    by_name = {one.name: one.uid for one in pods}
    assert cluster.pulls(pods) == {by_name["a"]: Pull(seconds=62.0, size=7)}


def test_an_account_that_may_not_list_events_learns_of_none(server: ApiServer) -> None:
    """No look fails of it."""
    api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda _: None)
    cluster = KubernetesCluster(api, POLICY, VirtualClock(NOW))
    _told(server, "a", 'Container image "x" already present on machine')
    pods = cluster.bound_pods("n")
    server.allow = lambda asked: asked.resource != "events"
    assert cluster.pulls(pods) == {}
