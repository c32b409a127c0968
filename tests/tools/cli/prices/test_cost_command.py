"""``pilotlight cost-of-self`` on the price file that comes with it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import own_operations
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


@pytest.mark.parametrize("file", ["self.yaml", "self-aws.yaml"])
def test_what_a_minute_of_nodes_asks_of_the_store_is_what_was_counted(file: str) -> None:
    """Ten minutes of the bench's cluster of 100 nodes, each cloud by its own units, within a third."""
    uses = yaml.safe_load(Path("data/prices", file).read_text())["uses"]
    counted = own_operations.minute(100, 10, 10).counts
    for what in ("read_units", "write_units") if "aws" in file else ("reads", "writes"):
        told = sum(uses[f"{of}_{what}"]["amount"] * n for of, n in (("minute", 1), ("budget", 10), ("node", 100)))
        assert told == pytest.approx(counted[what], rel=1 / 3)


def test_a_minute_of_twenty_budgets_asks_the_store_sixty_times_at_most() -> None:
    """A tick and a billing tick together; of ten times the nodes only as many more as records of holds."""
    few, many = (own_operations.minute(nodes, 20, 10).counts["calls"] for nodes in (10, 100))
    assert few <= many <= min(60, few + 8)


@pytest.mark.parametrize(("file", "what"), [("self.yaml", "reads"), ("self-aws.yaml", "read_units")])
def test_what_earlier_days_ask_of_the_store_is_what_was_counted(file: str, what: str) -> None:
    """Each of the 35 days that an hour of 100 nodes looks back on, as metered and as billed by node."""
    uses = yaml.safe_load(Path("data/prices", file).read_text())["uses"]
    fresh, old = own_operations.minute(100, 1, 60), own_operations.minute(100, 1, 60, 35, billed=True)
    told = sum(
        uses[f"{of}_{what}"]["amount"] + 100 * uses[f"{of}_node_{what}"]["amount"] for of in ("day", "billed_day")
    )
    assert told == pytest.approx((old.counts[what] - fresh.counts[what]) / 35, rel=1 / 3)


def test_on_aws_its_own_store_queues_and_lambda_are_counted() -> None:
    """DynamoDB by units that grow with nodes and budgets, Athena by what a bill's table has; nothing of Google's."""

    def told(*words: str) -> dict[str, Decimal]:
        body = json.loads(_run("--events-per-day", "2000", "--cloud", "aws", "--json", *words))
        return {line["what"]: Decimal(line["usd"]) for line in body["lines"]}

    few, many = told("--nodes", "10"), told("--nodes", "1000", "--budgets", "50", "--bill-gib", "100")
    assert few.keys() == {
        "request", "gib_second", "scanned_gib", "secret_version", "read_unit", "write_unit", "scheduled_call",
        "queue_request",
    }  # fmt: skip
    assert few["scanned_gib"] == 0
    assert all(few[what] < many[what] for what in ("read_unit", "write_unit", "scanned_gib"))
    assert sum(few.values()) < sum(many.values())


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
