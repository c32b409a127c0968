"""The contract of the Pools port, over the world in this process and over HTTP, over Civo's API, AWS's, GKE's and
Karpenter's claims; over moto's server too, but for what needs the world behind the cloud, or asks it while a call waits
at its gate.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
import pytest
from aws_server import EKS, Aws
from aws_server import REGION as AWS_REGION
from aws_server import serving as aws_serving
from both_ways import WAYS, Ports, ports
from civo_server import CLUSTER, REGION, TOKEN, Civo, serving
from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving as gke_serving
from karpenter_claims import claim_ports
from moto_groups import at_moto
from small_cloud import START, pod

from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools import asg, gke
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.errors import BadRequest, Busy, Conflict, Denied, NoCapacity, QuotaExceeded
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, PoolState
from pilotlight.ports.clouds import CloudAccount, Gate, Pools

AWS = "AWS, launching at once"
SAY_NO = (*WAYS, "Civo", AWS)
"""Clouds that refuse at once what they cannot launch."""
CLOUDS = (*SAY_NO, "AWS, by a size", "GKE", "Karpenter")
MOTO = "AWS, by moto"
GONE = "i-00000000000000000"
"""An instance that never was, by a name that every cloud reads."""


@contextmanager
def clouds(way: str, **options: Any) -> Iterator[Ports]:
    """A small world with its own pools either way, or with Civo's, AWS's, GKE's or Karpenter's in front of it."""
    with ports(way if way in WAYS else "in process", **options) as made:
        if way in WAYS:
            yield made
            return
        if way == "GKE":
            project = Gke(made.world)
            with gke_serving(project) as environ:
                pools = gke.open_pools(WHERE, CloudAccount(project.names(), made.clock, lambda: "", environ))
                assert pools is not None
                yield made._replace(pools=pools)
            return
        if way == "Karpenter":
            with claim_ports(made) as here:
                yield here
            return
        if way != "Civo":
            aws = Aws(made.world, at_once=way == AWS, eks=way == AWS)
            with aws_serving(aws) as environ:
                where = f"{AWS_REGION}/{EKS}" if aws.eks else AWS_REGION
                pools = asg.open_pools(where, CloudAccount(aws.names(), made.clock, lambda: "", environ))
                assert pools is not None
                yield made._replace(pools=pools)
            return
        civo = Civo(made.world)
        with serving(civo) as url:
            api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
            yield made._replace(pools=CivoPools(api, CLUSTER, civo.ids(), made.clock))


@pytest.fixture(params=CLOUDS)
def here(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A small world behind each cloud."""
    with clouds(request.param) as made:
        yield made


class Rented(NamedTuple):
    """The port to some pools, and what the cloud behind it has running."""

    pools: Pools
    there: Callable[[], list[str]]

    def size(self, name: str) -> int:
        """A pool's, as the port tells it."""
        return next(pool.desired for pool in self.pools.describe() if pool.name == name)


@pytest.fixture(params=[*CLOUDS, MOTO])
def rented(request: pytest.FixtureRequest) -> Iterator[Rented]:
    """Pools behind each cloud, and behind a server of AWS's calls that others wrote."""
    if request.param == MOTO:
        with at_moto(request.getfixturevalue("dynamodb_server"), ["one", "four"]) as moto:
            yield Rented(moto.pools, lambda: moto.instances)
        return
    with clouds(request.param) as made:
        yield Rented(made.pools, lambda: list(made.world.nodes))


@pytest.fixture(params=WAYS)
def ours(request: pytest.FixtureRequest) -> Iterator[Ports]:
    """A small world each way, for what only the world's cloud does."""
    with ports(request.param) as made:
        yield made


def _pool(here: Ports, name: str) -> PoolState:
    """A pool, without the instances that a cloud still names though they are nodes by now."""
    state = next(p for p in here.pools.describe() if p.name == name)
    nodes = {node.instance for node in here.cluster.observe().nodes}
    return msgspec.structs.replace(
        state, booting=tuple(b for b in state.booting if b.instance not in nodes), rules=None, asked=()
    )


def test_every_pool_is_told_with_what_boots(here: Ports) -> None:
    """Each pool has its desired size, and its instances on their way until they register."""
    assert [(p.name, p.desired, p.booting) for p in here.pools.describe()] == [
        ("one", 0, ()), ("four", 0, ()), ("eight", 0, ()),
    ]  # fmt: skip
    here.world.advance(5)
    here.pools.grow("four", 1)
    (first,) = here.world.nodes
    state = PoolState(
        name="four", desired=1, booting=(Booting(instance=first, requested_at=START + timedelta(seconds=5)),)
    )
    assert _pool(here, "four") == state
    here.world.advance(105)
    assert _pool(here, "four") == PoolState(name="four", desired=1)


def test_growing_again_to_a_size_buys_nothing(rented: Rented) -> None:
    """The desired size becomes the larger of what it is and what is asked."""
    assert [rented.pools.grow("one", to).desired for to in (2, 2, 1)] == [2, 2, 2]
    assert len(rented.there()) == 2


@pytest.mark.parametrize(("most", "told"), [(1, 2), (2, 3), (5, 3)])
def test_a_step_raises_a_pool_by_no_more_than_its_own_nodes(rented: Rented, most: int, told: int) -> None:
    """A node left since the look: its place is not filled beyond ``most``, and the gate is told the size asked for."""
    rented.pools.grow("one", 2)
    rented.pools.release("one", rented.there()[0])
    at_gate: list[int] = []
    rented.pools.grow("one", 3, most=most, gate=at_gate.append)
    assert (at_gate, rented.size("one"), len(rented.there())) == ([told], told, told)


def test_many_at_once_grow_to_the_largest(here: Ports) -> None:
    """Parallel calls add up to the largest size that one of them asked for."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda to: here.pools.grow("one", to), [1, 2, 3, 4] * 4))
    assert (_pool(here, "one").desired, here.world.launches) == (4, 4)


def test_a_release_takes_the_named_instance_once(rented: Rented) -> None:
    """One instance goes with one from the desired size; again, or one that never was, is no error."""
    rented.pools.grow("one", 2)
    first, second = rented.there()
    for instance in (first, first, GONE):
        rented.pools.release("one", instance)
    assert (rented.there(), rented.size("one")) == ([second], 1)


def test_an_instance_is_told_with_its_age(here: Ports) -> None:
    """What is there is as old as its request; what never was, or is another pool's, is not there."""
    here.world.advance(5)
    here.pools.grow("one", 1)
    here.world.advance(300)
    (first,) = here.world.nodes
    seen = here.pools.instance("one", first)
    assert seen is not None
    assert (seen.there, seen.created_at, bool(seen.going)) == (True, START + timedelta(seconds=5), False)
    for pool, instance in (("one", "n9"), ("four", first)):
        assert here.pools.instance(pool, instance) == InstanceState(there=False)


def test_an_instance_that_is_taken_is_told_so(ours: Ports) -> None:
    """The world says whether it takes an instance, and when."""
    ours.pools.grow("one", 1)
    before = ours.pools.instance("one", "n1")
    ours.world.interrupt("n1", 120)
    after = ours.pools.instance("one", "n1")
    assert before is not None
    assert after is not None
    assert (before.going, after.going, after.deadline) == (False, True, START + timedelta(seconds=120))


def test_an_instance_is_not_released_as_another_pools(rented: Rented) -> None:
    """A release that names the wrong pool takes nothing."""
    rented.pools.grow("one", 1)
    only = rented.there()
    rented.pools.release("four", only[0])
    assert rented.there() == only


CHANGES: dict[str, Callable[[Pools, str, Gate], object]] = {
    "grow": lambda pools, first, gate: pools.grow("one", 2, gate=lambda size: gate()),
    "release": lambda pools, first, gate: pools.release("one", first, gate=gate),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_gate_is_asked_once_before_anything_changes(
    here: Ports, change: Callable[[Pools, str, Gate], object]
) -> None:
    """At the gate the cloud is as it was; behind it the change is made."""
    here.pools.grow("one", 1)
    before, at_gate = list(here.world.nodes), list[list[str]]()
    change(here.pools, before[0], lambda: at_gate.append(list(here.world.nodes)))
    assert at_gate == [before]
    assert list(here.world.nodes) != before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_gate_that_raises_changes_nothing(rented: Rented, change: Callable[[Pools, str, Gate], object]) -> None:
    """Its error passes, and the cloud stays as it was."""
    rented.pools.grow("one", 1)
    before = rented.there()

    def no() -> None:
        raise Conflict("another has taken over")

    with pytest.raises(Conflict, match="taken over"):
        change(rented.pools, before[0], no)
    assert (rented.there(), rented.size("one")) == (before, 1)


NOTHING: dict[str, Callable[[Pools, str, Gate], object]] = {
    "a size that is there": lambda pools, first, gate: pools.grow("one", 1, gate=lambda size: gate()),
    "an instance that is not there": lambda pools, first, gate: pools.release("one", GONE, gate=gate),
    "an instance of another pool": lambda pools, first, gate: pools.release("four", first, gate=gate),
}


@pytest.mark.parametrize("ask", NOTHING.values(), ids=NOTHING)
def test_no_gate_is_asked_where_nothing_has_to_be_changed(
    rented: Rented, ask: Callable[[Pools, str, Gate], object]
) -> None:
    """What is so already is read, and not asked for."""
    rented.pools.grow("one", 1)
    before = rented.there()
    asked: list[str] = []
    ask(rented.pools, before[0], lambda: asked.append("gate"))
    assert (asked, rented.there()) == ([], before)


def test_a_node_that_runs_a_pod_is_not_released(ours: Ports) -> None:
    """The world's cloud refuses while work is on the node, and keeps it."""
    ours.pools.grow("one", 1)
    ours.world.submit(pod("a"), 60)
    ours.world.advance(100)
    with pytest.raises(Busy):
        ours.pools.release("one", "n1")
    assert list(ours.world.nodes) == ["n1"]


def test_a_zone_asked_for_is_the_zone_given(ours: Ports) -> None:
    """A node comes up in the zone that grow names, where a cloud has zones."""
    ours.pools.grow("one", 1, "z-b")
    ours.world.advance(100)
    assert ours.cluster.observe().nodes[0].zone == "z-b"


@pytest.mark.parametrize("way", SAY_NO)
@pytest.mark.parametrize(
    ("faults", "pool", "kind", "says"),
    [
        pytest.param({}, "nope", BadRequest, "nope", id="no such pool"),
        pytest.param({"quota_nodes": 1}, "one", QuotaExceeded, "quota is 1", id="over the quota"),
        pytest.param({"shortage": 1.0}, "one", NoCapacity, "out of stock", id="out of stock"),
    ],
)
def test_a_cloud_that_says_no_says_why(
    way: str, faults: dict[str, object], pool: str, kind: type[Denied], says: str
) -> None:
    """Each refusal is its own kind, and what had come before it stays."""
    with clouds(way, faults=faults) as here:
        with pytest.raises(kind, match=says):
            here.pools.grow(pool, 2)
        assert sum(p.desired for p in here.pools.describe()) == here.world.launches


def test_the_clock_is_the_worlds(ours: Ports) -> None:
    """The world's moment is told, and moves with it."""
    assert ours.clock.now() == START
    ours.world.advance(30)
    assert ours.clock.now() == START + timedelta(seconds=30)
