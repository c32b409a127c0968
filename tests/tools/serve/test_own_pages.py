"""What serve tells of itself: health, readiness, and its figures, to those who may read them."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from werkzeug.test import Client

from pilotlight.adapters.outbox.local import LocalOutbox, MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import Unavailable
from pilotlight.facts.limits.routes import Caller
from pilotlight.facts.messages import Outgoing
from pilotlight.settings import Settings
from pilotlight.state_schema.lease_records import FENCE, Fence
from pilotlight.tools.glance.look_at_cluster import kept_letters
from pilotlight.tools.serve import own_pages, request_gate
from pilotlight.wiring import App, app
from pilotlight.world.world_clock import VirtualClock

CALLERS = {
    "prometheus": Caller(token="a-token-that-only-reads", roles=("read",)),
    "sender": Caller(token="a-token-that-only-sends", roles=("send",)),
}
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Down(MemoryState):
    """A store that does not answer."""

    def now(self) -> Any:
        """Nothing."""
        raise Unavailable("the store does not answer")


def house(clock: VirtualClock, **seams: Any) -> App:
    """A deployment of the embedded world."""
    return app(Settings(outbox="memory:"), **{"state": MemoryState(clock), "clock": clock, **seams})


def client(wired: App) -> Client:
    """Whoever asks at its door, where callers are set up."""
    return Client(request_gate.guard_paths(own_pages.pages(wired), CALLERS))


def bearer(name: str) -> dict[str, str]:
    """What shows who asks."""
    return {"Authorization": f"Bearer {CALLERS[name].token}"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_anybody_may_ask_whether_it_is_there(clock: VirtualClock, path: str) -> None:
    """A kubelet shows no token; what it is told holds no figure."""
    answer = client(house(clock)).get(path)
    assert (answer.status_code, answer.json["ok"] if answer.json else None) == (200, True)


def test_it_is_well_but_not_ready_while_its_store_is_down(clock: VirtualClock) -> None:
    """A restart would mend nothing, so health says nothing of the store; readiness does, in one line."""
    asked = client(house(clock, state=Down(clock)))
    assert asked.get("/healthz").status_code == 200
    for path, headers in (("/readyz", {}), ("/metrics", bearer("prometheus"))):
        answer = asked.get(path, headers=headers)
        assert (answer.status_code, answer.json) == (503, {"error": "the store does not answer"})


def test_it_is_not_ready_while_its_state_file_is_malformed(clock: VirtualClock, tmp_path: Path) -> None:
    """A SQLite file whose pages were overwritten answers no record: not ready, with the way out; ready once mended."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as made:
        SqliteState(path, clock)
        FENCE.put(SqliteState(path, clock), "local", Fence(fence=1))
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    asked = client(house(clock, state=SqliteState(path, clock)))
    assert asked.get("/healthz").status_code == 200
    answer = asked.get("/readyz")
    assert answer.status_code == 503
    assert "malformed" in answer.get_data(as_text=True)
    assert "restore it from a backup" in answer.get_data(as_text=True)
    path.write_bytes(whole)
    assert asked.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(bearer("prometheus"), 200, id="who may read"),
        pytest.param(bearer("sender"), 403, id="who may only send"),
        pytest.param({}, 401, id="nobody we know"),
    ],
)
def test_figures_are_for_those_who_may_read(clock: VirtualClock, headers: dict[str, str], status: int) -> None:
    """Dollars and names are told to the role read."""
    assert client(house(clock)).get("/metrics", headers=headers).status_code == status


def test_posting_to_a_page_is_refused(clock: VirtualClock) -> None:
    """The pages are only read."""
    assert client(house(clock)).post("/healthz").status_code == 405


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz"])
def test_a_check_from_outside_may_ask_for_the_head_alone(clock: VirtualClock, path: str) -> None:
    """HEAD is answered as GET, without the body."""
    asked = client(house(clock)).head(path)
    assert (asked.status_code, asked.data) == (200, b"")


def test_prometheus_gets_the_format_it_asks_for(clock: VirtualClock) -> None:
    """OpenMetrics ends with EOF, and the older text does not; both have help and type of each figure once."""
    asked = client(house(clock))
    new = asked.get("/metrics", headers={**bearer("prometheus"), "Accept": OPENMETRICS})
    old = asked.get("/metrics", headers=bearer("prometheus"))
    assert new.content_type.startswith("application/openmetrics-text")
    assert new.text.endswith("# EOF\n")
    assert old.content_type.startswith("text/plain")
    assert old.text.count("# TYPE pilotlight_silent_seconds gauge\n") == 1


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (apt-get install prometheus)")
def test_prometheus_itself_takes_the_page(clock: VirtualClock) -> None:
    """promtool finds no fault with names, types and help."""
    page = client(house(clock)).get("/metrics", headers=bearer("prometheus")).text
    run = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_letters_are_counted_where_they_lie(tmp_path: Path) -> None:
    """Each event that was refused; nothing is said of an outbox that keeps none."""
    outbox = LocalOutbox(tmp_path)
    letter = Outgoing(id="dead-1", topic="dead-letter", type="t", key="", data=msgspec.Raw(b"{}"))
    assert kept_letters(outbox) == 0
    outbox.publish([letter, msgspec.structs.replace(letter, id="dead-2")])
    assert kept_letters(outbox) == 2
    assert kept_letters(MemoryOutbox()) is None
