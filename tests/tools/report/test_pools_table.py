"""The pools of a cluster as a table: one row a pool on a terminal of 80 columns, and what happens there shown."""

import msgspec
import pytest
from rich.console import Console

from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.tools.report.tables.pools_table import table

QUIET = PoolRow(
    pool="a100", size=0, on_the_way=0, standby=0, reserved=0, unused=0, instance_type="p4d.24xlarge",
    capacity_type="on-demand", usd_per_hour=None, paid=None, priced_at=None, mode="act", most=8, owner="pilotlight",
    last_error="",
)  # fmt: skip


def _shown(*rows: PoolRow, width: int) -> list[str]:
    out = Console(width=width, color_system=None)
    with out.capture() as caught:
        out.print(table("c", rows))
    return caught.get().splitlines()


def test_pools_at_rest_fit_on_a_small_terminal() -> None:
    """Five pools are five rows of a table, not sixty lines."""
    names = ["t4", "a10g", "v100", "v100x4", "a100"]
    lines = _shown(*(msgspec.structs.replace(QUIET, pool=name) for name in names), width=80)
    assert [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in names] == names


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("on its way", {"on_the_way": 1}),
        ("stand by", {"standby": 2}),
        ("reserved", {"reserved": 3}),
        ("unused", {"unused": 4}),
        ("scaled by", {"owner": "cluster-autoscaler"}),
        ("last error", {"last_error": "no capacity"}),
    ],
)
def test_what_a_pool_has_is_a_column(head: str, told: dict[str, int | str]) -> None:
    """A column stands where one pool has something to say in it, and only there."""
    lines = _shown(QUIET, msgspec.structs.replace(QUIET, **told), width=200)
    assert head in lines[1]
    assert str(next(iter(told.values()))) in lines[3]
    assert head not in _shown(QUIET, width=200)[1]
