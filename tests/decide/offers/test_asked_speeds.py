"""A GPU model whose speed beside the others has no source is asked for by name, and what the line asks for mends it."""

import re
from pathlib import Path

import pytest
from small_fleet import offering, plan, pod

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.facts.offers.catalog import speeds
from pilotlight.facts.place.pod_verdicts import Rejected
from pilotlight.facts.workload import WorkloadClass

CATALOG = Path(__file__).parents[3] / "data" / "catalogs" / "articles.yaml"
SHIPPED = read_catalog(CATALOG.read_bytes(), CATALOG.name).throughput
MODELS = ("T4", "A10G", "L4", "L40S", "V100", "A100", "H100", "H200")
ASKS = re.compile(
    r"set the policy's prices\.throughput\.(\w+)\.(\w+) .* to its speed on your work, where \w+ is [\d.]+$"
)


def asked(model: str, workload: WorkloadClass, table: dict[str, dict[str, float]]) -> list[Rejected]:
    """The options left out for want of a speed, of the model and the one that its class is measured by."""
    base = "A100" if model == "V100" else "V100"
    two = [offering(name.lower(), name, 1, "2") for name in (base, model)]
    made = plan([pod("p", workload_class=workload)], offerings=two, throughput=table)
    return [one for one in made.pods[0].rejected if one.code == "throughput"]


@pytest.mark.parametrize("workload", ["training", "serving"])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_a_speed_or_a_line_that_asks_for_it(model: str, workload: WorkloadClass) -> None:
    """With the catalogue that ships; once what the line names is set, the model compares, and so do the others."""
    table = speeds(SHIPPED)
    found = asked(model, workload, table)
    assert bool(found) == (model not in table[workload])
    for one in found:
        assert one.offering.startswith(model.lower())
        named = ASKS.search(one.why)
        assert named is not None
        assert named.groups() == (workload, model)
        mended = speeds(table, {workload: {model: 0.5}})
        assert asked(model, workload, mended) == []
        assert mended[workload].items() > table[workload].items()
