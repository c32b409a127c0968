"""`bench/replays/where_dollars_go.py`: each second of a node that runs is a boot, in use, unused, or idle."""

from typing import Any

import pytest

import where_dollars_go

TYPES = {"four": {"gpus": 4, "prices": {"on-demand": {"usd_per_hour": 36}}}}


def spent(*records: tuple[float, str, dict[str, Any]]) -> where_dollars_go.Spent:
    """The dollars of a log of one node of 4 GPUs at a cent a second."""
    return where_dollars_go.Spent(TYPES).read({"t": t, "event": event, **more} for t, event, more in records)


def job(name: str, gpus: int) -> dict[str, Any]:
    """A job's whole devices on the node."""
    return {"job": name, "placement": [{"node": "n", "gpus": gpus, "share": 1000}]}


LAUNCH: tuple[float, str, dict[str, Any]] = (0, "launch", {"node": "n", "type": "four", "capacity_type": "on-demand"})
NODE = {"node": "n"}


def test_each_second_of_a_node_counts_once_by_what_it_did() -> None:
    """While work runs there the price is split between the GPUs in use and those beside them."""
    got = spent(
        LAUNCH,
        (100, "ready", NODE),
        (110, "start", job("a", 1)),
        (210, "start", job("b", 3)),
        (310, "stop", {"job": "a"}),
        (410, "stop", {"job": "b"}),
        (430, "terminate", NODE),
    )
    assert dict(got.usd) == pytest.approx(
        {"boot": 1.0, "idle": 0.1 + 0.2, "in use": 0.25 + 1.0 + 0.75, "unused beside work": 0.75 + 0.25}
    )
    assert (got.launches, got.never_used) == (1, 0)


def test_a_stopped_node_costs_nothing_until_it_wakes_to_boot_again() -> None:
    """Its disk is another price, which the replay's own figures name."""
    got = spent(
        LAUNCH,
        (100, "ready", NODE),
        (200, "standby", NODE),
        (900, "wake", NODE),
        (950, "ready", NODE),
        (960, "terminate", NODE),
    )
    assert dict(got.usd) == pytest.approx({"boot": 1.0 + 0.5, "idle": 1.0 + 0.1})
    assert got.never_used == 1
