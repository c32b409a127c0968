"""Steps until a pod works on a new node: what is learned of them, how far a tenant moves it, and what it is worth."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import NOW, T4, fate, node, plan, policy

from pilotlight.decide.money.economics import usd_per_useful_hour, works_s
from pilotlight.decide.nodes.spares.demand_rates import add_demand
from pilotlight.decide.nodes.spares.spare_nodes import Spares, allowance
from pilotlight.decide.offers.first_work import (
    ASKED,
    MOST_IMAGES,
    Began,
    as_learned,
    newly_working,
    pulls_saved,
    repository,
    usual,
    with_begun,
)
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.first_work import MOST_S, SEEN, FirstWork, ImageLoad, Pull
from pilotlight.facts.workload import GpuRequest
from pilotlight.units import clock_seconds

TRAIN, OTHER = "registry.acme.com/train:1", "registry.acme.com/other:1"


def began(
    name: str = "p", image: str = TRAIN, *, bound_s: float = 20, works_s: float = 200, made_s: float = -100
) -> Began:
    """A node of pool t4 that was Ready at NOW, and the pod on it: seconds from then."""

    def at(seconds: float) -> datetime:
        return NOW + timedelta(seconds=seconds)

    pod = BoundPod(
        uid=name, namespace="ml", name=name, gpu=GpuRequest(count=1), image=image,
        created_at=at(made_s), started_at=at(bound_s), works_since=at(works_s),
    )  # fmt: skip
    return Began(replace(node(f"n-{name}", T4), pods=(pod,), ready_since=NOW), pod)


def taught(*pulls: float, start_s: float = 5, image: str = TRAIN, memory: Memory | None = None) -> Memory:
    """A memory after pods of an image that took so long to pull, each on a new node."""
    memory = memory or Memory()
    for at, seconds in enumerate(pulls):
        one = began(f"{image}-{at}", image, works_s=20 + seconds + start_s)
        memory = with_begun(memory, [one], {one.pod.uid: Pull(seconds=seconds, size=10**9)}, NOW)
    return memory


def test_each_step_is_learned_apart() -> None:
    """A pod that waited for its node tells of the device plugin; its Events tell of the pull; the rest is its start."""
    memory = taught(150, 160, 170)
    memory = replace(memory, first_work=replace(memory.first_work, boots={"t4": (90, 95, 100)}))
    steps = usual(memory.first_work, "t4", T4.instance_type)
    assert (steps.boot, steps.plugin, steps.pull, steps.start) == (95, 20, 160, 5)
    (sold,) = as_learned([T4], memory)
    assert (sold.ready_s, sold.pull_s, works_s(sold)) == (115, 160, 275)


def test_too_little_is_nothing() -> None:
    """Two pulls are no habit: nothing is sold by them."""
    assert as_learned([T4], taught(150, 160)) == [T4]


def test_a_pod_that_did_not_wait_says_nothing_of_the_device_plugin() -> None:
    """One that was made after the node was Ready, or came second to it, was bound when it could be."""
    late = began(made_s=10)
    assert with_begun(Memory(), [late], {}, NOW).first_work.plugins == {}


def test_images_that_were_there_are_no_pull_of_zero_seconds() -> None:
    """What a warm node saves is no reason to think that a cold one pulls faster."""
    memory, warm = taught(150, 160, 170), began("warm", works_s=25)
    memory = with_begun(memory, [warm], {warm.pod.uid: Pull(seconds=0)}, NOW)
    assert usual(memory.first_work, "t4", T4.instance_type).pull == 160
    assert memory.first_work.images[f"{T4.instance_type} {TRAIN}"].pulled == 3


def test_a_claim_of_a_pull_is_held_against_the_time_that_was_seen() -> None:
    """Whoever may write Events may write any: no pull is longer than its pod took, nor longer than an hour."""
    pod = began(works_s=30)
    one = with_begun(Memory(), [pod], {pod.pod.uid: Pull(seconds=1e12, size=1 << 60)}, NOW).first_work
    (load,) = one.images.values()
    assert (load.pulls, load.starts) == ((10.0,), (0.0,))
    slow = began(works_s=1e7)
    (load,) = with_begun(Memory(), [slow], {slow.pod.uid: Pull(seconds=1e12)}, NOW).first_work.images.values()
    assert load.pulls == (MOST_S,)


pods = st.lists(
    st.tuples(
        st.integers(0, 500),
        st.floats(-1e9, 1e9),
        st.floats(-1e9, 1e9),
        st.one_of(st.none(), st.floats(-1e12, 1e12)),
    ),
    max_size=200,
)


@given(pods)
def test_no_tenant_makes_the_record_large_or_absurd(seen: list[tuple[int, float, float, float | None]]) -> None:
    """Whatever images, times and pulls pods show: few images, few figures each, each from none to an hour."""
    memory = Memory()
    for number, bound_s, works, pull_s in seen:
        one = began(f"p{number}", f"evil/{number}", bound_s=bound_s, works_s=works)
        pulls = {} if pull_s is None else {one.pod.uid: Pull(seconds=pull_s)}
        memory = with_begun(memory, [one], pulls, NOW)
    known = memory.first_work
    assert len(known.images) <= MOST_IMAGES
    for load in known.images.values():
        assert max(len(load.pulls), len(load.starts)) <= SEEN
        assert all(0 <= seconds <= MOST_S for seconds in (*load.pulls, *load.starts))
    assert all(0 <= one <= MOST_S for seconds in known.plugins.values() for one in seconds)


def test_a_crowd_of_new_images_does_not_drive_out_those_in_use() -> None:
    """A tenant that runs a hundred images once each loses them among its own: what others use stays."""
    memory = taught(150, 160, 170)
    for number in range(100):
        memory = taught(MOST_S, image=f"evil/{number}", memory=memory)
    assert f"{T4.instance_type} {TRAIN}" in memory.first_work.images
    assert usual(memory.first_work, "t4", T4.instance_type).pull == 160, "once is no habit, however many of them"


def test_the_usual_pull_is_that_of_the_images_in_use() -> None:
    """An image that hardly anybody uses does not move it, however long it takes."""
    memory = taught(*[60] * 7)
    assert usual(taught(3000, 3000, 3000, image=OTHER, memory=memory).first_work, "t4", T4.instance_type).pull == 60


@pytest.mark.parametrize(
    "image",
    ["registry.acme.com:5000/a/train", "registry.acme.com:5000/a/train:1", "registry.acme.com:5000/a/train:1@sha256:0"],
)
def test_the_repository_of_an_image(image: str) -> None:
    """Its name without tag and digest; a registry's port is no tag."""
    assert repository(image) == "registry.acme.com:5000/a/train"


def test_tags_of_one_repository_are_one_habit() -> None:
    """What is built anew with each commit is pulled once a tag: together they tell what the next pull takes."""
    memory = Memory()
    for commit, seconds in enumerate((150, 160, 170)):
        memory = taught(seconds, image=f"registry.acme.com/ci:{commit}", memory=memory)
    known = memory.first_work
    assert usual(known, "t4", T4.instance_type).pull == 160
    has = replace(node("n", T4), images=("registry.acme.com/ci:0",))
    assert 0 < pulls_saved(known, [has])["n"] < 160, "one of its tags saves the pulls of that one"
    memory = taught(60, 60, 60, image="registry.acme.com/ci:stable", memory=memory)
    kept = replace(has, images=("registry.acme.com/ci:stable",))
    assert pulls_saved(memory.first_work, [kept])["n"] == pytest.approx(60 * 3 / 6), (
        "a tag that is known well goes by itself"
    )


def test_a_gang_counts_each_of_its_pulls() -> None:
    """Its pods pull alike, each on its node: one is asked, all are counted, and in what is usual it weighs as one."""
    gang = [began(f"g{at}", bound_s=20 + at, works_s=200 + at) for at in range(8)]
    warm = began("warm", works_s=30)
    now = NOW + timedelta(seconds=300)
    (one,) = found = newly_working(Memory(), [each.node for each in (*gang, warm)], now)
    (load,) = with_begun(Memory(), found, {one.pod.uid: Pull(seconds=170)}, now).first_work.images.values()
    assert (load.uses, load.pulled, len(load.pulls)) == (1, 8, 1)


def test_few_pods_are_asked_of_a_look() -> None:
    """One an image, at most so many in all; none of them twice."""
    pairs = [began(f"p{at}", f"image/{at % 40}") for at in range(80)]
    now = NOW + timedelta(seconds=300)
    found = newly_working(Memory(), [one.node for one in pairs], now)
    assert len({one.pod.image for one in found}) == len(found) == ASKED
    assert newly_working(with_begun(Memory(), found, {}, now), [one.node for one in pairs], now) == []


def test_a_node_with_the_image_is_kept_before_one_without() -> None:
    """Of two idle nodes that idled as long the one goes first whose next pod would pull for minutes."""
    rules, memory = policy([T4]), taught(1200, 1200, 1200)
    longest = allowance(as_learned([T4], memory)[0], rules, memory, None).seconds
    idle = [node(name, T4, idle_s=longest + 1) for name in ("has", "lacks")]
    nodes = [replace(one, images=(TRAIN,) if one.name == "has" else ()) for one in idle]
    made = plan(nodes=nodes, offerings=[T4], rules=rules, memory=memory)
    assert (fate(made, "has")[0], fate(made, "lacks")[0]) == ("keep", "release")
    assert "and 20 min of image pull" in fate(made, "has")[1]


@given(st.floats(0, MOST_S), st.floats(0, MOST_S), st.decimals("0.1", "100", places=2))
def test_a_longer_pull_never_lets_a_node_with_the_image_go_sooner(one: float, other: float, price: Decimal) -> None:
    """The idle time that pays rises with what the image saves, and a node without it is kept as before."""
    rules, sold = policy([T4]), replace(T4, usd_per_hour=price)
    short, long_ = sorted((one, other))
    seconds = [allowance(sold, rules, Memory(), None, pull_s).seconds for pull_s in (0.0, short, long_)]
    assert seconds == sorted(seconds)
    assert allowance(replace(sold, pull_s=long_), rules, Memory(), None).seconds == seconds[0]


@given(st.floats(0, MOST_S), st.integers(3, 12), st.decimals("0.1", "100", places=2), st.decimals("0", "200", places=1))
def test_images_never_make_fewer_spares_pay(pull_s: float, asks: int, price: Decimal, wait: Decimal) -> None:
    """A kept node that saves a pull pays wherever one without does; those bought ahead count as before."""
    hits, at_s = None, clock_seconds(NOW)
    for ask in range(asks):
        hits = add_demand(hits, 1, 1.0, at_s - (asks - ask) * 400, 200.0)
    assert hits is not None
    plain = Spares(replace(T4, usd_per_hour=price), hits, wait, NOW)
    saving = plain.saving(pull_s)
    assert saving.count >= plain.count
    assert saving.usd_per_hit >= plain.usd_per_hit
    assert Spares(replace(T4, usd_per_hour=price, pull_s=pull_s), hits, wait, NOW).bought == plain.bought


@given(st.floats(0, MOST_S), st.floats(0, MOST_S))
def test_a_pull_never_makes_a_useful_hour_cheaper(one: float, other: float) -> None:
    """A type on which images take longer costs no less for the same work."""
    short, long_ = (usd_per_useful_hour(replace(T4, pull_s=pull_s), 1, 3600.0, 60.0) for pull_s in sorted((one, other)))
    assert short <= long_


def test_where_nothing_is_known_nothing_is_different() -> None:
    """A use whose pull nobody told of changes no offering."""
    known = FirstWork(images={f"{T4.instance_type} {TRAIN}": ImageLoad(at=0, uses=50.0)})
    assert as_learned([T4], Memory(first_work=known)) == [T4]


@pytest.mark.parametrize("kind", ["ready_s", "pull_s"])
def test_each_figure_alone_is_priced(kind: str) -> None:
    """Boot and device plugin as learned stand in for the catalogue's boot; a pull is added to it."""
    assert works_s(replace(T4, **{kind: 400.0})) == (400.0 if kind == "ready_s" else T4.boot_s + 400.0)
