"""``pilotlight prices`` over a server that answers as AWS does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_server import Aws, serving
from small_cloud import world
from typer.testing import CliRunner, Result

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.tools.cli.main import build

FILE = """
name: aws-eu-west-1
as_of: 2026-01-01T00:00:00Z
region: eu-west-1
disks: {gp3: {usd_per_gib_month: 0.1, source: a page, date: 2026-01-01}}
throughput: {batch: {T4: 1.0}}
instance_types:
  g4dn.xlarge: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16384Mi, boot_s: 90,
                prices: {on-demand: {usd_per_hour: 0.5, source: a page, date: 2026-01-01}}}
  g5.xlarge: {cloud: eks, gpu_model: A10G, gpus: 1,
              prices: {on-demand: {usd_per_hour: 1, source: a page, date: 2026-01-01}}}
"""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """An account whose Price List and spot market are known, and the environment that reaches it."""
    here = Aws(world())
    here.listed = {"g4dn.xlarge": "0.5870000000", "g5.xlarge": "1.123", "gp3": "0.088"}
    here.spot = {"g4dn.xlarge": {"eu-west-1a": "0.21", "eu-west-1b": "0.23"}}
    with serving(here) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        yield here


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A price file of last winter."""
    path = tmp_path / "aws-eu-west-1.yaml"
    path.write_text(FILE)
    return path


def run(*words: object) -> Result:
    """The command's end."""
    return CliRunner().invoke(build(["prices"]), ["prices", *map(str, words), "--region", "eu-west-1"])


def test_a_file_gets_todays_prices_and_keeps_the_rest(aws: Aws, file: Path) -> None:
    """On demand from the Price List, spot of the dearest zone, each with its source; machines stay as they were."""
    before = read_catalog(file.read_bytes(), "before")
    assert run(file).exit_code == 0
    after = read_catalog(file.read_bytes(), "after")
    t4 = after.instance_types["g4dn.xlarge"].prices
    assert {kind: (str(price.usd_per_hour), price.source) for kind, price in t4.items()} == {
        "on-demand": ("0.587", "AWS Price List eu-west-1"),
        "spot": ("0.23", "EC2 eu-west-1b"),
    }
    assert t4["on-demand"].date > "2026-01-01"
    assert after.as_of > before.as_of
    assert [(k.memory, k.boot_s) for k in after.instance_types.values()] == [("16384Mi", 90.0), ("1Ei", 180.0)]
    assert after.throughput == before.throughput
    gp3 = after.disks["gp3"]
    assert (str(gp3.usd_per_gib_month), gp3.source, after.region) == ("0.088", "AWS Price List eu-west-1", "eu-west-1")


def test_a_file_without_a_region_or_disks_gets_those_of_the_region(aws: Aws, file: Path) -> None:
    """Its prices hold there alone from then on; of disks it gets those that are told."""
    lines = [line for line in FILE.splitlines() if not line.startswith(("region:", "disks:"))]
    file.write_text("\n".join(lines))
    done = run(file)
    assert (done.exit_code, "disks/gp3: no price -> $0.088" in done.output) == (0, True)
    after = read_catalog(file.read_bytes(), "after")
    assert (after.region, list(after.disks)) == ("eu-west-1", ["gp3"])


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(aws: Aws, file: Path) -> None:
    """The old price and its date beside the new one, as lines or JSON."""
    said = run(file, "--dry-run").output
    assert "g4dn.xlarge/on-demand: $0.5 of 2026-01-01 -> $0.587 of" in said
    found = json.loads(run(file, "--dry-run", "--json").output)
    assert (len(found["changes"]), len(found["disks"]), found["not_told"], found["written"]) == (3, 1, [], False)
    assert file.read_text() == FILE


@pytest.mark.parametrize(
    ("listed", "kept"),
    [({"g4dn.xlarge": "0.587"}, ["g5.xlarge"]), (None, ["g4dn.xlarge", "g5.xlarge"])],
    ids=["a type that is not sold there", "no right to the Price List"],
)
def test_a_price_that_is_not_told_is_named_and_keeps_its_age(
    aws: Aws, file: Path, listed: dict[str, str] | None, kept: list[str]
) -> None:
    """It is never $0 and never younger than it is; the command ends with 1."""
    aws.listed = listed
    done = run(file)
    assert done.exit_code == 1
    after = read_catalog(file.read_bytes(), "after").instance_types
    assert all(f"{name}/on-demand" in str(done.exception or done.output) for name in kept)
    old = [name for name, kind in after.items() if kind.prices["on-demand"].date == "2026-01-01"]
    assert old == kept


@pytest.mark.parametrize(
    ("text", "why"),
    [(FILE.replace("cloud: eks", "cloud: civo"), "types of civo"), ("name: [", "not YAML")],
    ids=["of a cloud that tells no prices", "that cannot be read"],
)
def test_a_file_that_cannot_be_refreshed_is_refused(aws: Aws, tmp_path: Path, text: str, why: str) -> None:
    """Nothing is asked and nothing is written."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    done = run(path)
    assert done.exit_code != 0
    assert why in str(done.exception or done.output)
    assert (path.read_text(), aws.calls) == (text, [])


def test_the_file_of_another_region_is_refused(aws: Aws, file: Path) -> None:
    """One region's prices never come into another's file."""
    file.write_text(FILE.replace("region: eu-west-1", "region: us-east-1"))
    said = run(file)
    assert (said.exit_code, aws.calls) == (1, [])
    assert "has the prices of us-east-1" in str(said.exception)
