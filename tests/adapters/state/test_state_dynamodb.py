"""What only the DynamoDB state has: refusals of a service on the network, and tables that are not there."""

from typing import Any
from uuid import uuid4

import pytest
from answering import answering

from pilotlight.adapters.http import HttpAnswer, Site
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.errors import Conflict, PilotlightError, StoreFault, Throttled, Unavailable
from pilotlight.ports.state import ABSENT
from pilotlight.tools.install.state_store import create_table
from pilotlight.world.world_clock import VirtualClock

REFUSALS = {
    "a condition": (400, "ConditionalCheckFailedException", Conflict),
    "too many requests": (400, "ProvisionedThroughputExceededException", Throttled),
    "no rights": (400, "AccessDeniedException", StoreFault),
    "credentials that ended": (400, "ExpiredTokenException", StoreFault),
    "no table": (400, "ResourceNotFoundException", StoreFault),
    "our own mistake": (400, "ValidationException", StoreFault),
    "an outage": (500, "InternalServerError", Unavailable),
}


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setattr("pilotlight.adapters.state.calls.PAUSES_S", ())


@pytest.mark.parametrize(("status", "code", "kind"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_are_told_by_what_to_do_next(
    status: int, code: str, kind: type[PilotlightError], clock: VirtualClock
) -> None:
    """Each of DynamoDB's refusals is one of our errors and names the table and the key."""
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}
    with answering(lambda *_: (status, body)) as host:
        state = DynamoDBState("pilotlight", clock, endpoint=f"http://{host}")
        with pytest.raises(kind, match="pilotlight, memory/c"):
            state.put("memory/c", b"")


def test_a_service_that_hangs_up_is_unavailable(clock: VirtualClock) -> None:
    """After its attempts, a lost connection is an error to come again after."""
    with answering(lambda *_: None) as host, pytest.raises(Unavailable):
        DynamoDBState("pilotlight", clock, endpoint=f"http://{host}").get("memory/c")


def test_a_write_that_was_sent_twice_is_not_a_conflict(
    dynamodb_server: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first answer is lost the client sends again; meeting its own write is success."""
    table = f"state-{uuid4()}"
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    create_table(state.client, table)
    ask = Site.ask

    def twice(site: Site, *asked: Any, **how: Any) -> HttpAnswer:
        answer = ask(site, *asked, **how)
        puts = asked[4]["x-amz-target"].endswith("PutItem")
        return ask(site, *asked, **how) if puts else answer

    monkeypatch.setattr(Site, "ask", twice)
    first = state.put("lease/c", b"1", if_version=ABSENT)
    second = state.put("lease/c", b"2", if_version=first)
    assert state.get("lease/c") == (b"2", second)


def test_the_time_to_live_is_the_attribute_that_the_table_names(dynamodb_server: str, clock: VirtualClock) -> None:
    """DynamoDB deletes by ``expires``: whole seconds, never before the record ends."""
    table = f"state-{uuid4()}"
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    create_table(state.client, table)
    state.put("lease/c", b"", ttl_s=59.5)
    (item,) = (item for item in state.client.scan(TableName=table)["Items"] if "value" in item)
    assert int(item["expires"]["N"]) == clock.now().timestamp() + 60
    described = state.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}


@pytest.fixture
def table(dynamodb_server: str) -> str:
    """An empty table."""
    name = f"state-{uuid4()}"
    create_table(DynamoDBState(name, endpoint=dynamodb_server).client, name)
    return name


def test_each_family_of_each_cluster_has_a_partition(dynamodb_server: str, table: str, clock: VirtualClock) -> None:
    """Two clusters and two families never write to one partition; records of one family and cluster do."""
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    for key in ("decision/a/1", "decision/a/2", "decision/b/1", "lease/a", "lease/b"):
        state.put(key, b"")
    items = state.client.scan(TableName=table)["Items"]
    rooms = {item["key"]["S"]: item["room"]["S"] for item in items if "value" in item}
    assert rooms == {
        "decision/a/1": "decision/a",
        "decision/a/2": "decision/a",
        "decision/b/1": "decision/b",
        "lease/a": "lease/a",
        "lease/b": "lease/b",
    }


def test_a_scan_over_partitions_comes_in_order_and_pages(dynamodb_server: str, table: str, clock: VirtualClock) -> None:
    """Whatever a scan reaches over, its keys come in their order, also where one room's keys lie between another's."""
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    keys = sorted(["a", "a-b/c", "a/b", "a/b-c", "a/b-c/d", "a/b/c", "a/b/d/e", "a/b0", "a0", "b/c", "b/d/1", "b/d/2"])
    for key in reversed(keys):
        state.put(key, b"")
    other = DynamoDBState(table, clock, endpoint=dynamodb_server)
    for prefix in ("", "a", "a/", "a/b", "a/b/", "b", "b/d/"):
        within = [key for key in keys if key.startswith(prefix)]
        for limit in (1, 2, 100):
            found, after = list[str](), ""
            while True:
                page = other.scan(prefix, after=after, limit=limit)
                found += [key for key, _ in page.items]
                after = page.next
                if not after:
                    break
            assert found == within
