"""Whether a pod may run on a node: Kubernetes' documented semantics, and the world's own rules as a second opinion."""

from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW

from pilotlight.decide.fit.fit import Allowed, fill, of_node, pods_that_fit
from pilotlight.facts.capacity import Node, Resources, Taint
from pilotlight.facts.fit.matching import holds, selects, untolerated_taint
from pilotlight.facts.workload import NVIDIA, GpuRequest, Near, PodShape, Requirement, Toleration, clash, shape
from pilotlight.world.scheduling.filters import affine, are_ports_taken, is_repelled, room_after_move, roomy

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
MOST = str(2**63 - 1)
DOCUMENTED: dict[str, tuple[Operator, tuple[str, ...], str | None, bool]] = {
    "In holds for a value of the list": ("In", ("a", "b"), "b", True),
    "In fails for another value": ("In", ("a", "b"), "c", False),
    "In fails without the label": ("In", ("a",), None, False),
    "In fails for an empty list": ("In", (), "a", False),
    "NotIn fails for a value of the list": ("NotIn", ("a", "b"), "b", False),
    "NotIn holds for another value": ("NotIn", ("a", "b"), "c", True),
    "NotIn holds without the label": ("NotIn", ("a",), None, True),
    "Exists holds for any value": ("Exists", (), "x", True),
    "Exists holds for an empty value": ("Exists", (), "", True),
    "Exists fails without the label": ("Exists", (), None, False),
    "DoesNotExist fails for any value": ("DoesNotExist", (), "x", False),
    "DoesNotExist fails for an empty value": ("DoesNotExist", (), "", False),
    "DoesNotExist holds without the label": ("DoesNotExist", (), None, True),
    "Gt holds for a greater number": ("Gt", ("5",), "6", True),
    "Gt fails for an equal number": ("Gt", ("5",), "5", False),
    "Gt fails for a smaller number": ("Gt", ("5",), "4", False),
    "Gt compares numbers, not text": ("Gt", ("9",), "10", True),
    "Gt knows signs": ("Gt", ("-2",), "-1", True),
    "Gt fails without the label": ("Gt", ("5",), None, False),
    "Gt fails for a label that is no integer": ("Gt", ("5",), "6.5", False),
    "Gt fails for a bound that is no integer": ("Gt", ("five",), "6", False),
    "Gt fails for what only Python calls an integer": ("Gt", ("5",), "1_0", False),
    "Gt fails beyond 64 bits": ("Gt", ("5",), "9223372036854775808", False),
    "Gt fails without a bound": ("Gt", (), "6", False),
    "Lt holds for a smaller number": ("Lt", ("5",), "4", True),
    "Lt fails for an equal number": ("Lt", ("5",), "5", False),
    "Lt fails for a greater number": ("Lt", ("5",), "6", False),
    "Lt compares numbers, not text": ("Lt", ("10",), "9", True),
    "Lt fails without the label": ("Lt", ("5",), None, False),
    "Lt fails for an empty label": ("Lt", ("5",), "", False),
    "Lt holds up to the largest number": ("Lt", (MOST,), "1", True),
}


@pytest.mark.parametrize(("operator", "values", "value", "expected"), DOCUMENTED.values(), ids=DOCUMENTED.keys())
def test_a_requirement_as_kubernetes_documents_it(
    operator: Operator, values: tuple[str, ...], value: str | None, expected: bool
) -> None:
    """Each operator of node affinity means what Kubernetes says: here, and to the world's scheduler."""
    wanted = Requirement(key="k", operator=operator, values=values)
    labels = {} if value is None else {"k": value}
    assert holds(labels, wanted) is expected
    assert affine(labels, ((wanted,),)) is expected


WORDS = st.sampled_from(["a", "b", "5", "-1", "007", "1_0", " 5", "", MOST])
LABELS = st.dictionaries(st.sampled_from(["k", "l"]), WORDS)
REQUIREMENTS = st.builds(
    Requirement,
    key=st.sampled_from(["k", "l"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    values=st.lists(WORDS, max_size=2).map(tuple),
)
TERMS = st.lists(st.lists(REQUIREMENTS, max_size=3).map(tuple), max_size=3).map(tuple)
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
TAINTS = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from(["k", "l"]),
        effect=st.sampled_from(EFFECTS),
        value=st.sampled_from(["", "a"]),
    ),
    max_size=3,
)
TOLERATIONS = st.lists(
    st.one_of(
        st.just(Toleration(operator="Exists")),
        st.builds(
            Toleration,
            key=st.sampled_from(["k", "l"]),
            operator=st.sampled_from(["Exists", "Equal"]),
            value=st.sampled_from(["", "a"]),
            effect=st.sampled_from(["", *EFFECTS]),
        ),
    ),
    max_size=3,
)


@given(LABELS, TERMS, TAINTS, TOLERATIONS)
def test_the_planner_and_the_worlds_scheduler_agree_on_who_may_run_where(
    labels: dict[str, str],
    terms: tuple[tuple[Requirement, ...], ...],
    taints: list[Taint],
    tolerations: list[Toleration],
) -> None:
    """Two readings of Kubernetes' rules, written apart, give one answer for labels and taints."""
    assert selects(labels, terms) == affine(labels, terms)
    assert (untolerated_taint(taints, tolerations) is not None) == is_repelled(taints, tolerations)


MIG = "nvidia.com/mig-1g.5gb"
NAMES = ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"]
SHAPES = st.builds(
    shape,
    gpu=st.one_of(
        st.builds(GpuRequest, count=st.integers(1, 3), resource=st.sampled_from(NAMES)),
        st.builds(GpuRequest, count=st.just(1), milli=st.sampled_from([250, 500]), resource=st.sampled_from(NAMES[:2])),
    ),
    cpu_milli=st.integers(0, 2),
    memory=st.integers(0, 2),
    other=st.sampled_from(
        [(), (("hugepages-2Mi", 2),), (("hugepages-2Mi", 1), ("rdma/hca", 1)), (("nvidia.com/mig-1g.5gb", 2),)]
    ),
)
FREE = st.builds(
    Resources,
    cpu_milli=st.integers(0, 3),
    memory=st.integers(0, 3),
    pods=st.integers(0, 2),
    other=st.sampled_from([(), (("hugepages-2Mi", 1),), (("hugepages-2Mi", 3), ("rdma/hca", 1))]),
)


@given(
    SHAPES,
    st.sampled_from(NAMES[:2]),
    st.lists(st.sampled_from([0, 250, 500, 1000]), max_size=4),
    st.dictionaries(st.sampled_from(NAMES[2:]), st.integers(0, 3)),
    FREE,
)
def test_the_planner_and_the_worlds_scheduler_agree_on_room(
    wanted: PodShape, resource: str, devices: list[int], slices: dict[str, int], free: Resources
) -> None:
    """Two ways to count, written apart, agree on whether a pod fits."""
    assert (pods_that_fit(wanted, resource, devices, slices, free) > 0) == roomy(
        wanted, resource, devices, slices, free
    )


PORTS = st.lists(
    st.tuples(
        st.sampled_from(["TCP", "UDP"]),
        st.sampled_from(["80", "8080"]),
        st.sampled_from(["", "/10.0.0.1", "/10.0.0.2"]),
    ).map(lambda port: f"{port[0]}/{port[1]}{port[2]}"),
    max_size=3,
)


@given(PORTS, PORTS)
def test_the_planner_and_the_worlds_scheduler_agree_on_host_ports(there: list[str], wanted: list[str]) -> None:
    """Two codes of one rule: a port is taken by its protocol and number, on its address or on all."""
    assert clash(tuple(there), tuple(wanted)) == are_ports_taken(there, wanted)


def test_the_worlds_scheduler_keeps_pods_of_one_host_port_apart() -> None:
    """A node that has a pod with a host port takes no other with it until that one has gone."""
    one = shape(gpu=GpuRequest(count=1), near=Near(ports=("TCP/80",)))
    empty = Resources()
    assert roomy(one, NVIDIA, (1000, 1000), {}, empty)
    full = room_after_move(empty, one, -1)
    assert not roomy(one, NVIDIA, (1000, 1000), {}, full)
    assert roomy(one, NVIDIA, (1000, 1000), {}, room_after_move(full, one, 1))


def test_a_mig_profile_beside_a_whole_gpu_is_used_up() -> None:
    """A node with two whole GPUs and three slices holds one pod of a GPU and two slices, and slices for one more."""
    node = Node(name="n", pool="p", instance_type="t", capacity_type="spot", created_at=NOW, ready=True)
    node = msgspec.structs.replace(node, devices=(1000, 1000), slices={MIG: 3}, free=Resources())
    both, part = shape(gpu=GpuRequest(count=1), other=((MIG, 2),)), shape(gpu=GpuRequest(count=1, resource=MIG))
    room = of_node(node)
    assert (room.room_for(both), room.room_for(part)) == (1, 3)
    room.put(both, 1)
    assert (room.room_for(both), room.room_for(part)) == (0, 1)


def test_an_answer_about_labels_that_are_gone_is_no_answer_about_others() -> None:
    """Bins come and go during a plan: the next one's labels may stand where those of the last one stood."""
    gpu, allowed = GpuRequest(count=1), Allowed()
    wants = shape(gpu=gpu, terms=((Requirement(key="zone", operator="In", values=("a",)),),))
    node = Node(name="n", pool="p", instance_type="t", capacity_type="spot", created_at=NOW, ready=True)
    zones = ["a", "b"] * 20
    said = [allowed(wants, of_node(msgspec.structs.replace(node, labels={"zone": zone}))) for zone in zones]
    assert said == [zone == "a" for zone in zones]


def test_a_pod_that_asks_for_no_cpu_fits_where_too_much_of_it_is_promised() -> None:
    """Pods of a node may ask for more than it has by now: who asks for none of that is not kept off."""
    node = Node(name="n", pool="p", instance_type="t", capacity_type="spot", created_at=NOW, ready=True)
    node = msgspec.structs.replace(node, devices=(1000,), free=Resources(cpu_milli=-500, memory=-1))
    found = [fill(shape(gpu=GpuRequest(count=1), cpu_milli=cpu), 1, [of_node(node)], Allowed()) for cpu in (0, 1)]
    assert [bool(each) for each in found] == [True, False]
