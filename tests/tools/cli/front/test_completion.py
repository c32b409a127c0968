"""Completion: from its table alone, in the words of each shell, as the command line itself would answer."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._click.shell_completion import ShellComplete

import reference
from pilotlight.tools.cli.front.completion import LINE, TABLE, TYPED, answer, offers
from pilotlight.tools.cli.main import build

HEAVY = ("typer", "rich", "yaml", "msgspec", "pilotlight.settings", "pilotlight.units", "pathlib")
RUN = f"""
import sys
from pilotlight.tools.cli.entry import run
try:
    run()
finally:
    print("heavy", [name for name in {HEAVY} if name in sys.modules])
"""
LINES = (
    *("pilotlight re", "pilotlight ", "pilotlight nosuch ", "pilotlight plan ", "pilotlight plan --po"),
    *("pilotlight plan --policy x --po", "pilotlight plan --policy=x --po", "pilotlight plan --policy "),
    *("pilotlight replay --placement ", "pilotlight replay --placement h", "pilotlight replay --placement homes --pl"),
    *("pilotlight replay --against a --ag", "pilotlight week.csv replay --ag", "pilotlight replay week.csv --ag"),
    *("pilotlight manifests ", "pilotlight manifests qu", "pilotlight manifests queues --for "),
    *("pilotlight manifests queues --for kueue --", "pilotlight shadow ", "pilotlight shadow report --"),
    *("pilotlight plan -- --po", "pilotlight state import --state sqlite:x -", "pilotlight status --watch --"),
)


FISH = "_TYPER_COMPLETE_FISH_ACTION"
BASH = {"_TYPER_COMPLETE_ARGS": "what another shell left"}
SCORING, SCORING_PWSH = "least-allocated\nmost-allocated\n", "least-allocated::: \nmost-allocated::: \n"


def _zsh(words: str) -> str:
    """The line that zsh runs."""
    return f"_arguments '*: :(({words}))'\n"


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    """The table as it lies beside the module."""
    found: dict[str, Any] = json.loads(Path(TABLE).read_text("utf-8"))
    return found


def parted(line: str) -> tuple[list[str], str]:
    """The words that stand, and the one that is begun."""
    _, *words, begun = line.split(" ")
    return words, begun


def asked(line: str) -> dict[str, str]:
    """What bash sets as it asks."""
    return {"_PILOTLIGHT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pilotlight re", ["resume", "reconcile", "reclaim", "report", "replay"]),
        ("pilotlight plan --o", ["--objects", "--offerings"]),
        ("pilotlight replay --placement h", ["homes"]),
    ],
    ids=["a name", "an option", "a value"],
)
def test_every_answer_comes_before_anything_heavy_is_imported(line: str, offered: list[str]) -> None:
    """The table answers: no typer, no msgspec, no settings, nothing of the engine."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], env={**os.environ, **asked(line)}, capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.splitlines()) == sorted([*offered, "heavy []"])


def test_the_table_is_what_the_commands_say() -> None:
    """The table is what `make reference` writes."""
    assert Path(TABLE).read_text("utf-8") == reference.completion_table(), "run: make reference"


def test_the_table_answers_as_the_command_line_would(table: dict[str, Any]) -> None:
    """At every place of a line the offers are those of the commands themselves."""
    root: Any = typer.main.get_command(build([]))
    own = {"--all", "--help", "-h", "--install-completion", "--show-completion", "--debug", "--version"}
    for line in LINES:
        words, begun = parted(line)
        theirs = _Asked(root, {}, "pilotlight", "X").get_completions([*words], begun)
        assert {word for word, _ in offers(table, words, begun)} - own == {each.value for each in theirs} - own - {
            begun
        }, line


class _Asked(ShellComplete):
    """The command line's own answers, which take it a second."""

    def source_vars(self) -> dict[str, Any]:
        raise NotImplementedError

    def get_completion_args(self) -> tuple[list[str], str]:
        raise NotImplementedError

    def format_completion(self, item: Any) -> str:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("shell", "variables", "told", "code"),
    [
        ("bash", {**BASH, "COMP_WORDS": "pilotlight\nreplay\n--placement\n=\nho", "COMP_CWORD": "4"}, "homes\n", 0),
        ("bash", {**BASH, "COMP_WORDS": "pilotlight\nreplay\n--scoring\n=", "COMP_CWORD": "3"}, SCORING, 0),
        (
            "bash",
            {**BASH, "COMP_WORDS": "pilotlight\nreplay\na b.csv\n--placem", "COMP_CWORD": "3"},
            "--placement\n",
            0,
        ),
        ("bash", {**BASH, "COMP_WORDS": "pilotlight plan", "COMP_CWORD": "x"}, "", 0),
        ("zsh", {LINE: "pilotlight replay --placement=h"}, _zsh('"--placement=homes"'), 0),
        ("zsh", {LINE: "pilotlight plan "}, "_files\n", 0),
        ("zsh", {LINE: "pilotlight sche"}, _zsh('"schema":"the policy file\'\'s JSON Schema, for editors"'), 0),
        ("fish", {LINE: "pilotlight 'a b", FISH: "is-args"}, "", 1),
        ("fish", {LINE: "pilotlight po", FISH: "is-args"}, "", 0),
        ("fish", {LINE: "pilotlight pool", FISH: "get-args"}, "pools\teach pool: size, price, mode, last error\n", 0),
        ("powershell", {LINE: "pilotlight replay 'x y' --placement ho", TYPED: "ho"}, "homes::: \n", 0),
        ("powershell", {LINE: "pilotlight replay --placement homes --scoring", TYPED: ""}, SCORING_PWSH, 0),
        ("pwsh", {LINE: "pilotlight pools --he", TYPED: "--he"}, "--help:::its options\n", 0),
    ],
)
def test_each_shell_reads_its_own_words(
    shell: str, variables: dict[str, str], told: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a shell hands over, and what its script reads."""
    for name, value in {"_PILOTLIGHT_COMPLETE": f"complete_{shell}", **variables}.items():
        monkeypatch.setenv(name, value)
    assert answer() == (told, code)


@pytest.mark.parametrize("asks", ["source_bash", "complete_ash", "1"])
def test_other_asks_go_on(asks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell's script, and shells that nobody knows, are the command line's own matter."""
    monkeypatch.setenv("_PILOTLIGHT_COMPLETE", asks)
    assert answer() is None


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder with a policy and the command, which says with what words a shell runs it."""
    (tmp_path / "mine.yaml").write_text("version: 1\n")
    name = tmp_path / "pilotlight"
    name.write_text(
        f"#!{sys.executable}\nimport os, sys\nfrom pilotlight.tools.cli.entry import run\n"
        "run() if '_PILOTLIGHT_COMPLETE' in os.environ else print('TYPED', *sys.argv[1:], sep='|')\n"
    )
    name.chmod(0o700)
    return tmp_path


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is needed")
def test_bash_completes_a_line_by_the_script_that_is_shown(there: Path) -> None:
    """The script of `--show-completion`, sourced: its function fills COMPREPLY for a word and for an option's value."""
    script = f"""
    PATH={there}:$PATH
    source <(_PILOTLIGHT_COMPLETE=source_bash pilotlight)
    for line in "pilotlight rec" "pilotlight replay --scoring = most"; do
      IFS=' ' read -ra COMP_WORDS <<<"$line"
      COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
      _pilotlight_completion pilotlight
      echo "${{COMPREPLY[@]}}"
    done
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["reconcile reclaim", "most-allocated"]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is needed")
def test_fish_completes_a_line_by_the_script_that_is_shown(there: Path) -> None:
    """A command with what it does, an option's value, and a file where nothing of ours may stand."""
    lines = ("pilotlight reconc", "pilotlight replay --scoring mo", "pilotlight check min")
    asks = [f"complete -C '{one}'" for one in lines]
    script = "\n".join(["_PILOTLIGHT_COMPLETE=source_fish pilotlight | source", *asks])
    ours = {**os.environ, "PATH": f"{there}:{os.environ['PATH']}", "HOME": str(there)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=there, env=ours, capture_output=True, text=True, check=True
    )
    told = "one tick on a real cluster now; --dry-run only says it"
    assert done.stdout.splitlines() == [f"reconcile\t{told}", "most-allocated", "mine.yaml"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is needed")
def test_zsh_completes_a_line_by_the_script_that_is_shown(there: Path) -> None:
    """A tab at a terminal ends a command's name, an option, its value and a file's name; so the shell runs them."""
    ours = {**os.environ, "PATH": f"{there}:{os.environ['PATH']}", "HOME": str(there), "TERM": "dumb"}
    process, terminal = pty.fork()
    if not process:
        os.chdir(there)
        os.execvpe("timeout", ["timeout", "--foreground", "60", "zsh", "-f", "-i"], ours)
    try:
        _type(terminal, "autoload -U compinit; compinit -u -D; source =(_PILOTLIGHT_COMPLETE=source_zsh pilotlight)\n")
        for line in ("reconc\t", "replay --placem\thom\t", "check min\t"):
            _type(terminal, f"pilotlight {line}\n")
        _type(terminal, "exit\n")
        said = b"".join(iter(lambda: _read(terminal), b"")).decode()
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    assert re.findall(r"^TYPED\|(.*?)\r?$", said, re.M) == ["reconcile", "replay|--placement|homes", "check|mine.yaml"]


def _type(terminal: int, keys: str) -> None:
    os.write(terminal, keys.encode())


def _read(terminal: int) -> bytes:
    """What a terminal shows; nothing once its shell is gone."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
