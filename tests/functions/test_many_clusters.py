"""One deployment of many clusters: each with its own policy, mode and ports, and none in another's way."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleet import until
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.messages import Alert, PodPending, Tick
from pilotlight.facts.workload import GpuRequest, PodDemand, Toleration, shape
from pilotlight.flow.abreast import abreast
from pilotlight.ports.seams import Seams
from pilotlight.settings import ClusterSettings, Settings
from pilotlight.tools.serve import tick_schedule
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples"
TICK = encode(Tick(cluster="*", identity="t"), id="t")


class Hanging(WorldCluster):
    """An API server that does not answer until it is let go."""

    def __init__(self, world: World, until: threading.Event) -> None:
        super().__init__(world)
        self._until = until

    def observe(self) -> ClusterView:
        """Wait."""
        self._until.wait(600)
        return super().observe()


class Fleet:
    """Three clusters over a world each, in one deployment; ``c`` hangs until ``let_go`` is set where asked."""

    def __init__(self, *, faults: Faults | None = None, hangs: bool = False, wait_s: float = 20) -> None:
        plain = App(Settings())
        clock = VirtualClock(plain.catalog.as_of)
        pools = [WorldPool.from_policy(name, rules) for name, rules in plain.policy.pools.items()]
        self.worlds = {
            name: World(plain.catalog, pools, clock=clock, faults=faults if name == "b" else None) for name in "abc"
        }
        self.let_go = threading.Event()
        self.state, self.outbox = MemoryState(clock), MemoryOutbox()
        sites: dict[str, Seams] = {
            name: {
                "cluster": Hanging(world, self.let_go) if hangs and name == "c" else WorldCluster(world),
                "pools": WorldPools(world),
            }
            for name, world in self.worlds.items()
        }
        clusters = {"a": ClusterSettings(), "b": ClusterSettings(), "c": ClusterSettings(mode="observe")}
        settings = Settings(clusters=clusters, mode="act", wait_s=wait_s)
        self.app = App(settings, state=self.state, outbox=self.outbox, clock=clock, sites=sites)

    def pod(self, world: str, cluster: str) -> bytes:
        """A pod that waits in one world, and an event about it that names a cluster."""
        wants = shape(gpu=GpuRequest(count=1), tolerations=(Toleration(operator="Exists"),), workload_class="notebook")
        now = self.worlds[world].clock.now()
        self.worlds[world].submit(PodDemand(uid=world, namespace="ns", name="p", shape=wants, created_at=now), 600)
        return encode(PodPending(cluster=cluster, namespace="ns", name="p", uid=world, identity=f"{world}/1"), id=world)

    @property
    def lit(self) -> dict[str, int]:
        """Nodes by cluster."""
        return {name: len(world.nodes) for name, world in self.worlds.items()}


@pytest.fixture
def fleet() -> Fleet:
    """Three empty clusters."""
    return Fleet()


@pytest.fixture
def hanging() -> Iterator[Fleet]:
    """Three clusters of which ``c`` does not answer; no event waits longer than half a second."""
    fleet = Fleet(hangs=True, wait_s=0.5)
    yield fleet
    fleet.let_go.set()


def test_an_event_reaches_the_cluster_it_names(fleet: Fleet) -> None:
    """A pod of one cluster lights a node there and nowhere else."""
    answer = fleet.app.receive("pod_pending", fleet.pod("b", "b"), {})
    assert (answer.status, answer.body["why"][:10]) == (200, "buys 1 x t")
    assert fleet.lit == {"a": 0, "b": 1, "c": 0}


def test_a_bills_new_file_reaches_every_cluster(fleet: Fleet) -> None:
    """A bucket names no cluster, and each has its own lines of the file; a cloud's budget is told by one."""
    written = fleet.app.receive("billing_import", (SAMPLES / "aws" / "s3_object_created.json").read_bytes(), {})
    assert written.body["clusters"].keys() == {"a", "b", "c"}
    assert all("no bill is set up" in each["why"] for each in written.body["clusters"].values())
    budget = fleet.app.receive("billing_tick", (SAMPLES / "google" / "pubsub_push_budget.json").read_bytes(), {})
    assert all("clusters" not in each for each in budget.body["answers"])


def test_a_source_says_its_cluster_by_an_extension(fleet: Fleet) -> None:
    """A Knative source names no cluster in its events; the extension that its manifest adds does."""
    fleet.pod("b", "b")
    sample = json.loads((SAMPLES / "knative" / "apiserver_reference_pod.json").read_bytes())
    event = {**sample, "namespace": "ns", "name": "p", "cluster": "b"}
    event["data"] |= {"namespace": "ns", "name": "p"}
    headers = {"content-type": "application/cloudevents+json"}
    fleet.app.receive("pod_pending", json.dumps(event).encode(), headers)
    assert fleet.lit == {"a": 0, "b": 1, "c": 0}


def test_an_event_of_another_cluster_is_let_pass(fleet: Fleet) -> None:
    """A cluster that the map does not have is acknowledged, and nothing is done."""
    answer = fleet.app.receive("pod_pending", fleet.pod("b", "staging"), {})
    assert answer.body == {"ignored": "about cluster staging; this deployment serves a, b, c"}
    assert fleet.lit == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize(
    "body", [pytest.param(TICK, id="a star"), pytest.param(b'{"tick": "reconcile"}', id="no name at all")]
)
def test_a_tick_for_all_is_each_ones_own(fleet: Fleet, body: bytes) -> None:
    """Each cluster answers for itself under its name, and in its own mode: one that is only observed buys nothing."""
    for name in "abc":
        fleet.pod(name, name)
    answer = fleet.app.receive("capacity_reconcile", body, {})
    assert (answer.status, list(answer.body["clusters"])) == (200, ["a", "b", "c"])
    assert fleet.lit == {"a": 1, "b": 1, "c": 0}


def test_a_cluster_that_fails_stops_no_other(fleet: Fleet) -> None:
    """The others are served; the answer has each one's word, and the worst status with its Retry-After."""
    fleet = Fleet(faults=Faults(api_errors=(("observe", Unavailable("no route to b")),)))
    fleet.pod("a", "a")
    answer = fleet.app.receive("capacity_reconcile", TICK, {})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})
    assert answer.body["clusters"]["b"] == {"error": "no route to b"}
    assert answer.body["clusters"]["a"]["did"]
    assert fleet.lit["a"] == 1


def test_a_cluster_that_hangs_delays_no_other(hanging: Fleet) -> None:
    """The tick answers after its bound with what the others did; the one that hangs is for later."""
    hanging.pod("a", "a")
    answer = hanging.app.receive("capacity_reconcile", TICK, {})
    assert answer.status == 503
    assert answer.body["clusters"]["c"] == {"error": "not done after 0.5 s; it goes on by itself"}
    assert hanging.lit["a"] == 1


def test_a_cluster_that_hangs_is_worked_on_once(hanging: Fleet) -> None:
    """The next tick finds its lease held and leaves at once, so that threads do not pile up on it."""
    hanging.app.receive("capacity_reconcile", TICK, {})
    again = hanging.app.receive("capacity_reconcile", TICK, {})
    assert again.status == 200
    assert again.body["clusters"]["c"]["why"].startswith("another delivery is at work")


def test_a_cluster_set_up_wrongly_stops_no_other() -> None:
    """A policy that is not there is that cluster's own fault: its tick is for later, and no letter is left of it."""
    fleet = Fleet()
    clusters = {**fleet.app.settings.clusters, "d": ClusterSettings(policy="/no/such.yaml")}
    sites: dict[str, Seams] = {n: {"cluster": WorldCluster(w), "pools": WorldPools(w)} for n, w in fleet.worlds.items()}
    app = App(
        Settings(clusters=clusters, mode="act"),
        state=fleet.state,
        outbox=fleet.outbox,
        clock=fleet.app.clock,
        sites=sites,
    )
    fleet.pod("a", "a")
    answer = app.receive("capacity_reconcile", TICK, {})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "60"})
    assert answer.body["clusters"]["d"]["error"].startswith("not set up: /no/such.yaml")
    assert (fleet.lit["a"], [m for m in fleet.outbox.sent if m.topic == "dead-letter"]) == (1, [])


def test_serve_ticks_each_cluster(fleet: Fleet) -> None:
    """What a server does by itself it does for every cluster: each has its own mark of when it ticked."""
    fleet.pod("a", "a")
    fleet.pod("b", "b")
    stop = threading.Event()
    tick_schedule.begin(fleet.app, stop, 60)
    until(lambda: fleet.lit["a"] and fleet.lit["b"])
    stop.set()
    assert fleet.lit == {"a": 1, "b": 1, "c": 0}
    ticked = {key for key, _ in fleet.state.scan("tick/").items}
    assert ticked >= {"tick/a/reconcile", "tick/b/reconcile"}


def test_no_state_is_shared_between_clusters(fleet: Fleet) -> None:
    """Every key that a tick leaves behind names its cluster."""
    for name in "abc":
        fleet.pod(name, name)
    fleet.app.receive("capacity_reconcile", TICK, {})
    keys = [key for key, _ in fleet.state.scan("").items]
    assert {key.split("/")[1] for key in keys} <= {"a", "b", "c"}


def test_alerts_and_bad_bodies_need_no_cluster(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    """What is about no cluster is handled by the deployment as a whole."""
    alert = Alert(cluster="b", kind="k", severity="critical", fingerprint="f", what="no T4 left", why="quota")
    assert fleet.app.receive("alert_fanout", encode(alert, id="1"), {}).body["did"] == ["console: told"]
    assert "CRITICAL b: no T4 left" in capsys.readouterr().err
    assert list(fleet.app.receive("pod_pending", b"{", {}).body) == ["rejected"]


def _of(clusters: Any, **more: str) -> Settings:
    return Settings.from_environ({"PILOTLIGHT_CLUSTERS": json.dumps(clusters), **more})


def test_each_cluster_has_its_own_settings_over_the_deployments() -> None:
    """What an entry leaves out is the deployment's; a mode nobody sets is advise."""
    settings = _of(
        {
            "eu": {"api": "in-cluster", "pools": "civo:LON1/x", "token_env": "EU"},
            "us": {"mode": "act", "policy": "us.yaml", "role_arn": "arn:aws:iam::210987654321:role/pilotlight"},
        },
        PILOTLIGHT_POLICY="all.yaml",
        PILOTLIGHT_POOLS="advisor",
    )
    eu, us = settings.for_cluster("eu"), settings.for_cluster("us")
    assert (eu.cluster_name, eu.api, eu.pools, eu.token_env, eu.mode, eu.policy) == (
        "eu", "in-cluster", "civo:LON1/x", "EU", "advise", "all.yaml",
    )  # fmt: skip
    assert (us.cluster_name, us.api, us.pools, us.token_env, us.mode, us.policy) == (
        "us", "", "advisor", "CIVO_TOKEN", "act", "us.yaml",
    )  # fmt: skip
    assert (eu.role_arn, us.role_arn) == ("", "arn:aws:iam::210987654321:role/pilotlight")


def test_one_of_many_can_be_named() -> None:
    """PILOTLIGHT_CLUSTER beside the map is that cluster alone, for a command or a deployment of its own."""
    assert _of({"eu": {"api": "in-cluster"}, "us": {}}, PILOTLIGHT_CLUSTER="eu").api == "in-cluster"


def test_the_map_may_be_a_file(tmp_path: Path) -> None:
    """A path stands for what is in it."""
    file = tmp_path / "clusters.json"
    file.write_text('{"eu": {}}')
    assert list(Settings.from_environ({"PILOTLIGHT_CLUSTERS": str(file)}).clusters) == ["eu"]


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        pytest.param({"PILOTLIGHT_CLUSTERS": "{]"}, "PILOTLIGHT_CLUSTERS: JSON", id="no JSON"),
        pytest.param(
            {"PILOTLIGHT_CLUSTERS": "{}"}, "PILOTLIGHT_CLUSTERS: nothing is no name; write ", id="an empty map"
        ),
        pytest.param({"PILOTLIGHT_CLUSTERS": '{"*": {}}'}, "'\\*' is no name", id="the name that means all"),
        pytest.param({"PILOTLIGHT_CLUSTERS": '{"a/b": {}}'}, "'a/b' is no name", id="a name that would break keys"),
        pytest.param({"PILOTLIGHT_CLUSTERS": '{"a": {"apl": "x"}}'}, "unknown field `apl`", id="a key there is not"),
        pytest.param(
            {"PILOTLIGHT_CLUSTERS": '{"a": {"mode": "go"}}'}, "Invalid enum value 'go'", id="a mode there is not"
        ),
        pytest.param({"PILOTLIGHT_CLUSTERS": '{"a": {"api": 5}}'}, "got `int` - at `NAME.api`; write ", id="no text"),
        pytest.param({"PILOTLIGHT_CLUSTERS": "/no/such.json"}, "/no/such.json: No such file", id="a file not there"),
        pytest.param(
            {"PILOTLIGHT_CLUSTERS": '{"a": {}}', "PILOTLIGHT_CLUSTER": "b"}, "PILOTLIGHT_CLUSTER is 'b'", id="not in it"
        ),
        pytest.param({"PILOTLIGHT_WAIT_S": "soon"}, "PILOTLIGHT_WAIT_S is 'soon'", id="a wait that is no number"),
    ],
)
def test_a_bad_map_is_named(environ: dict[str, str], says: str) -> None:
    """What is set wrongly is one line with the variable and what to write."""
    with pytest.raises(BadInput, match=says):
        Settings.from_environ(environ)


def test_many_clusters_have_no_ports_in_common(fleet: Fleet) -> None:
    """A command that works on one cluster says how to name it."""
    with pytest.raises(BadInput, match="set PILOTLIGHT_CLUSTER to one of a, b, c"):
        _ = fleet.app.deps


def _meet(barrier: threading.Barrier, n: int) -> int:
    return n + barrier.wait(600) * 0


def test_work_abreast_takes_as_long_as_the_longest() -> None:
    """Three pieces that meet at a barrier all return: they ran at once."""
    barrier = threading.Barrier(3)
    found = abreast({str(n): partial(_meet, barrier, n) for n in range(3)}, bound_s=600)
    assert found == {"0": 0, "1": 1, "2": 2}


def test_an_answer_is_json(fleet: Fleet) -> None:
    """What Flask gets for many clusters is JSON."""
    body, status, _ = fleet.app.receive("capacity_reconcile", TICK, {}).http()
    assert (status, set(json.loads(body)["clusters"])) == (200, {"a", "b", "c"})
