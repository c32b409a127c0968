"""Claims as they are posted, held against the schema of Karpenter's own CRD."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from api_store import Json
from karpenter_claims import CLASS, GPU, KarpenterWorld, claim_pools, on_claims

from pilotlight.facts.policy import PoolPolicy

TEMPLATE: Json = {
    "metadata": {"labels": {"team": "ml"}, "annotations": {"example.com/note": "kept"}},
    "spec": {
        "nodeClassRef": CLASS,
        "expireAfter": "720h",
        "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "boots", "effect": "NoExecute"}],
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["one", "two"], "minValues": 2},
            {"key": "karpenter.k8s.aws/instance-local-nvme", "operator": "Gt", "values": ["100"]},
            {"key": "example.com/rack", "operator": "Exists"},
        ],
    },
}
"""What a NodePool's template hands on."""


@pytest.fixture
def schema(shelf: Path) -> Json:
    """The schema of NodeClaims in karpenter.sh/v1."""
    crd = yaml.safe_load((shelf / "contracts/crds/karpenter/karpenter.sh_nodeclaims.yaml").read_text())
    found: Json = next(one for one in crd["spec"]["versions"] if one["name"] == "v1")["schema"]["openAPIV3Schema"]
    return found


@pytest.fixture
def server() -> Iterator[KarpenterWorld]:
    """An API server whose NodePool ``gpu`` has that template."""
    with on_claims() as (made, _):
        made.node_pool("gpu", template=TEMPLATE)
        yield made


def posted(server: KarpenterWorld, kind: Any, zone: str) -> Json:
    """The claim that a purchase posts."""
    pools = claim_pools(server, {"one": PoolPolicy(instance_type="one", capacity_type=kind, cluster_pool="gpu")})
    pools.grow("one", 1, zone, token="step-1")
    (body,) = [one.json() for one in server.requests if one.line.startswith("POST") and "nodeclaims" in one.path]
    return dict(body)


def unknown(body: Any, schema: Json, path: str = "") -> list[str]:
    """Fields that an API server would drop without a word; metadata is Kubernetes' own."""
    if isinstance(body, list):
        return [odd for one in body for odd in unknown(one, schema.get("items", {}), path)]
    if not isinstance(body, dict) or "properties" not in schema:
        return []
    odd = [f"{path}.{key}" for key in body if key not in schema["properties"]]
    found = schema["properties"]
    return odd + [one for key in body if key in found for one in unknown(body[key], found[key], f"{path}.{key}")]


@pytest.mark.parametrize("zone", ["", "b"])
@pytest.mark.parametrize("kind", ["on-demand", "spot", "reserved"])
def test_what_is_posted_is_by_the_crds_schema(server: KarpenterWorld, schema: Json, kind: str, zone: str) -> None:
    """Of each capacity type, with a zone and without, and no field of it is unknown there."""
    claim = posted(server, kind, zone)
    jsonschema.validate(claim, schema)
    assert unknown(claim, schema) == []


def test_the_schema_refuses_what_is_none(server: KarpenterWorld, schema: Json) -> None:
    """The comparison can fail: an operator, a duration and a field that Karpenter does not know."""
    claim = posted(server, "spot", "b")
    (first, *_) = claim["spec"]["requirements"]
    for spec in ({"requirements": [{**first, "operator": "Is"}]}, {"expireAfter": "30 days"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**claim, "spec": {**claim["spec"], **spec}}, schema)
    assert unknown({**claim, "spec": {**claim["spec"], "zone": "b"}}, schema) == [".spec.zone"]
