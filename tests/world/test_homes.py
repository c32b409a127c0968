"""Homes of the world: nodes that take only the pods that were given to them, by a taint that those pods tolerate."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest
from both_ways import WAYS, Ports, ports
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cloud import CATALOG, gang, pod, world

from pilotlight.errors import BadRequest
from pilotlight.facts.capacity import Node
from pilotlight.facts.labels import NEW_HOME
from pilotlight.facts.workload import Toleration
from pilotlight.world.simulation import World


@pytest.fixture(params=WAYS)
def homed(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A world whose pools "one" and "eight" have nodes that are born closed, in process and over HTTP."""
    with ports(request.param, faults={"gpu_lag_s": 30.0}) as here:
        here.world.fleet.homed |= {"one", "eight"}
        yield here


def seen(here: Ports) -> dict[str, Node]:
    """The nodes of the cluster, by name."""
    return {node.name: node for node in here.cluster.observe().nodes}


def places(here: World, job: str) -> list[str]:
    """The nodes a job runs on."""
    return [p.node.id for p in here.running[job].placement]


def at_home(here: World, *pools: str) -> list[str]:
    """Nodes of these pools, ready, each with a home of its own, which is called as the node."""
    here.fleet.homed |= set(pools)
    nodes = [here.launch(pool)[0] for pool in pools]
    here.advance(here.now_s + 100)
    for node in nodes:
        here.set_home(node, node)
    return nodes


def test_a_node_is_born_with_the_taint_of_its_pool(homed: Ports) -> None:
    """A node of a homed pool registers with the new home, as no taint of its own; one of another pool has none."""
    homed.world.launch("one")
    homed.world.launch("four")
    homed.world.advance(100)
    assert {name: (node.home, node.taints, node.ready) for name, node in seen(homed).items()} == {
        "n1": (NEW_HOME, (), False),
        "n2": ("", (), False),
    }


def test_a_pod_runs_on_the_node_that_it_was_given(homed: Ports) -> None:
    """Named when it registered, a node takes the pod of its home the moment it is ready, and no other pod."""
    homed.world.submit(pod("early"), 600)
    homed.world.submit(pod("mine"), 600)
    homed.world.launch("one")
    homed.world.advance(100)
    homed.cluster.name_home("n1", "d-0-0")
    homed.cluster.tolerate("default", "mine", "mine", "d-0-0")
    assert {p.name: p.homes for p in homed.cluster.observe().pending} == {"early": (), "mine": ("d-0-0",)}
    homed.world.advance(130)
    assert (list(homed.world.pending), places(homed.world, "mine")) == (["early"], ["n1"])


def test_a_pod_that_is_given_a_free_home_starts_at_once(homed: Ports) -> None:
    """A waiting pod binds with its toleration where its home has room by then, and with the node's name where not."""
    homed.world.launch("one", 2)
    homed.world.submit([pod("a")], 600)
    homed.world.submit([pod("b")], 600)
    homed.world.advance(130)
    homed.cluster.name_home("n1", "first")
    homed.cluster.tolerate("default", "b", "b", "first")
    assert places(homed.world, "b") == ["n1"]
    homed.cluster.tolerate("default", "a", "a", "second")
    assert list(homed.world.pending) == ["a"]
    homed.cluster.name_home("n2", "second")
    assert places(homed.world, "a") == ["n2"]


def test_a_home_is_named_once(homed: Ports) -> None:
    """A name is given to a new home only: neither one that has a name, nor an open node, gets another."""
    homed.world.launch("one")
    homed.world.launch("four")
    homed.world.advance(100)
    for name in ("first", "second"):
        homed.cluster.name_home("n1", name)
        homed.cluster.name_home("n2", name)
    assert {name: node.home for name, node in seen(homed).items()} == {"n1": "first", "n2": ""}
    with pytest.raises(BadRequest, match="n7"):
        homed.cluster.name_home("n7", "first")


def test_an_opened_node_takes_every_pod(homed: Ports) -> None:
    """Opening takes the home off, and what waits binds; twice is harmless."""
    homed.world.launch("one")
    homed.world.submit(pod("a"), 600)
    homed.world.advance(130)
    homed.cluster.open("n1")
    homed.cluster.open("n1")
    assert places(homed.world, "a") == ["n1"]
    assert seen(homed)["n1"].home == ""


def test_a_toleration_of_a_pod_that_does_not_wait_is_no_error(homed: Ports) -> None:
    """Gone, running, or tolerant of it already: nothing changes."""
    homed.world.launch("four")
    homed.world.advance(130)
    homed.world.submit(pod("runs", 4), 600)
    homed.world.submit(pod("waits"), 600)
    for uid in ("gone", "runs", "waits", "waits"):
        homed.cluster.tolerate("default", uid, uid, "h")
    assert [(p.name, p.homes) for p in homed.cluster.observe().pending] == [("waits", ("h",))]
    assert [d.homes for d in homed.world.running["runs"].demands] == [()]


def test_a_gang_starts_with_its_last_toleration() -> None:
    """Each pod of a gang goes to the node that it was given, and the last one given starts them together."""
    here = world()
    at_home(here, "eight", "eight")
    here.submit(gang("g", 2), 600, job="g")
    here.tolerate("g-0", "n2")
    assert list(here.pending) == ["g"]
    here.tolerate("g-1", "n1")
    assert places(here, "g") == ["n2", "n1"]


def test_homes_stay_with_the_pod_that_got_them() -> None:
    """A job that is queued again has new pods, which tolerate only what its template says."""
    here = world()
    (node,) = at_home(here, "one")
    here.submit(pod("given"), 6000)
    here.tolerate("given", node)
    written = here.submit(pod("written"), 6000)
    here.delete(written)
    here.terminate(node, "reclaimed", evict=True)
    assert [d.homes for d in here.pending["given"].demands] == [()]


@pytest.mark.parametrize(
    ("toleration", "binds"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="nvidia.com/gpu", operator="Exists"), False),
    ],
    ids=["everything", "everything that repels", "everything that evicts", "another key"],
)
def test_a_pod_that_tolerates_everything_is_at_home_everywhere(toleration: Toleration, binds: bool) -> None:
    """It binds to a node of any home, also to one that has no name yet."""
    here = world()
    at_home(here, "one")
    here.set_home("n1", NEW_HOME)
    here.submit(pod("a", tolerations=(toleration,)), 600)
    assert ("a" in here.running) is binds


@pytest.mark.parametrize("anew", [False, True], ids=["its Node outlived the stop", "its Node was deleted"])
def test_the_home_of_a_node_that_is_started(anew: bool) -> None:
    """A stopped node that comes back has the home that it had; one that registers anew carries its pool's taint."""
    types = {name: msgspec.structs.replace(kind, wake_s=20.0) for name, kind in CATALOG.instance_types.items()}
    faults = {"registers_anew": anew}
    here = world(catalog=msgspec.structs.replace(CATALOG, instance_types=types), faults=faults)
    (node,) = at_home(here, "one")
    here.stop(node)
    here.advance(1000)
    assert here.launch("one") == [node]
    assert here.nodes[node].home == (NEW_HOME if anew else node)


class Step(NamedTuple):
    """Something that happens: a pod comes, a node comes, a node gets a home or none, or a pod a toleration."""

    what: str
    which: int
    home: str


HOMES = ("", NEW_HOME, "x", "y")
STEPS = st.lists(
    st.builds(Step, st.sampled_from(["pod", "node", "home", "tolerate"]), st.integers(0, 9), st.sampled_from(HOMES)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_homes_keep_out_and_let_in(steps: list[Step]) -> None:
    """No pod starts on a node whose home it does not tolerate, and none waits beside room in a home that is its own."""
    here, pods, started = world(), list[str](), dict[str, str]()
    for step in steps:
        match step.what:
            case "pod":
                name = f"p{len(pods)}"
                here.submit(pod(name, 1 + step.which % 2), 100 + 10 * step.which)
                pods.append(name)
            case "node":
                here.launch("four" if step.which % 2 else "one")
                here.advance(here.now_s + 100)
            case "home" if here.nodes:
                here.set_home(sorted(here.nodes)[step.which % len(here.nodes)], step.home)
            case "tolerate" if pods and step.home:
                here.tolerate(pods[step.which % len(pods)], step.home)
        check(here, started)


def check(here: World, started: dict[str, str]) -> None:
    """The laws as they stand now; ``started`` are the pods that were looked at when they had just started."""
    for name, job in here.running.items():
        (placement,) = job.placement
        if name not in started:
            started[name] = placement.node.id
            assert placement.node.home in ("", *placement.demand.homes)
    for job in here.pending.values():
        (waits,) = job.demands
        need = here.need(waits.shape)
        able = [n for n in here.nodes.values() if n.ready and n.home in ("", *waits.homes)]
        assert not [n for n in able if need.allows(n.machine) and need.fits(n.room)]
