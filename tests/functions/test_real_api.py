"""Functions over a real API server's HTTP: what its faults lead to, and that no secret gets out by any door."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from api_server import ApiServer, api_server
from stage import MINUTE, Stage
from world_as_kubernetes import WorldApi

from pilotlight.adapters import logs
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api, Patience
from pilotlight.codec.events import encode
from pilotlight.doorway import Response
from pilotlight.facts.messages import PodPending, Tick
from pilotlight.facts.policy import PoolPolicy
from pilotlight.settings import Settings
from pilotlight.wiring import App

SECRET = "planted-7f3a9c"
QUICK = Patience(connect=1, piece=0.2, answer=0.4, all=2, wait=0, tries=2)


class House:
    """An app over a world behind an API server that takes one token."""

    def __init__(self, api: WorldApi, stage: Stage) -> None:
        self.api, self.stage = api, stage
        api.tokens = {SECRET}
        environ = {"PILOTLIGHT_CLUSTER": "c", "PILOTLIGHT_MODE": "act", "K": api.kubeconfig(token=SECRET)}
        calls = Api(source_of("kubeconfig-env:K", environ), patience=QUICK, pause=lambda _: None)
        deps = stage.deps
        self.app = App(
            Settings.from_environ(environ),
            cluster=KubernetesCluster(calls, deps.policy, deps.clock, pause=lambda _: None),
            pools=deps.pools,
            state=deps.state,
            outbox=deps.outbox,
            clock=deps.clock,
            policy=deps.policy,
            catalog=stage.catalog,
        )

    def tick(self) -> Response:
        """The schedule ticks."""
        return self.app.receive("capacity_reconcile", encode(Tick(cluster="c"), id="t"), {})

    def pending(self, name: str) -> Response:
        """A pod is created, and its event comes."""
        uid = self.stage.submit(name).uid
        message = PodPending(cluster="c", namespace="ml", name=name, uid=uid, identity=f"{uid}/1")
        return self.app.receive("pod_pending", encode(message, id=uid), {})

    def everything(self) -> str:
        """All that it left behind: the state, what it sent, and what the API server was told."""
        state = [bytes(stored.value).decode(errors="replace") for _, stored in self.stage.deps.state.scan("").items]
        sent = [bytes(message.data).decode() for message in self.stage.outbox.sent]
        events = self.api.store.list(self.api.store.resource("events"), "", "", "")
        return "\n".join([*state, *sent, json.dumps(events)])


@pytest.fixture
def house() -> Iterator[House]:
    """A cluster with a node that has idled too long."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)})
    stage.event(stage.submit("first", run_s=MINUTE))
    stage.minutes(8)
    stage.wait(3 * MINUTE)
    with api_server(WorldApi(world=stage.world)) as api:
        assert isinstance(api, WorldApi)
        yield House(api, stage)


FAULTS: dict[str, tuple[int | str, str, int]] = {
    "the credential is refused": (401, "", 500),
    "a right is missing": (403, "", 500),
    "slow down": (429, "17", 503),
    "a conflict": (409, "", 503),
    "the server fails": (500, "", 503),
    "the server is away": ("reset", "", 503),
    "no answer comes": ("timeout", "", 503),
    "half an answer": ("cut", "", 503),
    "half a JSON": ("truncated", "", 503),
    "a sign-in page": ("not json", "", 503),
    "wrong types": ("wrong types", "", 503),
    "an answer that never ends": ("endless", "", 503),
    "pages that are gone": (410, "", 503),
}


@pytest.mark.parametrize(("kind", "after", "status"), FAULTS.values(), ids=FAULTS.keys())
def test_in_doubt_nothing_changes_and_no_secret_gets_out(
    house: House,
    kind: int | str,
    after: str,
    status: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A cluster that cannot be read: nothing is bought or given back, and neither answer, log, state, message nor
    Event holds what was shown to the server."""
    caplog.set_level(logging.DEBUG)
    said = io.StringIO()
    written = logging.StreamHandler(said)
    written.setFormatter(logs.JsonLines())
    logging.getLogger(logs.LOGGER).addHandler(written)
    before = house.stage.world.launches
    asked_of_rights = r"^(?!POST \S+selfsubjectaccessreviews)"  # A server that refuses even these is starting.
    house.api.fail(kind, on=asked_of_rights, times=999, after=after, seconds=1)
    try:
        answers = [house.tick(), house.pending("late")]
    finally:
        logging.getLogger(logs.LOGGER).removeHandler(written)
    assert [answer.status for answer in answers] == [503, status], "a tick that fails comes again"
    assert (house.stage.world.launches, house.stage.world.terminations) == (before, 0)
    assert {r.headers.get("Authorization") for r in house.api.requests} == {f"Bearer {SECRET}"}
    out = capfd.readouterr()
    for text in (house.everything(), caplog.text, said.getvalue(), out.out, out.err, repr(answers)):
        assert SECRET not in text


@pytest.mark.parametrize("step", range(11))
@pytest.mark.parametrize("kind", [403, 409, 422, 500, "reset"])
def test_a_fault_at_any_step_of_a_release_loses_nothing(house: House, kind: int | str, step: int) -> None:
    """Whichever call fails, and how: once faults are over the node is given back, and is never left cordoned."""
    house.api.fail(kind, times=2, skip=step)
    house.tick()
    for _ in range(3):
        house.stage.wait(MINUTE)
        house.tick()
    assert house.stage.world.terminations == 1
    assert house.stage.nodes("one") == 0


def test_the_settings_name_a_real_cluster() -> None:
    """PILOTLIGHT_API and PILOTLIGHT_POOLS=advisor: what would be done is told, and nothing is written."""
    with api_server() as api:
        api.add_samples()
        answer = _advised(api).receive("capacity_reconcile", encode(Tick(cluster="prod"), id="t"), {})
        assert answer.status == 200
        assert "would" in str(answer.body) or "advise" in str(answer.body)
        assert api.lines("^(PATCH|POST|PUT|DELETE)") == []


def _advised(api: ApiServer) -> App:
    environ = {
        "PILOTLIGHT_CLUSTER": "prod",
        "PILOTLIGHT_API": "kubeconfig-env:K",
        "PILOTLIGHT_POOLS": "advisor",
        "PILOTLIGHT_STATE": "memory:",
        "PILOTLIGHT_OUTBOX": "memory:",
        "K": api.kubeconfig(token=SECRET),
    }
    return App(Settings.from_environ(environ))


def test_a_real_api_without_pools_says_what_to_name() -> None:
    """Who sells the nodes is never guessed."""
    environ: dict[str, Any] = {"PILOTLIGHT_API": "kubeconfig-env:K", "K": "{}"}
    answer = App(Settings.from_environ(environ)).receive(
        "capacity_reconcile", encode(Tick(cluster="local"), id="t"), {}
    )
    assert "PILOTLIGHT_POOLS" in str(answer.body)


def test_a_real_api_is_advised_until_a_mode_is_set() -> None:
    """Naming an API server alone changes nothing in it."""
    assert Settings.from_environ({"PILOTLIGHT_API": "in-cluster"}).mode == "advise"
