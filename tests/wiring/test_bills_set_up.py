"""A bill as a deployment sets it up, by addresses and policies: one deployment's, each cluster its own part."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.codec.policy_file import read_policy
from pilotlight.connections import bills_at
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import Bill
from pilotlight.settings import Settings
from pilotlight.world.world_clock import WallClock

pytest.importorskip("duckdb")

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
HEAD = "BilledCost,ChargePeriodStart,ChargePeriodEnd,ServiceName,Tags\n"
LINE = '{usd},2026-11-02T00:00:00Z,2026-11-03T00:00:00Z,EC2,"{{""eks:cluster-name"": ""{cluster}""}}"\n'
TWO = '{"ml": {"api": "a"}, "web": {"api": "b"}}'


def _read(settings: Settings, policy: str) -> Bill:
    clock = WallClock(END)
    bills = bills_at(settings, read_policy(f"version: 1\n{policy}", "policy"), clock)
    assert bills is not None
    return bills.read(START, END)


def _settings(tmp_path: Path, cluster: str) -> Settings:
    file = tmp_path / "bill.csv"
    file.write_text(HEAD + LINE.format(usd="7.50", cluster="ml") + LINE.format(usd="2.25", cluster="web"))
    return Settings.from_environ(
        {"PILOTLIGHT_BILLS": f"focus:{file}", "PILOTLIGHT_CLUSTERS": TWO, "PILOTLIGHT_CLUSTER": cluster}
    )


def test_two_clusters_of_a_deployment_count_its_bill_once(tmp_path: Path) -> None:
    """One policy for both: each has the lines that carry its name."""
    scope = 'bill: {tags: {"eks:cluster-name": "{cluster}"}}'
    billed = {name: sum(row.usd for row in _read(_settings(tmp_path, name), scope).days) for name in ("ml", "web")}
    assert billed == {"ml": Decimal("7.50"), "web": Decimal("2.25")}


def test_a_bill_of_two_clusters_without_a_scope_is_not_read(tmp_path: Path) -> None:
    """Each would count all of it: whoever reads it is told what to write."""
    with pytest.raises(BadInput, match="which lines are its own"):
        _read(_settings(tmp_path, "ml"), "")


def test_civos_bill_without_prices_is_not_read() -> None:
    """It would come to $0: the key that is missing is named."""
    with pytest.raises(BadInput, match=r"prices\.charges"):
        _read(Settings.from_environ({"PILOTLIGHT_BILLS": "civo:LON1", "CIVO_TOKEN": "t" * 20}), "")
