"""ServiceMonitor and PrometheusRule, as the Prometheus operator's own definitions take them.

The definitions are not ours to keep: PROMETHEUS_OPERATOR_CRDS names a folder with monitoring.coreos.com's
``prometheusrules.yaml`` and ``servicemonitors.yaml`` (example/prometheus-operator-crd of that project).
"""

import copy
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helm import ROOT, needs_helm, objects_of, rendered

CRDS = os.environ.get("PROMETHEUS_OPERATOR_CRDS", "")
pytestmark = pytest.mark.skipif(not CRDS, reason="needs PROMETHEUS_OPERATOR_CRDS: the operator's definitions")
ON = {"enabled": True}
VALUES = {"image": {"repository": "registry.example.com/pilotlight"}, "monitoring": {"serviceMonitor": ON, "rules": ON}}

Json = dict[str, Any]


def _schema(kind: str) -> Json:
    """The definition of a kind, in which a field that is not named is refused."""
    [path] = Path(CRDS).glob(f"*{kind.lower()}s.yaml")
    [version] = yaml.safe_load(path.read_text())["spec"]["versions"]
    made: Json = _strict(version["schema"]["openAPIV3Schema"])
    return made


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(each) for key, each in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made:
        made.setdefault("additionalProperties", False)
    if made.pop("x-kubernetes-int-or-string", False):
        made["type"] = ["integer", "string"]
    return made


def _problems(made: Json) -> list[str]:
    # The API server knows what metadata may hold.
    schema = copy.deepcopy(_schema(made["kind"]))
    schema["properties"]["metadata"] = {"type": "object"}
    return [error.message[:200] for error in jsonschema.Draft202012Validator(schema).iter_errors(made)]


def test_the_rule_is_one_that_the_operator_takes() -> None:
    """infra/prometheus/prometheusrule.yaml has each field that is required, and none that is unknown."""
    rule = yaml.safe_load((ROOT / "infra" / "prometheus" / "prometheusrule.yaml").read_text())
    assert _problems(rule) == []
    rule["spec"]["groups"][0]["rules"][0]["exprs"] = "up"
    assert _problems(rule) != []


@needs_helm
@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_the_charts_are_too(kind: str) -> None:
    """With all that is watched switched on."""
    [answer] = rendered(VALUES)
    [made] = [each for each in objects_of(answer) if each["kind"] == kind]
    assert _problems(made) == []
