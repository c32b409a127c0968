"""How a guide's blocks are read, without following one."""

import pytest
from guide import Said, differs
from pages import CLUSTERS, ROOT, blocks, typed


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        pytest.param(("a", "b"), "a\nb\n", True, id="what is shown"),
        pytest.param(("a",), "a\nb\n", False, id="more than is shown"),
        pytest.param(("a", "c"), "a\nb\nc\n", False, id="a line between two that are shown"),
        pytest.param(("a", "..."), "a\nb\n", True, id="more, where more is said"),
        pytest.param(("...", "c"), "a\nb\nc\n", True, id="lines before, where they are said"),
        pytest.param(("...", "c"), "a\nb\n", False, id="without the line that is shown"),
        pytest.param(("one ...",), "one two\n", True, id="a line that goes on"),
        pytest.param(("at 2026-11-22 04:25 UTC",), "at 2027-01-01 00:00 UTC\n", True, id="at another time"),
        pytest.param((), "", True, id="nothing shown, nothing printed"),
        pytest.param((), "a\n", False, id="nothing shown, and something printed"),
        pytest.param(None, "a\n", True, id="a block that shows no output"),
    ],
)
def test_what_is_shown_is_what_is_printed(shown: tuple[str, ...] | None, printed: str, fits: bool) -> None:
    """All lines in their order, and no others but where dots stand."""
    assert (differs(Said("c", shown), printed) == "") is fits


def test_the_guide_for_kubernetes_shows_what_its_commands_print() -> None:
    """Every command of its steps is walked on a cluster."""
    walked = [block for block in blocks(ROOT / "docs" / "guides" / "kubernetes.md") if block.needs in CLUSTERS]
    commands = [said.command for block in walked for said in typed(block)]
    assert len(commands) > 8
    assert all(word in " ".join(commands) for word in ("plan", "check", "doctor", "connect", "reconcile", "why"))
