"""A price file of a region from AWS itself: ``pilotlight sizes`` over moto's EC2, with the Price List beside it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aws_server import Aws, serving
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import build

REGION = "eu-west-1"


@pytest.fixture
def aws(dynamodb_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """The Price List of an account whose EC2 is moto's, and the environment that reaches both."""
    here = Aws(world())
    here.listed = {"g5.xlarge": "1.123", "g4dn.xlarge": "0.587", "gp3": "0.088", "gp2": "0.11"}
    with serving(here) as environ:
        for name, value in {**environ, "AWS_ENDPOINT_URL_EC2": dynamodb_server}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PILOTLIGHT_POOLS", f"asg:{REGION}/prod")
        yield here


def run(*words: str) -> str:
    """What is printed."""
    done = CliRunner().invoke(build([words[0]]), [*words, "--region", REGION], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_regions_file_has_machines_both_ways_to_buy_and_disks_of_the_day(aws: Aws, tmp_path: Path) -> None:
    """It is whole as it is written: each figure with its source and today's day, its prices those of that region; the
    other command renews it.
    """
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    text = run("sizes", "g5.xlarge", "g4dn.xlarge", "--catalog")
    found = read_catalog(text, "prices.yaml")
    assert (found.region, [kind.memory for kind in found.instance_types.values()]) == (REGION, ["16384Mi", "16384Mi"])
    for name, usd in (("g5.xlarge", "1.123"), ("g4dn.xlarge", "0.587")):
        prices = found.instance_types[name].prices
        assert (list(prices), str(prices["on-demand"].usd_per_hour)) == (["on-demand", "spot"], usd)
        assert {(each.date, REGION in each.source) for each in prices.values()} == {(today, True)}
    disks = [(name, str(disk.usd_per_gib_month), disk.date) for name, disk in found.disks.items()]
    assert disks == [("gp3", "0.088", today), ("gp2", "0.11", today)]
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    aws.listed = {"g5.xlarge": "1.2", "g4dn.xlarge": "0.6", "gp3": "0.09", "gp2": "0.12"}
    run("prices", str(file))
    after = read_catalog(file.read_bytes(), "prices.yaml")
    assert [str(kind.prices["on-demand"].usd_per_hour) for kind in after.instance_types.values()] == ["1.2", "0.6"]
    assert [str(disk.usd_per_gib_month) for disk in after.disks.values()] == ["0.09", "0.12"]


def test_a_region_by_its_name_is_awss(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a laptop, with nothing deployed."""
    monkeypatch.delenv("PILOTLIGHT_POOLS")
    assert read_catalog(run("sizes", "g5.xlarge", "--catalog"), "prices.yaml").region == REGION


def test_what_aws_does_not_tell_is_left_to_write(aws: Aws) -> None:
    """Without the right to the Price List the file is refused until a person has written it: never $0."""
    aws.listed = None
    text = run("sizes", "g5.xlarge", "--catalog")
    assert text.startswith("# YOUR-PRICE")
    with pytest.raises(BadInput, match=r"g5\.xlarge\.prices\.on-demand\.usd_per_hour: must be a number"):
        read_catalog(text, "prices.yaml")


def test_the_list_of_sizes_says_how_their_prices_are_had(aws: Aws) -> None:
    """AWS tells them; nobody is sent to write them by hand."""
    said = " ".join(run("sizes", "g5.xlarge").split())
    assert "pilotlight sizes NAME --catalog > prices.yaml writes their prices of today" in said
