"""The environment that infra/terraform gives a function: a map of one cluster, its secrets in variables."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pilotlight.settings import Settings
from pilotlight.wiring import App

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "infra" / "terraform" / "examples" / "civo" / "policy.yaml"
CLUSTER = {
    "api": "kubeconfig-env:KUBECONFIG_ML",
    "mode": "advise",
    "pools": "civo:LON1/c",
    "token_env": "CIVO_TOKEN_ML",
}


@pytest.fixture
def hosted() -> App:
    """A function's app, with no secret in its environment."""
    stores = {"PILOTLIGHT_STATE": "memory:", "PILOTLIGHT_OUTBOX": "memory:", "PILOTLIGHT_MODE": "advise"}
    clusters = {"PILOTLIGHT_CLUSTERS": json.dumps({"ml": CLUSTER})}
    return App(Settings.from_environ({**stores, **clusters, "PILOTLIGHT_POLICY": str(POLICY)}))


def _push(data: dict[str, Any], **attributes: str) -> bytes:
    """A Pub/Sub push of a message, as subscriptions send it."""
    encoded = base64.b64encode(json.dumps(data).encode()).decode()
    message = {"data": encoded, "attributes": attributes, "messageId": "1"}
    return json.dumps({"message": message, "subscription": "projects/p/subscriptions/s"}).encode()


def test_alerts_are_told_without_any_clusters_secret(hosted: App) -> None:
    """alert_fanout has no kubeconfig, and needs none."""
    alert = json.loads((ROOT / "events/samples/pilotlight/alert.json").read_text())
    alert["data"]["cluster"] = "ml"
    answer = hosted.receive("alert_fanout", _push(alert), {})
    assert answer.status == 200
    assert answer.body["did"] == ["console: told"]


@pytest.mark.parametrize(("function", "tick"), [("capacity_reconcile", "reconcile"), ("billing_tick", "billing")])
def test_a_scheduled_tick_reaches_its_cluster(hosted: App, function: Any, tick: str) -> None:
    """What Cloud Scheduler is told to send is read; what is missing is the cluster's secret, by its name. The tick is
    for later."""
    answer = hosted.receive(function, _push({"tick": tick, "cluster": "ml"}, tick=tick, cluster="ml"), {})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "60"})
    assert "KUBECONFIG_ML" in json.dumps(answer.body)
