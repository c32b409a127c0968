"""Open nodes by what is free of them: as a walk over all of them would find, and given back whole after a trial."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import FLEET, T4, V100X4, node, plan, pod, policy

from pilotlight.decide.fit.fit import Allowed, Bin, fill, of_offering
from pilotlight.decide.place.purchase import OpenBins
from pilotlight.facts.capacity import Offering
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape

REQUESTS = [GpuRequest(count=n) for n in (1, 2, 4)] + [GpuRequest(count=1, milli=milli) for milli in (500, 250)]
DRAWN = st.lists(st.tuples(st.sampled_from(REQUESTS), st.integers(1, 3)), max_size=6)
KINDS: tuple[Callable[[Offering], Bin], ...] = (
    lambda of: of_offering(of, "booting", of.name),
    lambda of: of_offering(of, "new", of.name),
)


def walked(bins: Sequence[Bin], kind: str, gpu: GpuRequest) -> list[Bin]:
    """The same by a walk over all."""
    return [bin_ for bin_ in bins if bin_.kind == kind and not bin_.full and bin_.room_for(shape(gpu=gpu))]


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from((T4, V100X4))), min_size=1, max_size=8),
    DRAWN,
    DRAWN,
    st.integers(0, 8),
)
def test_a_trial_that_is_taken_back_leaves_no_trace(
    made: list[tuple[Callable[[Offering], Bin], Offering]],
    kept: list[tuple[GpuRequest, int]],
    tried: list[tuple[GpuRequest, int]],
    later: int,
) -> None:
    """Whatever pods were put, and nodes added, the nodes with room for a request are those of a walk, in its order;
    taken back, they are as they were."""
    bins = [make(of) for make, of in made]
    here, coming = bins[: len(bins) - later], bins[len(bins) - later :] if later else []
    rooms = OpenBins(here)
    _put(rooms, kept)
    before = [(list(b.devices), b.cpu_milli, b.pods, list(b.taken), b.full) for b in here]
    _agree(rooms, here)
    mark = len(rooms.log)
    rooms.add(len(here), coming)
    _put(rooms, tried)
    _agree(rooms, bins)
    rooms.undo(mark)
    assert [(list(b.devices), b.cpu_milli, b.pods, list(b.taken), b.full) for b in here] == before
    _agree(rooms, here)


def _put(rooms: OpenBins, drawn: Sequence[tuple[GpuRequest, int]]) -> None:
    for gpu, count in drawn:
        for kind in ("booting", "new"):
            fill(shape(gpu=gpu), count, rooms.able(kind, gpu), Allowed())


def _agree(rooms: OpenBins, bins: Sequence[Bin]) -> None:
    for kind in ("booting", "new"):
        for gpu in REQUESTS:
            assert [id(b) for b in rooms.able(kind, gpu)] == [id(b) for b in walked(bins, kind, gpu)]


def gangs(count: int) -> list[PodDemand]:
    """Gangs of four pods, each of which fills a node."""
    return [pod(f"g{n}-{i}", gpus=4, gang=Gang(key=f"g{n:04}", size=4)) for n in range(count) for i in range(4)]


def different(count: int) -> list[PodDemand]:
    """Pods of which no two are alike."""
    return [pod(f"p{n}", gpus=(1, 2, 4)[n % 3], memory=n << 20) for n in range(count)]


@pytest.mark.parametrize("made", [gangs, different])
def test_the_work_of_a_plan_grows_with_its_pods(made: Callable[[int], list[PodDemand]]) -> None:
    """Five times the pods and nodes are at most five times the instructions: nothing looks at all pairs."""
    few, many = (_instructions(made(count), nodes) for count, nodes in ((24, 12), (120, 60)))
    assert many <= 5 * few


def _instructions(pending: Sequence[PodDemand], nodes: int) -> int:
    """Python's instructions of one plan."""
    lit = [node(f"n{n}", FLEET[n % len(FLEET)], used=n % 2) for n in range(nodes)]
    rules = policy(pools={o.pool: PoolPolicy(instance_type=o.instance_type, max=10_000) for o in FLEET})
    found = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal found
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found += event == "opcode"
        return count

    plan(pending[:1], nodes=lit[:1], rules=rules)  # What is imported late is there.
    before = sys.gettrace()
    sys.settrace(count)
    try:
        bought = plan(pending, nodes=lit, rules=rules).buys
    finally:
        sys.settrace(before)
    assert bought
    return found
