"""The notice agent against a metadata server over HTTP: what it reads there, and what reaches Pilotlight of it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pilotlight.codec.events import Refused, decode
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.tools.cli.install.notice_agent_command import poster, relay
from pilotlight.tools.node_agent.metadata_notices import AzureMetadata, GcpMetadata

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SAMPLE = Path(__file__).parents[3] / "events" / "samples" / "azure" / "imds_scheduled_events.json"


class Server:
    """A metadata server, and where notices are posted: it answers ``says`` by path, and keeps what it was sent."""

    def __init__(self) -> None:
        self.says: dict[str, str] = {}
        self.asks = {"Metadata-Flavor": "Google", "Metadata": "true"}
        self.status = 200
        self.posted: list[tuple[str, dict[str, str], bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                shown = any(self.headers.get(name) == value for name, value in server.asks.items())
                self._answer(200 if shown and path in server.says else 400, server.says.get(path, ""))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.posted.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self._answer(server.status, "{}")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                """Nothing on the screen."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def google(self, preempted: str = "FALSE", maintenance: str = "NONE") -> None:
        """It is Google's, of one machine."""
        said = {"name": "gke-gpu-1", "id": "42", "preempted": preempted, "maintenance-event": maintenance}
        self.says = {f"/computeMetadata/v1/instance/{key}": value for key, value in said.items()}

    def azures(self, document: object, name: str = "vm_0") -> None:
        """It is Azure's, of one machine of a group."""
        events = document if isinstance(document, str) else json.dumps(document)
        self.says = {"/metadata/instance/compute/name": name, "/metadata/scheduledevents": events}

    def close(self) -> None:
        """Let the port go."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of one test."""
    found = Server()
    yield found
    found.close()


def test_google_says_nothing_of_a_machine_that_runs_on(server: Server) -> None:
    """Nor of one whose host moves it: a machine with GPUs is never moved."""
    server.google(maintenance="MIGRATE_ON_HOST_MAINTENANCE")
    assert GcpMetadata("c", server=server.url).look(NOW) == ()


def test_a_preempted_machine_goes_within_its_notice_and_is_told_once_by_its_number(server: Server) -> None:
    """The deadline counts from when it was first seen; a new machine of the name has another number."""
    source = GcpMetadata("c", 25.0, server.url)
    server.google(preempted="TRUE")
    first, again = source.look(NOW), source.look(NOW + timedelta(seconds=9))
    assert first == again
    [notice] = first
    assert (notice.kind, notice.instance, notice.cloud) == ("spot-interruption", "gke-gpu-1", "gcp")
    assert (notice.identity, notice.deadline) == ("42/spot-interruption", NOW + timedelta(seconds=25))


def test_a_host_that_is_mended_ends_its_machine_in_an_hour(server: Server) -> None:
    """Maintenance that terminates is an order for then."""
    server.google(maintenance="TERMINATE_ON_HOST_MAINTENANCE")
    [notice] = GcpMetadata("c", server=server.url).look(NOW)
    assert (notice.kind, notice.deadline) == ("scheduled-change", NOW + timedelta(hours=1))


def test_azures_document_is_told_of_this_machine_alone(server: Server) -> None:
    """It names others of the group, each of which has its own agent; an empty one tells nothing."""
    sample = json.loads(SAMPLE.read_text())
    name = sample["Events"][0]["Resources"][0]
    server.azures(sample, name)
    source = AzureMetadata("c", server.url)
    notices = source.look(NOW)
    assert {(notice.cloud, notice.instance) for notice in notices} == {("azure", name)}
    server.azures({"DocumentIncarnation": 2, "Events": []}, name)
    assert source.look(NOW) == ()
    server.azures(sample, "another")
    assert AzureMetadata("c", server.url).look(NOW) == ()


@pytest.mark.parametrize(
    "document",
    ["no json", "[]", '{"Events": 3}', '{"Events": [{"EventType": "Preempt"}]}', '{"Events": [7]}'],
    ids=["no json", "no object", "no list", "an event without its id", "an event that is a number"],
)
def test_a_document_that_cannot_be_read_is_said_and_asked_for_again(server: Server, document: str) -> None:
    """It names what is wrong, and is no notice."""
    server.azures(document)
    with pytest.raises(Unavailable, match="cannot be read"):
        AzureMetadata("c", server.url).look(NOW)


def test_a_server_that_is_not_there_is_said_and_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing ends: the next look may find it."""
    source = GcpMetadata("c", server="http://127.0.0.1:9")
    relay(source, lambda _: None, set(), NOW)
    assert "no metadata server at http://127.0.0.1:9" in capsys.readouterr().err


def test_a_notice_is_posted_until_it_is_taken_and_then_no_more(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its token, as a message that spot_interruption reads back whole."""
    server.google(preempted="TRUE")
    source, told = GcpMetadata("c", server=server.url), set[str]()
    post = poster(server.url, "secret-of-the-agent")
    server.status = 503
    relay(source, post, told, NOW)
    assert "is not taken yet" in capsys.readouterr().err
    server.status = 200
    for _ in range(3):
        relay(source, post, told, NOW)
    assert [path for path, _, _ in server.posted] == ["/spot_interruption"] * 2
    _, headers, body = server.posted[-1]
    assert headers["authorization"] == "Bearer secret-of-the-agent"
    [read] = decode(body, headers, cluster="")
    assert not isinstance(read, Refused)
    assert read.message == source.look(NOW)[0]
    assert isinstance(read.message, InterruptionNotice)
