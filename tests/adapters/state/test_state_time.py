"""The store's own time: what has expired is the same for all workers, whatever their clocks say."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from shifted import shifted

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state import store_time
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.adapters.state.store_time import FRESH_S, StoreTime
from pilotlight.ports.state import ABSENT
from pilotlight.settings import Settings
from pilotlight.tools.install.state_store import create_table
from pilotlight.units import EPOCH, Seconds
from pilotlight.wiring import App, app
from pilotlight.world.world_clock import VirtualClock


class Later:
    """By how many seconds the store's time is later than the host's."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        """The seconds, as they are now."""
        return self.s


Backend = Callable[[pytest.FixtureRequest, Later], AbstractContextManager[dict[str, str]]]


@contextmanager
def _sqlite(request: pytest.FixtureRequest, later: Later) -> Iterator[dict[str, str]]:
    folder: Path = request.getfixturevalue("tmp_path")

    class Host(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            """The host's time."""
            return datetime.now(UTC) + timedelta(seconds=later())

    request.getfixturevalue("monkeypatch").setattr("pilotlight.adapters.state.sqlite.datetime", Host)
    yield {"PILOTLIGHT_STATE": f"sqlite:{folder / 'state.db'}"}


@contextmanager
def _dynamodb(request: pytest.FixtureRequest, later: Later) -> Iterator[dict[str, str]]:
    endpoint, table = request.getfixturevalue("dynamodb_server"), f"state-{uuid4()}"
    create_table(DynamoDBState(table, endpoint=endpoint).client, table)
    with shifted(endpoint.removeprefix("http://"), later) as host:
        yield {"PILOTLIGHT_STATE": f"dynamodb:{table}", "AWS_ENDPOINT_URL": f"http://{host}"}


@contextmanager
def _firestore(request: pytest.FixtureRequest, later: Later) -> Iterator[dict[str, str]]:
    with shifted(request.getfixturevalue("firestore_emulator"), later) as host:
        yield {"PILOTLIGHT_STATE": f"firestore:demo/(default)/state-{uuid4()}", "FIRESTORE_EMULATOR_HOST": host}


BACKENDS: dict[str, Backend] = {"sqlite": _sqlite, "dynamodb": _dynamodb, "firestore": _firestore}


def _worker(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, wrong_s: Seconds) -> App:
    """A worker whose wall clock is wrong by so much."""
    worker = app(Settings.from_environ(environ))
    clock = SystemClock()
    clock.now = lambda: datetime.now(UTC) + timedelta(seconds=wrong_s)  # type: ignore[method-assign]
    worker.__dict__["clock"] = clock
    assert abs((worker.clock.now() - datetime.now(UTC)).total_seconds() - wrong_s) < 60
    return worker


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS.keys())
def test_workers_an_hour_apart_agree_on_what_has_expired(
    backend: Backend, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept for a minute is there for both, whoever wrote it, then gone and free for both."""
    later = Later()
    with backend(request, later) as environ:
        slow, fast = (_worker(environ, monkeypatch, wrong_s).state for wrong_s in (0.0, 3600.0))
        slow.put("lease/a", b"slow", ttl_s=60)
        fast.put("lease/b", b"fast", ttl_s=60)
        later.s = 30
        for state in (slow, fast):
            assert [key for key, _ in state.scan("lease/").items] == ["lease/a", "lease/b"]
            assert state.get("lease/a") is not None
            assert state.get("lease/b") is not None
        assert abs((slow.now() - fast.now()).total_seconds()) < 20
        later.s = 90
        for state in (slow, fast):
            assert state.get("lease/a") is None
            assert state.get("lease/b") is None
            assert state.scan("lease/").items == []
        fast.put("lease/a", b"fast", if_version=ABSENT, ttl_s=60)
        slow.put("lease/b", b"slow", if_version=ABSENT, ttl_s=60)


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS.keys())
def test_the_stores_time_is_asked_for_where_no_answer_told_it(
    backend: Backend, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing a worker asks may be the time: it is the store's, not the worker's."""
    later = Later()
    later.s = 7200
    with backend(request, later) as environ:
        now = _worker(environ, monkeypatch, -3600.0).state.now()
    assert abs((now - datetime.now(UTC)).total_seconds() - 7200) < 60


class Boot:
    """A machine's clock since its boot, and its wall's, led by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.s = self.wall_s = 0.0
        monkeypatch.setattr(store_time, "since_boot_s", lambda: self.s)
        monkeypatch.setattr("pilotlight.adapters.state.store_time.time.time", lambda: self.wall_s)

    def passes(self, s: Seconds) -> None:
        """Let both go on."""
        self.s += s
        self.wall_s += s


def _at(s: Seconds) -> datetime:
    return EPOCH + timedelta(seconds=s)


def test_time_is_carried_on_between_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passed since the last answer is added, and nobody is asked meanwhile."""
    boot, asked = Boot(monkeypatch), list[str]()
    time = StoreTime(None, lambda: asked.append("asked"))
    time.learn(_at(1000), boot.s)
    boot.passes(FRESH_S - 1)
    assert time.now() == _at(1000 + FRESH_S - 1)
    assert asked == []


@pytest.mark.parametrize("missed", ["both", "wall only"])
def test_an_answer_that_is_old_is_not_carried_on(monkeypatch: pytest.MonkeyPatch, missed: str) -> None:
    """A worker that slept, also one that was frozen with its clock, asks the store again."""
    boot = Boot(monkeypatch)
    time = StoreTime(None, lambda: time.learn(_at(5000), boot.s))
    time.learn(_at(1000), boot.s)
    boot.wall_s += FRESH_S
    boot.s += FRESH_S if missed == "both" else 0
    assert time.now() == _at(5000)


def test_seconds_that_are_rounded_down_are_known_better_by_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where 10 becomes 11 the fraction is known from then on, and no later answer sets the time back."""
    boot = Boot(monkeypatch)
    time = StoreTime(None, lambda: None, coarse_s=1.0)
    time.learn(_at(10), boot.s)
    boot.passes(0.1)
    time.learn(_at(11), boot.s)
    assert time.now() == _at(11)
    boot.passes(0.9)
    time.learn(_at(11), boot.s)
    assert time.now() == _at(11.9)


def test_a_clock_that_ran_ahead_is_set_back_to_what_an_answer_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carried on too fast, the time is at most the answer's with what it may have been under way."""
    boot = Boot(monkeypatch)
    time = StoreTime(None, lambda: None, coarse_s=1.0)
    time.learn(_at(10), boot.s)
    boot.passes(50)
    time.learn(_at(40), boot.s - 0.5)
    assert time.now() == _at(41.5)


def test_a_worlds_clock_rules_where_one_is_given(tmp_path: Path, clock: VirtualClock) -> None:
    """A replay's store is on the replay's time."""
    assert SqliteState(tmp_path / "s.db", clock).now() == clock.now()
    assert app(Settings(state="memory:"), clock=clock).state.now() == clock.now()
