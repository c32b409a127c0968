"""Nodes whose GPUs are not well: what closes one, what gives it back, and what only tells."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.decide.nodes.gpu_health import GpuHealth, judge_gpu_health
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.workload import GpuRequest

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OFFERING = Offering(
    pool="h", instance_type="h.8", capacity_type="on-demand", gpu_model="H100", gpus=8, usd_per_hour=Decimal(80)
)
XID = "XIDErrors is True (XID 79)"


def node(name: str, *, gpus: int = 8, pods: int = 0, ready: bool = True, age_h: float = 24, **more: Any) -> Node:
    """A node of eight GPUs, a day old."""
    held = tuple(
        BoundPod(uid=f"{name}-{n}", namespace="ml", name=f"{name}-{n}", gpu=GpuRequest(count=1)) for n in range(pods)
    )
    born = NOW - timedelta(hours=age_h)
    what: dict[str, Any] = {"pool": "h", "instance_type": "h.8", "capacity_type": "on-demand", "instance": f"i-{name}"}
    return Node(name=name, created_at=born, ready=ready, devices=(1000,) * gpus, pods=held, **{**what, **more})


def judged(*nodes: Node) -> GpuHealth:
    """What becomes of them."""
    return judge_gpu_health(nodes, {"h": OFFERING}, NOW)


@pytest.mark.parametrize(
    ("one", "closed", "goes", "codes"),
    [
        pytest.param(node("a"), False, False, [], id="a node that is well"),
        pytest.param(node("a", sick=XID), True, True, ["sick-gpu"], id="an idle node with an XID"),
        pytest.param(node("a", sick=XID, pods=2), True, False, ["sick-gpu"], id="one with pods, which are not moved"),
        pytest.param(node("a", gpus=7), True, True, ["sick-gpu"], id="one that shows fewer GPUs than the others"),
        pytest.param(node("a", pods=1, ready=False), False, False, ["node-lost"], id="one lost with its pods"),
        pytest.param(node("a", ready=False, sick=XID), False, False, [], id="one that never was ready"),
        pytest.param(node("a", age_h=0.1, sick=XID), False, False, [], id="one whose driver only comes up"),
        pytest.param(node("a", pool="other", sick=XID), False, False, [], id="one of a pool that is not ours"),
        pytest.param(node("a", gpus=3, slices={"nvidia.com/mig-1g.5gb": 7}), False, False, [], id="one cut in parts"),
    ],
)
def test_what_becomes_of_a_node(one: Node, closed: bool, goes: bool, codes: list[str]) -> None:
    """Beside two others of its pool that are well."""
    found = judged(one, node("b", pods=8), node("c", pods=8))
    assert ("a" in found.closed, [v.node for v in found.verdicts]) == (closed, ["a"] if goes else [])
    assert [f.code for f in found.findings] == codes


def test_what_no_node_of_a_type_has_is_no_fault_of_one() -> None:
    """The catalogue may be wrong, or the device plugin: it is told, and nothing is closed or bought anew for ever."""
    found = judged(node("a", gpus=4), node("b", gpus=4))
    assert (found.closed, found.verdicts, {f.code for f in found.findings}) == ({}, (), {"gpu-missing"})


def test_many_at_once_are_no_hardware() -> None:
    """A driver that was rolled out, or a detector: a person looks before a pool is emptied."""
    found = judged(node("a", sick=XID), node("b", sick=XID), node("c"))
    assert (found.closed, found.verdicts) == ({}, ())
    assert [(f.code, f.subject) for f in found.findings] == [("many-sick", "pool h")]


def test_a_replacement_that_is_sick_too_rests_its_offering() -> None:
    """An old node says nothing of its offering; one that fell sick within its first hour does."""
    old, young = judged(node("a", sick=XID)).verdicts[0], judged(node("a", sick=XID, age_h=0.5)).verdicts[0]
    assert (old.offering, young.offering) == ("", OFFERING.name)
    assert old.failed
    assert "XID 79" in old.why
