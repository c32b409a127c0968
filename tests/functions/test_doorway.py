"""The front door: what each outcome answers, and that nothing is lost or repeated."""

import json
import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.adapters import logs
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.doorway import RECEIVES, TICKS, Function, Response
from pilotlight.errors import BadInput, BadPolicy, BadRequest, Unavailable
from pilotlight.facts.messages import Alert, CapacityFailed, DeadLetter, Outgoing, PodPending, Tick
from pilotlight.facts.workload import GpuRequest, PodDemand, Toleration, shape
from pilotlight.flow.records import ledger
from pilotlight.ports.seams import Seams
from pilotlight.settings import Settings
from pilotlight.state_schema.marks import MARK, Mark
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "events" / "samples" / "pilotlight"


class House:
    """An app over a world whose clock stands still."""

    def __init__(self, *, faults: Faults | None = None, settings: Settings | None = None, **seams: Any) -> None:
        plain = App(Settings())
        clock = VirtualClock(plain.catalog.as_of)
        pools = [
            WorldPool(name=n, instance_type=p.instance_type, taints=p.taints) for n, p in plain.policy.pools.items()
        ]
        self.world = World(plain.catalog, pools, clock=clock, faults=faults)
        self.outbox = MemoryOutbox()
        self.state = MemoryState(clock)
        given: Seams = {"cluster": WorldCluster(self.world), "pools": WorldPools(self.world), "clock": clock}
        given.update({"state": self.state, "outbox": self.outbox})
        self.app = App(settings or Settings(), **{**given, **seams})

    def pod(self, name: str = "p1") -> bytes:
        """A pod that waits in the world, and the event about it."""
        wants = shape(gpu=GpuRequest(count=1), tolerations=(Toleration(operator="Exists"),), workload_class="notebook")
        now = self.world.clock.now()
        self.world.submit(PodDemand(uid=name, namespace="ns", name=name, shape=wants, created_at=now), 600)
        return encode(PodPending(cluster="local", namespace="ns", name=name, uid=name, identity=f"{name}/1"), id=name)

    def receive(self, function: Function, body: bytes, **headers: str) -> Response:
        """Post a body."""
        return self.app.receive(function, body, {k.replace("_", "-"): v for k, v in headers.items()})

    @property
    def letters(self) -> list[dict[str, Any]]:
        """The dead letters so far."""
        return [json.loads(bytes(m.data)) for m in self.outbox.sent if m.topic == "dead-letter"]


@pytest.fixture
def house() -> House:
    """An app over an empty world."""
    return House()


def test_a_decision_answers_what_was_done_and_why(house: House) -> None:
    """A pod that waits lights one node; the answer names the decision, what it did, and the reason."""
    answer = house.receive("pod_pending", house.pod())
    assert answer.status == 200
    assert answer.body["decision"]
    assert answer.body["why"].startswith("buys 1 x ")
    assert len(answer.body["did"]) == len(house.world.nodes) == 1
    assert "plan" not in answer.body


def test_an_answer_is_json(house: House) -> None:
    """What Flask gets is JSON bytes with their type; a dry run's whole plan goes through."""
    body, status, headers = house.receive("pod_pending", house.pod(), x_pilotlight_dryrun="true").http()
    assert (status, headers) == (200, {"Content-Type": "application/json"})
    assert json.loads(body)["plan"]["buys"][0]["count"] == 1


def test_a_second_delivery_buys_nothing(house: House) -> None:
    """The same event again answers with the first decision and does nothing."""
    body = house.pod()
    first, second = house.receive("pod_pending", body), house.receive("pod_pending", body)
    assert second.body["decision"] == first.body["decision"]
    assert (second.body["did"], len(house.world.nodes)) == ([], 1)


@pytest.mark.parametrize("how", ["header", "argument", "event"])
def test_a_dry_run_changes_nothing(house: House, how: str) -> None:
    """However it is asked for, a dry run answers with the plan; world, state and outbox stay as they were."""
    body = house.pod()
    if how == "event":
        body = json.dumps({**json.loads(body), "dryrun": "true"}).encode()
    headers = {"X-Pilotlight-Dryrun": "true"} if how == "header" else {}
    answer = house.app.receive("pod_pending", body, headers, dryrun=how == "argument")
    assert answer.body["plan"]["buys"]
    assert (dict(house.world.nodes), house.state.scan("").items, house.outbox.sent) == ({}, [], [])


def test_a_tick_is_reconciled(house: House) -> None:
    """A tick catches the pod whose event was lost."""
    house.pod()
    answer = house.receive("capacity_reconcile", encode(Tick(cluster="local"), id="t"))
    assert (answer.status, len(house.world.nodes)) == (200, 1)


def test_a_bad_body_is_dead_lettered_and_answered(house: House) -> None:
    """A refused event is kept with its reason, its place, its function and the headers that carry no secrets."""
    body = b'{"kind": "Pod", "meta'
    answer = house.receive("pod_pending", body, content_type="application/json", authorization="Bearer secret")
    assert (answer.status, list(answer.body)) == (200, ["rejected"])
    [letter] = house.letters
    assert letter["reason"] == answer.body["rejected"]
    assert (letter["body"], letter["function"]) == (body.decode(), "pod_pending")
    assert letter["headers"] == {"content-type": "application/json"}


def test_a_bad_body_again_is_the_same_letter(house: House) -> None:
    """A sender that repeats a refused body makes no second letter: its id stays."""
    for _ in range(2):
        house.receive("pod_pending", b"{")
    assert len({message.id for message in house.outbox.sent}) == 1


def test_a_body_over_the_limit_is_refused_before_it_is_parsed(house: House) -> None:
    """Ten megabytes are 413, one line, and one short letter."""
    answer = house.receive("pod_pending", b"[" * 10_000_000)
    assert answer == Response(status=413, body={"rejected": "a body of over 1,000,000 bytes; send it in parts"})
    [letter] = house.letters
    assert len(letter["body"]) <= 2_000
    assert (letter["size"], letter["sha256"]) == (10_000_000, sha256(b"[" * 10_000_000).hexdigest())


@pytest.mark.parametrize(
    ("one", "count", "says"),
    [
        pytest.param({"kind": "Event", "involvedObject": {}}, 501, "more than 500 events in one body", id="events"),
        pytest.param([[{"tick": "reconcile"}] * 30] * 30, 1, "more than 500 events in one body", id="lists of lists"),
        pytest.param({"tick": "reconcile"}, 61, "61 ticks in one body", id="ticks"),
    ],
)
def test_too_many_events_in_a_body_are_one_short_letter(house: House, one: Any, count: int, says: str) -> None:
    """None of them is acted on, and one letter says so."""
    answer = house.receive("capacity_reconcile", json.dumps([one] * count).encode())
    assert answer.status == 200
    assert answer.body["rejected"].startswith(says)
    [letter] = house.letters
    assert len(letter["body"]) <= 2_000


def test_equal_ticks_of_a_body_are_one_look(house: House) -> None:
    """What a queue kept while nobody took it asks for one look."""
    house.pod()
    answer = house.receive("capacity_reconcile", json.dumps([{"tick": "reconcile"}] * 60).encode())
    [decision] = {one["decision"] for one in answer.body["answers"]}
    assert decision
    assert answer.body["answers"][59]["did"] == answer.body["answers"][0]["did"]
    assert len(house.world.nodes) == 1


@pytest.mark.parametrize("function", RECEIVES)
@pytest.mark.parametrize(
    "sample",
    [
        "pod_pending",
        "tick",
        "capacity_failed",
        "bill_exported",
        "budget_notice",
        "alert",
        "capacity_changed",
        "dead_letter",
    ],
)
def test_another_functions_message_is_refused_by_name(house: House, function: Function, sample: str) -> None:
    """A message at the wrong door is dead-lettered, and the answer says whose it is."""
    owners = {"tick": "capacity_reconcile", "capacity_failed": "capacity_reconcile", "alert": "alert_fanout"}
    owners |= {"budget_notice": "billing_tick", "bill_exported": "billing_import"}
    owner = {"pod_pending": "pod_pending", **owners}.get(sample, "nobody")
    answer = house.receive(function, (SAMPLES / f"{sample}.json").read_bytes())
    if owner == function:
        assert "rejected" not in answer.body
    else:
        assert f"send it to {owner}" in answer.body["rejected"]
        assert len(house.letters) == 1


def test_a_dry_run_of_a_bad_body_leaves_no_letter(house: House) -> None:
    """A dry run changes nothing, not even the dead-letter topic."""
    answer = house.receive("pod_pending", b"{", x_pilotlight_dryrun="true")
    assert "rejected" in answer.body
    assert house.outbox.sent == []


def test_a_dead_letter_that_cannot_be_written_is_for_later() -> None:
    """Nothing is acknowledged that would be lost."""

    class Full(MemoryOutbox):
        def publish(self, messages: Sequence[Outgoing]) -> None:
            """Take nothing."""
            raise Unavailable("disk full")

    answer = House(outbox=Full()).receive("pod_pending", b"{")
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})
    assert "disk full" in answer.body["error"]


def test_a_store_that_is_down_is_for_later() -> None:
    """With the store gone nothing is bought, and the sender is told when to come back."""

    class Down(MemoryState):
        def scan(self, *args: Any, **kwargs: Any) -> Any:
            """Do not answer."""
            raise Unavailable("store down")

    clock = VirtualClock(App(Settings()).catalog.as_of)
    house = House(state=Down(clock))
    answer = house.receive("pod_pending", house.pod())
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert (dict(house.world.nodes), house.letters) == ({}, [])


def test_what_nobody_foresaw_is_500_without_its_details() -> None:
    """A bug answers 500 in one line: the sender backs off, the traceback stays in the log."""

    class Broken(MemoryState):
        def scan(self, *args: Any, **kwargs: Any) -> Any:
            """Fail as a bug would."""
            raise KeyError("a secret detail")

    house = House(state=Broken(VirtualClock(App(Settings()).catalog.as_of)))
    answer = house.receive("pod_pending", house.pod())
    assert (answer.status, answer.body) == (500, {"error": "internal error (KeyError); see the log"})


def test_a_deployment_set_up_wrongly_loses_no_event(tmp_path: Path) -> None:
    """A bad policy is not the event's fault: it is answered 500, not dead-lettered."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 2")
    app = App(Settings(policy=str(policy), state="memory:", outbox=f"local:{tmp_path}/out"))
    answer = app.receive("pod_pending", (SAMPLES / "pod_pending.json").read_bytes(), {})
    assert (answer.status, answer.body["error"][:12]) == (500, "not set up: ")
    assert not (tmp_path / "out").exists()


def test_a_deployment_half_set_up_loses_no_event(tmp_path: Path) -> None:
    """What is opened only when an event needs it is no fault of that event either."""
    out = tmp_path / "out"
    app = App(Settings(catalog=str(tmp_path / "none.yaml"), state="memory:", outbox=f"local:{out}"))
    answer = app.receive("pod_pending", (SAMPLES / "pod_pending.json").read_bytes(), {})
    assert (answer.status, answer.body["error"][:12]) == (500, "not set up: ")
    assert not out.exists()


def test_an_event_that_is_known_opens_only_the_state(tmp_path: Path) -> None:
    """Its second delivery is answered even where the policy has become unreadable since."""
    state, outbox = f"sqlite:{tmp_path}/state.db", f"local:{tmp_path}/out"
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 2")
    body = encode(PodPending(cluster="local", namespace="n", name="p", uid="u", identity="u/1"), id="1")
    key = "event/local/u/1"
    App(Settings(state=state)).state.put(key, MARK.write(Mark(note="d-1")))
    answer = App(Settings(policy=str(policy), state=state, outbox=outbox)).receive("pod_pending", body, {})
    assert (answer.status, answer.body["decision"]) == (200, "d-1")


def test_a_channel_without_its_secret_loses_no_alert(tmp_path: Path) -> None:
    """An unset variable of a web hook is not the alert's fault: it is answered 500, not dead-lettered."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nalerts: {channels: {hook: {kind: webhook, url_env: HOOK}}}")
    app = App(Settings(policy=str(policy), state="memory:", outbox=f"local:{tmp_path}/out"))
    answer = app.receive("alert_fanout", (SAMPLES / "alert.json").read_bytes(), {})
    assert (answer.status, answer.body["error"][:12]) == (500, "not set up: ")
    assert not (tmp_path / "out").exists()


def test_several_events_answer_one_by_one(house: House) -> None:
    """A batch is answered in order, with the worst status."""
    bodies = [
        json.loads(house.pod("p1")),
        json.loads((SAMPLES / "tick.json").read_bytes()),
        {"kind": "Event", "involvedObject": {}},
    ]
    answer = house.receive("pod_pending", json.dumps(bodies).encode())
    assert answer.status == 200
    assert [next(iter(one)) for one in answer.body["answers"]] == ["decision", "rejected", "ignored"]


def test_a_bad_event_among_good_ones_is_dead_lettered_alone(house: House) -> None:
    """Its neighbours are decided; the letter holds the bad one's own bytes and where it was."""
    bad = {"kind": "Event", "involvedObject": 3}
    tick = {"tick": "reconcile"}
    answer = house.receive("capacity_reconcile", json.dumps([tick, bad, tick]).encode())
    assert ["rejected" in one for one in answer.body["answers"]] == [False, True, False]
    [letter] = house.letters
    assert (json.loads(letter["body"]), letter["path"]) == (bad, "[1].involvedObject")


def test_a_tick_for_bills_is_not_reconciled(house: House) -> None:
    """It is refused by the name of the function that takes it."""
    answer = house.receive("capacity_reconcile", b'{"tick": "billing"}')
    assert answer.body["rejected"].endswith("does not take a Tick for billing; send it to billing_tick")


def test_a_failed_launch_is_remembered(house: House) -> None:
    """What the cloud tells of a pool later keeps the next pod off it."""
    pool = next(iter(house.app.policy.pools))
    body = encode(CapacityFailed(cluster="local", group=pool, reason="no-capacity", message="none left"), id="1")
    assert house.receive("capacity_reconcile", body).status == 200
    resting = {b.offering.split("/")[0] for b in ledger.recall(house.state, "local").memory.backoffs}
    assert resting == {pool}


def test_ignored_events_are_counted_by_source_and_type(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """The log line has what a metric needs."""
    event = {"specversion": "1.0", "id": "1", "source": "/ci", "type": "com.example.made.v1"}
    caplog.set_level(logging.INFO, logs.LOGGER)
    house.receive("pod_pending", json.dumps(event).encode())
    [line] = [record for record in caplog.records if record.message == "ignored"]
    data = vars(line)["data"]
    assert (data["source"], data["type"], data["count"]) == ("/ci", "com.example.made.v1", 1)


def test_nothing_at_all_is_answered(house: House) -> None:
    """An empty batch is acknowledged."""
    assert house.receive("pod_pending", b"[]") == Response(status=200, body={"answers": []})


@pytest.mark.parametrize(
    ("cluster", "ignored"),
    [
        pytest.param("", False, id="the embedded default serves whatever comes"),
        pytest.param("prod-2", True, id="a named cluster lets others' events pass"),
        pytest.param("prod-1", False, id="and takes its own"),
    ],
)
def test_events_of_other_clusters(cluster: str, ignored: bool) -> None:
    """A deployment acts on its own cluster only."""
    house = House(settings=Settings(cluster=cluster))
    body = encode(Tick(cluster="prod-1"), id="t")
    assert ("ignored" in house.receive("capacity_reconcile", body).body) is ignored


def test_alerts_reach_the_policys_channels(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """An alert at alert_fanout is shown on the example policy's console."""
    alert = Alert(cluster="local", kind="k", severity="critical", fingerprint="f", what="no T4 left", why="quota")
    assert house.receive("alert_fanout", encode(alert, id="1")).body["did"] == ["console: told"]
    assert "CRITICAL local: no T4 left" in capsys.readouterr().err


def test_the_log_names_event_cluster_and_pod(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Every line of a request is JSON that carries what it is about."""
    lines: list[dict[str, Any]] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            """Format as the log would."""
            lines.append(json.loads(logs.JsonLines().format(record)))

    handler = Keeps()
    logger = logging.getLogger(logs.LOGGER)
    logger.addHandler(handler)
    caplog.set_level(logging.INFO, logs.LOGGER)
    try:
        house.receive("pod_pending", house.pod())
    finally:
        logger.removeHandler(handler)
    decided = next(line for line in lines if line["message"] == "decided")
    assert (decided["event"], decided["cluster"], decided["pod"]) == ("p1", "local", "ns/p1")
    assert decided["severity"] == "INFO"
    assert decided["why"]


def test_a_rescue_that_waits_is_no_line_of_the_log(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Its ticks come several times a second: only one that does something is logged."""
    caplog.set_level(logging.INFO, logs.LOGGER)
    logging.getLogger(logs.LOGGER).addHandler(caplog.handler)
    try:
        assert house.receive("spot_interruption", b'{"tick": "rescue"}').status == 200
    finally:
        logging.getLogger(logs.LOGGER).removeHandler(caplog.handler)
    assert "decided" not in caplog.text


def test_a_dead_letter_is_a_message_like_any_other(house: House) -> None:
    """What was written to the topic is a DeadLetter."""
    house.receive("pod_pending", b"{")
    assert msgspec.json.decode(bytes(house.outbox.sent[0].data), type=DeadLetter).function == "pod_pending"


def test_a_corrupt_record_is_told_once() -> None:
    """Whatever meets it is answered 503 with the record's name, and comes again: no event is to blame; people get one
    critical alert in all."""
    house = House()
    house.state.put("memory/local", b"no record")
    for n in range(3):
        tick = encode(Tick(cluster="local", identity=f"t{n}"), id=f"t{n}")
        answer = house.receive("capacity_reconcile", tick)
        assert (answer.status, answer.headers) == (503, {"Retry-After": "60"})
        assert "memory/local" in answer.body["error"]
        again = house.receive("pod_pending", house.pod(f"p{n}"))
        assert (again.status, "memory/local" in again.body["error"]) == (503, True)
    letters = [m for m in house.outbox.sent if m.topic == "dead-letter"]
    (alert,) = [msgspec.json.decode(m.data, type=Alert) for m in house.outbox.sent if m.topic == "alerts"]
    assert (len(letters), alert.kind, alert.severity) == (0, "corrupt-state", "critical")
    assert "memory/local" in alert.why
    assert house.state.get("memory/local").value == b"no record"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        pytest.param(
            BadInput("the record interruption/i-1 is too large"), "too large", id="a record that is too large"
        ),
        pytest.param(BadPolicy(["pools.t4: no price"]), "pools.t4: no price", id="a policy that became bad"),
        pytest.param(BadRequest("the store refuses"), "the store refuses", id="a store that says no"),
        pytest.param(KeyError("a secret detail"), "internal error (KeyError)", id="a bug"),
    ],
)
@pytest.mark.parametrize("what", [what for what in TICKS if what != "bills"])  # Without a bill it scans nothing.
def test_a_tick_is_never_poison(what: str, problem: Exception, says: str) -> None:
    """Whatever fails it answers 503 with a time to come back, leaves no letter, and is told once."""

    class Failing(MemoryState):
        def scan(self, *args: Any, **kwargs: Any) -> Any:
            """Fail."""
            raise problem

    house = House(state=Failing(VirtualClock(App(Settings()).catalog.as_of)))
    for n in range(3):
        tick = encode(Tick(cluster="local", what=what, identity=f"t{n}"), id=f"t{n}")  # type: ignore[arg-type]
        answer = house.receive(TICKS[what], tick)  # type: ignore[arg-type]
        assert (answer.status, answer.headers) == (503, {"Retry-After": "60"})
        assert says in answer.body["error"]
        assert "secret" not in answer.body["error"]
    assert house.letters == []
    (alert,) = [msgspec.json.decode(m.data, type=Alert) for m in house.outbox.sent if m.topic == "alerts"]
    assert (alert.kind, alert.severity) == ("stalled", "critical")
    assert says in alert.why


def test_a_tick_under_a_bad_policy_is_told_once(tmp_path: Path) -> None:
    """A deployment whose policy cannot be read answers its ticks 503, and says why to people."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 2")
    outbox = MemoryOutbox()
    app = App(Settings(policy=str(policy), state="memory:"), outbox=outbox)
    for n in range(2):
        answer = app.receive("capacity_reconcile", encode(Tick(cluster="local", identity=str(n)), id=str(n)), {})
        assert (answer.status, answer.body["error"][:12]) == (503, "not set up: ")
    assert [message.topic for message in outbox.sent] == ["alerts"]
