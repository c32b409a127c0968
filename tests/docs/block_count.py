"""Slow blocks are for `make docs-test`, which asks for all; the count of blocks is printed at the end."""

import pytest
from pages import NEEDS, PAGES, SHELL, blocks, typed

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
    if not terminalreporter.config.stash.get(OURS, 0):
        return
    found = [block for page in PAGES for block in blocks(page)]
    shell = [block for block in found if block.kind in SHELL]
    needs: dict[str, int] = {}
    for block in shell:
        if block.needs:
            needs[block.needs] = needs.get(block.needs, 0) + 1
    run = [block for block in shell if not block.needs and not block.ran_by]
    said = [said for block in run for said in typed(block)]
    shown = [lines for _, lines in said if lines is not None]
    elsewhere = [f"{block.where} by {block.ran_by}" for block in shell if block.ran_by]
    terminalreporter.write_line(
        f"docs: {len(found)} blocks of {len(PAGES)} pages; {len(shell)} with commands: {len(run)} run "
        f"({len(said)} commands, of {len(shown)} all that they print compared with {sum(map(len, shown))} lines), "
        f"{sum(needs.values())} parsed alone, {len(elsewhere)} run elsewhere ({', '.join(elsewhere)}); "
        f"{len(found) - len(shell)} of data read"
    )
    for what, count in sorted(needs.items()):
        terminalreporter.write_line(f"docs: {count} parsed alone, for they need {what}: {NEEDS.get(what, '?')}")
