"""Slow blocks are for `make docs-test`, which asks for all; the count of blocks by kind is printed at the end.

``python tests/docs/block_count.py`` prints the count alone, with why each block that is not walked cannot be.
"""

import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from pages import CANNOT, PAGES, SHELL, Block, blocks, typed

OURS = pytest.StashKey[int]()
"""How many tests of the docs were collected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--all-blocks``: slow ones too."""
    parser.addoption("--all-blocks", action="store_true", help="run the slow blocks of the docs too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without it they are left out."""
    ours = [item for item in items if "tests/docs" in item.path.as_posix()]
    config.stash[OURS] = len(ours)
    if config.getoption("--all-blocks"):
        return
    here = [item for item in ours if item.get_closest_marker("slow")]
    if here:
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many blocks there are, and what became of them."""
    if terminalreporter.config.stash.get(OURS, 0):
        for line in counts():
            terminalreporter.write_line(f"docs: {line}")


def counts() -> Iterator[str]:
    """Blocks by kind, in lines."""
    found = [block for page in PAGES for block in blocks(page)]
    shell = [block for block in found if block.kind in SHELL]
    yield f"{len(found)} blocks of {len(PAGES)} pages, {len(shell)} of them commands"
    for way in ("here", "behind KUBECONFIG"):
        yield _walked(way, [block for block in shell if block.way == way])
    left = [block for block in shell if block.way == "not"]
    yield f"not walked: {len(left)} blocks of {sum(len(list(typed(block))) for block in left)} commands"
    for need, count in sorted(Counter(block.needs for block in left if block.needs).items()):
        yield f"  {count} for want of {need}: {CANNOT[need]}"
    for by, count in sorted(Counter(block.ran_by for block in left if block.ran_by).items()):
        yield f"  {count} by {by}, for they take as long as all checks together"


def _walked(way: str, walked: list[Block]) -> str:
    said = [said for block in walked for said in typed(block)]
    shown = [each.lines for each in said if each.lines is not None]
    compared = f"{len(shown)} of {len(said)} commands compared with {sum(map(len, shown))} lines"
    return f"walked {way}: {len(walked)} blocks, {compared}"


if __name__ == "__main__":
    sys.stdout.write("\n".join([*counts(), ""]))
