"""``pilotlight sizes`` over a server that answers as Civo does."""

import json
from collections.abc import Iterator

import pytest
from civo_server import CLUSTER, REGION, TOKEN, Civo, serving
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput, Forbidden
from pilotlight.tools.cli.main import build


@pytest.fixture(autouse=True)
def civo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Civo]:
    """An account, and the environment that reaches it."""
    here = Civo(world())
    with serving(here) as url:
        monkeypatch.setenv("CIVO_API_URL", url)
        monkeypatch.setenv("CIVO_TOKEN", TOKEN)
        yield here


def run(*words: str) -> str:
    """What is printed."""
    done = CliRunner().invoke(build(["sizes"]), ["sizes", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_sizes_with_gpus_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region is the deployment's where none is named; what to do about prices is said."""
    monkeypatch.setenv("PILOTLIGHT_POOLS", f"civo:{REGION}/{CLUSTER}")
    assert all(words in run() for words in ("g4g.kube.small", "no price"))
    assert [size["gpus"] for size in json.loads(run("--region", REGION, "--json"))] == [1]


def test_a_price_file_is_refused_until_its_prices_are_written() -> None:
    """A catalogue in all but the price, which is the user's to write; then it is one, billed by the hour."""
    text = run("g4g.kube.small", "--region", REGION, "--catalog")
    with pytest.raises(BadInput, match="usd_per_hour"):
        read_catalog(text.encode(), "prices.yaml")
    found = read_catalog(text.replace("usd_per_hour: YOUR-PRICE", "usd_per_hour: 1.5").encode(), "prices.yaml")
    machine = found.instance_types["g4g.kube.small"]
    assert (machine.gpus, machine.memory, machine.minimum_s, machine.increment_s) == (1, "98304Mi", 3600, 3600)


@pytest.mark.parametrize(
    ("words", "why"), [((), "name a region"), (("g9", "--region", REGION), "g9 is no size of LON1")]
)
def test_what_is_missing_is_named(words: tuple[str, ...], why: str) -> None:
    """A region, or a size that is not there."""
    with pytest.raises(BadInput, match=why):
        run(*words)


def test_a_token_that_is_refused_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the call."""
    monkeypatch.setenv("CIVO_TOKEN", "another-token")
    with pytest.raises(Forbidden) as raised:
        run("--region", REGION)
    assert "another-token" not in str(raised.value)
