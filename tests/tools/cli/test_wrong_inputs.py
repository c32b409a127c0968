"""Wrong inputs to every command: one line with the way out, the right exit code, and nothing changed on the disk."""

import gzip
import hashlib
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from command_forks import CommandForks, Ended

from pilotlight.tools.cli.command_table import COMMANDS

TABLES = Path(__file__).parent / "wrong_inputs"
ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "examples" / "cluster"
CODES = {"bad_input": 2, "failed_run": 1}
PANELS = ("start", "watch", "act", "install", "prices", "gpus", "records", "lab")
CASES = {
    line: (CODES[kind], parts)
    for panel in PANELS
    for kind, lines in yaml.safe_load((TABLES / f"{panel}.yaml").read_text()).items()
    for line, parts in lines.items()
}
TERMINALS = {
    "narrow": {"COLUMNS": "60"},
    "of plain letters": {"LANG": "C", "LC_ALL": "C"},
    "without colours": {"NO_COLOR": "1"},
}
NARROW = {name: value for terminal in TERMINALS.values() for name, value in terminal.items()}
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
PLAIN = {
    **{"empty": b"", "blank": b"  \n", "bytes.bin": b"\xff\xfe\x00\x81version: 1\n", "text.yaml": b"hello\n"},
    **{
        "list.yaml": b"- 1\n- 2\n",
        "number.json": b"3\n",
        "null.json": b"null\n",
        "none.json": b"[]\n",
        "deep.json": b"[" * 5000,
    },
    **{"bad.yaml": b"version: 1\npools: [\n", "bad.json": b'{"items": ['},
    **{"cut.csv.gz": gzip.compress(b"id,user,submit_time,duration,gpus\n" * 200, mtime=0)[:-9]},
    **{"notgz.csv.gz": b"job,submitted\n", "state.db": b"this is no database, but a text of some length" * 20},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of good files and of such that are wrong in one way each."""
    made = tmp_path_factory.mktemp("wrong")
    (made / "dir").mkdir()
    for name, body in PLAIN.items():
        (made / name).write_bytes(body)
    for name, text in yaml.safe_load((TABLES / "files.yaml").read_text()).items():
        (made / f"{name}.yaml").write_text(text)
    layers = ["a: &a [" + "x," * 9 + "x]"]
    layers += [f"{new}: &{new} [" + f"*{old}," * 8 + f"*{old}]" for old, new in zip("abcdef", "bcdefg", strict=True)]
    (made / "bomb.yaml").write_text("\n".join(layers) + "\n")
    (made / "policy.yaml").write_bytes((ROOT / "examples" / "policy.yaml").read_bytes())
    (made / "event.json").write_bytes((ROOT / "events/samples/kubernetes/pod_unschedulable.json").read_bytes())
    for name in ("pods", "nodes"):
        good = json.loads((CLUSTER / f"{name}.json").read_text())
        (made / f"{name}.json").write_text(json.dumps(good))
        first, *others = good["items"]
        wrong = {
            "badtype": [{**first, "spec": 3, "status": []}, *others],
            "noname": [{key: value for key, value in first.items() if key != "metadata"}],
            "twice": [first, first],
            "time": [{**first, "metadata": {**first["metadata"], "creationTimestamp": "yesterday"}}],
        }
        for how, items in wrong.items():
            (made / f"{name}_{how}.json").write_text(json.dumps({**good, "items": items}))
    return made


@pytest.fixture(scope="module")
def own(folder: Path) -> dict[str, str]:
    """The environment of a person who has set nothing up."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PILOTLIGHT_HOME": str(folder / "home" / "own")}


@pytest.fixture(scope="module")
def forks(folder: Path, own: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForks]:
    """Commands on a narrow terminal of plain letters without colours."""
    made = CommandForks(folder, tmp_path_factory.mktemp("kept"), own | NARROW | _imports())
    yield made
    made.end()


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def _imports() -> dict[str, str]:
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}


def _words(line: str, taken: int) -> tuple[dict[str, str], list[str]]:
    """The variables and the words of a case."""
    words, environ = shlex.split(line.replace("{ex}", str(CLUSTER.parent)).replace("{taken}", str(taken))), {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environ[name] = value
    return environ, words


def _snapshot(folder: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in folder.rglob("*")}


def _hold(ended: Ended, case: str) -> None:
    """One line on stderr with what is wrong and what to do, the case's exit code, and nothing on stdout."""
    code, parts = CASES[case]
    assert (ended.code, ended.stdout) == (code, ""), ended
    [line] = ended.stderr.splitlines()
    assert line.startswith("error: ")
    place = 0
    for part in parts:
        place = line.find(part, place)
        assert place >= 0, f"{part!r} is not, or not in its order, in {line!r}"
    assert "error: unexpected " not in line
    assert "Traceback" not in line


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_input_is_one_line_with_the_way_out(case: str, forks: CommandForks, taken: int) -> None:
    """On a narrow terminal of plain letters without colours; no file is made and none is changed."""
    before = _snapshot(forks.folder)
    environ, words = _words(case, taken)
    _hold(forks.run(words, environ), case)
    assert _snapshot(forks.folder) == before


SAMPLE = (
    "nosuch",
    "plan --pods bytes.bin --nodes nodes.json",
    "check bytes.bin",
    "status",
    "send bytes.bin",
    "report --month x",
    "runs cut.csv.gz",
    "world --clock fast",
)


@pytest.mark.parametrize("terminal", TERMINALS.values(), ids=TERMINALS)
@pytest.mark.parametrize("case", SAMPLE)
def test_a_process_of_its_own_says_the_same(
    case: str, terminal: dict[str, str], folder: Path, own: dict[str, str], taken: int
) -> None:
    """The installed command, on each kind of terminal."""
    environ, words = _words(case, taken)
    done = subprocess.run(
        [PILOTLIGHT, *words], env=own | environ | terminal | _imports(), cwd=folder, capture_output=True, check=False
    )
    _hold(Ended(done.returncode, done.stdout.decode(), done.stderr.decode()), case)


def test_every_command_has_a_wrong_input_here() -> None:
    """A new command comes with its line; 150 is the least."""
    named = {word for line in CASES for word in shlex.split(line) if "=" not in word}
    assert {name for commands in COMMANDS.values() for name in commands} <= named
    assert len(CASES) >= 150
