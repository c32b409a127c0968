"""What tests of every floor share: where data beside the checkout lies, and a clock that stands still."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import pilotlight.adapters.state.calls
from emulators import dynamodb_server, firestore_emulator, pubsub_emulator
from pilotlight.adapters.logs import LOGGER
from pilotlight.world.world_clock import VirtualClock

if TYPE_CHECKING:
    from terraform_runs import Runs

    from chromium import Chromium

__all__ = ["dynamodb_server", "firestore_emulator", "pubsub_emulator"]

# No test times a wall clock, and a busy machine is no fault of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Nor is an emulator that has to wait for its turn: whoever tests a store's deadline sets one.
pilotlight.adapters.state.calls.STORE_S = 300.0

pytest_plugins = ["block_count"]

_TESTS = count()

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shelf() -> Path:
    """The folder of real traces and contracts beside the checkout; the test is skipped where it is not."""
    path = Path(os.environ.get("PILOTLIGHT_SHELF") or ROOT.parent / "shared")
    if not (path / "contracts").is_dir():
        pytest.skip(f"no data at {path}: set PILOTLIGHT_SHELF")
    return path


@pytest.fixture(scope="session")
def runs(shelf: Path) -> Iterator["Runs"]:
    """Terraform with the shelf's stand-in providers."""
    from terraform_runs import terraform

    with terraform(shelf) as found:
        yield found


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chromium"]:
    """The one browser of all tests of a session; they are skipped where there is none."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    from chromium import Chromium

    browser = Chromium(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.end()


@pytest.fixture
def clock() -> VirtualClock:
    """The world's clock at a Friday noon; it stands still until it is moved."""
    return VirtualClock(datetime(2026, 11, 20, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def _states() -> Iterator[Path]:
    """Where tests' programs keep what a person's keep under their home."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-tests-") as path:
        yield Path(path)


@pytest.fixture(autouse=True)
def _state_of_its_own(_states: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test finds no state of the person who runs it, nor of another test, and leaves none with them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(_states / str(next(_TESTS))))


@pytest.fixture(autouse=True)
def _log_as_found() -> Iterator[None]:
    """A function that a test wires writes the product's log; the next test finds it silent again, and captured."""
    log = logging.getLogger(LOGGER)
    handlers, level, propagate = list(log.handlers), log.level, log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate
    log.setLevel(level)
