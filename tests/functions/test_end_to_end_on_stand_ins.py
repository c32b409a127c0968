"""One pod from Pub/Sub to Civo to Slack and back to nothing: serve, the Pub/Sub emulator, and servers that answer as
Civo and Slack do."""

import base64
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from answering import answering
from both_ways import served
from civo_server import CLUSTER, REGION, TOKEN, Civo, serving

from fleet import PILOTLIGHT, free_port, until
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.money.economics import stop_s
from pilotlight.facts.messages import Tick
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock

TICK_S = 60.0
POLICY = """
version: 1
pools:
  t4: {cloud: civo, cluster_pool: t4-pool-id, instance_type: t4.small, max: 4}
classes:
  batch: {gpu_models: any, idle_timeout: 2m, max_runtime: 1h}
budgets:
  - {name: everyone, usd: 100, period: day}
alerts:
  channels:
    team: {kind: slack, url_env: SLACK_URL, allow_private: true}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: civo, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, boot_s: 60,
             prices: {on-demand: {usd_per_hour: 2, source: a test, date: 2026-11-01}}}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "ml", "uid": "u-a", "resourceVersion": "1",
                 "creationTimestamp": "2026-11-20T12:00:00Z", "labels": {"pilotlight.dev/class": "batch"}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
}  # fmt: skip


class Stand(NamedTuple):
    """What stands in: the cloud, what Slack was told, Pub/Sub's address, and serve with its home."""

    civo: Civo
    slack: list[dict[str, Any]]
    pubsub: str
    url: str
    home: Path

    def publish(self, topic: str, data: object) -> None:
        """Put a message on a topic."""
        body = json.dumps({"messages": [{"data": base64.b64encode(json.dumps(data).encode()).decode()}]}).encode()
        path = f"http://{self.pubsub}/v1/projects/p/topics/pl-{topic}:publish"
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()

    def tick_until(self, true: Callable[[], object]) -> None:
        """Minutes pass, each with the tick that a scheduler would post; two hours at most."""
        for _ in range(120):
            if true():
                return
            self._tick()
        raise AssertionError("two hours passed, and it did not happen")

    def _tick(self) -> None:
        world = self.civo.world
        world.advance(world.now_s + TICK_S)
        body = encode(Tick(cluster="local", what="reconcile"), id=f"t-{world.now_s:g}")
        request = urllib.request.Request(f"{self.url}/capacity_reconcile", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()

    def changes(self) -> list[str]:
        """What Civo was asked to change."""
        return [f"{verb} {path.rpartition('/pools/')[2]}" for verb, path, _ in self.civo.calls if verb != "GET"]

    def state(self, prefix: str) -> dict[str, Any]:
        """The records under a prefix."""
        words = ["state", "export", "-", "--prefix", prefix]
        out = subprocess.run(
            [PILOTLIGHT, *words],
            env={**os.environ, "PILOTLIGHT_HOME": str(self.home)},
            capture_output=True,
            check=True,
            text=True,
        )
        return {line["key"]: line["value"] for line in map(json.loads, out.stdout.splitlines()) if "key" in line}


@pytest.fixture(scope="module")
def stand(pubsub_emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Everything started, on a clock that moves when it is told to."""
    home = tmp_path_factory.mktemp("home")
    (home / "policy.yaml").write_text(POLICY)
    (home / "catalog.yaml").write_text(CATALOG)
    policy, catalog = read_policy(POLICY.encode(), "policy"), read_catalog(CATALOG.encode(), "catalog")
    clock = VirtualClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
    world = World(catalog, [WorldPool.from_policy(n, p) for n, p in policy.pools.items()], clock=clock)
    civo, told = Civo(world), list[dict[str, Any]]()
    civo.marks = {"t4": {"labels": {}, "taints": []}}

    def slack(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        told.append(json.loads(body))
        return 200, "ok"

    port = free_port()
    with served(world) as outside, serving(civo) as civo_url, answering(slack) as slack_host:
        environ = {
            **os.environ,
            "PILOTLIGHT_HOME": str(home),
            "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
            "PILOTLIGHT_CATALOG": str(home / "catalog.yaml"),
            "PILOTLIGHT_WORLD": outside.url,
            "PILOTLIGHT_POOLS": f"civo:{REGION}/{CLUSTER}",
            "PILOTLIGHT_MODE": "act",
            "PILOTLIGHT_OUTBOX": "pubsub:p/pl",
            "PUBSUB_EMULATOR_HOST": pubsub_emulator,
            "CIVO_API_URL": civo_url,
            "CIVO_TOKEN": TOKEN,
            "SLACK_URL": f"http://{slack_host}/services/T0/B0/planted-slack-secret",
        }
        with (home / "log").open("wb") as log:
            words = ["serve", "--port", str(port), "--tick", "86400"]
            process = subprocess.Popen([PILOTLIGHT, *words], env=environ, stdout=log, stderr=log)
        try:
            said = home / "log"
            until(lambda: "POST http" in said.read_text() or process.poll() is not None)
            assert process.poll() is None, said.read_text()
            yield Stand(civo, told, pubsub_emulator, f"http://127.0.0.1:{port}", home)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


@pytest.mark.slow
def test_from_a_pod_on_pubsub_to_a_node_on_civo_and_back(stand: Stand) -> None:
    """A pushed event grows the one pool to one node, holds exactly its dollars and tells Slack; after the run that very
    instance goes, and what was held is what it cost."""
    body = json.dumps(POD).encode()
    request = urllib.request.Request(f"{stand.url}/world/pods", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()
    stand.publish("pod-events", POD)
    until(lambda: stand.changes() == ["PUT t4-pool-id"])
    until(lambda: stand.slack)
    assert "asked for 1 node of pool t4" in json.dumps(stand.slack)
    (hold,) = [hold for place in stand.state("hold/").values() for hold in place["items"].values()]
    (account,) = stand.state("cap/").values()
    # $2 an hour until the last moment at which a pod may bind, for the class's longest run, and what a stop then takes
    # beyond the idle time that is in it already.
    assert hold["terms"]["run_s"] == 3600
    since, binds_until = (datetime.fromisoformat(hold[name]) for name in ("since", "binds_until"))
    seconds = (binds_until - since).total_seconds() + 3600 + stop_s() - hold["terms"]["idle_s"]
    assert seconds >= 60 + 3600 + 120
    assert [Decimal(usd) for usd in account["held"].values()] == [Decimal(seconds) * 2 / 3600]
    (node,) = [n.id for n in stand.civo.world.nodes.values()]
    stand.tick_until(lambda: f"DELETE t4-pool-id/instances/{node}" in stand.changes())
    assert stand.changes() == ["PUT t4-pool-id", f"DELETE t4-pool-id/instances/{node}"]
    stand.tick_until(lambda: not stand.state("hold/"))
    log = (stand.home / "log").read_text()
    assert (TOKEN in log, "planted-slack-secret" in log) == (False, False)


@pytest.mark.slow
def test_what_cannot_be_read_is_a_dead_letter(stand: Stand) -> None:
    """A broken event is acknowledged and lies on the dead-letter topic with the path of what is wrong."""
    subscription = f"http://{stand.pubsub}/v1/projects/p/subscriptions/dead"
    made = urllib.request.Request(
        subscription, json.dumps({"topic": "projects/p/topics/pl-dead-letter"}).encode(),
        {"Content-Type": "application/json"}, method="PUT",
    )  # fmt: skip
    urllib.request.urlopen(made).read()
    stand.publish("pod-events", {**POD, "metadata": {"name": 7}})
    pull = urllib.request.Request(
        f"{subscription}:pull", json.dumps({"maxMessages": 10}).encode(), {"Content-Type": "application/json"}
    )
    found: list[str] = []

    def letters() -> list[str]:
        got = json.loads(urllib.request.urlopen(pull).read() or b"{}")
        found.extend(base64.b64decode(m["message"]["data"]).decode() for m in got.get("receivedMessages", []))
        return found

    until(letters)
    assert json.loads(found[0])["data"]["path"] == "message.data.metadata.name"
