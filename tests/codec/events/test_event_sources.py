"""Events of the clouds and of monitoring: what each says, that it is one fact however it comes, and what is refused."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pilotlight.codec.events import Delivery, Ignored, Refused, decode
from pilotlight.codec.events.azure import VALIDATION
from pilotlight.doorway import RECEIVES, TICKS
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import (
    Alert,
    BudgetNotice,
    CapacityFailed,
    InterruptionNotice,
    Message,
    PodPending,
    Tick,
)

SAMPLES = Path(__file__).resolve().parents[3] / "events" / "samples"


def _found(body: object, headers: Mapping[str, str] | None = None) -> list[Message | Ignored]:
    found = decode(json.dumps(body).encode(), headers or {}, cluster="home")
    return [one.message for one in found if isinstance(one, Delivery) or pytest.fail(str(one.error))]


def _read(path: Path) -> list[Message | Ignored]:
    content = json.loads(path.read_bytes())
    if isinstance(content, dict) and content.keys() == {"headers", "body"}:
        return _found(content["body"], content["headers"])
    return _found(content)


def _sample(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.json").read_bytes())


def _at(hour: int, minute: int, second: int = 0, day: int = 20) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, tzinfo=UTC)


SPOT, VM = "i-0d5c1f0b7a9e3c241", "gke-train-l4-spot-5e1b20aa-x9kz"
AKS = "aks-gpuspot-41720938-vmss"


@pytest.mark.parametrize(
    ("name", "notices"),
    [
        ("aws/spot_interruption", [(SPOT, "spot-interruption", "terminate", _at(9, 33))]),
        ("aws/capacity_reservation_interruption", [(SPOT, "capacity-reservation", "terminate", _at(9, 33))]),
        ("aws/rebalance", [(SPOT, "rebalance", "terminate", None)]),
        ("aws/state_change", [(SPOT, "state-change", "terminate", None)]),
        (
            "aws/health_scheduled_change",
            [(i, "scheduled-change", "terminate", _at(6, 0, day=27)) for i in (SPOT, "i-07c2b9d4e1f6a8035")],
        ),
        ("aws/asg_terminate_lifecycle", [(SPOT, "lifecycle", "terminate", None)]),
        ("aws/sns_notification", [(SPOT, "spot-interruption", "terminate", _at(9, 33))]),
        ("aws/sns_records", [(SPOT, "spot-interruption", "terminate", _at(9, 33))]),
        ("aws/sns_in_sqs", [(SPOT, "spot-interruption", "terminate", _at(9, 33))]),
        (
            "aws/sqs_records",
            [(SPOT, "spot-interruption", "terminate", _at(9, 33)), (SPOT, "lifecycle", "terminate", None)],
        ),
        ("google/log_entry_preempted", [(VM, "preempted", "terminate", None)]),
        ("google/log_entry_host_error", [("gke-train-l4-5e1b20aa-m2qd", "state-change", "stop", None)]),
        ("google/pubsub_push_preempted", [(VM, "preempted", "terminate", None)]),
        ("google/eventarc_audit_preempted", [(VM, "preempted", "terminate", None)]),
        ("google/compute_operation_preempted", [(VM, "preempted", "terminate", None)]),
        (
            "azure/imds_scheduled_events",
            [
                (f"{AKS}_4", "spot-interruption", "terminate", _at(9, 31, 30)),
                (f"{AKS}_4", "scheduled-change", "reboot", _at(9, 46)),
                (f"{AKS}_5", "scheduled-change", "reboot", _at(9, 46)),
            ],
        ),
        ("azure/event_grid", [(f"{AKS}_4", "scheduled-change", "freeze", None)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_notice_names_the_instance_what_happens_and_when(name: str, notices: list[tuple[object, ...]]) -> None:
    """Bare or wrapped, one event is a notice for every instance that it is about."""
    found = _read(SAMPLES / f"{name}.json")
    said = [(m.instance, m.kind, m.action, m.deadline) for m in found if isinstance(m, InterruptionNotice)]
    assert (said, len(said)) == (notices, len(found))


@pytest.mark.parametrize(
    ("names", "identity"),
    [
        pytest.param(
            ["aws/spot_interruption", "aws/sns_notification", "aws/sns_records", "aws/sns_in_sqs"],
            f"{SPOT}/spot-interruption",
            id="an interruption, over every way that AWS sends it",
        ),
        pytest.param(
            [
                "google/log_entry_preempted",
                "google/pubsub_push_preempted",
                "google/eventarc_audit_preempted",
                "google/compute_operation_preempted",
            ],
            "7410982365501937264/preempted",
            id="a preemption, from the log, Eventarc and the API",
        ),
        pytest.param(
            ["aws/s3_object_created", "aws/s3_notification"],
            "s3://acme-bills/focus/metadata/BILLING_PERIOD=2026-11/focus-Manifest.json#00657AB1C2D3E4F501",
            id="an object of S3, whose key one of the two encodes",
        ),
        pytest.param(
            ["google/storage_finalized", "google/pubsub_push_storage"],
            "gs://acme-bills/focus/2026-11/focus.parquet#1795167060404112",
            id="an object of Cloud Storage, as a CloudEvent and as a notification",
        ),
    ],
)
def test_one_fact_is_one_identity_however_it_is_delivered(names: list[str], identity: str) -> None:
    """The identity tells the fact, so that a second way to hear of it changes nothing."""
    found = [message for name in names for message in _read(SAMPLES / f"{name}.json")]
    assert {getattr(message, "identity", "") for message in found} == {identity}


def test_a_second_instance_by_the_same_name_is_another_fact() -> None:
    """A managed group gives a new VM the old one's name: the number tells them apart."""
    entry = _sample("google/log_entry_preempted")
    again = json.loads(json.dumps(entry).replace("7410982365501937264", "11"))
    [first, second] = _found([entry, again])
    assert isinstance(first, InterruptionNotice)
    assert isinstance(second, InterruptionNotice)
    assert first.instance == second.instance
    assert first.identity != second.identity


@pytest.mark.parametrize("spelled", [str.lower, str.upper, lambda name: name], ids=["lower", "upper", "as in samples"])
def test_an_audit_event_without_data_is_read_by_its_attributes(spelled: Callable[[str], str]) -> None:
    """Eventarc's attributes say what was preempted; their names come in any case."""
    name = "projects/acme/zones/europe-west4-b/instances/vm-1"
    said = {"methodName": "compute.instances.preempted", "resourceName": name, "serviceName": "compute.googleapis.com"}
    head = {"specversion": "1.0", "id": "e-1", "source": "s", "type": "google.cloud.audit.log.v1.written"}
    [notice] = _found({**head, **{spelled(key): value for key, value in said.items()}})
    assert isinstance(notice, InterruptionNotice)
    assert (notice.instance, notice.zone, notice.kind) == ("vm-1", "europe-west4-b", "preempted")


def test_the_arn_is_never_read() -> None:
    """The instance is that of the detail, whatever the resources say."""
    event = {**_sample("aws/spot_interruption"), "resources": ["arn:aws:ec2:us-east-1b:instance/i-other"]}
    [notice] = _found(event)
    assert isinstance(notice, InterruptionNotice)
    assert notice.instance == SPOT


def test_a_lifecycle_action_carries_what_its_group_wants_back() -> None:
    """Group, hook and token are there, through EventBridge and straight from the group."""
    through, straight = (_read(SAMPLES / f"aws/{n}.json")[-1] for n in ("asg_terminate_lifecycle", "sqs_records"))
    assert isinstance(through, InterruptionNotice)
    assert (through.group[:8], through.hook, through.token[:8]) == ("eks-gpu-", "pilotlight", "6a1d3c52")
    assert straight == through


ICE = "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you requested (us-east-1a)."


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (ICE, "no-capacity"),
        ("InsufficientInstanceCapacity", "no-capacity"),
        ("Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity.", "no-capacity"),
        ("There is no Spot capacity available that matches your request.", "no-capacity"),
        ("You have requested more vCPU capacity than your current vCPU limit of 0 allows.", "quota"),
        ("VcpuLimitExceeded", "quota"),
        ("MaxSpotInstanceCountExceeded - Max spot instance count exceeded", "quota"),
        ("RequestLimitExceeded", "other"),
        ("There are no free addresses in subnet subnet-1", "other"),
        ("", "other"),
    ],
)
def test_a_failed_launch_is_told_by_the_words_aws_uses(words: str, reason: str) -> None:
    """Capacity, quota, or something else; the words themselves go along."""
    event = _sample("aws/asg_launch_unsuccessful")
    event["detail"]["StatusMessage"] = words
    [failed] = _found(event)
    assert isinstance(failed, CapacityFailed)
    assert (failed.reason, failed.zone, failed.group[:12]) == (reason, "eu-west-1b", "eks-gpu-spot")
    assert failed.message == words or not words


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("scale.up.error.out.of.resources", "no-capacity"),
        ("scale.up.error.quota.exceeded", "quota"),
        ("scale.up.error.ip.space.exhausted", "other"),
        ("scale.up.error.waiting.for.instances.timeout", "other"),
    ],
)
def test_gke_names_every_group_that_failed_to_grow(message: str, reason: str) -> None:
    """A result of the autoscaler is a message for each of its groups, with the zone of the group's URL."""
    text = json.dumps(_sample("google/autoscaler_visibility")).replace("scale.up.error.out.of.resources", message)
    found = [m for m in _found(json.loads(text)) if isinstance(m, CapacityFailed)]
    assert [(m.cluster, m.group, m.zone, m.reason) for m in found] == [
        ("local", "gke-train-l4-5e1b20aa-grp", "europe-west4-b", reason),
        ("local", "gke-train-l4-0d9f41c7-grp", "europe-west4-c", reason),
    ]
    assert len({m.identity for m in found}) == 2


def test_a_budget_says_what_is_spent_and_what_is_forecast() -> None:
    """A crossed threshold of each kind is a fact of its own; sums are text, as exact as they were sent."""
    spent, forecast = _read(SAMPLES / "google/pubsub_push_budget.json")
    assert isinstance(spent, BudgetNotice)
    assert isinstance(forecast, BudgetNotice)
    assert (spent.threshold, spent.forecast, spent.cost, spent.limit) == (0.8, False, "4123.07", "5000.0")
    assert (forecast.threshold, forecast.forecast) == (1.0, True)
    assert spent.identity == "5b8e1f2a-7c3d-4e9f-8a0b-1c2d3e4f5a6b/2026-11-01/0.8/spent"


def test_a_budget_that_crossed_nothing_is_known_by_what_it_cost() -> None:
    """Without a threshold each new sum is news."""
    plain = {"budgetDisplayName": "b", "costAmount": 1.5, "budgetAmount": 10, "currencyCode": "EUR"}
    [notice] = _found({**plain, "costIntervalStart": "2026-11-01T07:00:00Z"})
    assert isinstance(notice, BudgetNotice)
    assert (notice.threshold, notice.identity) == (None, "b/2026-11-01/at 1.5/spent")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("aws/schedule", "reconcile"),
        ("aws/capacity_block_expiration", "rescue"),
        ("google/pubsub_background_tick", "reconcile"),
        ("google/pubsub_push_tick_billing", "billing"),
        ("google/scheduler_http_billing", "billing"),
    ],
)
def test_a_tick_says_what_it_is_for(name: str, what: str) -> None:
    """Schedules of every cloud are ticks, told apart by id and known by their time."""
    [tick] = _read(SAMPLES / f"{name}.json")
    assert isinstance(tick, Tick)
    assert (tick.what, bool(tick.identity), tick.at is not None) == (what, True, True)


def test_a_scheduled_call_without_a_body_is_a_tick() -> None:
    """Cloud Scheduler's headers are enough; one job's two calls are two ticks."""
    head = {"X-CloudScheduler": "true", "X-CloudScheduler-JobName": "j"}
    times = ["2026-11-20T09:00:00Z", "2026-11-20T09:01:00Z"]
    calls = [decode(b"", {**head, "X-CloudScheduler-ScheduleTime": t}, cluster="home") for t in times]
    ticks = [one.message for [one] in calls if isinstance(one, Delivery) and isinstance(one.message, Tick)]
    assert [tick.at for tick in ticks] == [_at(9, 0), _at(9, 1)]
    assert len({tick.identity for tick in ticks}) == 2


GRID = "https://rp-westeurope.eventgrid.azure.net:553/eventsubscriptions/s/validate?id=1"
SNS = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param({"Type": "SubscriptionConfirmation", "SubscribeURL": SNS}, SNS, id="SNS's"),
        pytest.param({"Type": "SubscriptionConfirmation", "SubscribeURL": "https://sns.evil/"}, "none of", id="fake"),
        pytest.param(
            {"eventType": VALIDATION, "subject": "", "data": {"validationUrl": GRID}}, GRID, id="Event Grid's"
        ),
        pytest.param({"eventType": VALIDATION, "subject": "", "data": {"validationUrl": 3}}, "none of", id="no link"),
    ],
)
def test_a_link_to_confirm_is_shown_to_people_where_it_is_the_senders_own(body: object, says: str) -> None:
    """Nobody but a person follows it, and no other link is put before them."""
    [message] = _found(body)
    assert isinstance(message, Ignored)
    assert says in message.reason


def test_a_ping_may_say_what_it_is_for() -> None:
    """Knative sends the data it was told to: a tick for bills is one, and without any it is a look at the cluster."""
    ping = _sample("knative/ping_tick")
    [plain], [bills] = _found(ping), _found({**ping, "data": {"tick": "billing"}})
    assert isinstance(plain, Tick)
    assert isinstance(bills, Tick)
    assert (plain.what, bills.what, bills.identity) == ("reconcile", "billing", ping["id"])


def test_alerts_of_alertmanager_keep_their_fingerprint() -> None:
    """Each alert of a group is one of ours; one that is over says so, at the time it ended."""
    first, second = _read(SAMPLES / "alertmanager/webhook.json")
    assert first == Alert(
        cluster="home",
        kind="IdleGpu",
        severity="warning",
        fingerprint="9f1c3a7be0d24c58",
        what="GPU of finetune-0 idles",
        why="below 5 % for an hour",
        how="https://runbooks.example/idle-gpu",
        team="nlp",
        at=_at(8, 31),
        links={"source": "http://prometheus:9090/graph", "runbook": "https://runbooks.example/idle-gpu"},
    )
    assert isinstance(second, Alert)
    assert (second.resolved, second.severity, second.at) == (True, "critical", _at(9, 30))


def test_a_reference_to_a_new_event_is_a_hint_about_its_object() -> None:
    """Its name says whose event it is; updates of it are left out, and so is a name that tells nothing."""
    event = _sample("knative/apiserver_reference_event")
    [hint] = _found(event)
    assert isinstance(hint, PodPending)
    assert (hint.namespace, hint.name) == ("vision", "notebook-7")
    update = {**event, "type": "dev.knative.apiserver.ref.update"}
    nameless = {**event, "data": {**event["data"], "name": "odd"}}
    assert [type(m) for m in (*_found(update), *_found(nameless))] == [Ignored, Ignored]


def _bus(kind: str, detail: object) -> dict[str, object]:
    return {**_sample("aws/spot_interruption"), "detail-type": kind, "detail": detail}


HEALTH = _sample("aws/health_scheduled_change")
LIFECYCLE = _sample("aws/asg_terminate_lifecycle")
S3_RECORD = _sample("aws/s3_notification")["Records"][0]
PREEMPTED = _sample("google/log_entry_preempted")
SCHEDULED = _sample("azure/imds_scheduled_events")["Events"][0]


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "terminate"),
        ("AWS_EC2_INSTANCE_TERMINATION_SCHEDULED", "terminate"),
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", "terminate"),
        ("AWS_EC2_INSTANCE_STOP_SCHEDULED", "stop"),
        ("AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", "reboot"),
        ("AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED", "reboot"),
        ("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", "reboot"),
        ("AWS_EC2_INSTANCE_POWER_MAINTENANCE_SCHEDULED", "reboot"),
        ("AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED", "freeze"),
        ("AWS_EC2_SOMETHING_NEW_SCHEDULED", "unknown"),
        ("", "unknown"),
    ],
)
def test_healths_codes_say_what_becomes_of_an_instance(code: str, action: str) -> None:
    """A retired instance ends, a rebooted one comes back, and of a code that nobody knows nothing is guessed."""
    found = _found({**HEALTH, "detail": {**HEALTH["detail"], "eventTypeCode": code}})
    assert {(m.kind, m.action) for m in found if isinstance(m, InterruptionNotice)} == {("scheduled-change", action)}


@pytest.mark.parametrize(
    ("body", "kind", "action"),
    [
        pytest.param(
            {**PREEMPTED, "protoPayload": {**PREEMPTED["protoPayload"], "methodName": f"compute.instances.{method}"}},
            "state-change", "stop", id=f"Google: {method}",
        )
        for method in ("terminateOnHostMaintenance", "hostError")
    ]
    + [
        pytest.param({**SCHEDULED, "EventType": "Terminate"}, "lifecycle", "terminate", id="Azure: a scale set"),
        pytest.param({**SCHEDULED, "EventType": "Preempt"}, "spot-interruption", "terminate", id="Azure: spot"),
        pytest.param(
            _bus("EC2 Interruptible Capacity Reservation Instance Interruption Warning", {"instance-id": "i"}),
            "capacity-reservation", "terminate", id="AWS: an interruptible reservation",
        ),
    ],
)  # fmt: skip
def test_what_may_happen_to_any_instance_is_not_taken_for_spot(body: object, kind: str, action: str) -> None:
    """Only a preemption is spot's; the others may come to an on-demand instance too."""
    (notice,) = _found(body)
    assert isinstance(notice, InterruptionNotice)
    assert (notice.kind, notice.action) == (kind, action)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(lambda time: {**_sample("aws/spot_interruption"), "time": time}, id="a notice"),
        pytest.param(
            lambda time: _bus(
                "EC2 Capacity Reservation Instance Interruption Warning",
                {"instance-id": "i", "instance-termination-time": time},
            ),
            id="a reservation's end",
        ),
        pytest.param(lambda time: {**HEALTH, "detail": {**HEALTH["detail"], "startTime": time}}, id="Health"),
        pytest.param(lambda time: {**SCHEDULED, "NotBefore": time}, id="Azure"),
        pytest.param(lambda time: {**_sample("google/compute_operation_preempted"), "endTime": time}, id="Google"),
    ],
)
def test_a_notice_from_the_ends_of_the_calendar_is_refused(body: Callable[[str], object], time: str) -> None:
    """Nothing is reckoned with such a time: it is a bad event, kept and told with the year."""
    with pytest.raises(BadEvent, match=r"the year|no calendar"):
        decode(json.dumps(body(time)).encode(), {}, cluster="home")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            _bus("EC2 Instance State-change Notification", {"instance-id": "i", "state": "running"}), id="run"
        ),
        pytest.param(_bus("EC2 Fleet State Change", {}), id="a detail type that nobody reads"),
        pytest.param({**HEALTH, "detail": {**HEALTH["detail"], "service": "RDS"}}, id="Health of another service"),
        pytest.param({**HEALTH, "detail": {**HEALTH["detail"], "eventTypeCategory": "issue"}}, id="Health: an issue"),
        pytest.param({**HEALTH, "detail": {**HEALTH["detail"], "statusCode": "closed"}}, id="Health: over"),
        pytest.param({**HEALTH, "detail": {**HEALTH["detail"], "affectedEntities": []}}, id="Health: of no instance"),
        pytest.param(
            {
                **LIFECYCLE,
                "detail": {**LIFECYCLE["detail"], "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"},
            },
            id="a launch that a hook holds",
        ),
        pytest.param(
            {"Event": "autoscaling:TEST_NOTIFICATION", "AutoScalingGroupName": "g", "Service": "AWS Auto Scaling"},
            id="Auto Scaling's test",
        ),
        pytest.param({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}, id="S3's test"),
        pytest.param({**S3_RECORD, "eventName": "ObjectRemoved:Delete"}, id="an object that was deleted"),
        pytest.param({"Type": "SubscriptionConfirmation", "SubscribeURL": "https://x", "Message": "m"}, id="SNS asks"),
        pytest.param({"Type": "Notification", "MessageId": "1", "Message": "Hello"}, id="words in SNS"),
        pytest.param({"Records": [{"eventSource": "aws:sqs", "messageId": "1", "body": "hello"}]}, id="words in SQS"),
        pytest.param({"message": {"attributes": {"type_url": "t/x.UpgradeEvent"}, "data": "aGk="}}, id="GKE upgrades"),
        pytest.param(
            {"message": {"attributes": {"bucketId": "b", "objectId": "o", "eventType": "OBJECT_DELETE"}}}, id="deleted"
        ),
        pytest.param({"kind": "compute#operation", "operationType": "insert"}, id="another operation"),
        pytest.param({"DocumentIncarnation": 4, "Events": []}, id="Azure schedules nothing"),
        pytest.param({"EventId": "1", "EventType": "Party", "Resources": ["vm"]}, id="an unknown kind of Azure's"),
        pytest.param(
            {"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "subject": "", "data": {}}, id="Event Grid"
        ),
        pytest.param(
            {"eventType": "Microsoft.Storage.BlobCreated", "subject": "", "data": {}}, id="another of Azure's"
        ),
    ],
)
def test_what_asks_for_nothing_is_acknowledged_with_a_reason(body: object) -> None:
    """Other valid events of these sources are ignored, never refused."""
    [message] = _found(body)
    assert isinstance(message, Ignored)
    assert message.reason


@pytest.mark.parametrize(
    ("body", "where"),
    [
        pytest.param(_bus("EC2 Spot Instance Interruption Warning", {}), "detail", id="no instance"),
        pytest.param(_bus("EC2 Instance Rebalance Recommendation", None), "detail", id="no detail"),
        pytest.param(
            _bus("EC2 Instance State-change Notification", {"instance-id": "i", "state": 3}), "detail.state", id="state"
        ),
        pytest.param({**_sample("aws/rebalance"), "time": "soon"}, "time", id="a time that is none"),
        pytest.param(
            {**HEALTH, "detail": {**HEALTH["detail"], "startTime": "Someday"}}, "detail.startTime", id="Health's time"
        ),
        pytest.param(
            {**HEALTH, "detail": {**HEALTH["detail"], "affectedEntities": [{}]}},
            "detail.affectedEntities[0]",
            id="Health's entity",
        ),
        pytest.param({"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}, "", id="a group without a name"),
        pytest.param({"Type": "Notification", "Message": '{"a"'}, "Message", id="SNS around a stump"),
        pytest.param({"Type": "Notification", "Message": 3}, "Message", id="SNS around a number"),
        pytest.param({"s3": {"bucket": {"name": "b"}}, "eventName": "ObjectCreated:Put"}, "s3", id="no object"),
        pytest.param({"EventId": "1", "EventType": "Preempt", "Resources": [3]}, "Resources[0]", id="a machine"),
        pytest.param(
            {"EventId": "1", "EventType": "Preempt", "Resources": ["vm"], "NotBefore": "now"}, "NotBefore", id="when"
        ),
        pytest.param({**_sample("azure/event_grid")[0], "data": {}}, "data", id="Event Grid without what it is about"),
        pytest.param({"labels": {}, "fingerprint": "f"}, "", id="an alert without its time"),
        pytest.param({"budgetDisplayName": "b"}, "", id="a budget without sums"),
        pytest.param(
            {"protoPayload": {"methodName": "compute.instances.preempted", "resourceName": "projects/p"}},
            "protoPayload.resourceName",
            id="a preemption of nothing",
        ),
        pytest.param(
            {"kind": "compute#operation", "operationType": "compute.instances.preempted"}, "", id="without its target"
        ),
        pytest.param(
            {"jsonPayload": {"resultInfo": {"results": [{"errorMsg": {}}]}}},
            "jsonPayload.resultInfo.results[0].errorMsg",
            id="the autoscaler's result without its kind",
        ),
        pytest.param(
            {"specversion": "1.0", "id": "1", "source": "s", "type": "google.cloud.storage.object.v1.finalized"},
            "data",
            id="an object without a name",
        ),
        pytest.param(
            {"specversion": "1.0", "id": "1", "source": "s", "type": "google.cloud.pubsub.topic.v1.messagePublished"},
            "data.message",
            id="a message that is not there",
        ),
    ],
)
def test_broken_events_are_refused_by_their_path(body: object, where: str) -> None:
    """What a source would never send is refused in one line that names the place."""
    with pytest.raises(BadEvent) as caught:
        _found(body)
    assert caught.value.path == where
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "good"),
    [
        pytest.param(
            {"Records": [*_sample("aws/sqs_records")["Records"], {"eventSource": "aws:sqs", "body": "{"}]}, 2, id="SQS"
        ),
        pytest.param(
            {
                "DocumentIncarnation": 1,
                "Events": [{"EventId": 1, "EventType": "Preempt"}, *_sample("azure/imds_scheduled_events")["Events"]],
            },
            3,
            id="Azure",
        ),
        pytest.param(
            {"receiver": "p", "alerts": [{"labels": {}, "fingerprint": 1}, *_sample("alertmanager/webhook")["alerts"]]},
            2,
            id="Alertmanager",
        ),
        pytest.param({"entries": [{"jsonPayload": 3}, _sample("google/log_entry")]}, 1, id="Cloud Logging"),
    ],
)
def test_a_bad_entry_leaves_its_neighbours(body: object, good: int) -> None:
    """In every source's own array the bad entry alone is refused."""
    found = decode(json.dumps(body).encode(), {}, cluster="home")
    assert [sum(isinstance(one, kind) for one in found) for kind in (Delivery, Refused)] == [good, 1]


ORIGINALS: dict[str, list[type]] = {
    "aws/composed_capacity_reservation_interruption_warning.json": [InterruptionNotice],
    "aws/nth_asg_terminate_lifecycle.json": [InterruptionNotice],
    "aws/nth_ec2_state_change.json": [Ignored],
    "aws/nth_health_scheduled_change.json": [InterruptionNotice],
    "aws/nth_rebalance_recommendation.json": [InterruptionNotice],
    "aws/nth_spot_interruption_warning.json": [InterruptionNotice],
    "azure/eventgrid_scheduled_event_emitted.json": [InterruptionNotice],
    "azure/imds_scheduled_events_empty.json": [Ignored],
    "azure/imds_scheduled_events_preempt.json": [InterruptionNotice],
    "gcp/ce_binary_pubsub_body.json": [Ignored],
    "gcp/ce_structured_audit_log_written.json": [Ignored],
    "gcp/ce_structured_pubsub_message_published.json": [Ignored],
    "gcp/composed/budget_data_forecast.json": [BudgetNotice, BudgetNotice],
    "gcp/composed/budget_data_no_threshold.json": [BudgetNotice],
    "gcp/composed/budget_data_threshold.json": [BudgetNotice],
    "gcp/composed/eventarc_ce_binary_preempted.json": [InterruptionNotice],
    "gcp/composed/logentry_gke_k8s_event_failedscheduling.json": [PodPending],
    "gcp/composed/pubsub_push_budget.json": [BudgetNotice],
    "gcp/composed/pubsub_push_log_sink_preempted.json": [InterruptionNotice],
    "gcp/composed/pubsub_push_scheduler_tick.json": [Tick],
    "gcp/compute_operation_preempted.json": [InterruptionNotice],
    "gcp/ff_pubsub_cloudevent.json": [Ignored],
    "gcp/ff_pubsub_legacy_background.json": [Ignored],
    "gcp/gke_ca_visibility_noscaleup.json": [Ignored, Ignored],
    "gcp/logentry_compute_instances_preempted.json": [InterruptionNotice],
    "knative/apiserversource_ref_add_pod_ce_structured.json": [PodPending],
    "knative/apiserversource_resource_update_event_ce_binary.json": [PodPending],
    "kubernetes/event_v1_failedscaleup_legacy_recorder.json": [Ignored],
    "kubernetes/event_v1_failedscheduling.json": [PodPending],
    "kubernetes/kubernetes_event_exporter_webhook.json": [PodPending],
}


@pytest.mark.parametrize(("name", "kinds"), ORIGINALS.items(), ids=ORIGINALS)
def test_documented_payloads_are_read(shelf: Path, name: str, kinds: list[type]) -> None:
    """The payloads that the sources document are read as what they are."""
    assert [type(message) for message in _read(shelf / "contracts" / "events" / name)] == kinds


def test_no_documented_payload_is_left_out(shelf: Path) -> None:
    """Every payload of the contracts is in the table above."""
    folder = shelf / "contracts" / "events"
    assert {str(p.relative_to(folder)) for p in folder.rglob("*.json") if "jsonschema" not in p.name} == {*ORIGINALS}


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_sample_of_an_outside_source_has_its_function(path: Path) -> None:
    """Nothing that a source here sends is a message that no function takes."""
    if path.parent.name == "pilotlight":
        return
    taken = {shape for shapes in RECEIVES.values() for shape in shapes}
    found = _read(path)
    assert {type(message) for message in found} <= taken
    assert {message.what for message in found if isinstance(message, Tick)} <= TICKS.keys()


def test_the_page_names_every_sample() -> None:
    """The table of outside sources leaves no sample out."""
    page = (SAMPLES.parent / "README.md").read_text()
    names = [f"{p.parent.name}/{p.stem}" for p in SAMPLES.rglob("*.json") if p.parent.name != "pilotlight"]
    assert [name for name in names if f"`{name}`" not in page] == []
