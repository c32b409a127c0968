"""What holds for every page that people see: expressions for a browser, whose value is a list of what is wrong."""

from pathlib import Path

import pytest

AXE = Path(__file__).resolve().parents[1] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

LAYOUT = Path(__file__).with_name("page_layout.js").read_text("utf-8")
"""Nothing is wider than the window, cut, off the screen, under 11 px, or drawn over another label."""

ACCESSIBLE = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.flatMap(
  (one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`)))"""
"""What axe-core finds, whose own script must have been run before."""


def axe() -> str:
    """axe-core's script; the test is skipped where it was not installed."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make build/axe/.installed")
    return AXE.read_text("utf-8")
