"""The contract of the Cluster port: the world in this process, over HTTP, and the real adapter over an API server."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest
from both_ways import WAYS, Ports, ports
from small_cloud import START, gang, pod
from world_as_kubernetes import kubernetes_ports

from pilotlight.errors import BadRequest, Busy, Forbidden, PilotlightError, Throttled, Unavailable
from pilotlight.facts.workload import Gang, PodDemand
from pilotlight.ports.cluster import ScheduledCluster
from pilotlight.world.faults import Faults
from pilotlight.world.world_nodes import REFUSED

KUBERNETES = "through an API server"


@pytest.fixture(params=[*WAYS, KUBERNETES])
def here(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A small world each way."""
    with kubernetes_ports() if request.param == KUBERNETES else ports(request.param) as made:
        yield made


def _as_an_object_says(demand: PodDemand) -> PodDemand:
    """The demand as its object tells it: no reason for its class, no namespace of a gang, always a team and image."""
    gang = demand.shape.gang
    bare = msgspec.structs.replace(
        demand.shape,
        key="",
        class_reason="",
        team=demand.shape.team or demand.namespace,
        gang=gang and Gang(key=gang.key.removeprefix("default/"), size=gang.size),
    )
    return msgspec.structs.replace(demand, shape=bare, image=demand.image or "docker.io/library/busybox:latest")


def test_pods_that_wait_are_seen_whole(here: Ports) -> None:
    """What an observer reads of a waiting pod is the pod that was made, to the last field, and what is said of it."""
    one, pair = pod("a", 2, team="red", priority=3, on="four"), gang("g", 2)
    here.world.submit(one, 60)
    here.world.submit(pair, 60)
    seen = here.cluster.observe().pending
    made = [msgspec.structs.replace(d, said=REFUSED) for d in (one, *pair)]
    assert [_as_an_object_says(d) for d in seen] == [_as_an_object_says(d) for d in made]


def test_a_scheduler_that_lives_shows_it(here: Ports) -> None:
    """Its heartbeat is of now; one that is silent says nothing of a pod, and shows nothing newer."""
    assert isinstance(here.cluster, ScheduledCluster)
    here.world.advance(100)
    assert here.cluster.scheduler_beat() == here.world.clock.now()
    here.world.set_faults(Faults(silent=True))
    here.world.submit(pod("a"), 60)
    here.world.advance(200)
    assert [waits.said for waits in here.cluster.observe().pending] == [""]
    beat = here.cluster.scheduler_beat()
    assert beat is None or here.world.clock.now() - beat == timedelta(seconds=100)


def test_a_node_is_seen_once_it_has_registered(here: Ports) -> None:
    """A booting instance is no node; one that came shows its devices, labels, times and what is on it."""
    here.world.launch("four")
    here.world.submit(pod("a", 2, team="red"), 60)
    assert here.cluster.observe().nodes == ()
    here.world.advance(100)
    (node,) = here.cluster.observe().nodes
    assert (node.name, node.pool, node.ready, node.devices) == ("n1", "four", True, (0, 0, 1000, 1000))
    assert (node.created_at, node.idle_since, node.gpu_model) == (START, None, "V100")
    assert [(p.name, p.team) for p in node.gpu_pods] == [("a", "red")]
    here.world.advance(160)
    assert here.cluster.observe().nodes[0].idle_since == START + timedelta(seconds=160)


def test_nothing_binds_to_a_cordoned_node(here: Ports) -> None:
    """A cordon holds, may be repeated, and comes off."""
    here.world.launch("one")
    here.world.advance(100)
    here.cluster.cordon("n1")
    here.cluster.cordon("n1")
    here.world.submit(pod("a"), 60)
    (closed,) = here.cluster.observe().nodes
    assert (closed.schedulable, closed.marked) == (False, True)
    assert here.cluster.bound_pods("n1") == ()
    here.cluster.uncordon("n1")
    here.cluster.uncordon("n1")
    (opened,) = here.cluster.observe().nodes
    assert (opened.schedulable, opened.marked) == (True, False)
    assert [p.name for p in here.cluster.bound_pods("n1")] == ["a"]


@pytest.mark.parametrize("way", WAYS)
def test_a_person_who_opens_a_node_that_is_given_back_is_seen(way: str) -> None:
    """What the closing left shows it until that is taken off; opening it ourselves leaves nothing."""
    with ports(way) as here:
        here.world.launch("one")
        here.world.advance(100)
        shown = []
        for change in ("closed", "opened by us", "closed", "opened by hand", "opened by us", "taken off"):
            match change:
                case "closed":
                    here.cluster.cordon("n1", "17-a")
                case "opened by us":
                    here.cluster.uncordon("n1")
                case "opened by hand":
                    here.world.open_by_hand("n1")
                case "taken off":
                    here.cluster.forget_opened("n1")
            (node,) = here.cluster.observe().nodes
            shown.append((node.marked, bool(node.opened_by)))
        assert shown == [(True, False), (False, False), (True, False), (False, True), (False, True), (False, False)]


def test_a_homed_node_takes_the_pods_that_it_was_given(here: Ports) -> None:
    """A new home is named once and takes nobody; a pod binds once it tolerates it, and all do once the node is open."""
    here.world.launch("four")
    here.world.advance(100)
    here.world.set_home("n1", "new")
    here.world.submit(pod("a"), 60)
    here.world.submit(pod("b"), 60)
    (born,) = here.cluster.observe().nodes
    assert (born.home, born.schedulable, born.marked, born.taints) == ("new", True, False, ())
    here.cluster.name_home("n1", "h-0")
    here.cluster.name_home("n1", "h-1")
    (named,) = here.cluster.observe().nodes
    assert (named.home, here.cluster.bound_pods("n1")) == ("h-0", ())
    by_name = {each.name: each for each in here.cluster.observe().pending}
    here.cluster.tolerate("default", "b", by_name["b"].uid, "h-9")
    here.cluster.tolerate("default", "a", by_name["a"].uid, "h-0")
    here.cluster.tolerate("default", "a", by_name["a"].uid, "h-0")
    here.cluster.tolerate("default", "gone", "uid-gone", "h-0")
    assert [each.name for each in here.cluster.bound_pods("n1")] == ["a"]
    assert [each.homes for each in here.cluster.observe().pending] == [("h-9",)]
    here.cluster.open("n1")
    (opened,) = here.cluster.observe().nodes
    assert opened.home == ""
    assert sorted(each.name for each in here.cluster.bound_pods("n1")) == ["a", "b"]


def test_an_open_node_gets_no_home(here: Ports) -> None:
    """Somebody took the taint off: it stays off."""
    here.world.launch("one")
    here.world.advance(100)
    here.cluster.name_home("n1", "h-0")
    assert here.cluster.observe().nodes[0].home == ""


def test_a_drain_waits_for_gpu_pods(here: Ports) -> None:
    """A drain is refused without a cordon, is Busy while a GPU pod is bound, and passes after it."""
    here.world.launch("one")
    here.world.submit(pod("a"), 60)
    here.world.advance(100)
    with pytest.raises(BadRequest, match="not cordoned"):
        here.cluster.drain("n1")
    here.cluster.cordon("n1")
    with pytest.raises(Busy, match="1 GPU pod bound"):
        here.cluster.drain("n1")
    here.world.advance(160)
    here.cluster.drain("n1")


@pytest.mark.parametrize("method", ["cordon", "uncordon", "open", "bound_pods", "drain", "name_home"])
def test_a_node_that_is_not_there_is_named(here: Ports, method: str) -> None:
    """Each call about one node refuses a stranger by its name."""
    more = ("h-0",) if method == "name_home" else ()
    with pytest.raises(BadRequest, match="n9"):
        getattr(here.cluster, method)("n9", *more)


def test_an_event_for_an_owner_is_taken(here: Ports) -> None:
    """Telling answers nothing and changes nothing that is observed."""
    before = here.cluster.observe()
    here.cluster.tell("default", "a", "Refused", "the cap's figures")
    assert here.cluster.observe() == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unavailable("the API server is away"), id="away"),
        pytest.param(Throttled("slowly", 17.0), id="throttled"),
        pytest.param(Forbidden("no rights"), id="forbidden"),
        pytest.param(Busy("at work"), id="busy"),
    ],
)
def test_an_error_keeps_its_kind_and_its_line(way: str, error: PilotlightError) -> None:
    """What the API server raises arrives as that kind, with its words and its time, and once."""
    with ports(way, faults={"api_errors": (("observe", error),)}) as here:
        with pytest.raises(type(error)) as caught:
            here.cluster.observe()
        assert str(caught.value) == str(error)
        assert getattr(caught.value, "after_s", None) == getattr(error, "after_s", None)
        here.cluster.observe()
