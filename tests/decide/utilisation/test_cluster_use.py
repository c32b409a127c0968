"""What owners waste at their nodes' prices: by class, never of an unknown price, and never more than they hold."""

from datetime import UTC, datetime
from decimal import Decimal
from math import nan

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.decide.utilisation.cluster_use import Found, find_waste
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.facts.workload import GpuRequest

HOURS = 24
BUSY, QUIET = [1.0] * 60, [0.0] * 60


def _node(name: str, gpus: int, *pods: tuple[str, int], workload_class: str = "serving") -> Node:
    bound = tuple(
        BoundPod(uid=f"u-{pod}", namespace="ml", name=pod, gpu=GpuRequest(count=n), workload_class=workload_class)
        for pod, n in pods
    )
    return Node(
        name=name,
        pool="p",
        instance_type="t",
        capacity_type="on-demand",
        created_at=datetime(2026, 11, 20, tzinfo=UTC),
        ready=True,
        devices=(0,) * gpus,
        pods=bound,
    )


def _series(pod: str, activity: list[float], device: str = "0") -> GpuSeries:
    return GpuSeries(pod=f"ml/{pod}", device=f"{pod}/{device}", activity=activity, memory=activity)


def _found(nodes: list[Node], *series: GpuSeries, price: str | None = "8") -> Found:
    prices = {} if price is None else {node.name: Decimal(price) for node in nodes}
    return find_waste(Telemetry(start_s=0, step_s=60, metric="m", series=series), nodes, prices)


def test_replicas_beyond_need_are_a_service_s_and_no_training_job_s() -> None:
    """Eight pods at a tenth each: two would do for what they serve, and a job's pods all wait for the slowest."""
    pods = [(f"llm-{n}", 1) for n in range(8)]
    series = [_series(pod, [0.1] * 60 * HOURS) for pod, _ in pods]
    [one] = _found([_node("n", 8, *pods)], *series).owners
    assert (one.owner, one.gpus, one.held, one.usd_per_hour) == ("ml/llm", 6, 8, Decimal(6))
    assert one.why == "6 replicas more than would do (2 would)"
    assert _found([_node("n", 8, *pods, workload_class="training")], *series).owners == ()


def test_a_device_without_work_beside_one_at_work_is_beyond_use() -> None:
    """A pod that asked for four and works on three: a half of a node of $8 for four, a quarter of that wasted."""
    work = [_series("train-0", BUSY * HOURS, str(n)) for n in range(3)]
    [one] = _found([_node("n", 8, ("train-0", 4))], *work, _series("train-0", QUIET * HOURS, "3")).owners
    assert (one.gpus, one.held, one.usd_per_hour) == (1, 4, Decimal(1))
    assert one.why.startswith("1 beyond use, on pods that work on others for ")


def test_pods_that_share_a_device_waste_their_parts_of_it() -> None:
    """Two pods on one device, cut in two for the scheduler: one idle is half a device, and half its node's price."""
    shared = [
        GpuSeries(pod=f"ml/{pod}-0", device=f"GPU-1/vgpu{n}", part=True, activity=work, memory=work)
        for n, (pod, work) in enumerate((("busy", BUSY * HOURS), ("ada", QUIET * HOURS)))
    ]
    [one] = _found([_node("n", 2, ("busy-0", 1), ("ada-0", 1))], *shared, price="3").owners
    assert (one.owner, one.gpus, one.held, one.usd_per_hour) == ("ml/ada", 0.5, 0.5, Decimal("1.5"))


def test_an_unknown_price_is_no_price_and_counts_in_no_sum() -> None:
    """GPUs and evidence are said all the same."""
    found = _found([_node("n", 1, ("ada-0", 1))], _series("ada-0", QUIET * HOURS), price=None)
    [one] = found.owners
    assert (one.gpus, one.usd_per_hour) == (1, None)
    assert found.usd_per_hour == 0


def test_pods_of_other_clusters_and_of_too_many_series_are_nobody_s_waste() -> None:
    """One Prometheus has many clusters: what is not on these nodes is theirs, and a name that both have is unknown."""
    nodes = [_node("n", 1, ("ada-0", 1), ("bob-0", 1))]
    series = [_series(pod, QUIET * HOURS) for pod in ("ada-0", "bob-0", "far-0")]
    found = _found(nodes, *series, _series("bob-0", QUIET * HOURS, "of another cluster"))
    assert [one.owner for one in found.owners] == ["ml/ada"]
    assert found.unseen == 1


values = st.one_of(st.sampled_from([0.0, 0.03, 0.5, 1.0, nan, -0.2, -0.0, 9e18]), st.floats())


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a-0", "a-1", "a-2", "b-0", "gone-0"]), st.lists(values, min_size=1, max_size=6)),
        max_size=8,
    )
)
def test_whatever_the_series_say_nobody_wastes_more_than_they_hold(told: list[tuple[str, list[float]]]) -> None:
    """Missing, doubled, negative and absurd values, pods that are gone: no figure is made up of them."""
    node = _node("n", 8, ("a-0", 1), ("a-1", 1), ("a-2", 1), ("b-0", 2))
    series = [_series(pod, [v for v in hours for _ in range(60)]) for pod, hours in told]
    longest = max((len(one.activity) for one in series), default=0)
    padded = [_series(one.pod[3:], [nan] * (longest - len(one.activity)) + list(one.activity)) for one in series]
    found = _found([node], *padded)
    assert all(0 < one.gpus <= one.held + 1e-6 for one in found.owners)
    assert 0 <= found.usd_per_hour <= 8
    names = [pod for pod, _ in told]
    doubled = {f"ml/{name.rpartition('-')[0]}" for name in names if all(names.count(n) > 1 for n in names)}
    assert not doubled & {one.owner for one in found.owners}
