"""What only the DynamoDB state has: refusals of a service on the network, and tables that are not there."""

from uuid import uuid4

import pytest
from answering import answering

from pilotlight.adapters.state.dynamodb import DynamoDBState, create_table
from pilotlight.errors import BadInput, BadRequest, Conflict, Forbidden, PilotlightError, Throttled, Unavailable
from pilotlight.ports import ABSENT
from pilotlight.world.clock import VirtualClock

REFUSALS = {
    "a condition": (400, "ConditionalCheckFailedException", Conflict),
    "too many requests": (400, "ProvisionedThroughputExceededException", Throttled),
    "no rights": (400, "AccessDeniedException", Forbidden),
    "credentials that ended": (400, "ExpiredTokenException", Forbidden),
    "no table": (400, "ResourceNotFoundException", BadInput),
    "our own mistake": (400, "ValidationException", BadRequest),
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


def test_a_write_that_was_sent_twice_is_not_a_conflict(dynamodb_server: str, clock: VirtualClock) -> None:
    """Where the first answer is lost the client sends again; meeting its own write is success."""
    table = f"state-{uuid4()}"
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    create_table(state.client, table)
    put_item = state.client.put_item

    def twice(**request: object) -> object:
        put_item(**request)
        return put_item(**request)

    state.client.put_item = twice
    first = state.put("lease/c", b"1", if_version=ABSENT)
    second = state.put("lease/c", b"2", if_version=first)
    assert state.get("lease/c") == (b"2", second)


def test_the_time_to_live_is_the_attribute_that_the_table_names(dynamodb_server: str, clock: VirtualClock) -> None:
    """DynamoDB deletes by ``expires``: whole seconds, never before the record ends."""
    table = f"state-{uuid4()}"
    state = DynamoDBState(table, clock, endpoint=dynamodb_server)
    create_table(state.client, table)
    state.put("lease/c", b"", ttl_s=59.5)
    (item,) = state.client.scan(TableName=table)["Items"]
    assert int(item["expires"]["N"]) == clock.now().timestamp() + 60
    described = state.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
