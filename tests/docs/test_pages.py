"""README and the guides do what they say: every block of commands is walked or, where it needs a cloud, parsed."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import yaml
from command_line import wrong
from guide import differs
from had import give, prometheus
from pages import CANNOT, CLUSTERS, PAGES, PROGRAMS, ROOT, SHELL, Block, blocks, calls, told, typed
from shell import Shell, has

from emulators import EMULATOR, of_the_sdk
from pilotlight.codec.policy_file import read_policy

BLOCKS = [block for page in PAGES for block in blocks(page)]
COMMANDS = [block for block in BLOCKS if block.kind in SHELL]
SLOW = ("spot",)
"""Pages whose commands wait for nodes of a world."""
FOUND = {need for need, programs in PROGRAMS.items() if all(map(has, programs))}
if of_the_sdk(EMULATOR) is None:
    FOUND.discard("gcloud's emulators")
HERE = [block for block in COMMANDS if block.way == "here" and block.needs in ("", *FOUND)]
RUN = [page for page in PAGES if any(block.page == page for block in HERE)]

TICKED = ("another delivery is at work", "is on its way", "shown '  decision <decision>; see")
"""What is answered, or not told again, where serve's tick of this minute looked before the event, or looks now."""
MOST = 3


@contextmanager
def _opened(folder: Path, with_prometheus: bool) -> Iterator[Shell]:
    """A shell in a scratch checkout that has what a reader has of their own."""
    folder.mkdir()
    opened = Shell(folder)
    give(folder)
    try:
        with prometheus(opened) if with_prometheus else nullcontext():
            yield opened
    finally:
        opened.end()


def _name(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=[pytest.mark.slow] if p.stem in SLOW else [], id=p.stem) for p in RUN]
)
def test_a_page_does_what_it_shows(tmp_path: Path, page: Path) -> None:
    """Its commands, typed in order, succeed and print what is shown below them; where a tick came first, once more."""
    walked = [block for block in HERE if block.page == page]
    for time in range(MOST):
        with _opened(tmp_path / str(time), any(block.needs == "prometheus" for block in walked)) as shell:
            wrongs = _followed(shell, walked)
        if not any(word in wrong for wrong in wrongs for word in TICKED):
            break
    assert wrongs == []


def _followed(shell: Shell, walked: list[Block]) -> list[str]:
    """What blocks say otherwise than it is."""
    wrongs = []
    for block in walked:
        for said in typed(block):
            code, printed = shell.run(said.command)
            found = differs(said, printed)
            if code or found:
                wrongs.append(f"{block.where} {said.command} ended with {code}: {found or printed}")
    return wrongs


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.where)
def test_a_block_names_only_what_there_is(block: Block) -> None:
    """Every command and option of ours, make's targets, and the files of this repository that are handed on."""
    commands = block.text if block.kind != "console" else "\n".join(said.command for said in typed(block))
    assert [found for words in calls(commands) if (found := wrong(words))] == []
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"^(?:\$ )?make ([a-z][\w-]*)", block.text, re.M)) <= targets
    for path in re.findall(r"(?<![\w/.-])(?:infra|events|examples|policies|data|docs)/[\w./-]*\w", block.text):
        assert (ROOT / path).exists(), path
        if path.endswith((".yaml", ".yml")):
            assert list(yaml.safe_load_all((ROOT / path).read_text()))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_tells_of_commands_that_there_are(page: Path) -> None:
    """Commands between backticks have their name and options right."""
    assert [found for words in told(page) if (found := wrong(words))] == []


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.kind not in SHELL], ids=lambda block: block.where)
def test_data_can_be_read(block: Block) -> None:
    """A whole policy is one, and a part of one is YAML; JSON is JSON; drawings and HCL are not read."""
    if block.kind == "json":
        json.loads(block.text)
    elif block.kind in ("text", "hcl"):
        pass
    elif "version: 1" in block.text:
        read_policy(block.text, block.where)
    else:
        assert block.kind == "yaml"
        assert isinstance(yaml.safe_load(block.text), dict)


def test_no_block_of_commands_is_outside_the_three() -> None:
    """Each is compared line by line here or behind KUBECONFIG, or named with why it cannot be walked."""
    assert [block.where for block in COMMANDS if not block.way] == []
    assert [block.where for block in COMMANDS if block.way != "not" and block.kind != "console"] == []


def test_a_need_is_one_of_those_that_have_a_reason() -> None:
    """What a block needs stands in one of the three tables, and none stands there without a block."""
    assert {block.needs for block in COMMANDS if block.needs} == {*PROGRAMS, *CLUSTERS, *CANNOT}


@pytest.mark.parametrize("block", [b for b in COMMANDS if b.ran_by], ids=lambda block: block.where)
def test_what_is_run_elsewhere_is_run_there(block: Block) -> None:
    """Whoever is named runs each of its commands."""
    script = (ROOT / block.ran_by).read_text()
    assert [said.command for said in typed(block) if said.command not in script] == []
