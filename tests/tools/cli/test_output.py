"""What a command prints where its streams are closed, full or read no further; and small words of what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
CLUSTER = Path(__file__).parents[3] / "examples" / "cluster"
FULL = Path("/dev/full")


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of bash with the command as ``$P``."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")}
    environ = {**own, "P": str(PILOTLIGHT), "PILOTLIGHT_HOME": str(folder), "LANG": "C"}
    return subprocess.run(["bash", "-c", line], env=environ, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["plan --sample", "--help", "nosuch"])
def test_a_closed_stdout_is_one_line(tmp_path: Path, words: str) -> None:
    """What was asked for cannot be printed, which is said and is no success; an error needs no stdout."""
    done = shell(f"$P {words} >&-", tmp_path)
    [line] = done.stderr.splitlines()
    assert (done.returncode, line) == (
        (2, "error: No such command 'nosuch'; see pilotlight --help")
        if words == "nosuch"
        else (1, "error: the output cannot be written: Bad file descriptor")
    )


def test_a_closed_stderr_swallows_what_is_said(tmp_path: Path) -> None:
    """Nobody can be told; the exit code tells."""
    done = shell("$P nosuch 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("words", ["plan --sample", "plan --sample --json", "--help", "schema"])
def test_a_full_disk_is_one_line(tmp_path: Path, words: str) -> None:
    """It says that the output cannot be written, and ends with 1."""
    done = shell(f"$P {words} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("words", ["plan --sample", "--all"])
def test_a_reader_that_stops_is_no_error(tmp_path: Path, words: str) -> None:
    """Of what `head -1` leaves unread nothing is said."""
    done = shell(f"$P {words} | head -1", tmp_path)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")


def test_a_bare_array_is_a_list(tmp_path: Path) -> None:
    """What jq leaves of kubectl's list is read as that list."""
    for name in ("pods", "nodes"):
        items = json.loads((CLUSTER / f"{name}.json").read_text())["items"]
        (tmp_path / f"{name}.json").write_text(json.dumps(items))
    at = "--at 2026-11-21T01:00:00Z --json"
    bare = shell(f"$P plan --pods pods.json --nodes nodes.json {at}", tmp_path)
    listed = shell(f"$P plan --pods {CLUSTER}/pods.json --nodes {CLUSTER}/nodes.json {at}", tmp_path)
    assert bare.returncode == 0, bare.stderr
    assert bare.stdout == listed.stdout


def test_one_of_a_thing_is_said_so(tmp_path: Path) -> None:
    """A single file or record has no plural."""
    (tmp_path / "one.yaml").write_text("kind: ConfigMap\n")
    assert shell("$P lint .", tmp_path).stdout == "1 file: 0 faults, 0 warnings\n"
