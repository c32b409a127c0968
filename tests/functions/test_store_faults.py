"""Stores that are really broken: whatever a store says, no event is to blame, and work is saved without it."""

import base64
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import urllib3
from answering import Answer, answering
from test_interrupt import SAVES, Doomed

from pilotlight.adapters.logs import LOGGER
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state import sqlite
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.codec.events import encode
from pilotlight.facts.messages import CapacityFailed, InterruptionNotice, Message, PodPending, Tick
from pilotlight.settings import Settings
from pilotlight.tools.install.state_store import create_table
from pilotlight.wiring import App
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

NOTICE_S, GRACE_S, PAGE = 120.0, 30.0, 4096
FUNCTIONS: dict[type[Message], Any] = {
    PodPending: "pod_pending", InterruptionNotice: "spot_interruption", CapacityFailed: "capacity_reconcile",
}  # fmt: skip


class Site:
    """A world with one job that can save when it is asked, on spot, and its deployment's store at an address."""

    def __init__(self, address: str, environ: dict[str, str] | None = None) -> None:
        self.stage = Doomed(pods=[SAVES])
        self.outbox = MemoryOutbox()
        self._settings = Settings.from_environ(
            {"PILOTLIGHT_STATE": address, "PILOTLIGHT_MODE": "act", **(environ or {})}
        )
        self.fresh()
        for _ in range(5):
            self.stage.wait(60)
            assert self.send(Tick(cluster="local"), "capacity_reconcile").status == 200
        self.outbox.sent.clear()

    def fresh(self) -> None:
        """Another process, that is yet to open the store."""
        world = self.stage.world
        self.app = App(
            self._settings,
            cluster=WorldCluster(world),
            pools=WorldPools(world),
            outbox=self.outbox,
            clock=world.clock,
            policy=self.stage.deps.policy,
            catalog=self.stage.catalog,
        )

    def send(self, message: Message, function: Any) -> Any:
        """One delivery."""
        return self.app.receive(function, encode(message, id=str(uuid4())), {})

    def judge(self, *, refuses_all: bool = True) -> None:
        """The cloud takes the node: its notice comes every ten seconds, for it is answered 503 each time; the job saves
        and leaves in order before the deadline, nothing is bought meanwhile, and no event is ever refused."""
        world, begin = self.stage.world, self.stage.world.now_s
        marked = len(self.stage.log)
        now = world.clock.now()
        world.interrupt("n1", NOTICE_S)
        deadline = now + timedelta(seconds=NOTICE_S)
        notice = InterruptionNotice(
            cluster="local", instance="n1", kind="spot-interruption", cloud="aws", at=now, deadline=deadline
        )
        others = (
            PodPending(cluster="local", namespace="ml", name="other", uid="u-2", identity="u-2/1"),
            CapacityFailed(cluster="local", group="p", reason="quota", message="no"),
        )
        for other in others:
            answer = self.send(other, FUNCTIONS[type(other)])
            assert answer.status == 503 or (answer.status == 200 and not refuses_all), answer.body
            assert "rejected" not in answer.body
        while world.now_s < begin + NOTICE_S - 5:
            answer = self.send(notice, "spot_interruption")
            assert (answer.status, "rejected" in answer.body) == (503, False), answer.body
            self.stage.wait(10)
        new = self.stage.log[marked:]
        (stop,) = [record for record in new if record["event"] == "stop"]
        assert stop["t"] < begin + NOTICE_S
        assert stop["saved_s"] > 0
        assert [record for record in new if record["event"] == "launch"] == []
        assert [message.topic for message in self.outbox.sent if message.topic == "dead-letter"] == []


def _overwrite(path: Path, first: int) -> None:
    """Random bytes from a page on, in the file and in what lies beside it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = path.stat().st_size
    assert size > PAGE
    with path.open("r+b") as file:
        file.seek(first)
        file.write(os.urandom(size - first))


def _sql(*statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return run


def _forbids(*pragmas: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        sqlite.PRAGMAS = (*sqlite.PRAGMAS, *pragmas)

    return change


def _lock(path: Path) -> None:
    global _holder
    _holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    _holder.execute("BEGIN IMMEDIATE")
    sqlite.PRAGMAS = ("journal_mode = WAL", "busy_timeout = 20")


_holder: sqlite3.Connection
SQLITE: dict[str, Callable[[Path], None]] = {
    "every page after the first is overwritten": lambda path: _overwrite(path, PAGE),
    "the whole file is overwritten": lambda path: _overwrite(path, 0),
    "its table is gone, and a view stands there": _sql("DROP TABLE state", "CREATE VIEW state AS SELECT 1 AS key"),
    "its table has other columns": _sql("DROP TABLE state", "CREATE TABLE state (key TEXT, other TEXT)"),
    "its rows are of another type": _sql("INSERT INTO state VALUES ('rescue/local/n1', 17, 'x', NULL)"),
    "a record is no JSON": _sql("INSERT INTO state VALUES ('rescue/local/n1', x'ff00', 1, NULL)"),
    "it cannot be written": _forbids("query_only = ON"),
    "another holds its lock": _lock,
}


PARTLY = [SQLITE[name] for name in ("its rows are of another type", "a record is no JSON")]
"""What does not meet these records goes on."""


@pytest.fixture
def _pragmas() -> Iterator[None]:
    before = sqlite.PRAGMAS
    yield
    sqlite.PRAGMAS = before


@pytest.mark.usefixtures("_pragmas")
@pytest.mark.parametrize("process", ["that has it open", "that is new"])
@pytest.mark.parametrize("fault", SQLITE.values(), ids=SQLITE)
def test_work_is_saved_without_a_broken_sqlite_file(
    fault: Callable[[Path], None], process: str, tmp_path: Path
) -> None:
    """A file whose pages, table, rows or lock are not as they were, under a process that has it open, and a new one."""
    site = Site(f"sqlite:{tmp_path / 's.db'}")
    fault(tmp_path / "s.db")
    if process == "that is new" or fault.__name__ in ("change", "_lock"):
        site.fresh()
    site.judge(refuses_all=fault not in PARTLY)


def test_a_malformed_state_file_is_an_error_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the state unreadable no alert can be sent once: whatever delivery meets that logs it as an error, with the
    file and what to do."""
    path = tmp_path / "state.db"
    site = Site(f"sqlite://{path}")
    _overwrite(path, PAGE)
    site.fresh()
    monkeypatch.setattr(logging.getLogger(LOGGER), "propagate", True)
    caplog.set_level(logging.ERROR, LOGGER)
    assert site.send(Tick(cluster="local"), "capacity_reconcile").status == 503
    said = [str(getattr(record, "data", "")) for record in caplog.records]
    assert any("state.db: " in each and "restore it from a backup" in each for each in said)


def _garbage() -> dict[str, Answer]:
    error: Any = {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}}
    missing: Any = {"error": {"code": 404, "status": "NOT_FOUND", "message": "The database does not exist"}}
    return {
        "an outage": (500, {"error": {"status": "INTERNAL", "message": "no"}}),
        "a refusal": (403, error),
        "a refusal in a list": (403, [error]),
        "no database": (404, missing),
        "an error that is a word": (400, {"error": "no"}),
        "a page of a proxy": (200, b"<html>sign in</html>"),
        "a page of a proxy as an error": (502, b"<html>bad gateway</html>"),
        "nothing": (200, b""),
        "null": (200, None),
        "a number": (200, 7),
        "an empty list": (200, []),
        "an empty object": (200, {}),
        "a list of words": (200, ["a", "b"]),
        "a time that is none": (200, [{"readTime": "soon", "found": {"name": 7}}]),
    }


@pytest.mark.parametrize("answer", _garbage().values(), ids=_garbage())
@pytest.mark.parametrize("store", ["firestore:demo/(default)/c", "dynamodb:table"])
def test_work_is_saved_whatever_a_store_on_the_network_answers(
    store: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals, outages and answers of another shape, of Firestore and of DynamoDB."""
    monkeypatch.setattr("pilotlight.adapters.state.calls.PAUSES_S", ())
    site = Site("memory:")
    with answering(lambda *_: answer) as host:
        keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"), "us-east-1")
        environ = {"FIRESTORE_EMULATOR_HOST": host, "AWS_ENDPOINT_URL": f"http://{host}", **keys}
        site._settings = Settings.from_environ({"PILOTLIGHT_STATE": store, "PILOTLIGHT_MODE": "act", **environ})
        site.fresh()
        site.judge()


def test_work_is_saved_when_firestores_documents_are_overwritten(firestore_emulator: str) -> None:
    """Every document holds what somebody else wrote: bytes that are no record, then fields that are none of ours."""
    site = Site(f"firestore:demo/(default)/s-{uuid4()}", {"FIRESTORE_EMULATOR_HOST": firestore_emulator})
    base = f"http://{firestore_emulator}/v1/projects/demo/databases/(default)/documents"
    where, head = site._settings.state.rpartition("/")[2], {"Authorization": "Bearer owner"}
    http = urllib3.PoolManager()
    found = http.request("GET", f"{base}/{where}?pageSize=300", headers=head).json()["documents"]
    assert found
    alien = base64.b64encode(b"\xff\x00no record").decode()
    for n, document in enumerate(found):
        fields: Any = (
            {"value": {"bytesValue": alien}, "write": {"integerValue": "7"}} if n % 2 else {"x": {"nullValue": None}}
        )
        url = f"http://{firestore_emulator}/v1/{document['name']}"
        http.request("PATCH", url, json={"fields": fields}, headers=head)
    http.request(
        "POST",
        f"{base}/{where}?documentId=rescue.1local.1n1",
        json={"fields": {"value": {"stringValue": "x"}}},
        headers=head,
    )
    site.judge(refuses_all=False)


@pytest.mark.parametrize("fault", ["the table is gone", "an item of somebody else"])
def test_work_is_saved_when_dynamodbs_table_is_not_as_it_was(
    fault: str, dynamodb_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was deleted, and items without what ours have."""
    monkeypatch.setattr("pilotlight.adapters.state.calls.PAUSES_S", ())
    table = f"state-{uuid4()}"
    made = DynamoDBState(table, endpoint=dynamodb_server)
    create_table(made.client, table)
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"), "us-east-1")
    site = Site(f"dynamodb:{table}", {"AWS_ENDPOINT_URL": dynamodb_server, **keys})
    if fault == "the table is gone":
        made.client.delete_table(TableName=table)
    else:
        for item in made.client.scan(TableName=table)["Items"]:
            if item["room"]["S"] != "//rooms":
                made.client.put_item(TableName=table, Item={"room": item["room"], "key": item["key"], "x": {"S": "y"}})
        theirs = {"room": {"S": "rescue/local"}, "key": {"S": "rescue/local/n1"}, "value": {"S": "x"}}
        made.client.put_item(TableName=table, Item=theirs)
    site.judge(refuses_all=False)
