"""Upgrades of a release keep what its owner has set."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "infra" / "helm").rglob("*.md"), ROOT / "README.md"]
PAGES += (ROOT / "infra" / "helm" / "pilotlight" / "templates").glob("*.txt")


def test_every_upgrade_that_is_told_keeps_values_and_takes_new_defaults() -> None:
    """Plain `helm upgrade` forgets what was set, and --reuse-values lacks every value that is new in the chart."""
    told = [line for page in PAGES for line in re.findall(r"helm upgrade (?!`)\S+.*", page.read_text())]
    orders = [line for line in told if "pilotlight" in line]
    assert len(orders) >= 3
    assert [line for line in orders if "--reset-then-reuse-values" not in line] == []
