"""State in one DynamoDB table, over our own HTTP: boto3 would be most of a cold start (ADR 17).

An item is ``{room, key, value, version, expires}``; ``dynamodb_rooms`` says which partition key ``room`` a key has.
``expires`` holds whole seconds from the epoch, rounded up: name it as the table's TTL attribute, and DynamoDB deletes
what is over.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from math import ceil
from typing import Any

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address
from pilotlight.adapters.aws_api.refusals import said_in_json
from pilotlight.adapters.aws_api.signing import signed_headers
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes
from pilotlight.adapters.state import new_version, too_large
from pilotlight.adapters.state.calls import MetAgain, of_store, retry_call
from pilotlight.adapters.state.dynamodb_rooms import INDEX, Items, Rooms, merge_rooms, room_of
from pilotlight.adapters.state.store_time import StoreTime, since_boot_s
from pilotlight.adapters.tunnels import site_at
from pilotlight.errors import Conflict, Forbidden, PilotlightError, StoreFault, Throttled, Unavailable, Unsure
from pilotlight.ports.state import ABSENT, LARGEST, Clock, Page, Stored
from pilotlight.units import Seconds, clock_seconds

_THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
_FORBIDDEN = {
    "AccessDeniedException",
    "UnrecognizedClientException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
}

SERVICE = "DynamoDB_20120810"
KIND = "application/x-amz-json-1.0"
PAGE_LARGEST = 32 * 1024 * 1024
"""A page of DynamoDB is at most 1 MB of items; in base64 and JSON that is less than this by far."""


class Calls:
    """The calls of one table. ``told`` hears the date of every answer, and when it was asked for.

    ``environ`` names credentials and region; what it does not name boto3 finds, and is imported for that.
    """

    def __init__(
        self, table: str, endpoint: str, environ: Mapping[str, str], told: Callable[[datetime, float], None]
    ) -> None:
        self._table, self._endpoint, self._environ, self._told = table, endpoint.rstrip("/"), environ, told

    def ask(
        self, deadline: Deadline, key: str, action: str, asked: Mapping[str, Any], *, lost: type[Unavailable]
    ) -> Any:
        """One attempt. ``lost`` is raised where it was sent and nobody knows what became of it."""
        where = f"DynamoDB table {self._table}, {key}"
        body = msgspec.json.encode({"TableName": self._table, **asked})
        keys = self._credentials.keys()
        url, target, now = self._url, f"{SERVICE}.{action}", datetime.now(UTC)
        headers = signed_headers(url, body, keys, "dynamodb", self._region, now, kind=KIND, target=target)
        sent_s = since_boot_s()
        try:
            answer = self._site.ask(deadline, "POST", "/", body, headers, takes=Takes(PAGE_LARGEST))
        except Broken as error:
            raise (lost if error.sent else Unavailable)(f"{where}: {error}") from None
        if said := answer.headers.get("date"):
            self._told(parsedate_to_datetime(said), sent_s)
        if answer.status != 200:
            raise _refused(answer, where, keys.hide, lost)
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise lost(f"{where}: the answer cannot be read") from None

    @cached_property
    def _credentials(self) -> Credentials:
        return Credentials(self._region, self._environ)

    @cached_property
    def _site(self) -> Site:
        return site_at(self._url, self._environ)

    @cached_property
    def _url(self) -> str:
        return self._endpoint or address("dynamodb", self._region, self._environ)

    @cached_property
    def _region(self) -> str:
        region = self._environ.get("AWS_REGION") or self._environ.get("AWS_DEFAULT_REGION") or _region_of_boto3()
        if not region:
            raise Forbidden(
                f"DynamoDB table {self._table}: no region is known; give the function a role and AWS_REGION"
            )
        return region


def _region_of_boto3() -> str:
    """A profile's, where boto3 is there."""
    try:
        from botocore.session import Session
    except ImportError:
        return ""
    return str(Session().get_config_variable("region") or "")


def _refused(answer: HttpAnswer, where: str, hidden: Callable[[str], str], lost: type[Unavailable]) -> PilotlightError:
    code, words = said_in_json(answer.body)
    code = code or f"status {answer.status}"
    said = f"{where}: {code}: {hidden(words)[:500]}"
    if code == "ConditionalCheckFailedException":
        return Conflict(f"{where}: another version is there")
    if code in _THROTTLED:
        return Throttled(said)
    if code in _FORBIDDEN:
        return StoreFault(f"{said}; allow the function's role to read and write the table")
    if code == "ResourceNotFoundException":
        return StoreFault(f"{where}: there is no such table here; create it, or name another with PILOTLIGHT_STATE")
    if answer.status >= 500:
        return lost(said)
    return StoreFault(said)


_NAMES = {"#key": "key", "#version": "version", "#expires": "expires"}
_OVER = "#expires <= :now"
_LIVE = "(attribute_not_exists(#expires) OR #expires > :now)"
_IF_ABSENT = f"attribute_not_exists(#key) OR {_OVER}"
_IF_VERSION = f"#version = :over AND {_LIVE}"

Item = Mapping[str, Mapping[str, Any]]


class DynamoDBState:
    """Each write is one conditional request; every read is consistent.

    Its time is the ``Date`` of DynamoDB's answers; or that of a ``clock``, as a world's.
    """

    def __init__(
        self, table: str, clock: Clock | None = None, *, endpoint: str = "", environ: Mapping[str, str] | None = None
    ) -> None:
        """``environ`` names credentials and region; without it boto3 finds both."""
        self.table = table
        self._endpoint = endpoint
        self._time = StoreTime(clock, self._ask_time, coarse_s=1.0)
        self._calls = Calls(table, endpoint, environ or {}, self._time.learn)
        self._rooms = Rooms(Items(self._names, self._add))

    @cached_property
    def client(self) -> Any:
        """boto3's, for whoever makes tables."""
        import boto3

        return boto3.client("dynamodb", endpoint_url=self._endpoint or None)

    @of_store(StoreFault)
    def now(self) -> datetime:
        return self._time.now()

    @of_store(StoreFault)
    def get(self, key: str) -> Stored | None:
        found = self._read(key, "GetItem", Key=_id(room_of(key), key), ConsistentRead=True)
        item = found.get("Item")
        return _stored(item) if item and self._live(item) else None

    @of_store(Unsure)
    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        if len(value) > LARGEST:
            raise too_large(key, value)
        version = new_version()
        item = {**_id(self._rooms.enter(key), key), "value": {"B": value}, "version": _number(version)}
        if ttl_s is not None:
            item["expires"] = _number(ceil(clock_seconds(self.now()) + ttl_s))
        try:
            self._change(key, "PutItem", Item=item, **self._condition(if_version))
        except Conflict as error:
            # What was sent again after its answer was lost meets our own write.
            mine = self.get(key)
            if mine is not None and mine.version == version:
                return version
            if isinstance(error, MetAgain):
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None
            raise
        return version

    @of_store(Unsure)
    def delete(self, key: str, *, if_version: int | None = None) -> None:
        try:
            self._change(key, "DeleteItem", Key=_id(room_of(key), key), **self._condition(if_version))
        except MetAgain:
            if self.get(key) is not None:
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None

    @of_store(StoreFault)
    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        found: list[tuple[str, Stored]] = []
        rooms = [room for room in self._rooms.rooms_with_prefix(prefix) if not after or _reaches(room, after)]
        for key, stored in merge_rooms(rooms, lambda room: self._keys(room, prefix, after, limit)):
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
            page = self._read(prefix, "Query", **query)
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
        self._read("its time", "GetItem", Key=_id(INDEX, INDEX))

    def _names(self, asked: str, room: str) -> list[str]:
        """The keys of a room, whatever they hold."""
        query: dict[str, Any] = {
            "ConsistentRead": True,
            "KeyConditionExpression": "#room = :room",
            "ExpressionAttributeNames": {"#room": "room", "#key": "key"},
            "ExpressionAttributeValues": {":room": {"S": room}},
            "ProjectionExpression": "#key",
        }
        found: list[str] = []
        while True:
            page = self._read(asked, "Query", **query)
            found += [item["key"]["S"] for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                return found
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _add(self, asked: str, room: str, key: str) -> None:
        self._change(asked, "PutItem", Item=_id(room, key))

    def _read(self, key: str, action: str, **asked: Any) -> Any:
        return retry_call(lambda deadline: self._calls.ask(deadline, key, action, asked, lost=Unavailable))

    def _change(self, key: str, action: str, **asked: Any) -> None:
        retry_call(lambda deadline: self._calls.ask(deadline, key, action, asked, lost=Unsure))


def _id(room: str, key: str) -> dict[str, dict[str, Any]]:
    return {"room": {"S": room}, "key": {"S": key}}


def _reaches(room: str, after: str) -> bool:
    """True where a room may hold keys that are greater: it holds its own name, and what begins with that and a
    slash."""
    return after < f"{room}/" or after.startswith(f"{room}/")


def _number(value: int) -> dict[str, Any]:
    return {"N": str(value)}


def _stored(item: Item) -> Stored:
    return Stored(base64.b64decode(item["value"]["B"]), int(item["version"]["N"]))
