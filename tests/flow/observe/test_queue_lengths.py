"""Nodes are lit for the workers that a queue will ask for, a boot earlier."""

from dataclasses import replace
from typing import Any

from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.policy import PoolPolicy
from pilotlight.state_schema.cluster_records import QUEUE


class Line:
    """A queue of so many messages, or one that does not answer."""

    def __init__(self) -> None:
        self.waiting: float | None = 0.0
        self.reads = 0

    def length(self, name: str) -> float:
        """Messages that wait."""
        self.reads += 1
        if self.waiting is None:
            raise Unavailable("RabbitMQ at mq does not answer (connection refused)")
        return self.waiting


def staged(**rules: Any) -> tuple[Stage, Line]:
    """A cluster whose pool "one" is lit for the workers of a queue."""
    queue = QueueRules(
        **{"source": "sqs:q", "workers": "ml/speech", "per_worker": 10, "max": 3, "pool": "one", **rules}
    )
    stage, line = Stage(pools={"one": PoolPolicy(instance_type="one", max=5)}, queues={"speech": queue}), Line()
    stage.deps = replace(stage.deps, queues=line)
    return stage, line


def test_a_queue_lights_nodes_before_its_workers_are_there() -> None:
    """They are ready when the workers come, and no more are lit for those."""
    stage, line = staged()
    line.waiting = 25
    stage.minutes(1)
    assert stage.nodes("one") == 3
    stage.minutes(4)
    for n in range(3):
        stage.submit(f"speech-7c9d8f6b5-abcd{n}")
    stage.minutes(2)
    assert stage.nodes("one") == 3


def test_an_empty_queue_lets_them_go() -> None:
    """Once nobody is asked for, a node without work goes as any does."""
    stage, line = staged()
    line.waiting = 25
    stage.minutes(4)
    line.waiting = 0
    stage.minutes(30)
    assert stage.nodes("one") == 0


def test_a_queue_that_cannot_be_read_lights_nothing_and_is_told() -> None:
    """What is known of it ages within minutes; the cluster's own pods are served as ever."""
    stage, line = staged()
    line.waiting = None
    stage.submit("train")
    stage.minutes(2)
    assert stage.nodes("one") == 1
    assert any("its length cannot be read: RabbitMQ at mq does not answer" in alert.why for alert in stage.alerts)


def test_a_dry_run_asks_and_keeps_nothing() -> None:
    """It says what would be lit; the next tick knows as much as before."""
    stage, line = staged()
    line.waiting = 25
    answer = stage.tick(dry_run=True)
    assert answer.plan is not None
    assert [(buy.pool, buy.count) for buy in answer.plan.buys] == [("one", 3)]
    assert (QUEUE.get(stage.deps.state, "c/speech"), line.reads) == (None, 1)
