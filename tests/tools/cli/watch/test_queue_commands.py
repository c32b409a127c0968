"""``pilotlight queues``, and the page that KEDA's metrics-api scaler asks."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner
from werkzeug.test import Client

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadInput, BadPolicy, Unavailable
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.limits.routes import Caller
from pilotlight.facts.policy import Policy
from pilotlight.settings import ClusterSettings, Settings
from pilotlight.tools.cli.main import build
from pilotlight.tools.serve import own_pages, request_gate
from pilotlight.wiring import App, app
from pilotlight.world.world_clock import VirtualClock

READER = {"keda": Caller(token="a-token-that-only-reads", roles=("read",))}
BEARER = {"Authorization": "Bearer a-token-that-only-reads"}


class Line:
    """Queues of so many messages; None does not answer."""

    def __init__(self, **waiting: float | None) -> None:
        self.waiting = waiting

    def length(self, name: str) -> float:
        """Messages that wait."""
        found = self.waiting[name]
        if found is None:
            raise Unavailable("RabbitMQ at mq does not answer (refused)")
        return found


def house(clock: VirtualClock, line: Line, **rules: Any) -> App:
    """A deployment with those queues, of which one worker takes twenty messages."""
    queues = {name: QueueRules(source="sqs:q", per_worker=20, max=5, **rules) for name in line.waiting}
    policy = Policy(version=1, queues=queues)
    return app(Settings(outbox="memory:"), state=MemoryState(clock), clock=clock, policy=policy, queues=line)


def client(wired: App) -> Client:
    """Whoever asks at its door."""
    return Client(request_gate.guard_paths(own_pages.pages(wired), READER))


def test_a_policy_without_queues_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about nothing is answered: in a sentence, or as an empty list."""
    monkeypatch.setenv("PILOTLIGHT_STATE", "memory:")
    for words, told in ((["queues"], "the policy names no queues: add some"), (["queues", "--json"], "[]")):
        result = CliRunner().invoke(build(words), words)
        assert (result.exit_code, result.stdout[: len(told)]) == (0, told)


def test_keda_reads_a_number(clock: VirtualClock) -> None:
    """200 with the workers that the queue asks for, and the sum behind it."""
    answer = client(house(clock, Line(speech=41))).get("/keda/speech", headers=BEARER)
    assert (answer.status_code, answer.json) == (200, {"value": 3, "why": "ceil(41 / 20) = 3"})


def test_a_growing_queue_is_answered_as_it_will_be_when_a_model_is_loaded(clock: VirtualClock) -> None:
    """Ten messages a minute more, two minutes to load: twenty more."""
    line = Line(speech=40)
    asked = client(house(clock, line, load=120))
    assert asked.get("/keda/speech", headers=BEARER).json == {"value": 2, "why": "ceil(40 / 20) = 2"}
    clock.advance(60)
    line.waiting["speech"] = 50
    told = asked.get("/keda/speech", headers=BEARER).json
    assert told is not None
    assert told["value"] == 4


def test_a_queue_that_cannot_be_read_is_no_zero(clock: VirtualClock) -> None:
    """503, so that KEDA keeps what runs; for three minutes the last reading stands."""
    line = Line(speech=41)
    asked = client(house(clock, line))
    asked.get("/keda/speech", headers=BEARER)
    line.waiting["speech"] = None
    statuses = []
    for at_s in (120, 240):
        clock.advance(at_s)
        statuses.append(asked.get("/keda/speech", headers=BEARER).status_code)
    assert statuses == [200, 503]


@pytest.mark.parametrize(("path", "headers", "status"), [("/keda/speech", {}, 401), ("/keda/other", BEARER, 404)])
def test_only_known_queues_are_told_to_those_who_may_read(
    clock: VirtualClock, path: str, headers: dict[str, str], status: int
) -> None:
    """As every figure of ours."""
    assert client(house(clock, Line(speech=1))).get(path, headers=headers).status_code == status


POLICY = """\
version: 1
pools: {t4: {instance_type: n1-standard-4-t4}}
queues:
  speech: {source: "SOURCE", per_worker: 20, pool: t4, workers: ml/speech}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy whose queue nobody serves."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("SOURCE", "rabbitmq:http://127.0.0.1:9/%2F/speech"))
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(file))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path}/state.db")
    return file


def test_the_command_says_what_cannot_be_read(home: Path) -> None:
    """A row with the reason, exit code 1; nothing is made up."""
    said = CliRunner().invoke(build(["queues"]), ["queues", "--json"])
    [row] = json.loads(said.output)
    assert (said.exit_code, row["queue"], row["workers"]) == (1, "speech", None)
    assert "RabbitMQ at 127.0.0.1 does not answer" in row["why"]


def test_two_clusters_with_a_queue_of_one_name_are_told_apart(clock: VirtualClock) -> None:
    """KEDA asks by the name alone."""
    line = Line(speech=1)
    policy = Policy(version=1, queues={"speech": QueueRules(source="sqs:q")})
    seams: Any = {"state": MemoryState(clock), "clock": clock, "policy": policy, "queues": line}
    clusters = {"a": ClusterSettings(), "b": ClusterSettings()}
    wired = app(msgspec.structs.replace(Settings(outbox="memory:"), clusters=clusters), **seams)
    with pytest.raises(BadInput, match="queue speech is in two clusters' policies"):
        own_pages.pages(wired)


WRONG = {
    "a source of no kind": ("source: kafka:x", "queues.q.source: begin with"),
    "a drain without a service": ("source: sqs:x, drain: 5m", "queues.q.drain: needs service too"),
    "more at least than at most": ("source: sqs:x, min: 3, max: 2", "queues.q.min: 3 is more than max 2"),
    "a pool that is none": ("source: sqs:x, pool: t5, workers: a/b", "queues.q.pool.t5: names no pool"),
    "a pool without workers": ("source: sqs:x, pool: t4", "queues.q.workers: is missing"),
}


@pytest.mark.parametrize(("written", "said"), WRONG.values(), ids=WRONG)
def test_what_a_queue_must_not_say(written: str, said: str) -> None:
    """By its path, with what to do."""
    text = f"version: 1\npools: {{t4: {{instance_type: x}}}}\nqueues: {{q: {{{written}}}}}"
    with pytest.raises(BadPolicy, match=said):
        read_policy(text, "policy.yaml")


@pytest.mark.parametrize("columns", ["1000", "60"])
def test_the_table_is_whole_at_any_width(home: Path, columns: str) -> None:
    """The reason is folded, never cut."""
    said = CliRunner().invoke(build(["queues"]), ["queues"], env={"COLUMNS": columns})
    assert "doesnotanswer" in "".join(said.output.split())
    assert max(map(len, said.output.splitlines())) <= int(columns)
