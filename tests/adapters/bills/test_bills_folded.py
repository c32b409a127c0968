"""A bill with more details than memory holds: its dollars stay, some names are folded, and a finding says so."""

import csv
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.adapters.bills import focus, focus_query
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.bill_files import BillFile
from pilotlight.facts.money.money_policy import BillScope

pytest.importorskip("duckdb")

START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
NAMES = ["BilledCost", "EffectiveCost", "ChargePeriodStart", "ChargePeriodEnd", "ResourceId", "ServiceName",
         "SubAccountId", "Tags"]  # fmt: skip


def _rows(seed: int, count: int = 300) -> list[dict[str, str]]:
    """Lines that are nearly all of a team, a machine, a service and an account of their own, of two clusters."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        since = datetime(2026, 11, 1 + n % 9, tzinfo=UTC) + timedelta(hours=n % 23)
        tags = {"team": rng.choice(["big", f"team-{n}"]), "cluster": rng.choice("ab")}
        usd = Decimal(rng.randint(-50, 500)) / 100
        rows.append({
            "BilledCost": str(usd), "EffectiveCost": str(usd * 2), "ChargePeriodStart": since.isoformat(),
            "ChargePeriodEnd": (since + timedelta(hours=1)).isoformat(), "ResourceId": f"i-0{n:08x}",
            "ServiceName": f"service-{n}", "SubAccountId": f"account-{n % 50}", "Tags": json.dumps(tags),
        })  # fmt: skip
    return rows


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, NAMES)
        out.writeheader()
        out.writerows(rows)


def _sums(bill: Bill) -> tuple[Decimal, Decimal]:
    zero = Decimal(0)
    return sum((row.usd for row in bill.days), zero), sum((row.effective_usd or zero for row in bill.days), zero)


def _of(rows: list[dict[str, str]], accounts: set[str], *clusters: str) -> tuple[Decimal, Decimal]:
    own = [row for row in rows if row["SubAccountId"] in accounts and json.loads(row["Tags"])["cluster"] in clusters]
    zero = Decimal(0)
    return sum((Decimal(row["BilledCost"]) for row in own), zero), sum(
        (Decimal(row["EffectiveCost"]) for row in own), zero
    )


@pytest.mark.parametrize("most", [100_000, 200, 20])
@pytest.mark.parametrize("seed", range(3))
def test_details_are_folded_and_no_dollar_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most: int
) -> None:
    """Whose a line is stays as it was: by account and tag, whatever names became one."""
    monkeypatch.setattr(focus, "MOST_LINES", most)
    monkeypatch.setattr(focus, "FEW_LINES", 1)
    monkeypatch.setattr(focus_query, "MOST_NAMES", 3)
    rows = _rows(seed)
    _write(tmp_path / "bill.csv", rows)
    accounts = {"account-1", "account-7", "account-30"}
    scope = BillScope(accounts=tuple(sorted(accounts)), tags={"cluster": "{cluster}"})
    for cluster in "ab":
        bill = FocusBills(str(tmp_path / "*.csv"), Rules(cluster=cluster, scope=scope)).read(START, END)
        assert _sums(bill) == _of(rows, accounts, cluster)
        assert [one.message.startswith(f"the bill has more than {most:,} groups") for one in bill.findings] == (
            [True] if most < len(rows) else []
        )


def test_many_files_keep_no_more_details_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory holds is of all files together: the first are told whole, the others' names are folded."""
    monkeypatch.setattr(focus, "MOST_LINES", 100)
    monkeypatch.setattr(focus, "FEW_LINES", 5)
    monkeypatch.setattr(focus_query, "MOST_NAMES", 1)
    rows = _rows(5)
    for number in range(30):
        _write(tmp_path / f"bill-{number}.csv", rows[10 * number : 10 * number + 10])
    bills = FocusBills(str(tmp_path / "*.csv"), Rules())
    listing, read = bills.files(), list[BillFile]()
    for group in listing.groups:
        read.append(bills.read_file(listing, group, read, START, END))
    assert [bool(file.folded) for file in read] == [False] * 10 + [True] * 20
    assert _sums(bills.join(listing, read, END)) == _of(rows, {f"account-{n}" for n in range(50)}, "a", "b")


def test_the_team_of_most_lines_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dollars are its own to the cent; the others' are told in one sum."""
    monkeypatch.setattr(focus, "MOST_LINES", 50)
    monkeypatch.setattr(focus, "FEW_LINES", 50)
    monkeypatch.setattr(focus_query, "MOST_NAMES", 1)
    rows = _rows(7)
    _write(tmp_path / "bill.csv", rows)
    bill = FocusBills(str(tmp_path / "*.csv"), Rules()).read(START, END)
    big = [row for row in rows if json.loads(row["Tags"])["team"] == "big"]
    assert sum(row.usd for row in bill.days if row.team == "big") == sum(Decimal(row["BilledCost"]) for row in big)
    assert {row.team for row in bill.days} == {"big", "(others)"}
    others = sum(row.usd for row in bill.days if row.team == "(others)")
    assert f"${others:,.2f} is of no team by name" in bill.findings[0].message


def test_machines_that_nobody_knows_are_summed(tmp_path: Path) -> None:
    """Of machines those that the meter knows keep their name."""
    _write(tmp_path / "bill.csv", _rows(2))
    bills = FocusBills(str(tmp_path / "*.csv"), Rules())
    listing = bills.files()
    known = ["i-000000001", "i-000000002"]
    file = bills.read_file(listing, listing.groups[0], [], START, END, known)
    assert {line.instance for line in file.lines} == {"", *known}
    assert _sums(bills.join(listing, [file], END)) == _sums(bills.read(START, END))


@pytest.mark.parametrize("most", [100_000, 64])
def test_a_sample_of_lines_tells_a_re_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Written again with corrections the whole counts once; a file of a few new lines adds."""
    monkeypatch.setattr(focus, "MOST_KEYS", most)
    rows = _rows(3, 600)
    again: list[Mapping[str, str]] = [{**row, "BilledCost": "1", "EffectiveCost": "1"} for row in rows]
    _write(tmp_path / "bill-2026-11-20.csv", rows)
    _write(tmp_path / "bill-2026-11-21.csv", [dict(row) for row in again])
    bill = FocusBills(str(tmp_path / "*.csv"), Rules()).read(START, END)
    assert _sums(bill)[0] == 600
    assert ["apart" in one.message for one in bill.findings] == [True]
