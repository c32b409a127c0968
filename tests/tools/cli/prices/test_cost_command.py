"""``pilotlight cost-of-self`` on the price file that comes with it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import build


def _run(*words: str) -> str:
    run = CliRunner().invoke(build(["cost-of-self"]), ["cost-of-self", *words], catch_exceptions=False)
    assert run.exit_code == 0
    return run.stdout


def test_the_lines_add_up_and_name_their_sources() -> None:
    """The total is the sum of its lines, and each line says where its price is from."""
    body = json.loads(_run("--events-per-day", "2000", "--json"))
    total = sum(Decimal(line["usd"]) for line in body["lines"])
    assert total == Decimal(body["usd_per_month"])
    assert all(line["source"] for line in body["lines"])
    assert body["as_of"] == "2026-11-21"


def test_it_grows_with_nodes_and_budgets() -> None:
    """A thousand nodes cost more in store operations than ten, and not twice as much."""

    def usd(*words: str) -> Decimal:
        return Decimal(json.loads(_run("--events-per-day", "0", "--json", *words))["usd_per_month"])

    few, many = usd("--nodes", "10"), usd("--nodes", "1000")
    assert few < many < few * 2
    assert usd("--budgets", "50") > usd("--budgets", "1")


def test_the_table_says_what_is_assumed() -> None:
    """A person sees which figures no page gave."""
    assert "Assumed" in _run("--events-per-day", "0")


def test_a_price_file_without_a_price_is_refused(tmp_path: Path) -> None:
    """The missing price is named."""
    file = tmp_path / "prices.yaml"
    file.write_text("as_of: 2026-11-21\nregion: r\nprices: {}\nuses: {cpu_seconds: {amount: 1, source: s}}\n")
    with pytest.raises(BadInput, match="is missing"):
        CliRunner().invoke(
            build(["cost-of-self"]),
            ["cost-of-self", "--events-per-day", "1", "--prices", str(file)],
            catch_exceptions=False,
        )
