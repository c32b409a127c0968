"""Events of every source, read into messages; and bodies that are none."""

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.codec.events import Delivery, Ignored, Refused, decode, encode, encode_outgoing
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import (
    TYPES,
    Alert,
    BillExported,
    BudgetNotice,
    CapacityChanged,
    CapacityFailed,
    DeadLetter,
    InterruptionNotice,
    Message,
    NodeJoined,
    NoticeKind,
    Outgoing,
    PodPending,
    QuotaReserved,
    Tick,
)

SAMPLES = Path(__file__).resolve().parents[3] / "events" / "samples"


def _good(body: bytes, headers: Mapping[str, str]) -> list[Delivery]:
    """What a body holds; nothing in it is refused."""
    return [d for d in decode(body, headers, cluster="home") if isinstance(d, Delivery) or pytest.fail(str(d.error))]


def _read(path: Path) -> list[Delivery]:
    content = json.loads(path.read_bytes())
    if isinstance(content, dict) and content.keys() == {"headers", "body"}:
        return _good(json.dumps(content["body"]).encode(), content["headers"])
    return _good(path.read_bytes(), {})


def _of(body: object, headers: Mapping[str, str] | None = None) -> Message | Ignored:
    [delivery] = _good(json.dumps(body).encode(), headers or {})
    return delivery.message


def _sample(name: str) -> Any:
    return json.loads((SAMPLES / name).read_bytes())


NOTEBOOK = ("vision", "notebook-7", "b41c2f6e-52a7-4d1e-9a0e-0c8c5d3f7a12")
FINETUNE = ("nlp", "finetune-0", "5d9a1f0c-61b4-4f2b-8f1c-2a7e90d4c3b5")
SEEN = "3e0f6f0a-7d0b-4c55-8a53-6d1c5b1f9e01/40211"


@pytest.mark.parametrize(
    ("name", "pod", "identity", "cluster"),
    [
        pytest.param("kubernetes/failed_scheduling", NOTEBOOK, SEEN, "home", id="an Event of the new recorder"),
        pytest.param("kubernetes/failed_scheduling_old_recorder", NOTEBOOK, SEEN, "home", id="one of the old recorder"),
        pytest.param(
            "kubernetes/event_exporter", NOTEBOOK, SEEN, "local", id="the exporter's, which names the cluster"
        ),
        pytest.param("kubernetes/pod_unschedulable", FINETUNE, f"{FINETUNE[2]}/51877", "home", id="a Pod itself"),
        pytest.param(
            "knative/apiserver_resource_event_structured",
            NOTEBOOK,
            SEEN,
            "home",
            id="Knative's, known by uid and version",
        ),
        pytest.param(
            "knative/apiserver_resource_pod_binary", FINETUNE, f"{FINETUNE[2]}/51877", "home", id="Knative's, binary"
        ),
        pytest.param(
            "knative/apiserver_reference_pod",
            ("nlp", "finetune-0", ""),
            "e2d7c1b0-4a5f-4f0e-9c3d-8b7a6f5e4d3c",
            "home",
            id="Knative's reference, which has only the delivery's id",
        ),
        pytest.param("google/log_entry", NOTEBOOK, SEEN, "local", id="a log entry, which names the cluster"),
        pytest.param("google/pubsub_push_log_entry", NOTEBOOK, SEEN, "local", id="the same, pushed by Pub/Sub"),
        pytest.param("pilotlight/pod_pending", FINETUNE, f"{FINETUNE[2]}/51877", "local", id="our own"),
    ],
)
def test_a_pod_that_waits_is_read_from_every_source(
    name: str, pod: tuple[str, str, str], identity: str, cluster: str
) -> None:
    """Each source's event names the pod, what tells it from other events, and the cluster."""
    [delivery] = _read(SAMPLES / f"{name}.json")
    message = delivery.message
    assert isinstance(message, PodPending)
    assert (message.namespace, message.name, message.uid) == pod
    assert (message.identity, message.cluster) == (identity, cluster)


NODE = "gpu-a100-7f3a"


@pytest.mark.parametrize(
    ("name", "uid", "identity", "second"),
    [
        pytest.param(
            "kubernetes/node_registered",
            "0b2c7f1e-3c7d-4a52-8f6e-91d0a4f7b6c2",
            "7d6f1d3b-8f3e-4b0c-9a53-2f1e6a7c4b10/40388",
            41,
            id="registered, by the node controller",
        ),
        pytest.param(
            "kubernetes/node_ready",
            NODE,
            "c1a5e2f4-6b7d-4e8f-a9b0-1c2d3e4f5a6b/40412",
            53,
            id="ready, by a kubelet that writes its name for the uid",
        ),
    ],
)
def test_a_node_that_joined_is_read(name: str, uid: str, identity: str, second: int) -> None:
    """An Event names the node, what tells it from other events, and when; through Knative and the exporter too."""
    event = _sample(f"{name}.json")
    wrapped = {
        "specversion": "1.0",
        "id": "1",
        "source": "k",
        "type": "dev.knative.apiserver.resource.add",
        "data": event,
    }
    exported = {k: v for k, v in event.items() if k not in ("kind", "apiVersion")} | {"clusterName": "home"}
    for body in (event, wrapped, exported):
        message = _of(body)
        assert isinstance(message, NodeJoined)
        assert (message.name, message.uid, message.identity) == (NODE, uid, identity)
        assert (message.cluster, message.at) == ("home", datetime(2026, 11, 20, 9, 19, second, tzinfo=UTC))


@pytest.mark.parametrize("reason", ["NodeNotReady", "RemovingNode", "Starting", "NodeHasSufficientMemory", ""])
def test_what_else_happens_to_nodes_asks_for_nothing(reason: str) -> None:
    """Only that one registered or became Ready is a hint, and only about a Node; one without a name is refused."""
    event = _sample("kubernetes/node_ready.json")
    assert isinstance(_of({**event, "reason": reason}), Ignored)
    assert isinstance(_of({**event, "involvedObject": {"kind": "Pod", "namespace": "a", "name": "b"}}), Ignored)
    with pytest.raises(BadEvent, match=r"involvedObject\.name"):
        _of({**event, "involvedObject": {"kind": "Node", "name": ""}})


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        pytest.param("google/scheduler_tick", "", id="Cloud Scheduler's bare body"),
        pytest.param("google/pubsub_push_tick", "9100000000000002", id="the same through Pub/Sub"),
        pytest.param("google/pubsub_push_tick_attributes", "9100000000000003", id="attributes alone"),
        pytest.param("google/eventarc_published_tick", "9100000000000004", id="Pub/Sub in a CloudEvent"),
        pytest.param("knative/ping_tick", "c1a9e3d2-0b4f-4f6a-9d8e-7c5b3a1f2e0d", id="Knative's PingSource"),
        pytest.param("pilotlight/tick", "2026-11-20T09:31", id="our own"),
    ],
)
def test_a_tick_is_read_from_every_scheduler(name: str, identity: str) -> None:
    """Each scheduler's event is a tick, told from others by the id it was delivered under."""
    [delivery] = _read(SAMPLES / f"{name}.json")
    assert isinstance(delivery.message, Tick)
    assert delivery.message.identity == identity


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_sample_is_a_message(path: Path) -> None:
    """No sample is ignored or refused."""
    assert not [d for d in _read(path) if isinstance(d.message, Ignored)]


def test_the_time_is_when_the_pod_was_last_seen_to_wait() -> None:
    """A series tells by its last observation, the old recorder by its last timestamp, else the event's own time."""
    event = _sample("kubernetes/failed_scheduling.json")
    series = {**event, "series": {"count": 2, "lastObservedTime": "2026-11-20T10:00:00.000001Z"}}
    old = _sample("kubernetes/failed_scheduling_old_recorder.json")
    times = [message.at for message in map(_of, (event, series, old)) if isinstance(message, PodPending)]
    assert times == [
        datetime(2026, 11, 20, 9, 15, 2, 481220, tzinfo=UTC),
        datetime(2026, 11, 20, 10, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 11, 20, 9, 21, 40, tzinfo=UTC),
    ]


EVENT = _sample("kubernetes/failed_scheduling.json")
POD = _sample("kubernetes/pod_unschedulable.json")


QUEUED = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "namespace": "ml",
    "name": "job-train",
    "uid": "w",
}


def test_work_that_has_its_quota_is_looked_at() -> None:
    """Kueue's Event of it, about its Workload, is a hint as a waiting pod's Event is, for a function of its own."""
    message = _of({**EVENT, "reason": "QuotaReserved", "involvedObject": QUEUED})
    assert isinstance(message, QuotaReserved)
    assert (message.namespace, message.name, message.uid) == ("ml", "job-train", "w")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({**EVENT, "reason": "FailedScaleUp"}, id="an Event of another reason"),
        pytest.param({**EVENT, "reason": "Pending", "involvedObject": QUEUED}, id="another one of Kueue's"),
        pytest.param(
            {
                **EVENT,
                "reason": "QuotaReserved",
                "involvedObject": {**QUEUED, "apiVersion": "scheduling.k8s.io/v1alpha1"},
            },
            id="Kubernetes' own Workload",
        ),
        pytest.param({**EVENT, "involvedObject": {"kind": "Node", "name": "n1"}}, id="an Event about a node"),
        pytest.param({**POD, "status": {"phase": "Running"}}, id="a Pod that runs"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, id="another kind of object"),
        pytest.param(
            {"logName": "l", "textPayload": "Event exporter started watching."}, id="the exporter's first line"
        ),
        pytest.param({"tick": "something-else"}, id="somebody else's tick"),
        pytest.param(
            {"message": {"attributes": {"a": "b"}, "messageId": "1"}}, id="Pub/Sub attributes of another kind"
        ),
        pytest.param(
            {"specversion": "1.0", "id": "1", "source": "s", "type": "google.cloud.audit.log.v1.written"},
            id="another CloudEvent of Google's",
        ),
        pytest.param(
            {"specversion": "1.0", "id": "1", "source": "s", "type": "com.example.made.v1", "data": {"a": 1}},
            id="a CloudEvent of a type that nobody takes",
        ),
        pytest.param(
            {"message": {"data": base64.b64encode(b"Master is upgraded.").decode(), "messageId": "1"}},
            id="Pub/Sub around words",
        ),
        pytest.param(
            {"specversion": "1.0", "id": "1", "source": "s", "type": "dev.knative.apiserver.ref.delete"},
            id="an object that was deleted",
        ),
    ],
)
def test_valid_events_that_ask_for_nothing_are_ignored(body: object) -> None:
    """They are acknowledged with a reason, not refused."""
    message = _of(body)
    assert isinstance(message, Ignored)
    assert message.reason


def _push(data: bytes) -> dict[str, object]:
    return {"message": {"data": base64.b64encode(data).decode(), "messageId": "1"}}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "not JSON", id="an empty body"),
        pytest.param(b'{"kind": "Pod", "meta', "not JSON", id="a truncated body"),
        pytest.param(b"hello", "not JSON", id="text"),
        pytest.param(b'{"a": NaN}', "not JSON", id="NaN"),
        pytest.param(b"\xff\xfe\x00", "not JSON", id="bytes that are no text"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="a deep nest"),
        pytest.param(b"3", "no known source", id="a number"),
        pytest.param(b"{}", "no known source", id="an object of nobody's shape"),
        pytest.param(json.dumps(_push(b'{"a": ')).encode(), r"^message\.data: not JSON", id="Pub/Sub around a stump"),
        pytest.param(b'{"message": {"data": "@@"}}', r"^message\.data: not base64", id="Pub/Sub without base64"),
        pytest.param(b'{"message": {"data": 3}}', r"^message\.data: Expected `str", id="Pub/Sub around a number"),
        pytest.param(
            json.dumps({**EVENT, "involvedObject": {"kind": "Pod"}}).encode(),
            r"^involvedObject\.namespace: ",
            id="no name",
        ),
        pytest.param(json.dumps({**EVENT, "eventTime": "today"}).encode(), r"^eventTime: ", id="a time that is none"),
        pytest.param(
            json.dumps({**EVENT, "eventTime": "2026-11-20T09:15:02"}).encode(),
            r"^eventTime: ",
            id="a time without its zone",
        ),
        pytest.param(b'{"specversion": "1.0", "type": "t", "source": "s"}', r"^id: ", id="a CloudEvent without id"),
        pytest.param(
            b'{"specversion": "9", "type": "t", "source": "s", "id": "1"}', "not a CloudEvent", id="of version 9"
        ),
        pytest.param(
            b'{"specversion": [], "type": "t", "source": "s", "id": "1"}', "not a CloudEvent", id="of no version"
        ),
        pytest.param(
            b'{"specversion": "1.0", "type": "dev.pilotlight.pod.pending.v1", "source": "s", "id": "1", "data": {}}',
            r"^data: .*`namespace`",
            id="our message with a field missing",
        ),
        pytest.param(
            b'{"specversion": "1.0", "type": "dev.pilotlight.tick.v1", "source": "s", "id": "1", "data": {"at": 5}}',
            r"^data\.at: ",
            id="our message with a number for a time",
        ),
        pytest.param(
            b'{"specversion": "1.0", "type": "dev.pilotlight.tick.v1", "source": "s", "id": "1", "data": []}',
            r"^data: Expected `object`",
            id="our message as a list",
        ),
    ],
)
def test_bad_bodies_are_refused_in_one_line(body: bytes, reason: str) -> None:
    """What cannot be read raises BadEvent that names the place and the reason."""
    with pytest.raises(BadEvent, match=reason) as caught:
        decode(body, {}, cluster="home")
    assert "\n" not in str(caught.value)


def test_one_bad_event_of_several_is_refused_alone() -> None:
    """Its neighbours are read; the bad one is there by itself, with its path."""
    bad = {**EVENT, "involvedObject": 3}
    first, second, third = decode(json.dumps([EVENT, bad, {"items": [bad], "kind": "List"}]).encode(), {}, cluster="h")
    assert isinstance(first, Delivery)
    assert isinstance(second, Refused)
    assert isinstance(third, Refused)
    assert (second.error.path, json.loads(second.body)) == ("[1].involvedObject", bad)
    assert (third.error.path, json.loads(third.body)) == ("[2].items[0].involvedObject", bad)


def test_what_is_ignored_names_its_source_and_type() -> None:
    """By these two, ignored events are counted: the event's own, or the file that reads it."""
    event = {"specversion": "1.0", "id": "1", "source": "/tests", "type": "com.example.made.v1"}
    bus = {"detail-type": "EC2 Fleet Error", "source": "aws.ec2", "detail": {}}
    ignored = [_of(event), _of(bus), _of({**EVENT, "reason": "Pulled"}), _of({"tick": "other"})]
    assert [(i.source, i.type) for i in ignored if isinstance(i, Ignored)] == [
        ("/tests", "com.example.made.v1"),
        ("aws.ec2", "EC2 Fleet Error"),
        ("kubernetes", "Event"),
        ("scheduler", ""),
    ]


def test_arrays_and_lists_hold_events_of_any_source() -> None:
    """A batch, an EventList and arrays in Pub/Sub are read one by one."""
    batch = [_sample("pilotlight/tick.json"), EVENT, {"kind": "EventList", "items": [EVENT, POD]}]
    kinds = [type(d.message) for d in _good(json.dumps(batch).encode(), {})]
    assert kinds == [Tick, PodPending, PodPending, PodPending]
    [first, second] = _good(json.dumps(_push(json.dumps([EVENT, POD]).encode())).encode(), {})
    assert first.id == second.id == "1"


@pytest.mark.parametrize("depth", [100, 900, 980, 990, 995, 1000])
def test_a_nest_of_any_depth_is_refused(depth: int) -> None:
    """Where reading still works, writing it down for a dead letter may not."""
    with suppress(BadEvent):
        assert all(isinstance(d, Refused) for d in decode(b"[" * depth + b"]" * depth, {}, cluster="home"))


def test_endless_wrapping_is_refused() -> None:
    """An envelope in an envelope in an envelope comes to an end."""
    body: object = EVENT
    for _ in range(12):
        body = _push(json.dumps(body).encode())
    with pytest.raises(BadEvent, match="wrapped too deeply"):
        _of(body)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
@pytest.mark.parametrize("sample", ["aws/spot_interruption", "aws/rebalance", "azure/event_grid", "pilotlight/tick"])
def test_a_time_at_the_end_of_the_calendar_is_refused(sample: str, time: str) -> None:
    """A deadline is reckoned from it: what no calendar holds must not reach that."""
    body = re.sub(r'("(?:time|at|eventTime)": *)"[^"]*"', rf'\1"{time}"', json.dumps(_sample(f"{sample}.json")))
    assert time in body
    try:
        refused = [d for d in decode(body.encode(), {}, cluster="home") if isinstance(d, Refused)]
    except BadEvent:
        return
    assert refused


def test_a_cloudevent_may_carry_base64() -> None:
    """Data in base64 is read like data in JSON."""
    event = _sample("pilotlight/tick.json")
    event["data_base64"] = base64.b64encode(json.dumps(event.pop("data")).encode()).decode()
    assert _of(event) == _of(_sample("pilotlight/tick.json"))


def test_binary_and_structured_mode_say_the_same() -> None:
    """Attributes in headers, in any case, are attributes in the body."""
    event = _sample("pilotlight/tick.json")
    data = event.pop("data")
    headers = {f"Ce-{key.title()}": value for key, value in event.items()}
    assert decode(json.dumps(data).encode(), headers, cluster="home") == decode(
        json.dumps({**event, "data": data}).encode(), {}, cluster="home"
    )


def test_a_tick_needs_no_data() -> None:
    """Cluster, identity and time of our own messages stand in from the envelope."""
    head = {"specversion": "1.0", "id": "7", "source": "s", "type": "dev.pilotlight.tick.v1"}
    assert _of({**head, "time": "2026-11-20T12:00:00Z"}) == Tick(
        cluster="home", identity="7", at=datetime(2026, 11, 20, 12, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        pytest.param({"tick": "reconcile", "dryrun": True}, True, id="in plain JSON"),
        pytest.param({**_sample("pilotlight/tick.json"), "dryrun": "true"}, True, id="as a CloudEvent attribute"),
        pytest.param({**_sample("pilotlight/tick.json"), "data": {"dryrun": True}}, True, id="in the data"),
        pytest.param({"message": {"attributes": {"tick": "1", "dryrun": "true"}}}, True, id="as a Pub/Sub attribute"),
        pytest.param({"tick": "reconcile", "dryrun": "no"}, False, id="any other word is no dry run"),
    ],
)
def test_an_event_can_ask_for_a_dry_run(body: object, asked: bool) -> None:
    """``dryrun`` on an event is read wherever its source can put it."""
    [delivery] = _good(json.dumps(body).encode(), {})
    assert delivery.dryrun is asked


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (bounds are naive)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        PodPending,
        cluster=TEXT,
        namespace=NAMES,
        name=NAMES,
        uid=TEXT,
        identity=TEXT,
        at=st.none() | TIMES,
        pod=st.none() | st.dictionaries(TEXT, TEXT | st.booleans() | st.none(), max_size=3),
    ),
    st.builds(Tick, cluster=TEXT, what=st.sampled_from(["reconcile", "billing"]), identity=TEXT, at=st.none() | TIMES),
    st.builds(
        InterruptionNotice,
        cluster=TEXT,
        instance=NAMES,
        kind=st.sampled_from(get_args(NoticeKind)),
        cloud=st.sampled_from(["aws", "gcp", "azure", "world"]),
        action=TEXT,
        zone=TEXT,
        group=TEXT,
        hook=TEXT,
        token=TEXT,
        identity=TEXT,
        at=st.none() | TIMES,
        deadline=st.none() | TIMES,
    ),
    st.builds(
        CapacityFailed,
        cluster=TEXT,
        group=NAMES,
        reason=st.sampled_from(["no-capacity", "quota", "other"]),
        message=TEXT,
        zone=TEXT,
        identity=TEXT,
        at=st.none() | TIMES,
    ),
    st.builds(
        BudgetNotice,
        cluster=TEXT,
        budget=NAMES,
        cost=TEXT,
        limit=TEXT,
        currency=TEXT,
        since=TIMES,
        threshold=st.none() | st.floats(0, 10),
        forecast=st.booleans(),
        display=TEXT,
        identity=TEXT,
        at=st.none() | TIMES,
    ),
    st.builds(BillExported, cluster=TEXT, uri=NAMES, identity=TEXT, at=st.none() | TIMES),
    st.builds(
        Alert,
        cluster=TEXT,
        kind=TEXT,
        severity=st.sampled_from(["info", "warning", "critical"]),
        fingerprint=TEXT,
        what=TEXT,
        why=TEXT,
        at=st.none() | TIMES,
    ),
    st.builds(
        CapacityChanged,
        cluster=TEXT,
        decision=TEXT,
        pool=TEXT,
        change=st.sampled_from(["grow", "release"]),
        nodes=st.integers(0, 1000),
        usd_per_hour=TEXT,
        why=TEXT,
        at=TIMES,
    ),
    st.builds(
        DeadLetter,
        reason=TEXT,
        path=TEXT,
        function=TEXT,
        body=TEXT,
        headers=st.dictionaries(TEXT, TEXT, max_size=3),
        at=TIMES,
    ),
)


@given(message=MESSAGES, id=NAMES)
@settings(deadline=None)
def test_what_is_encoded_is_decoded(message: Message, id: str) -> None:
    """decode(encode(m)) == m, and the id comes along."""
    assert decode(encode(message, id=id), {}, cluster="other") == [Delivery(message=message, id=id)]


@given(message=MESSAGES, id=NAMES)
@settings(deadline=None, max_examples=30)
def test_an_outgoing_message_is_decoded(message: Message, id: str) -> None:
    """What an outbox sends is what a function receives."""
    kind = next(name for name, shape in TYPES.items() if isinstance(message, shape))
    data = msgspec.Raw(msgspec.json.encode(message))
    outgoing = Outgoing(id=id, topic="alerts", type=kind, key="k", data=data)
    [delivery] = _good(encode_outgoing(outgoing), {})
    assert (delivery.message, delivery.id) == (message, id)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ALL_SAMPLES = [json.loads(path.read_bytes()) for path in sorted(SAMPLES.rglob("*.json"))]


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[Any, dict[str, str]]:
    """A sample with one value, anywhere in it, replaced by any JSON; and its headers, where it has some."""
    whole = json.loads(json.dumps(draw(st.sampled_from(ALL_SAMPLES))))
    headers = whole["headers"] if isinstance(whole, dict) and whole.keys() == {"headers", "body"} else {}
    whole = whole["body"] if headers else whole
    at = whole
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return whole, headers
        key = draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or draw(st.booleans()):
            at[key] = draw(JSON)
            return whole, headers
        at = at[key]


@given(body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(deadline=None, max_examples=200)
def test_no_body_raises_anything_but_bad_event(body: bytes) -> None:
    """Whatever comes is read, ignored, or refused as BadEvent."""
    with suppress(BadEvent):
        assert all(isinstance(d, Delivery | Refused) for d in decode(body, {}, cluster="home"))


@given(event=_damaged())
@settings(deadline=None, max_examples=400)
def test_no_damage_to_a_sample_raises_anything_but_bad_event(event: tuple[Any, dict[str, str]]) -> None:
    """Every source's event with one value gone wrong is read, ignored, or refused as BadEvent."""
    body, headers = event
    with suppress(BadEvent):
        found = decode(json.dumps(body).encode(), headers, cluster="home")
        assert all(isinstance(d, Delivery | Refused) for d in found)


@given(
    headers=st.dictionaries(
        st.sampled_from(["ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time", "CE-DRYRUN", "content-type"]),
        st.sampled_from(["1.0", *TYPES, "dev.knative.apiserver.ref.add", "2026-11-20T12:00:00Z"]) | st.text(max_size=5),
    ),
    body=st.just(b"") | JSON.map(lambda value: json.dumps(value).encode()),
)
@settings(deadline=None, max_examples=200)
def test_no_headers_raise_anything_but_bad_event(headers: dict[str, str], body: bytes) -> None:
    """CloudEvent attributes in headers can be anything, too."""
    with suppress(BadEvent):
        assert all(isinstance(d, Delivery | Refused) for d in decode(body, headers, cluster="home"))
