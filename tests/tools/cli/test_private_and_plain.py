"""What commands leave on the disk is their owner's, and what they print obeys nobody."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
ROOT = Path(__file__).resolve().parents[3]


def _run(home: Path, *words: object) -> subprocess.CompletedProcess[bytes]:
    environ = {**os.environ, "PILOTLIGHT_HOME": str(home / "home")}
    done = subprocess.run([PILOTLIGHT, *map(str, words)], env=environ, capture_output=True, umask=0o022, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done


def test_what_is_written_is_its_owners(tmp_path: Path) -> None:
    """State, outbox, dead letters, an export and a report's page are 0600, their folders 0700."""
    (tmp_path / "bad.json").write_text(json.dumps([{"kind": "Event", "involvedObject": 3}, {"tick": "reconcile"}]))
    _run(tmp_path, "send", ROOT / "events/samples/kubernetes/pod_unschedulable.json")
    _run(tmp_path, "send", tmp_path / "bad.json")
    _run(tmp_path, "state", "export", tmp_path / "home" / "export.jsonl")
    _run(tmp_path, "report", "--html", tmp_path / "home" / "report.html")
    found = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "home").rglob("*")}
    assert {"state.db", "alerts.jsonl", "export.jsonl"} <= {path.name for path in found}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in found.items() if path.is_dir()} <= {0o700}


def test_a_hostile_name_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    """On a terminal a pod's name with escapes in it is text; our own colours are all that it gets."""
    pods = json.loads((ROOT / "examples/cluster/pods.json").read_text())
    for pod in pods["items"]:
        pod["metadata"]["name"] += "\x1b]0;owned\x07\u202e\x9b"
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    words = ["plan", "--pods", tmp_path / "pods.json", "--nodes", ROOT / "examples/cluster/nodes.json"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PILOTLIGHT, *map(str, words)], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65_536):
            said += part
    except OSError:  # The other end is closed.
        pass
    finally:
        os.close(ours)
        process.wait()
    assert b"owned" in said
    assert b"\x1b]" not in said
    assert not {"\u202e", "\x9b", "\x07"} & set(said.decode())
