"""Which of a pool's ready nodes a pod is put on, by the images that they have."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import A100, T4, node, plan, pod, policy

from pilotlight.facts.capacity import Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.limits.brakes import Brakes
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.workload import PodDemand

A, B, C = (f"registry.acme.com/{name}:1" for name in "abc")


def waits(name: str, image: str = "", gpus: int = 1) -> PodDemand:
    """A pod that waits with an image."""
    return replace(pod(name, gpus), image=image)


def where(made: Plan) -> dict[str, str]:
    """The node of each pod that finds room on a ready one, by name."""
    return {name.split("/")[1]: g.where for g in made.pods if g.verdict == "fits" for name in g.pods}


def has(name: str, *images: str, **fields: object) -> Node:
    """A ready node that has these images."""
    return node(name, images=images, **fields)  # type: ignore[arg-type]


def test_a_pod_goes_where_its_image_is() -> None:
    """Of idle nodes of a pool that cost alike, not to the first by name."""
    assert where(plan([waits("p", B)], [has("n1"), has("n2", A, B), has("n3", A)])) == {"p": "n2"}


def test_a_pod_leaves_a_node_to_those_whose_image_is_there() -> None:
    """One whose image is nowhere takes the node that nobody else waits for, older as it is."""
    assert where(plan([waits("p", C), waits("q", A)], [has("n1", A), has("n2")])) == {"p": "n2", "q": "n1"}


def test_a_fuller_node_comes_before_one_with_the_image() -> None:
    """To pack saves a node's hours, which no pull comes to."""
    nodes = [has("empty", A, of=A100), has("used", of=A100, used=4)]
    assert where(plan([waits("p", A)], nodes)) == {"p": "used"}


def test_no_image_leads_to_another_pool() -> None:
    """A node of another price is no stand-in, whatever it has."""
    nodes = [has("a-cheap"), has("b-dear", A, of=A100)]
    assert where(plan([waits("p", A)], nodes)) == {"p": "a-cheap"}


def test_the_pod_is_told_the_home_of_the_node_with_its_image() -> None:
    """Where nodes have homes it is the plan that chooses, and the scheduler follows."""
    rules = policy([T4], placement="homes")
    rules = replace(rules, pools={"t4": replace(rules.pools["t4"], taints=(BIRTH_TAINT,))})
    nodes = [has(name, *images, home=f"home-{name}") for name, images in (("n1", ()), ("n2", (A,)))]
    made = plan([waits("p", A)], nodes, offerings=[T4], rules=rules, brakes=Brakes(modes={"t4": "act"}))
    assert [(one.pod, one.home) for one in made.homes.tolerate] == [("p", "home-n2")]


images = st.sampled_from(["", A, B, C])
waiting = st.lists(st.tuples(images, st.sampled_from([1, 2, 8])), max_size=12)
there = st.lists(st.tuples(st.sets(images, max_size=2), st.sampled_from([0, 4, 8]), st.booleans()), max_size=6)


def _made(asks: Sequence[tuple[str, int]], has_: Sequence[tuple[set[str], int, bool]], *, known: bool) -> Plan:
    pods = [waits(f"p{n:02}", image if known else "", gpus) for n, (image, gpus) in enumerate(asks)]
    nodes = [
        has(f"n{n}", *sorted(found - {""}), of=T4 if small else A100, used=min(used, 1) if small else used)
        for n, (found, used, small) in enumerate(has_)
    ]
    return plan(pods, nodes)


@given(waiting, there)
def test_images_change_which_node_and_nothing_else(
    asks: list[tuple[str, int]], has_: list[tuple[set[str], int, bool]]
) -> None:
    """As many pods find room, the oldest first, as many nodes of each pool stay empty, and the same is bought."""
    by_image, blind = (_made(asks, has_, known=known) for known in (True, False))
    assert where(by_image).keys() == where(blind).keys()
    assert by_image.buys == blind.buys
    pool = {f"n{n}": small for n, (_, _, small) in enumerate(has_)}
    used = [sorted(pool[name] for name in set(where(made).values())) for made in (by_image, blind)]
    assert used[0] == used[1]
