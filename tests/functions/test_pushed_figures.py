"""Figures that billing_tick pushes by OTLP, to a receiver that listens."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from answering import Answer, answering
from helm import PYTHON, needs_helm

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.facts.memory import Memory, Tally
from pilotlight.facts.messages import Tick
from pilotlight.settings import Settings
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock

TICK = encode(Tick(cluster="local", what="billing"), id="t1")
PARSES = (
    "import sys; from google.protobuf.json_format import Parse;"
    "from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as Asked;"
    "[told] = Parse(sys.stdin.read(), Asked()).resource_metrics;"
    "print(sum(len(scope.metrics) for scope in told.scope_metrics))"
)


class Receiver:
    """Answers every request with ``status``, and keeps it."""

    def __init__(self) -> None:
        self.status, self.url = 200, ""
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Keep it, and answer."""
        self.asked.append((path, headers, body))
        return self.status, b""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that listens."""
    found = Receiver()
    with answering(found.answer) as host:
        found.url = f"http://{host}"
        yield found


def tick(clock: VirtualClock, **environ: str) -> Any:
    """What billing_tick answers, of a deployment whose memory has counted a boot."""
    state = MemoryState(clock)
    app = App(
        Settings.from_environ({"PILOTLIGHT_HOME": "gone", **environ}), state=state, outbox=MemoryOutbox(), clock=clock
    )
    counted = Tally().count_duration("boot", 90.0).count_call("grow", "done")
    MEMORY.put(state, app.settings.cluster_name, Memory(tally=counted))
    return app.receive("billing_tick", TICK, {})


def test_a_billing_tick_pushes_what_the_page_has(clock: VirtualClock, receiver: Receiver) -> None:
    """One request with gauges, sums and histograms by name, and the headers that the environment gives."""
    headers = "authorization=Bearer%20abc,x-tenant=ml"
    answer = tick(clock, OTEL_EXPORTER_OTLP_ENDPOINT=f"{receiver.url}/", OTEL_EXPORTER_OTLP_HEADERS=headers)
    assert answer.status == 200
    [(path, sent, body)] = receiver.asked
    assert (path, sent["authorization"], sent["x-tenant"]) == ("/v1/metrics", "Bearer abc", "ml")
    [told] = json.loads(body)["resourceMetrics"][0]["scopeMetrics"]
    found = {metric["name"]: metric for metric in told["metrics"]}
    assert found["pilotlight_holds_open"]["gauge"]["dataPoints"][0]["asDouble"] == 0
    calls = found["pilotlight_calls"]["sum"]
    assert (calls["isMonotonic"], calls["aggregationTemporality"], calls["dataPoints"][0]["asDouble"]) == (True, 2, 1)
    [boot] = found["pilotlight_wait_seconds"]["histogram"]["dataPoints"]
    assert (boot["count"], boot["sum"], len(boot["bucketCounts"])) == ("1", 90, len(boot["explicitBounds"]) + 1)
    assert {"key": "phase", "value": {"stringValue": "boot"}} in boot["attributes"]


@needs_helm
def test_the_protocols_own_code_reads_it(clock: VirtualClock, receiver: Receiver) -> None:
    """OpenTelemetry's messages take the body, with no field that they do not know."""
    tick(clock, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    [(_, _, body)] = receiver.asked
    run = subprocess.run([str(PYTHON), "-c", PARSES], input=body.decode(), capture_output=True, text=True)
    assert (int(run.stdout or 0) > 5, run.stderr) == (True, "")


@pytest.mark.parametrize("status", [pytest.param(503, id="is down"), pytest.param(401, id="knows us not")])
def test_a_receiver_that_refuses_fails_no_tick(
    clock: VirtualClock, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The tick is answered as ever, and a line of the log says why nothing was pushed."""
    receiver.status = status
    with caplog.at_level(logging.WARNING):
        assert tick(clock, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url).status == 200
    assert "figures were not pushed" in caplog.text


def test_nobody_is_asked_unless_it_is_named(clock: VirtualClock, receiver: Receiver) -> None:
    """Nothing is pushed, and what pushes is not even loaded."""
    sys.modules.pop("pilotlight.doorway.push", None)
    assert tick(clock).status == 200
    assert (receiver.asked, "pilotlight.doorway.push" in sys.modules) == ([], False)
