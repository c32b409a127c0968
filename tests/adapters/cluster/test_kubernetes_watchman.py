"""What keeping nodes takes of an API server: DaemonSets first, pods without GPUs seen, a Lease and its watchman."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from api_server import ApiServer, api_server
from api_store import Json
from test_kubernetes_reads import POLICY, node, pod
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes import closing_lease
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.facts.labels import HOME
from pilotlight.tools.cli.main import build
from pilotlight.tools.install import watchman
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TAINT = {"key": HOME, "value": "h-0", "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A cluster with a GPU node that has a home, and a Lease that its watchman looked at a minute ago."""
    with api_server() as made:
        made.add(closed("n", "t4"), lease(watched=NOW - timedelta(minutes=1)))
        yield made


@pytest.fixture
def api(server: ApiServer) -> Api:
    """Calls to it."""
    return Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda _: None)


@pytest.fixture
def cluster(api: Api) -> KubernetesCluster:
    """The adapter over it."""
    return KubernetesCluster(api, POLICY, VirtualClock(NOW))


def closed(name: str, pool: str = "t4") -> Json:
    """A GPU node with our home taint beside its own."""
    made = node(name)
    made["metadata"]["labels"] = {"pilotlight.dev/pool": pool}
    made["spec"]["taints"] = [OTHER, TAINT]
    return made


def lease(*, watched: datetime | str | None = None, renewed: datetime | None = None) -> Json:
    """Our Lease."""
    marks = {"pilotlight.dev/watched-at": str(watched)} if watched else {}
    spec = {"renewTime": renewed.isoformat()} if renewed else {}
    meta = {"name": "pilotlight-placement", "namespace": "pilotlight", "annotations": marks}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}


def daemon_set(name: str, **spec: object) -> Json:
    """A DaemonSet."""
    return {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [], **spec}}},
    }


ANY = [{"operator": "Exists"}]
SETS = {
    "one that selects it, tolerates its own taint and has no pod": (
        daemon_set("d", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]),
        ("kube-system/d",),
    ),
    "one that tolerates everything": (daemon_set("d", tolerations=ANY), ()),
    "one that does not tolerate the pool's taint": (daemon_set("d"), ()),
    "one for other nodes": (daemon_set("d", tolerations=ANY, nodeSelector={"gpu": "a100"}), ()),
}


@pytest.mark.parametrize(("made", "lacks"), SETS.values(), ids=SETS.keys())
def test_which_daemon_sets_a_node_lacks(
    server: ApiServer, cluster: KubernetesCluster, made: Json, lacks: tuple[str, ...]
) -> None:
    """Those that select it, our taint ignored, and have no pod there; with their pod on it none is missing."""
    server.add(made)
    assert cluster.observe().nodes[0].unserved == lacks
    owner = {"kind": "DaemonSet", "name": "d", "apiVersion": "apps/v1", "controller": True, "uid": "u"}
    there = pod("d-x", "n", 0, ownerReferences=[owner])
    there["metadata"]["namespace"] = "kube-system"
    server.add(there)
    assert cluster.observe().nodes[0].unserved == ()


def test_daemon_sets_that_may_not_be_listed_keep_nodes_open(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Without that right nobody knows what would be kept off a node."""
    server.allow = lambda asked: asked.resource != "daemonsets"
    assert cluster.observe().nodes[0].unserved


def test_our_taint_is_told_apart(cluster: KubernetesCluster) -> None:
    """A node with a home is schedulable and carries only the taints of its pool, as fit and doctor read them."""
    (seen,) = cluster.observe().nodes
    assert (seen.home, seen.schedulable, seen.marked) == ("h-0", True, False)
    assert [taint.key for taint in seen.taints] == ["nvidia.com/gpu"]


def test_pods_without_gpus_are_seen_where_nodes_are_closed(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A pod that wants no GPU and that no node takes is told apart from demand; one not tried yet is not."""
    fresh = pod("fresh", gpus=0)
    fresh["status"]["conditions"] = []
    server.add(pod("cpu", gpus=0), fresh, pod("gpu"))
    view = cluster.observe()
    assert [p.name for p in view.pending] == ["gpu"]
    assert [(p.name, p.shape.gpu.count) for p in view.others] == [("cpu", 0)]


WATCHED = {
    "a minute ago": (lease(watched=NOW - timedelta(minutes=1)), True),
    "an hour ago": (lease(watched=NOW - timedelta(hours=1)), False),
    "a minute ahead, as clocks differ": (lease(watched=NOW + timedelta(minutes=1)), True),
    "a year ahead": (lease(watched=NOW + timedelta(days=365)), False),
    "at a time without a zone": (lease(watched=NOW.replace(tzinfo=None)), False),
    "at what is no time": (lease(watched="soon"), False),
    "never": (lease(), False),
}


@pytest.mark.parametrize(("made", "watched"), WATCHED.values(), ids=WATCHED.keys())
def test_when_the_watchman_last_looked(
    server: ApiServer, cluster: KubernetesCluster, made: Json, watched: bool
) -> None:
    """Nodes may be closed while somebody would open them in our place."""
    server.add(made)
    assert cluster.observe().watched is watched


def test_no_lease_no_watchman(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A cluster without our Lease, or whose rights are of before it, is not watched."""
    server.allow = lambda asked: asked.resource != "leases"
    assert not cluster.observe().watched


def test_opening_leaves_other_taints(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Our key alone goes, and never a cordon; repeating it writes nothing."""
    cluster.open("n")
    version = server.store.get("nodes", "n")["metadata"]["resourceVersion"]
    cluster.open("n")
    after = server.store.get("nodes", "n")
    assert (after["spec"]["taints"], after["metadata"]["resourceVersion"]) == ([OTHER], version)
    assert not after["spec"].get("unschedulable")


SILENCES = {
    "awake a minute ago": (NOW - timedelta(minutes=1), []),
    "silent for six minutes": (NOW - timedelta(minutes=6), ["n"]),
    "awake at a time four hours ahead": (NOW + timedelta(hours=4), ["n"]),
    "awake at a time without a zone": (NOW.replace(tzinfo=None), ["n"]),
    "never awake": (None, ["n"]),
}


@pytest.mark.parametrize(("renewed", "opened"), SILENCES.values(), ids=SILENCES.keys())
def test_the_watchman_opens_what_nobody_would(
    server: ApiServer, api: Api, renewed: datetime | None, opened: list[str]
) -> None:
    """Every closed node opens once the Lease is five minutes old; each round is noted on the Lease."""
    server.add(lease(renewed=renewed))
    assert list(watchman.lift(api, NOW, silent_s=300)) == opened
    taints = server.store.get("nodes", "n")["spec"]["taints"]
    assert taints == ([OTHER] if opened else [OTHER, TAINT])
    assert closing_lease.has_watchman(api, NOW)


def test_a_beat_is_heard(api: Api, cluster: KubernetesCluster) -> None:
    """A renewed Lease keeps the watchman from opening anything; without a Lease it has nothing to watch."""
    cluster.beat()
    assert list(watchman.lift(api, NOW + timedelta(minutes=4), silent_s=300)) == []
    assert list(watchman.lift(api, NOW + timedelta(minutes=6), silent_s=300, dry_run=True)) == ["n"]


def test_a_watchman_without_a_lease_says_so(server: ApiServer, api: Api) -> None:
    """It fails rather than open nodes on a guess."""
    server.store.drop(server.store.resource("leases"), ("pilotlight", "pilotlight-placement"))
    with pytest.raises(Missing, match="leases/pilotlight-placement"):
        list(watchman.lift(api, NOW, silent_s=300))


def test_the_command_opens_all(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand every node opens, whoever is awake; a dry run says which."""
    monkeypatch.setenv("PILOTLIGHT_API", "kubeconfig-env:K")
    monkeypatch.setenv("K", server.kubeconfig())
    run = partial(CliRunner().invoke, build(["lift"]))
    assert run(["lift", "--dry-run"]).stdout == "would open n\n1 node would be opened\n"
    assert run(["lift", "--json"]).stdout == '{"opened":["n"],"dry_run":false}\n'
    assert server.store.get("nodes", "n")["spec"]["taints"] == [OTHER]
