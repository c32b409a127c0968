"""What nodes that joined had: the next one is predicted by it, also from zero."""

from msgspec.structs import replace
from small_fleet import NOW, T4, bought, plan, pod, policy

from pilotlight.decide.offers.joined_nodes import as_learnt, with_learnt
from pilotlight.facts.capacity import Node, Resources
from pilotlight.facts.labels import HOSTNAME, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import ATTACHABLE, Requirement

ROOM = Resources(cpu_milli=3_900, memory=14 * 2**30, ephemeral=2**36, pods=29, other=(("rdma/hca", 1),))
DISK = f"{ATTACHABLE}disk.example.com"


def node(name: str, room: Resources | None = ROOM, **labels: str) -> Node:
    """A ready node of pool t4."""
    return Node(
        name=name,
        pool="t4",
        instance_type=T4.instance_type,
        capacity_type="on-demand",
        created_at=NOW,
        ready=True,
        devices=(1000,),
        labels={HOSTNAME: name, ZONE: "a", "node.example.com/id": f"id-{name}", **labels},
        room=room,
    )


def test_the_least_room_of_the_nodes_there_are_is_learnt() -> None:
    """Of two nodes with different room, the next is taken for the smaller; a node that tells none says nothing."""
    smaller = replace(ROOM, cpu_milli=3_800, other=())
    memory = with_learnt(Memory(), [node("n1"), node("n2", smaller), node("n3", None)], policy())
    assert as_learnt([T4], memory, policy())[0].resources == smaller


def test_a_pod_that_real_nodes_do_not_hold_is_not_bought_for_from_zero() -> None:
    """The prediction said it fits; the node that came had less, and that is known when the pool is empty again."""
    memory = with_learnt(Memory(), [node("n1")], policy())
    waiting = (pod("p", cpu_milli=3_950),)
    assert (bought(plan(waiting, offerings=[T4])), bought(plan(waiting, offerings=[T4], memory=memory))) == (
        {"t4": 1},
        {},
    )


def test_labels_that_are_not_of_one_node_are_learnt() -> None:
    """A selector of a label that no policy names finds its pool once a node of it was seen; names are left out."""
    memory = with_learnt(Memory(), [node("n1", driver="550")], policy())
    assert memory.learnt[f"t4/{T4.instance_type}"].labels == {"driver": "550"}
    selector = ((Requirement(key="driver", operator="In", values=("550",)),),)
    assert bought(plan((pod("p", terms=selector),), offerings=[T4], memory=memory)) == {"t4": 1}


def test_what_the_policy_says_daemon_sets_take_comes_off_what_is_learnt() -> None:
    """A node's allocatable is that before any pod."""
    rules = policy(pools={"t4": PoolPolicy(instance_type=T4.instance_type, daemonsets={"cpu": "500m"})})
    memory = with_learnt(Memory(), [node("n1")], rules)
    assert as_learnt([T4], memory, rules)[0].resources.cpu_milli == 3_400


def test_how_many_volumes_a_node_attaches_stays_known_while_it_is_not_read() -> None:
    """Limits are read only where a waiting pod has volumes; a look without them forgets nothing."""
    told = replace(ROOM, other=(*ROOM.other, (DISK, 24)))
    memory = with_learnt(with_learnt(Memory(), [node("n1", told)], policy()), [node("n1")], policy())
    assert dict(memory.learnt[f"t4/{T4.instance_type}"].room.other)[DISK] == 24


def test_what_is_not_new_changes_nothing() -> None:
    """The memory is the very same, so that nothing is written."""
    memory = with_learnt(Memory(), [node("n1")], policy())
    assert with_learnt(memory, [node("n1")], policy()) is memory
