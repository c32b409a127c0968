"""Events of nodes at the front door: pod_pending takes them, and no other function does."""

from pathlib import Path

import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.settings import Settings
from pilotlight.wiring import App

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples" / "kubernetes"


@pytest.mark.parametrize("name", ["node_registered", "node_ready"])
def test_pod_pending_takes_nodes_that_joined(name: str) -> None:
    """A source of all of a cluster's Events sends them where those of pods go; elsewhere they are refused in words."""
    outbox = MemoryOutbox()
    app, body = App(Settings(), outbox=outbox), (SAMPLES / f"{name}.json").read_bytes()
    answer = app.receive("pod_pending", body, {"content-type": "application/json"})
    assert (answer.status, answer.body["did"], outbox.sent) == (200, [], [])
    assert "no node is on its way" in str(answer.body["why"])
    refused = app.receive("kueue_admission", body, {"content-type": "application/json"})
    assert "pod_pending" in str(refused.body)
