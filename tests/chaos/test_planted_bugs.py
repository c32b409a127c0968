"""Each bug of the table is caught: by the seeds it names, or by the test it names."""

import subprocess
import sys
from pathlib import Path

import pytest
from harness.serial_run import run
from planted import BUGS, plant

ROOT = Path(__file__).resolve().parents[2]
BY_SEEDS = [name for name, bug in BUGS.items() if bug.kinds]
BY_TEST = [name for name, bug in BUGS.items() if bug.test]


@pytest.mark.parametrize("name", BY_SEEDS)
def test_seeds_catch_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its seeds something is broken that this bug breaks."""
    bug = BUGS[name]
    plant(bug, monkeypatch.setattr)
    assert any(bug.kinds & {v.kind for v in run(seed, 40).violations} for seed in bug.seeds)


@pytest.mark.parametrize("name", BY_TEST)
def test_its_own_test_catches_it(name: str) -> None:
    """With the bug in it, the code fails the test that is there for it."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "planted", "--planted", name, BUGS[name].test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
