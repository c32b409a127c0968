"""Every command where its output is closed, full or read by nobody: the exit code is right, and no traceback is seen.

On a narrow terminal of plain letters without colours. A command that needs a cluster or a cloud is asked for its help.
"""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_forks import CLOSED, CommandForks, Ended

from pilotlight.codec.policy_file import read_policy
from pilotlight.settings import Settings
from pilotlight.tools.cli.front.completion import TABLE
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WallClock

ROOT = Path(__file__).parents[3]
FULL = Path("/dev/full")
TERMINAL = {"COLUMNS": "60", "LANG": "C", "LC_ALL": "C", "NO_COLOR": "1"}
NO_OUTPUT = "error: the output cannot be written: Bad file descriptor"
NO_SPACE = "error: the output cannot be written: No space left on device"
TABLES = json.loads(Path(TABLE).read_text("utf-8"))
LEAVES = [path for path, row in TABLES.items() if path and "commands" not in row]
NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
POLICY = """
version: 1
pools:
  a10g: {instance_type: g5.xlarge, capacity_type: spot, relaunches: true}
classes:
  batch: {gpu_models: any, capacity_types: [spot]}
budgets:
  - {name: ml, scope: {team: ml}, period: month, usd: 900, hard: true}
prices: {max_age_days: 36500}
"""
RUNS = (
    "send pod.json",
    *("pools", "gpus", "why nlp/finetune-0", "budget", "alerts list", "alerts redeliver", "shadow report"),
    *("pause --reason test", "resume"),
    *("init --pods pods.json --nodes nodes.json -o -", "check whole.yaml", "schema", "lint ."),
    *(
        "plan --sample",
        "plan --sample --exit-code --policy whole.yaml",
        "plan --sample --json",
        "plan --sample --markdown",
    ),
    *("manifests placement", "manifests rules", "manifests quota", "manifests queues", "manifests nodepools"),
    *("manifests prepull --image x", "manifests hpa ml/x", "manifests keda ml/x --query y"),
    *("spot", "whatif", "cost-of-self --events-per-day 10", "deadline --work 48h --by 72h --price 3 --spot 1"),
    *("preempt --pods pods.json --nodes nodes.json", "targets", "monitor --once --recorded looks.json"),
    *("report", "report --csv", "bill", "audit verify", "state ls", "state export kept.jsonl", "state init"),
    *("synth -o week.csv.gz --seed 1", "stats week.csv.gz", "replay short.csv", "show", "show docs/guides/eks.md"),
)
ELSEWHERE = {
    **dict.fromkeys(("doctor", "reconcile", "connect", "takeover", "handback", "uninstall", "lift"), "a cluster"),
    **dict.fromkeys(("kueue take", "kueue handback", "shadow canary"), "a cluster"),
    **dict.fromkeys(("prices", "sizes", "conformance", "notice-agent"), "an account of a cloud, or its machine"),
    **dict.fromkeys(("waste", "manifests sharing", "trace"), "a Prometheus"),
    **dict.fromkeys(("serve", "world", "demo", "drill", "week", "tune", "runs"), "a minute, or until it is stopped"),
    **dict.fromkeys(("alerts test", "alerts ack", "approve", "reclaim list", "reclaim snooze"), "an alert's own state"),
    **dict.fromkeys(
        ("reclaim wake", "queues", "commitments", "status", "audit export", "state get"), "a state of days"
    ),
    "state import": "a store that is new",
}
"""Commands that are asked for their help alone, by what a run of them needs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind."""
    made = tmp_path_factory.mktemp("streams")
    for name in ("pods", "nodes"):
        (made / f"{name}.json").write_bytes((ROOT / "examples/cluster" / f"{name}.json").read_bytes())
    (made / "policy.yaml").write_text(POLICY)
    (made / "whole.yaml").write_bytes((ROOT / "examples/policy.yaml").read_bytes())
    (made / "pod.json").write_bytes((ROOT / "events/samples/kubernetes/pod_unschedulable.json").read_bytes())
    (made / "looks.json").write_bytes((ROOT / "examples/cluster/gpu_looks.json").read_bytes())
    rows = "".join(f"j{i},{60 * i},600,1,1000,,,,\n" for i in range(40))
    (made / "short.csv").write_text("job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n" + rows)
    return made


@pytest.fixture(scope="module")
def own(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of commands beside a world of one pool."""
    pools = [WorldPool.from_policy(name, rules) for name, rules in read_policy(POLICY, "policy").pools.items()]
    server = WorldServer(World(App(Settings()).catalog, pools, clock=WallClock(NOW, 1)), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HOME": str(folder / "home")}
    beside = {"PILOTLIGHT_WORLD": server.url, "PILOTLIGHT_POLICY": str(folder / "policy.yaml")}
    yield own | beside | TERMINAL
    server.shutdown()


@pytest.fixture(scope="module")
def forks(own: dict[str, str], folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForks]:
    """Commands on such a terminal."""
    made = CommandForks(folder, tmp_path_factory.mktemp("kept"), own)
    made.run(["synth", "-o", "week.csv.gz", "--seed", "1"])
    yield made
    made.end()


@pytest.fixture(scope="module")
def plain(own: dict[str, str], folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForks]:
    """Commands whose output takes letters of ASCII alone: Python else writes UTF-8 where LANG is C."""
    made = CommandForks(folder, tmp_path_factory.mktemp("plain"), own | {"PYTHONUTF8": "0"})
    yield made
    made.end()


def _unread(forks: CommandForks, words: list[str], pipe: Path) -> Ended:
    """The command with a pipe whose reader has gone before anything is printed."""
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_RDONLY)))
    reader.start()
    try:
        return forks.run(words, stdout=pipe)
    finally:
        reader.join()
        pipe.unlink()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("send -", "stdin: not JSON:"),
        ("plan --pods - --nodes nodes.json", "stdin: is empty;"),
        ("state import -", ""),
        ("audit verify -", ""),
        ("init --pods - --nodes nodes.json -o new.yaml", "stdin: is empty;"),
    ],
)
def test_a_closed_input_is_an_empty_one(line: str, says: str, tmp_path: Path) -> None:
    """As `<&-` leaves it: what reads it finds nothing there, and nothing unexpected."""
    (tmp_path / "nodes.json").write_text('{"items": []}')
    command = f'exec "{sys.executable}" -c "from pilotlight.tools.cli.entry import run; run()" {line} <&-'
    environ = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert says in done.stderr
    assert not {"unexpected", "Traceback"} & {*done.stderr.replace(":", " ").split()}


def test_an_event_that_nobody_takes_is_answered_as_json_too(forks: CommandForks) -> None:
    """Who asks for JSON gets JSON: nothing was done, and why."""
    (forks.folder / "letter.json").write_bytes((ROOT / "events/samples/pilotlight/dead_letter.json").read_bytes())
    ended = forks.run(["send", "letter.json", "--json"])
    assert (ended.code, json.loads(ended.stdout)) == (
        0,
        {"did": [], "why": "no function has anything to do for this event"},
    )


OWN = {"plan --sample --exit-code --policy whole.yaml": 3}
"""Exit codes that are answers."""
LINES = [*RUNS, *(f"{path} --help" for path in TABLES if path)]


@pytest.mark.parametrize("line", LINES)
def test_a_closed_output_is_one_line_of_every_command(line: str, forks: CommandForks) -> None:
    """It says that the output cannot be written, and ends with 1, as where a disk is full."""
    ended = forks.run(shlex.split(line), stdout=CLOSED)
    assert (ended.code, _odd(ended)) == (1, [NO_OUTPUT]), ended


@pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")
@pytest.mark.parametrize("line", LINES)
def test_a_full_disk_is_one_line_of_every_command(line: str, forks: CommandForks) -> None:
    """It says that the output cannot be written, and ends with 1."""
    ended = forks.run(shlex.split(line), stdout=FULL)
    assert (ended.code, _odd(ended)) == (1, [NO_SPACE]), ended


@pytest.mark.parametrize("line", LINES)
def test_a_reader_that_has_gone_ends_every_command_in_silence(line: str, forks: CommandForks, folder: Path) -> None:
    """Whoever reads no further wants no word of it: it ends with its own exit code, as where all is read."""
    ended = _unread(forks, shlex.split(line), folder / "pipe")
    assert (ended.code, _odd(ended)) == (OWN.get(line, 0), []), ended


@pytest.mark.parametrize("line", LINES)
def test_every_command_prints_in_plain_letters(line: str, forks: CommandForks, plain: CommandForks) -> None:
    """Where no other letter can be written its help and its tables end as elsewhere."""
    ended = plain.run(shlex.split(line))
    assert ended.code in (0, OWN.get(line, 0), forks.run(shlex.split(line)).code), ended
    assert "UnicodeEncodeError" not in ended.stderr
    assert ended.stdout.isascii()


def _odd(ended: Ended) -> list[str]:
    """Lines on stderr that tell of an error."""
    marks = ("error", "Traceback", "Exception", "BrokenPipe")
    return [line for line in ended.stderr.splitlines() if any(mark in line for mark in marks)]


def test_every_command_is_run_or_says_what_it_needs() -> None:
    """A new command comes with a run here, or with its reason."""
    ran = {leaf for leaf in LEAVES if any(f"{line} ".startswith(f"{leaf} ") for line in RUNS)}
    assert ran | {*ELSEWHERE} == {*LEAVES}
    assert not ran & {*ELSEWHERE}
