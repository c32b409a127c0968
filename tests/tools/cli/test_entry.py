"""The first moments of the command: a package that is missing, and Ctrl-C while it still imports."""

import os
import signal
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from fleet import free_port
from pilotlight.tools.cli.extras import advice

RUN = "from pilotlight.tools.cli.entry import run; run()"
MISSING = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name == {package!r} or name.startswith({package!r} + "."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
HOLDS = """
import sys, time
class Holds:
    def find_spec(self, name, *_):
        if name == {package!r}:
            print("importing", flush=True)
            time.sleep(600)
sys.meta_path.insert(0, Holds())
"""


def without(package: str, *words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command of an installation that lacks a package."""
    return subprocess.run(
        [sys.executable, "-c", MISSING.format(package=package) + RUN, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environ},
        check=False,
    )


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        pytest.param("boto3", "aws", ["state", "init", "--state", "dynamodb:pilotlight"], id="no DynamoDB"),
        pytest.param("botocore", "aws", ["state", "init", "--state", "dynamodb:pilotlight"], id="no part of boto3"),
    ],
)
def test_a_missing_package_is_one_line_with_its_extra(
    tmp_path: Path, package: str, extra: str, words: list[str]
) -> None:
    """It says what to type, and exits with 2."""
    done = without(package, *words, cwd=tmp_path, AWS_DEFAULT_REGION="eu-west-1")
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"pip install 'pilotlight[{extra}]'" in done.stderr


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("duckdb", "bills"),
        ("apprise", "alerts"),
        ("botocore.config", "aws"),
        ("google.auth", "gcp"),
        ("google.cloud.pubsub_v1", "gcp"),
        ("kubernetes.config", "kubernetes"),
    ],
)
def test_a_module_has_the_extra_of_the_metadata(module: str, extra: str) -> None:
    """What is said is an extra that the installed distribution has."""
    assert f"pip install 'pilotlight[{extra}]'" in advice(ModuleNotFoundError(name=module))
    assert any(f"'{extra}'" in line for line in requires("pilotlight") or [])


@pytest.mark.parametrize("module", ["pilotlight.nowhere", "msgspec", "pytest"])
def test_a_module_of_no_extra_gets_no_advice(module: str) -> None:
    """A fault of ours is not told as a package to install."""
    assert advice(ModuleNotFoundError(name=module)) == ""


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("typer", ["plan"]),
        ("pilotlight.tools.cli.start.plan_command", ["plan"]),
        ("pilotlight.tools.cli.start.serve_command", ["serve"]),
        ("werkzeug.serving", ["serve"]),
        ("gunicorn", ["serve", "--workers", "2"]),
        ("pilotlight.tools.serve.world_server", ["world", "--port", "0"]),
        ("pilotlight.tools.demo.demo_stage", ["demo"]),
        ("pilotlight.tools.demo.demo_story", ["demo"]),
    ],
)
def test_ctrl_c_while_it_imports_is_one_line(tmp_path: Path, package: str, words: list[str]) -> None:
    """The signal comes in the middle of an import: no traceback, exit code 130."""
    if words[0] == "serve":
        words = [*words, "--port", str(free_port())]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS.format(package=package) + RUN, *words],
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert [line for line in said.splitlines() if not line.startswith("state: ")] == ["stopped"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["install"], "helm install pilotlight infra/helm/pilotlight --namespace pilotlight --create-namespace --set "),
        (
            ["instal"],
            "No such command 'instal': the chart installs it, from a clone. First make image builds the image ",
        ),
        (["unistall"], "No such command 'unistall'. Did you mean 'uninstall'?; see pilotlight --help"),
        (["stauts"], "No such command 'stauts'. Did you mean 'stats' or 'status'?; see pilotlight --help"),
        (
            ["status", "--context", "prod"],
            "No such option: --context: PILOTLIGHT_API=kubeconfig:PATH#CONTEXT names the cluster; see pilotlight ",
        ),
        (["nosuch"], "No such command 'nosuch'; see pilotlight --help"),
        (["pause"], "Missing option '--reason'; see pilotlight pause --help"),
        (["serve", "--port", "99999"], "Invalid value for '--port': "),
        (["report", "--mont", "2026-10"], "No such option: --mont"),
        (["gpus", "--model"], "Option '--model' requires an argument; see pilotlight gpus --help"),
        (["state", "get"], "see pilotlight state get --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_that_are_not_known_are_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    """What is wrong and where to look; exit code 2."""
    done = without("nothing", *words, cwd=tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.parametrize("words", [[], ["state"]], ids=" ".join)
def test_no_words_are_answered_with_the_help(tmp_path: Path, words: list[str]) -> None:
    """Of the command, or of a group of them."""
    done = without("nothing", *words, cwd=tmp_path, HOME=str(tmp_path))
    assert done.returncode == 2
    assert f"Usage: {' '.join(['pilotlight', *words])} " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["-h"], ["-h", "--all"], ["plan", "-h"], ["state", "get", "-h"]], ids=" ".join)
def test_a_short_word_for_help_is_answered_as_the_long_one(tmp_path: Path, words: list[str]) -> None:
    """`-h` prints what `--help` prints."""
    short = without("nothing", *words, cwd=tmp_path, HOME=str(tmp_path))
    long = without("nothing", *("--help" if word == "-h" else word for word in words), cwd=tmp_path, HOME=str(tmp_path))
    assert (short.returncode, short.stdout) == (0, long.stdout), short.stderr
    assert "Usage: pilotlight" in short.stdout


@pytest.mark.parametrize(
    ("words", "as_it_is"),
    [
        (["help"], ["--help"]),
        (["help", "--all"], ["--help", "--all"]),
        (["help", "plan"], ["plan", "--help"]),
        (["help", "state", "get"], ["state", "get", "--help"]),
        (["help", "help"], ["--help"]),
    ],
    ids=" ".join,
)
def test_the_word_help_is_answered_as_the_option(tmp_path: Path, words: list[str], as_it_is: list[str]) -> None:
    """Alone, and before a command."""
    word, option = (without("nothing", *each, cwd=tmp_path, HOME=str(tmp_path)) for each in (words, as_it_is))
    assert (word.returncode, word.stdout, word.stderr) == (0, option.stdout, "")


@pytest.mark.parametrize(
    ("environ", "plain"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C"}, True),
        ({"LC_ALL": "C.UTF-8"}, False),
        ({"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"}, True),
    ],
    ids=lambda value: " ".join(map("=".join, value.items())) if isinstance(value, dict) else "",
)
def test_a_terminal_of_plain_letters_gets_boxes_of_plain_letters(
    tmp_path: Path, environ: dict[str, str], plain: bool
) -> None:
    """The help of a command is drawn by what the locale and the encoding of stdout say."""
    own = {**os.environ, "PYTHONIOENCODING": "", "HOME": str(tmp_path), **environ}
    words = [sys.executable, "-c", RUN, "plan", "--help"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, env=own, check=True)
    assert b"--nodes" in done.stdout
    assert done.stdout.isascii() == plain


@pytest.mark.parametrize("group", ["alerts", "audit", "kueue", "manifests", "reclaim", "shadow", "state"])
def test_a_bare_group_prints_its_help(group: str) -> None:
    """All of them alike: its commands, nothing on stderr, and exit code 2, for nothing was asked."""
    ran = subprocess.run([sys.executable, "-c", RUN, group], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert f"Usage: pilotlight {group} " in ran.stdout
