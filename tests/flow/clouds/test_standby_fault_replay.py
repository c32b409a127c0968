"""Nodes that come to stand by at AWS, while its answers are lost, late, half, wrong or refusals, at any call."""

import random
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
import stage as stages
from aws_server import KEY, SECRET, SESSION, error
from civo_server import Fault
from fault_replay import Told, answered
from msgspec.structs import replace
from stage import Stage
from test_aws_fault_replay import LOST, REFUSED, told
from test_on_aws import on_aws

from pilotlight.facts.offers.catalog import InstanceType
from pilotlight.flow.answer import Answer

__all__ = ["told"]
SEEDS = range(3)
METHODS = (
    "DescribeAutoScalingGroups",
    "DescribeWarmPool",
    "PutWarmPool",
    "SetInstanceProtection",
    "SetDesiredCapacity",
    "TerminateInstanceInAutoScalingGroup",
)


def _faults(luck: random.Random) -> list[Fault]:
    """A dozen and a half, for calls of each kind."""
    lost = [Fault(luck.choice(LOST), luck.choice(("before", "after")), luck.choice(METHODS)) for _ in range(10)]
    no = [Fault(luck.choice(REFUSED), "before", luck.choice(METHODS)) for _ in range(6)]
    busy = Fault((400, error("ScalingActivityInProgress", "busy").decode()), "before", "SetDesiredCapacity")
    return luck.sample([*lost, *no, busy], 17)


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every type can be stopped: it starts in a minute and costs a cent an hour meanwhile."""
    honest = stages._type

    def kind(*args: Any) -> InstanceType:
        return replace(honest(*args), wake_s=60.0, standby_usd_per_hour=Decimal("0.01"))

    monkeypatch.setattr(stages, "_type", kind)


def _new(stage: Stage, number: int) -> Answer:
    return stage.event(stage.submit(f"j{number}", run_s=900.0))


def _minute(stage: Stage) -> str:
    stage.wait(60)
    return answered(stage.tick)


@pytest.mark.usefixtures("stopping")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_stops_a_node_that_works_or_tells_a_secret(seed: int, told: Told) -> None:
    """Jobs come and go, nodes stand by and start again: every job ends by itself, AWS never has a victim to choose (it
    would end a working node: the account's stand-in fails then), and no more is launched than there are jobs."""
    luck = random.Random(f"standby/{seed}")
    said: list[str] = []
    with on_aws(at_once=False, value_of_wait=100) as (stage, aws):
        aws.reuse["one"] = {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
        jobs = 0
        aws.faults = _faults(luck)
        for minute in range(160):
            if minute % 30 == 0 and minute < 120:
                for _ in range(luck.choice((1, 2))):
                    said.append(answered(partial(_new, stage, jobs)))
                    jobs += 1
            if minute == 110:
                aws.faults = []
            said.append(_minute(stage))
        stops = [event["reason"] for event in stage.events("stop")]
        assert (len(stops), set(stops)) == (jobs, {"done"})
        assert stage.world.launches <= jobs
        assert stage.world.nodes == {}
        sent = (bytes(message.data).decode() for message in stage.outbox.sent)
        everything = " ".join([*said, *told.said, *sent])
    assert [part in everything for part in (SECRET, SESSION, KEY)] == [False, False, False]


@pytest.mark.usefixtures("stopping")
def test_without_a_fault_later_jobs_start_what_stands_by() -> None:
    """The replay is of what it says: nodes are stopped and started, and AWS fills no warm pool by itself."""
    with on_aws(at_once=False, value_of_wait=100) as (stage, aws):
        aws.reuse["one"] = {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
        for n in range(4):
            stage.event(stage.submit(f"j{n}", run_s=900.0))
            stage.minutes(30)
        assert (stage.world.launches, stage.world.wakes, aws.refilled) == (1, 3, 0)
        assert (list(stage.world.nodes), len(stage.world.fleet.standing)) == ([], 1)
