"""A first plan as a newcomer types it: `uvx` from an index, in an empty folder with an empty HOME."""

from pathlib import Path

import pytest

import first_plan


def test_uvx_prints_a_first_plan_and_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    """Of the sample cluster, twice the same but for its time, with no error and nothing left where it was typed."""
    with first_plan.index(tmp_path / "index") as address:
        try:
            steps, printed = first_plan.by_uvx(tmp_path, address, first_plan.pinned_uv(tmp_path / "uv"))
        except first_plan.Offline as offline:
            pytest.skip(f"PyPI cannot be reached: {offline}")
    first, again = ([line for line in text.splitlines() if not line.startswith("Dry run at ")] for text in printed)
    assert first == again
    assert "  buy       3 nodes, $66.066/h: 2 x a100/p4d.24xlarge/on-demand" in "\n".join(first)
    assert steps[0].size < first_plan.LARGEST
