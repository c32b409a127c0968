"""ServiceMonitor and PrometheusRule, as a real API server with the Prometheus operator's definitions takes them.

The definitions are not ours to keep: PROMETHEUS_OPERATOR_CRDS names a folder with monitoring.coreos.com's
``prometheusrules.yaml`` and ``servicemonitors.yaml`` (example/prometheus-operator-crd of that project).
"""

import os
from pathlib import Path

import pytest
import yaml
from helm import ROOT, Json, needs_helm, objects_of, rendered
from real_api import applied, real_api, taken

from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.errors import PilotlightError

pytestmark = pytest.mark.cluster
ON = {"enabled": True}
VALUES = {"image": {"repository": "registry.example.com/pilotlight"}, "monitoring": {"serviceMonitor": ON, "rules": ON}}


@pytest.fixture
def api() -> Api:
    """With the operator's two definitions."""
    here, folder = real_api(), os.environ.get("PROMETHEUS_OPERATOR_CRDS", "")
    if not folder:
        pytest.skip("PROMETHEUS_OPERATOR_CRDS names no folder with the operator's definitions")
    for path in sorted(Path(folder).glob("*s.yaml")):
        applied(here, yaml.safe_load(path.read_text()))
    return here


def test_the_rule_is_one_that_the_operator_takes(api: Api) -> None:
    """infra/prometheus/prometheusrule.yaml has each field that is required, and none that is unknown."""
    rule = yaml.safe_load((ROOT / "infra" / "prometheus" / "prometheusrule.yaml").read_text())
    taken(api, _here(rule))
    rule["spec"]["groups"][0]["rules"][0]["exprs"] = "up"
    with pytest.raises(PilotlightError, match="exprs"):
        taken(api, rule)


@needs_helm
@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_the_charts_are_too(api: Api, kind: str) -> None:
    """With all that is watched switched on."""
    [answer] = rendered(VALUES)
    [made] = [each for each in objects_of(answer) if each["kind"] == kind]
    taken(api, _here(made))


def _here(made: Json) -> Json:
    """In a namespace that every cluster has: a dry run leaves nothing there."""
    made["metadata"]["namespace"] = "default"
    return made
