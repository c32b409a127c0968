"""State in one DynamoDB table.

An item is ``{room, key, value, version, expires}``; ``dynamodb_rooms`` says which partition key ``room`` a key has.
``expires`` holds whole seconds from the epoch, rounded up: name it as the table's TTL attribute, and DynamoDB deletes
what is over.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from pilotlight.adapters.aws_wire import Wire
from pilotlight.adapters.deadline import Deadline
from pilotlight.adapters.http import Broken
from pilotlight.adapters.state import new_version, refuse_large
from pilotlight.adapters.state.calls import STORE_S, MetAgain, tried
from pilotlight.adapters.state.dynamodb_rooms import INDEX, LAYOUT, ONE, Items, Rooms, merged
from pilotlight.adapters.state.store_time import StoreTime, since_boot_s
from pilotlight.errors import BadInput, BadRequest, Conflict, Forbidden, PilotlightError, Throttled, Unavailable, Unsure
from pilotlight.ports import ABSENT, Clock, Page, Stored
from pilotlight.units import Seconds, clock_seconds

_NAMES = {"#key": "key", "#version": "version", "#expires": "expires"}
_OVER = "#expires <= :now"
_LIVE = "(attribute_not_exists(#expires) OR #expires > :now)"
_IF_ABSENT = f"attribute_not_exists(#key) OR {_OVER}"
_IF_VERSION = f"#version = :over AND {_LIVE}"

_THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
_FORBIDDEN = {
    "AccessDeniedException",
    "UnrecognizedClientException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
}

_SENT = "pilotlight_sent_s"

Item = Mapping[str, Mapping[str, Any]]


class DynamoDBState:
    """Each write is one conditional request; every read is consistent.

    Its time is the ``Date`` of DynamoDB's answers; or that of a ``clock``, as a world's.
    """

    def __init__(self, table: str, clock: Clock | None = None, *, endpoint: str = "") -> None:
        self.table = table
        self._time = StoreTime(clock, self._ask_time, coarse_s=1.0)
        self._wire = Wire(STORE_S)
        self._rooms = Rooms(Items(self._has, self._names, self._add))
        # Attempts are ours, under one deadline; what boto3 does is credentials, signatures and DynamoDB's words.
        config = Config(retries={"mode": "standard", "total_max_attempts": 1})
        with self._explained("its client"):
            self.client = boto3.client("dynamodb", endpoint_url=endpoint or None, config=config)
        self.client.meta.events.register("before-send.dynamodb", self._wire.send)
        self.client.meta.events.register("before-call.dynamodb", _sent)
        self.client.meta.events.register("after-call.dynamodb", self._answered)

    def now(self) -> datetime:
        return self._time.now()

    def get(self, key: str) -> Stored | None:
        found = self._read(key, self.client.get_item, Key=_id(self._rooms.of(key), key), ConsistentRead=True)
        item = found.get("Item")
        return _stored(item) if item and self._live(item) else None

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        refuse_large(key, value)
        version = new_version()
        item = {**_id(self._rooms.enter(key), key), "value": {"B": value}, "version": _number(version)}
        if ttl_s is not None:
            item["expires"] = _number(ceil(clock_seconds(self.now()) + ttl_s))
        try:
            self._change(key, self.client.put_item, Item=item, **self._condition(if_version))
        except Conflict as error:
            # What was sent again after its answer was lost meets our own write.
            mine = self.get(key)
            if mine is not None and mine.version == version:
                return version
            if isinstance(error, MetAgain):
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None
            raise
        return version

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        try:
            self._change(key, self.client.delete_item, Key=_id(self._rooms.of(key), key), **self._condition(if_version))
        except MetAgain:
            if self.get(key) is not None:
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        found: list[tuple[str, Stored]] = []
        rooms = [room for room in self._rooms.under(prefix) if not after or _reaches(room, after)]
        for key, stored in merged(rooms, lambda room: self._keys(room, prefix, after, limit)):
            if len(found) == limit:
                return Page(found, found[-1][0])
            found.append((key, stored))
        return Page(found, "")

    def _keys(self, room: str, prefix: str, after: str, limit: int) -> Iterator[tuple[str, Stored]]:
        """A room's live keys in order; DynamoDB gives at most 1 MB at once, with what has expired."""
        if after and after >= prefix and not after.startswith(prefix):
            return
        condition, names, values = "#room = :room", {"#room": "room"}, {":room": {"S": room}}
        if prefix:
            condition += " AND begins_with(#key, :prefix)"
            names["#key"], values[":prefix"] = "key", {"S": prefix}
        query: dict[str, Any] = {
            "ConsistentRead": True,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "Limit": limit + 1,
        }
        if after and after >= prefix:
            query["ExclusiveStartKey"] = _id(room, after)
        while True:
            page = self._read(prefix, self.client.query, **query)
            yield from ((item["key"]["S"], _stored(item)) for item in page["Items"] if self._live(item))
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _condition(self, if_version: int | None) -> dict[str, Any]:
        if if_version is None:
            return {}
        names, values = dict(_NAMES), self._now()
        if if_version == ABSENT:
            del names["#version"]
            condition = _IF_ABSENT
        else:
            del names["#key"]
            condition, values = _IF_VERSION, values | {":over": _number(if_version)}
        return {
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }

    def _now(self) -> dict[str, dict[str, Any]]:
        return {":now": {"N": f"{clock_seconds(self.now()):.6f}"}}

    def _live(self, item: Item) -> bool:
        return "expires" not in item or float(item["expires"]["N"]) > clock_seconds(self.now())

    def _ask_time(self) -> None:
        """Any answer tells the time: of the cheapest read."""
        self._read("its time", self.client.get_item, Key=_id(INDEX, LAYOUT))

    def _has(self, asked: str, room: str, key: str) -> bool:
        return "Item" in self._read(asked, self.client.get_item, Key=_id(room, key), ConsistentRead=True)

    def _names(self, asked: str, room: str, most: int) -> list[str]:
        """The keys of a room, whatever they hold; at most so many, or all with 0."""
        query: dict[str, Any] = {
            "ConsistentRead": True,
            "KeyConditionExpression": "#room = :room",
            "ExpressionAttributeNames": {"#room": "room", "#key": "key"},
            "ExpressionAttributeValues": {":room": {"S": room}},
            "ProjectionExpression": "#key",
        } | ({"Limit": most} if most else {})
        found: list[str] = []
        while True:
            page = self._read(asked, self.client.query, **query)
            found += [item["key"]["S"] for item in page["Items"]]
            if most or "LastEvaluatedKey" not in page:
                return found
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _add(self, asked: str, room: str, key: str) -> None:
        self._change(asked, self.client.put_item, Item=_id(room, key))

    def _answered(self, http_response: Any, context: Mapping[str, Any], **_: object) -> None:
        said = http_response.headers.get("Date")
        if said:
            self._time.told(parsedate_to_datetime(said), context[_SENT])

    def _read(self, key: str, call: Callable[..., Any], **asked: Any) -> Any:
        return self._tried(key, call, asked, changes=False)

    def _change(self, key: str, call: Callable[..., Any], **asked: Any) -> None:
        self._tried(key, call, asked, changes=True)

    def _tried(self, key: str, call: Callable[..., Any], asked: Mapping[str, Any], *, changes: bool) -> Any:
        def send(deadline: Deadline) -> Any:
            with self._wire.under(deadline), self._explained(key, changes=changes):
                return call(TableName=self.table, **asked)

        return tried(send)

    @contextmanager
    def _explained(self, key: str, *, changes: bool = False) -> Iterator[None]:
        where = f"DynamoDB table {self.table}, {key}"
        try:
            yield
        except ClientError as error:
            raise _of_client_error(error.response, where, changes=changes) from None
        except Broken as error:
            raise (Unsure if changes and error.sent else Unavailable)(f"{where}: {error}") from None
        except (NoCredentialsError, NoRegionError) as error:
            raise Forbidden(f"{where}: {error}; give the function a role and AWS_REGION") from None
        except BotoCoreError as error:
            raise Unavailable(f"{where}: {error}") from None


def _sent(context: dict[str, Any], **_: object) -> None:
    """Note beside a request when it was begun."""
    context[_SENT] = since_boot_s()


def _of_client_error(response: Mapping[str, Any], where: str, *, changes: bool) -> PilotlightError:
    code, status = response["Error"]["Code"], response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"{where}: {code}: {response['Error'].get('Message', '')}"
    if code == "ConditionalCheckFailedException":
        return Conflict(f"{where}: another version is there")
    if code in _THROTTLED:
        return Throttled(said)
    if code in _FORBIDDEN:
        return Forbidden(f"{said}; allow the function's role to read and write the table")
    if code == "ResourceNotFoundException":
        return BadInput(f"{where}: there is no such table here; create it, or name another with PILOTLIGHT_STATE")
    if status >= 500:
        return Unsure(said) if changes else Unavailable(said)
    return BadRequest(said)


def _id(room: str, key: str) -> dict[str, dict[str, Any]]:
    return {"room": {"S": room}, "key": {"S": key}}


def _reaches(room: str, after: str) -> bool:
    """Whether a room may hold keys that are greater: it holds its own name, and what begins with that and a slash."""
    return room == ONE or after < f"{room}/" or after.startswith(f"{room}/")


def _number(value: int) -> dict[str, Any]:
    return {"N": str(value)}


def _stored(item: Item) -> Stored:
    return Stored(item["value"]["B"], int(item["version"]["N"]))
