"""The catalogue file: what is read, and how it is refused."""

from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput

CATALOGS = Path(__file__).parents[2] / "data" / "catalogs"
SMALL = """
name: small
as_of: "2026-07-01T00:00:00Z"
instance_types:
  t4:
    cloud: eks
    gpu_model: T4
    gpus: 1
    memory: 16Gi
    prices:
      on-demand: {usd_per_hour: 0.526, source: a list, date: 2026-07-01}
throughput:
  batch: {T4: 1}
"""


@pytest.mark.parametrize("path", sorted(CATALOGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_catalogue_in_the_repository_is_read(path: Path) -> None:
    """The catalogues that ship are valid, and every price names its source."""
    catalog = read_catalog(path.read_bytes(), path.name)
    prices = [price for offered in catalog.instance_types.values() for price in offered.prices.values()]
    assert prices
    assert all(price.source for price in prices)


def test_the_replay_catalogue_holds_the_prices_of_the_rules() -> None:
    """The replay's five types cost what the rules of the replay say, on demand and on spot."""
    catalog = read_catalog((CATALOGS / "replay.yaml").read_bytes(), "replay.yaml")
    costs = {
        name: tuple(str(offered.prices[kind].usd_per_hour) for kind in ("on-demand", "spot"))
        for name, offered in catalog.instance_types.items()
    }
    assert costs == {
        "g4dn.xlarge": ("0.526", "0.19"),
        "g5.xlarge": ("1.01", "0.35"),
        "p3.2xlarge": ("3.06", "1.17"),
        "p3.8xlarge": ("12.24", "4.68"),
        "p4d.24xlarge": ("32.77", "12.50"),
    }


def test_a_price_is_the_decimal_that_was_written() -> None:
    """A price never passes through a binary float."""
    assert read_catalog(SMALL, "c").instance_types["t4"].prices["on-demand"].usd_per_hour == Decimal("0.526")


@pytest.mark.parametrize(
    ("written", "instead", "refusal"),
    [
        pytest.param("0.526", "-1", "on-demand.usd_per_hour: must be a positive number", id="a negative price"),
        pytest.param("0.526", "0", "on-demand.usd_per_hour: must be a positive number", id="a price of nothing"),
        pytest.param("0.526", "nan", "on-demand.usd_per_hour: must be a positive number", id="a price of NaN"),
        pytest.param("0.526", "1e99", "on-demand.usd_per_hour: must be a positive number", id="an absurd price"),
        pytest.param("0.526", "cheap", "on-demand.usd_per_hour: must be a number", id="a price in words"),
        pytest.param("date: 2026-07-01", "date: July", "date: must be a day", id="a price without a day"),
        pytest.param("source: a list, ", "", "prices.on-demand: source is missing", id="a price without a source"),
        pytest.param("on-demand:", "monthly:", "instance_types.t4.prices: Invalid", id="an unknown capacity type"),
        pytest.param("gpus: 1", "gpus: one", "instance_types.t4.gpus: must be a whole number", id="gpus in words"),
        pytest.param(
            "gpus: 1", "gpus: 1\n    resource: gpu", "resource: 'gpu' is not one of nvidia.com/gpu", id="a resource"
        ),
        pytest.param("gpus: 1", "gpus: 0", "instance_types.t4.gpus: must be 1 or more", id="a node without a GPU"),
        pytest.param(
            "gpus: 1", "gpus: 9999999999999999999", "t4.gpus: must be 1 or more, and at most", id="absurd GPUs"
        ),
        pytest.param(
            "gpus: 1", "gpus: 1\n    boot_s: 1e300", "t4.boot_s: must be 0 or more, and at", id="an absurd boot"
        ),
        pytest.param("gpus: 1", "gpus: 1\n    boot_s: nan", "t4.boot_s: must be 0 or more, and at", id="a boot of NaN"),
        pytest.param("16Gi", "１６Gi", "t4.memory: '１６Gi' is not a quantity", id="digits of another script"),
        pytest.param("16Gi", "16Gx", "t4.memory: '16Gx' is not a quantity", id="memory in an unknown unit"),
        pytest.param("cloud:", "clod:", "instance_types.t4: unknown key clod", id="an unknown key of a type"),
        pytest.param("name: small", "nam: small", "unknown key nam", id="an unknown key of the file"),
        pytest.param("00Z", "00", "as_of: must be a time with its zone", id="a moment without a zone"),
        pytest.param("{T4: 1}", "{T4: -1}", "throughput.batch.T4: must be a positive number", id="a negative speed"),
        pytest.param("{T4: 1}", "{T4: 1", "not YAML", id="a bracket that is left open"),
    ],
)
def test_a_wrong_catalogue_is_refused_by_file_and_key(written: str, instead: str, refusal: str) -> None:
    """Whatever is wrong is told in one line that names the file and the key."""
    assert written in SMALL
    with pytest.raises(BadInput) as caught:
        read_catalog(SMALL.replace(written, instead, 1), "prices.yaml")
    assert str(caught.value).startswith("prices.yaml")
    assert refusal in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"just words", b"\xff\xfe\x00", b"\x00"])
def test_what_is_no_catalogue_at_all_is_refused(text: bytes) -> None:
    """An empty file, a list, a sentence or binary is bad input, not a crash."""
    with pytest.raises(BadInput, match=r"prices\.yaml"):
        read_catalog(text, "prices.yaml")
