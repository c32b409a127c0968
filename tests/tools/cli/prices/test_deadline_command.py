"""``pilotlight deadline``, as a person runs it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import PilotlightError
from pilotlight.tools.cli.main import build

RUN = CliRunner()
PRICES = ("--price", "1", "--spot", "0.3")


def _said(*words: str) -> str:
    done = RUN.invoke(build(["deadline"]), ["deadline", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_plan_is_cheaper_than_on_demand_and_never_late() -> None:
    """Its figures: expected, median and P90 dollars, and no late run among those drawn."""
    found = json.loads(_said("--work", "24h", "--by", "48h", "--price", "3", "--spot", "1", "--json"))
    assert Decimal(found["on_demand_usd"]) == 72
    assert 24 < Decimal(found["expected_usd"]) < 72
    assert Decimal(found["median_usd"]) <= Decimal(found["p90_usd"])
    assert found["late"] == 0


def test_a_zone_that_is_known_is_used(tmp_path: Path) -> None:
    """A file of a zone that is always up says more than what is taken: the whole job on spot."""
    zone = tmp_path / "zone.json"
    zone.write_text('{"gap_s": 600, "runs": [[1, 1200]]}')
    found = json.loads(_said("--work", "24h", "--by", "30h", *PRICES, "--zones", str(zone), "--json"))
    assert found["zone"] == str(zone)
    assert Decimal(found["expected_usd"]) < 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--by", "48h", *PRICES), "the earliest deadline is", id="a deadline that cannot be met"),
        pytest.param(("--by", "72h"), "name both prices, as --price 3.06 --spot 0.92", id="no prices"),
        pytest.param(("--by", "72h", "--price", "3"), "name both prices", id="one price"),
        pytest.param(("--work", "48", "--by", "72h", *PRICES), "--work 48 has no unit: write 48h", id="work, no unit"),
        pytest.param(("--by", "72", *PRICES), "--by 72 has no unit: write 72h", id="a deadline without its unit"),
        pytest.param(("--by", "72h", "--restart", "10", *PRICES), "--restart 10 has no unit: write 10m", id="a start"),
        pytest.param(("--by", "soon"), "--by 'soon' is no time", id="a deadline that is none"),
        pytest.param(("--by", "2030-01-01T00:00:00"), "has no zone", id="a time without its zone"),
        pytest.param(
            ("--by", "72h", "--price", "1", "--spot", "2"),
            "must be above 0 and at most --price",
            id="spot dearer than all",
        ),
        pytest.param(("--by", "72h", *PRICES, "--zones", "/no/file"), "/no/file", id="a zone without a file"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(words: tuple[str, ...], said: str) -> None:
    """What is wrong, and what to write instead."""
    with pytest.raises(PilotlightError) as found:
        _said("--work", "48h", *words)
    assert said in str(found.value)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"gap_s": 0, "runs": [[1, 2]]}', '{"gap_s": 60, "runs": []}', '{"gap_s": 60, "runs": [[1, -2]]}'],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """Nothing is planned on a file that cannot be read."""
    zone = tmp_path / "zone.json"
    zone.write_text(text)
    with pytest.raises(PilotlightError, match=r"zone\.json"):
        _said("--work", "48h", "--by", "72h", *PRICES, "--zones", str(zone))
