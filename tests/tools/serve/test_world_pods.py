"""Pods that enter the world by the command line: their refused claims stay known, and a refused pod is named once."""

import json
from pathlib import Path

import pytest

from pilotlight.errors import BadInput
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import Finding
from pilotlight.flow.records.ledger import filed_records
from pilotlight.settings import Settings
from pilotlight.tools.serve import pods_to_world
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool

SAMPLES = Path(__file__).resolve().parents[3] / "events" / "samples"


@pytest.fixture
def app() -> App:
    """One deployment on the built-in world."""
    return App(Settings(mode="act", outbox="memory:", state="memory:"))


def event(name: str, **spec: object) -> bytes:
    """A pod that waits and names another's team, as an event brings it."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    meta: dict[str, object] = {"name": name, "namespace": "lab", "uid": f"uid-{name}", "labels": {"team": "rich"}}
    meta["creationTimestamp"] = "2026-11-21T00:00:00Z"
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "resources": limits}], **spec},
        "status": {"phase": "Pending", "conditions": [waits]},
    }
    return json.dumps(pod).encode()


def told(app: App) -> list[tuple[str, str]]:
    """The refused claims that a look sees."""
    found: tuple[Finding, ...] = app.deps.cluster.observe().findings
    return [(one.subject, one.message.split(",")[0]) for one in found if one.code == "claim-refused"]


def test_the_world_keeps_what_a_pod_may_not_claim(app: App) -> None:
    """Every look at the world finds the refused claim of a pod that was sent, as in a cluster."""
    pods_to_world.create(app, event("a"), {})
    pods_to_world.create(app, event("b"), {})
    assert told(app) == [("lab/a", "claims team rich")]
    assert app.deps.cluster.observe().findings[0].message.endswith("(and 1 more)")


def test_a_pod_waits_from_when_it_enters(app: App) -> None:
    """A sample's own time is long ago: its days are nobody's wait."""
    before = app.clock.now()
    pods_to_world.create(app, event("a"), {})
    [pod] = app.deps.cluster.observe().pending
    assert before <= pod.created_at <= app.clock.now()


def test_a_pod_that_an_event_names_alone_is_its_namespaces(app: App) -> None:
    """Without its spec it is paid for as any pod of that namespace: no team's budget is passed by."""
    pods_to_world.create(app, (SAMPLES / "kubernetes" / "failed_scheduling.json").read_bytes(), {})
    [pod] = app.deps.cluster.observe().pending
    assert (pod.namespace, pod.shape.team) == ("vision", "vision")


def test_a_type_that_no_catalogue_knows_is_in_no_pretend_world() -> None:
    """It is refused by name with the way out, before anything is served."""
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="g6.2xlarge", max=2)})
    with pytest.raises(
        BadInput, match=r"pools\.gpu\.instance_type is g6\.2xlarge: .* add a price file to prices\.files"
    ):
        WorldPool.every(policy, App(Settings(outbox="memory:", state="memory:")).catalog)


def test_the_decision_names_it(app: App) -> None:
    """The record of the purchase, which `why` and alerts read, has the refused claim."""
    pods_to_world.create(app, event("a"), {})
    assert app.receive("pod_pending", event("a"), {}).status < 300
    [record] = filed_records(app.state, app.deps.name)
    assert [one.subject for one in record.plan.findings if one.code == "claim-refused"] == ["lab/a"]


def test_a_dry_run_tells_it_too(app: App) -> None:
    """A pod that is only supposed brings its refused claims, and leaves none behind."""
    assert told(pods_to_world.app_with_pods(app, event("a"), {})) == [("lab/a", "claims team rich")]
    assert told(app) == []


def test_a_refused_pod_is_named_once(app: App) -> None:
    """The error of a pod whose field is beyond its bound begins with its name, once."""
    body = json.dumps(
        {
            "specversion": "1.0",
            "id": "1",
            "source": "x",
            "type": "dev.knative.apiserver.resource.add",
            "data": json.loads(event("grace", terminationGracePeriodSeconds=1e12)),
        }
    ).encode()
    with pytest.raises(BadInput) as refused:
        pods_to_world.create(app, body, {})
    assert str(refused.value).count("lab/grace") == 1
    assert "terminationGracePeriodSeconds" in str(refused.value)
