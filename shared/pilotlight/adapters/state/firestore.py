"""State in one Firestore collection, over its REST interface (docs/adr says why not over its library).

A document's id is the key, with ``.`` written ``.0`` and ``/`` written ``.1``: that keeps the order of keys. Its
fields are ``value``, ``write`` (a number drawn for each write) and, where it ends, ``expireAt``: name that field in a
TTL policy, and Firestore deletes what is over. The version is the document's update time in microseconds.
"""

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, Site, Takes
from pilotlight.adapters.state import new_version, too_large
from pilotlight.adapters.state.calls import MetAgain, of_store, retry_call
from pilotlight.adapters.state.store_time import StoreTime, since_boot_s
from pilotlight.errors import Conflict, PilotlightError, StoreFault, Throttled, Unavailable, Unsure
from pilotlight.ports.state import ABSENT, LARGEST, Clock, Page, Stored
from pilotlight.units import EPOCH, Seconds

HOST = "https://firestore.googleapis.com"
BATCH = 200
"""Documents of one query: their values are at most 300 KB each, and mostly far smaller."""
LARGEST_ANSWER = 128 * 1024 * 1024
MICROSECOND = timedelta(microseconds=1)

_CONFLICTS = {"ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION"}


class _Document(NamedTuple):
    key: str
    stored: Stored
    write: int
    expires: datetime | None

    def live(self, now: datetime) -> bool:
        """True where it is there at ``now``, deleted yet or not."""
        return self.expires is None or self.expires > now


class FirestoreState:
    """Each write is one commit with a precondition. Over a version it costs a read before: it may have expired.

    Its time is the read or commit time of Firestore's answers; or that of a ``clock``, as a world's.
    ``emulator`` is a host and port; with none, ``credentials_file`` says whether google-auth should look for one.
    """

    def __init__(
        self,
        project: str,
        clock: Clock | None = None,
        *,
        database: str,
        collection: str,
        emulator: str = "",
        credentials_file: bool = False,
    ) -> None:
        self._time = StoreTime(clock, lambda: self._document("now"))
        self._token = None if emulator else GoogleToken(file=credentials_file)
        self._collection = collection
        self._documents = f"projects/{project}/databases/{database}/documents"
        self._site = Site(f"http://{emulator}" if emulator else HOST)
        self._path = f"/v1/{quote(self._documents)}"

    @of_store(StoreFault)
    def now(self) -> datetime:
        return self._time.now()

    @of_store(StoreFault)
    def get(self, key: str) -> Stored | None:
        found = self._document(key)
        return found.stored if found and found.live(self.now()) else None

    @of_store(Unsure)
    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        if len(value) > LARGEST:
            raise too_large(key, value)
        write, drawn = self._write(key, value, ttl_s)
        if if_version is None:
            return self._commit(key, write)
        try:
            return self._commit(key, write | {"currentDocument": self._expected(key, if_version)})
        except Conflict as error:
            there = self._document(key)
            if there and there.write == drawn:  # The answer was lost, and what was sent again met our own write.
                return there.stored.version
            if isinstance(error, MetAgain):
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None
            if if_version != ABSENT or there is None or there.live(self.now()):
                raise
        return self._commit(key, write | {"currentDocument": {"updateTime": _time(there.stored.version)}})

    @of_store(Unsure)
    def delete(self, key: str, *, if_version: int | None = None) -> None:
        write: dict[str, Any] = {"delete": self._name(key)}
        if if_version is not None:
            write["currentDocument"] = self._expected(key, if_version)
        try:
            self._commit(key, write)
        except MetAgain:
            if self._document(key) is not None:
                raise Unsure(f"state {key}: an answer was lost, and another version is there now") from None

    @of_store(StoreFault)
    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        found: list[tuple[str, Stored]] = []
        wanted = min(limit + 1, BATCH)
        while True:
            documents = self._query(prefix, after, wanted)
            now = self.now()
            for document in documents:
                if not document.live(now):
                    continue
                if len(found) == limit:
                    return Page(found, found[-1][0])
                found.append((document.key, document.stored))
            if len(documents) < wanted:
                return Page(found, "")
            after = documents[-1].key

    def _expected(self, key: str, version: int) -> dict[str, Any]:
        """The precondition of a write over ``version``."""
        if version == ABSENT:
            return {"exists": False}
        there = self._document(key)
        if there is None or there.stored.version != version or not there.live(self.now()):
            raise Conflict(f"state {key}: another version is there")
        return {"updateTime": _time(version)}

    def _write(self, key: str, value: bytes, ttl_s: Seconds | None) -> tuple[dict[str, Any], int]:
        # The drawn number also makes every write a change: one that changes nothing would keep its update time.
        drawn = new_version()
        fields = {"value": {"bytesValue": base64.b64encode(value).decode()}, "write": {"integerValue": str(drawn)}}
        if ttl_s is not None:
            fields["expireAt"] = {"timestampValue": _text(self.now() + timedelta(seconds=ttl_s))}
        return {"update": {"name": self._name(key), "fields": fields}}, drawn

    def _commit(self, key: str, write: Mapping[str, Any]) -> int:
        """Make one write; the document's new version (of a delete, nothing)."""
        answer = self._ask(":commit", {"writes": [write]}, key, changes=True)
        updated = answer["writeResults"][0].get("updateTime") or answer["commitTime"]
        return _version(updated)

    def _document(self, key: str) -> _Document | None:
        (answer,) = self._ask(":batchGet", {"documents": [self._name(key)]}, key)
        return self._read(answer["found"]) if "found" in answer else None

    def _query(self, prefix: str, after: str, limit: int) -> list[_Document]:
        """The first documents of a prefix after a key, expired ones too."""
        bounds = (
            ("GREATER_THAN", document_id(after)) if after >= prefix else ("GREATER_THAN_OR_EQUAL", document_id(prefix)),
            ("LESS_THAN", _end_of(document_id(prefix))),
        )
        filters = [self._bound(op, id) for op, id in bounds if id]
        query: dict[str, Any] = {
            "from": [{"collectionId": self._collection}],
            "orderBy": [{"field": {"fieldPath": "__name__"}}],
            "limit": limit,
        }
        if filters:
            query["where"] = {"compositeFilter": {"op": "AND", "filters": filters}}
        answers = self._ask(":runQuery", {"structuredQuery": query}, prefix)
        return [self._read(answer["document"]) for answer in answers if "document" in answer]

    def _bound(self, op: str, id: str) -> dict[str, Any]:
        value = {"referenceValue": f"{self._documents}/{self._collection}/{id}"}
        return {"fieldFilter": {"field": {"fieldPath": "__name__"}, "op": op, "value": value}}

    def _read(self, document: Mapping[str, Any]) -> _Document:
        fields, key = document["fields"], key_of(document["name"].rpartition("/")[2])
        try:
            value = base64.b64decode(fields["value"]["bytesValue"])
            write, expires = int(fields["write"]["integerValue"]), fields.get("expireAt", {}).get("timestampValue")
        except (KeyError, ValueError):
            raise StoreFault(
                f"Firestore {self._documents}/{self._collection}: the document {key} is not Pilotlight's; "
                "give Pilotlight a collection of its own with PILOTLIGHT_STATE"
            ) from None
        ends = datetime.fromisoformat(expires) if expires else None
        return _Document(key, Stored(value, _version(document["updateTime"])), write, ends)

    def _ask(self, call: str, body: Mapping[str, Any], key: str, *, changes: bool = False) -> Any:
        wire = msgspec.json.encode(body)
        return retry_call(lambda deadline: self._send(deadline, call, wire, key, changes=changes))

    def _send(self, deadline: Deadline, call: str, body: bytes, key: str, *, changes: bool) -> Any:
        headers = {"Content-Type": "application/json"}
        # "owner" is what the emulator takes for an administrator.
        headers |= self._token.header() if self._token else {"Authorization": "Bearer owner"}
        where = f"Firestore {self._documents}, {key}"
        sent_s = since_boot_s()
        try:
            answer = self._site.ask(
                deadline, "POST", self._path + call, body, headers, repeatable=not changes, takes=Takes(LARGEST_ANSWER)
            )
            data = msgspec.json.decode(answer.body)
        except Broken as error:
            raise (Unsure if changes and error.sent else Unavailable)(f"{where}: {error}") from None
        except msgspec.DecodeError:
            unreadable = f"{where}: answers {answer.status} with what is no JSON"
            raise (Unsure if changes else Unavailable)(unreadable) from None
        if answer.status != 200:
            raise _of_answer(answer.status, data, where, changes=changes)
        if said := _time_of(data):
            self._time.learn(datetime.fromisoformat(said), sent_s)
        return data

    def _name(self, key: str) -> str:
        return f"{self._documents}/{self._collection}/{document_id(key)}"


def _of_answer(status: int, data: Any, where: str, *, changes: bool) -> PilotlightError:
    error = (data[0] if isinstance(data, list) else data).get("error", {})
    said = f"{where}: {error.get('status', status)}: {error.get('message', '')}"
    if error.get("status") in _CONFLICTS or status in (409, 412):
        return Conflict(f"{where}: another version is there")
    if status == 404:
        if "currentDocument" in said or "No document to update" in said:
            return Conflict(f"{where}: another version is there")
        return StoreFault(f"{said}; create the database, or name another with PILOTLIGHT_STATE")
    if status == 429:
        return Throttled(said)
    if status in (401, 403):
        return StoreFault(f"{said}; give the function's service account roles/datastore.user")
    if status >= 500:
        return Unsure(said) if changes else Unavailable(said)
    return StoreFault(said)


def _time_of(data: Any) -> str:
    """When an answer was true: a commit's time, or the latest time of what was read."""
    if isinstance(data, list):
        return max((one["readTime"] for one in data if "readTime" in one), default="")
    time: str = data.get("commitTime", "")
    return time


def document_id(key: str) -> str:
    """The id of a key's document: ids sort as their keys do, and hold no slash."""
    return key.replace(".", ".0").replace("/", ".1")


def key_of(id: str) -> str:
    """The key of a document's id."""
    return id.replace(".1", "/").replace(".0", ".")


def _end_of(ids: str) -> str:
    """The first id after all that begin so."""
    return ids[:-1] + chr(ord(ids[-1]) + 1) if ids else ""


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _time(version: int) -> str:
    return _text(EPOCH + version * MICROSECOND)


def _version(updated: str) -> int:
    return (datetime.fromisoformat(updated) - EPOCH) // MICROSECOND
