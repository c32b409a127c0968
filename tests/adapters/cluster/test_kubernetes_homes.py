"""Homes on an API server: a node's taint gets its value, a waiting pod its toleration, and nothing else changes."""

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from api_server import ApiServer, api_server
from api_store import Json
from test_kubernetes_reads import POLICY, node, pod
from test_kubernetes_watchman import ANY, daemon_set, lease

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.errors import BadRequest, Conflict, Forbidden
from pilotlight.facts.labels import HOME
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NEW = {"key": HOME, "value": "new", "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
MINE = {"key": HOME, "operator": "Equal", "value": "h-0", "effect": "NoSchedule"}
THEIRS = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
HOMED = msgspec.structs.replace(
    POLICY, pools={name: msgspec.structs.replace(pool, taints=(BIRTH_TAINT,)) for name, pool in POLICY.pools.items()}
)
LIMITED = (
    'ValidatingAdmissionPolicy "pilotlight-tolerations" denied request: Pilotlight may not change a pod\'s labels.'
)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A cluster with a node that was just born, a pod that waits, and a watchman."""
    with api_server() as made:
        made.add(homed("n"), waiting("p", THEIRS), lease(watched=NOW - timedelta(minutes=1)))
        yield made


@pytest.fixture
def cluster(server: ApiServer) -> KubernetesCluster:
    """The adapter over it."""
    api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda _: None)
    return KubernetesCluster(api, HOMED, VirtualClock(NOW))


def homed(name: str, taint: Json = NEW) -> Json:
    """A GPU node with a home beside its own taint."""
    made = node(name)
    made["metadata"]["labels"] = {"pilotlight.dev/pool": "t4"}
    made["spec"]["taints"] = [OTHER, taint]
    return made


def waiting(name: str, *tolerations: Json, **meta: object) -> Json:
    """A pod that waits, with these tolerations."""
    made = pod(name)
    made["metadata"] |= meta
    if tolerations:
        made["spec"]["tolerations"] = [*tolerations]
    return made


def taints(server: ApiServer) -> list[Json]:
    """Taints of the node."""
    found: list[Json] = server.store.get("nodes", "n")["spec"]["taints"]
    return found


def test_a_new_home_is_named_once(server: ApiServer, cluster: KubernetesCluster) -> None:
    """The value of our taint alone changes, where it is new; a node keeps its home, and nothing is written twice."""
    cluster.name_home("n", "h-0")
    assert taints(server) == [OTHER, {**NEW, "value": "h-0"}]
    cluster.name_home("n", "h-0")
    cluster.name_home("n", "h-1")
    assert taints(server) == [OTHER, {**NEW, "value": "h-0"}]
    assert len(server.lines("PATCH /api/v1/nodes")) == 1


def test_an_open_node_gets_no_home(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Somebody who took the taint off has opened the node: it stays open. A node that is gone is named."""
    server.add(homed("n", OTHER))
    cluster.name_home("n", "h-0")
    assert server.lines("PATCH") == []
    with pytest.raises(BadRequest, match="n9"):
        cluster.name_home("n9", "h-0")


def test_two_workers_name_a_home_once(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Another that was first keeps it: the second's write meets a newer version, reads again and leaves it."""
    server.before("PATCH /api/v1/nodes/n", lambda: server.add(homed("n", {**NEW, "value": "h-9"})))
    cluster.name_home("n", "h-0")
    assert taints(server) == [OTHER, {**NEW, "value": "h-9"}]


def test_opening_takes_the_home_off(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A node is open without its home; its own taint stays."""
    cluster.open("n")
    assert taints(server) == [OTHER]


def test_a_home_is_read_as_it_was_named(cluster: KubernetesCluster) -> None:
    """What was named and tolerated is what the next look sees."""
    cluster.name_home("n", "h-0")
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    view = cluster.observe()
    assert [each.home for each in view.nodes] == ["h-0"]
    assert [each.homes for each in view.pending] == [("h-0",)]


@pytest.mark.parametrize("own", [(), (THEIRS,), (THEIRS, {"operator": "Exists"})], ids=["none", "one", "two"])
def test_a_toleration_is_added_once(server: ApiServer, cluster: KubernetesCluster, own: tuple[Json, ...]) -> None:
    """It comes after those that are there, with every field of theirs; repeating it writes nothing."""
    server.add(waiting("p", *own))
    before = copy.deepcopy(server.store.get("pods", "p", "ml"))
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    after = server.store.get("pods", "p", "ml")
    assert after["spec"] == {**before["spec"], "tolerations": [*own, MINE]}
    assert (after["status"], after["metadata"]["uid"]) == (before["status"], before["metadata"]["uid"])
    assert len(server.lines("PATCH /api/v1/namespaces/ml/pods/p")) == 1


LEFT = {
    "gone": (lambda server: server.store.remove("pods", "p", "ml"), None),
    "another of its name": (lambda server: server.add(waiting("p", uid="uid-2")), None),
    "tolerant already": (lambda server: server.add(waiting("p", MINE)), [MINE]),
}


@pytest.mark.parametrize(("change", "left"), LEFT.values(), ids=LEFT.keys())
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_pod_that_needs_none(
    server: ApiServer,
    cluster: KubernetesCluster,
    change: Callable[[ApiServer], None],
    left: list[Json] | None,
    when: str,
) -> None:
    """Such a pod is left as it is, also where it became so between our reading and our writing."""
    if when == "before":
        change(server)
    else:
        server.before("PATCH .*pods/p", lambda: change(server))
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    there = server.store.list(server.store.resource("pods"), "ml", "", "")
    assert [each["spec"].get("tolerations") for each in there] in ([], [left])


def test_a_bound_pod_needs_none(server: ApiServer, cluster: KubernetesCluster) -> None:
    """It has its node: nothing is written."""
    server.store.bind("ml", "p", "n")
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    assert server.lines("PATCH") == []


def test_what_others_add_meanwhile_stays(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A toleration that somebody adds between our reading and our writing is kept; ours comes after it."""
    other = {"key": "x", "operator": "Exists"}
    server.before("PATCH .*pods/p", lambda: server.add(waiting("p", THEIRS, other)))
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    assert server.store.get("pods", "p", "ml")["spec"]["tolerations"] == [THEIRS, other, MINE]


def test_a_conflict_is_tried_again(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Two lost writes are made anew; a server that always answers so is told as what it is."""
    server.fail(409, on="PATCH .*pods/p", times=2)
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    assert server.store.get("pods", "p", "ml")["spec"]["tolerations"] == [THEIRS, MINE]
    server.fail(409, on="PATCH .*pods/p", times=9)
    with pytest.raises(Conflict):
        cluster.tolerate("ml", "p", "uid-p", "h-1")


def test_a_refusal_is_told(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A policy that refuses it is no changed pod: it is asked once, and its words are kept."""
    server.admit = lambda user, before, after: "another policy says no" if before != after else ""
    with pytest.raises(BadRequest, match="another policy says no"):
        cluster.tolerate("ml", "p", "uid-p", "h-0")
    assert len(server.lines("PATCH")) == 1
    server.allow = lambda asked: (asked.verb, asked.resource) != ("patch", "pods")
    with pytest.raises(Forbidden, match="cannot patch"):
        cluster.tolerate("ml", "p", "uid-p", "h-0")


def test_a_lost_answer_adds_nothing_twice(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A write whose answer is cut off is made again, and finds its toleration there."""
    server.fail("cut", on="PATCH .*pods/p")
    cluster.tolerate("ml", "p", "uid-p", "h-0")
    assert server.store.get("pods", "p", "ml")["spec"]["tolerations"] == [THEIRS, MINE]


SETS = {
    "one that tolerates its own taint alone": (
        daemon_set("d", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]),
        ("kube-system/d",),
    ),
    "one that tolerates every home": (
        daemon_set(
            "d", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": HOME, "operator": "Exists"}]
        ),
        (),
    ),
    "one that tolerates everything": (daemon_set("d", tolerations=ANY), ()),
    "one that does not tolerate the pool's taint": (daemon_set("d"), ()),
    "one for other nodes": (daemon_set("d", tolerations=ANY, nodeSelector={"gpu": "a100"}), ()),
}


@pytest.mark.parametrize(("made", "lacks"), SETS.values(), ids=SETS.keys())
def test_which_daemon_sets_a_home_keeps_off(
    server: ApiServer, cluster: KubernetesCluster, made: Json, lacks: tuple[str, ...]
) -> None:
    """Those that select the node and would come but for its home; one that tolerates it comes by itself."""
    server.add(made)
    assert cluster.observe().nodes[0].unserved == lacks


def test_anothers_refusal_in_one_namespace_is_no_proof(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A webhook of one namespace refuses the dry run by who it is; a pod of another namespace shows that ours holds."""
    other = waiting("a")
    other["metadata"]["namespace"] = "aa"
    server.add(other)
    server.admit = lambda user, before, after: "not here" if before["metadata"]["namespace"] == "aa" else LIMITED
    assert cluster.observe().limited


@pytest.mark.parametrize("waits", [True, False], ids=["while a pod waits", "while nothing waits"])
@pytest.mark.parametrize("may", [True, False], ids=["where we may", "where we may not"])
def test_daemon_sets_are_listed_once_a_look(
    server: ApiServer, cluster: KubernetesCluster, waits: bool, may: bool
) -> None:
    """Room on new nodes and homes go by one list of them; without the right to it nodes are opened."""
    server.add(daemon_set("d", tolerations=ANY))
    if not waits:
        server.store.remove("pods", "p", "ml")
    if not may:
        server.allow = lambda asked: asked.resource != "daemonsets"
    assert bool(cluster.observe().nodes[0].unserved) is not may
    assert len(server.lines("GET /apis/apps/v1/daemonsets")) == (1 if may else 2)  # A refusal is asked once more.


LIMITS = {
    "a policy that refuses all but tolerations": (lambda user, before, after: LIMITED, True),
    "none": (lambda user, before, after: "", False),
    "one of another name": (lambda user, before, after: "no labels today", False),
}


@pytest.mark.parametrize(("admit", "limited"), LIMITS.values(), ids=LIMITS.keys())
def test_the_limit_is_proved_by_a_dry_run(
    server: ApiServer, cluster: KubernetesCluster, admit: Callable[[str, Json, Json], str], limited: bool
) -> None:
    """A label on a waiting pod is refused by the policy, or nothing limits our account; a proof is good for minutes."""
    server.admit = admit
    before = copy.deepcopy(server.store.get("pods", "p", "ml"))
    assert [cluster.observe().limited for _ in range(3)] == [limited] * 3
    assert len(server.lines("PATCH .*pods/p")) == (1 if limited else 3)
    assert server.store.get("pods", "p", "ml") == before


def test_without_the_right_or_a_pod_nothing_is_proved(server: ApiServer, cluster: KubernetesCluster) -> None:
    """An account that may not patch pods gives no home, and neither does one that nothing was asked of."""
    server.allow = lambda asked: (asked.verb, asked.resource) != ("patch", "pods")
    assert not cluster.observe().limited
    server.store.clear("pods")
    assert not cluster.observe().limited


def test_a_policy_without_homes_asks_for_no_proof(server: ApiServer) -> None:
    """In another mode nobody's pods are tried, even while a home is left on a node."""
    api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda _: None)
    assert KubernetesCluster(api, POLICY, VirtualClock(NOW)).observe().limited
    assert server.lines("PATCH") == []


def test_nodes_without_a_home_are_those_with_the_taint_of_their_birth(
    server: ApiServer, cluster: KubernetesCluster
) -> None:
    """One that has its home, and one of an open pool, wait for nothing."""
    server.add(homed("settled", {**NEW, "value": "h-0"}), node("open"))
    assert cluster.without_home() == {"n"}
    cluster.name_home("n", "h-1")
    assert cluster.without_home() == set()
