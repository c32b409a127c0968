"""A morning on AWS whose answers are lost, late, cut, refused or wrong, by seed: what it may never lead to."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aws_server import KEY, SECRET, SESSION, error
from civo_server import Fault
from fault_replay import Told, deliver, whole_log
from test_on_aws import on_aws

from pilotlight.adapters.aws_api import services
from pilotlight.adapters.pools.asg import pools as asg_pools

SEEDS = range(20)
METHODS = (
    "DescribeAutoScalingGroups",
    "DescribeInstances",
    "DescribeScalingActivities",
    "LaunchInstances",
    "SetDesiredCapacity",
    "TerminateInstanceInAutoScalingGroup",
)


def _said(code: str, message: str = "no") -> str:
    return error(code, message).decode()


LOST: Sequence[Any] = (
    "hang",
    "reset",
    "cut",
    "drip",
    (500, _said("InternalFailure", f"seen {SECRET}")),
    (503, "<html>bad gateway</html>"),
    (200, "<html>thanks</html>"),
    (200, ""),
    (302, ""),
)
"""What may come whether AWS acted or not."""
REFUSED: Sequence[Any] = (
    (400, _said("Throttling")),
    (429, ""),
    (400, _said("ScalingActivityInProgress")),
    (500, _said("ResourceContention")),
    (400, _said("InsufficientInstanceCapacity")),
    (400, _said("VcpuLimitExceeded")),
    (403, _said("AccessDenied", f"who has {SECRET} and {SESSION}")),
    (400, _said("ValidationError", f"with {KEY} and {SESSION}")),
)
"""What AWS says where it did nothing."""


def _faults(luck: random.Random) -> list[Fault]:
    """A dozen, for calls of each kind."""
    lost = [Fault(luck.choice(LOST), luck.choice(("before", "after")), luck.choice(METHODS)) for _ in range(8)]
    return luck.sample([*lost, *(Fault(luck.choice(REFUSED), "before", luck.choice(METHODS)) for _ in range(6))], 14)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What is logged; the client gives an answer up soon."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.1)
    monkeypatch.setattr(services, "QUERY_READ_S", 0.1)
    monkeypatch.setattr(services, "QUERY_PAUSES_S", ())
    with whole_log() as handler:
        yield handler


@pytest.mark.parametrize("at_once", [True, False], ids=["launching at once", "by a size"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_buys_twice_takes_another_or_tells_a_secret(seed: int, at_once: bool, told: Told) -> None:
    """Three pods get one node each at most, no pod loses its node, none stays lit at last, and no secret is told."""
    said: list[str] = []
    with on_aws(at_once=at_once) as (stage, aws):
        aws.faults = _faults(random.Random(seed))
        pods = [stage.submit(name, run_s=60.0 * minutes) for name, minutes in {"a": 10, "b": 20, "c": 60}.items()]
        for minute in range(150):
            stage.wait(60)
            aws.faults = aws.faults if minute < 90 else []
            said += deliver(stage, pods)
    stops = [event["reason"] for event in stage.events("stop")]
    assert (len(stops), set(stops)) == (len(pods), {"done"})
    assert stage.world.launches <= len(pods)
    assert stage.world.nodes == {}
    assert set(stage.world.fleet.desired.values()) == {0}
    sent = (bytes(message.data).decode() for message in stage.outbox.sent)
    everything = " ".join([*said, *told.said, *sent, json.dumps(stage.log)])
    assert [part in everything for part in (SECRET, SESSION, KEY)] == [False, False, False]
