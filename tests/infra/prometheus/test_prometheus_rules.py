"""The rules for Prometheus, run by promtool: each fires, and does not fire on the other side of its threshold."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

RULES = Path(__file__).resolve().parents[3] / "infra" / "prometheus"
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (apt-get install prometheus)")


def _rules(folder: Path = RULES) -> list[dict[str, Any]]:
    groups = yaml.safe_load((folder / "rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _tried() -> dict[str, list[bool]]:
    """Per alert, whether it was expected to fire, for every time it is looked at."""
    found: dict[str, list[bool]] = {}
    for test in yaml.safe_load((RULES / "rules_test.yaml").read_text())["tests"]:
        for look in test.get("alert_rule_test", ()):
            found.setdefault(look["alertname"], []).append(bool(look["exp_alerts"]))
    return found


def _promtool(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True)


@needs_promtool
def test_promtool_agrees() -> None:
    """The rules are well formed and behave as rules_test.yaml says."""
    assert _promtool("check", "rules", RULES / "rules.yaml").returncode == 0
    run = _promtool("test", "rules", RULES / "rules_test.yaml")
    assert run.returncode == 0, run.stdout + run.stderr


@needs_promtool
def test_cloud_monitorings_alerts_behave_as_prometheus_ones(tmp_path: Path) -> None:
    """The queries and waits that Terraform gives Cloud Monitoring fire, and do not, where those of the rules do."""
    cloud = json.loads((RULES.parent / "terraform" / "google" / "alerts.json").read_text())
    rules = yaml.safe_load((RULES / "rules.yaml").read_text())
    own = next(group["rules"] for group in rules["groups"] if group["name"] == "pilotlight-own")
    for rule in own:
        rule |= {"expr": cloud[rule["alert"]]["query"], "for": cloud[rule["alert"]]["duration"]}
    assert {rule["alert"] for rule in own} == cloud.keys()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    shutil.copy(RULES / "rules_test.yaml", tmp_path)
    run = _promtool("test", "rules", tmp_path / "rules_test.yaml")
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_is_seen_to_fire_and_not_to() -> None:
    """Every alert has a test in which it fires, and one in which it does not."""
    alerts = {rule["alert"] for rule in _rules() if "alert" in rule}
    assert {name for name, seen in _tried().items() if set(seen) == {True, False}} == alerts


THRESHOLDS = [
    pytest.param("> 85 < 1000", "> 80 < 1000", id="a GPU of 85 C is not hot"),
    pytest.param("< 0.20", "< 0.25", id="21 % is not under-used"),
    pytest.param("< 0.05 unless", "< 0.07 unless", id="6 % is not idle"),
    pytest.param("* 3600 > 0.05", "* 3600 > -1", id="full and steady is no leak"),
    pytest.param(" == 0", " >= 0", id="links that carry are no stall"),
    pytest.param("> 3600", "> 600", id="half an hour is no long wait"),
    pytest.param("< 0.4", "< 0.6", id="half is no low share of spot"),
    pytest.param("> 900", "> 100", id="ten minutes are no silence"),
    pytest.param("+ (DCGM_FI_DEV_FB_FREE < 9e18)", "", id="used over free is not used over all"),
]


@needs_promtool
@pytest.mark.parametrize(("text", "other"), THRESHOLDS)
def test_another_threshold_is_noticed(text: str, other: str, tmp_path: Path) -> None:
    """The tests of the rules fail where a threshold moves: they look closely at both sides."""
    for name in ("rules.yaml", "rules_test.yaml"):
        (tmp_path / name).write_text((RULES / name).read_text())
    rules = (tmp_path / "rules.yaml").read_text()
    assert text in rules
    (tmp_path / "rules.yaml").write_text(rules.replace(text, other))
    assert _promtool("test", "rules", tmp_path / "rules_test.yaml").returncode != 0


def test_names_are_todays() -> None:
    """No name of dcgm-exporter 1.x, no bare histogram, no GPU resource with dots, no join on DCGM's node."""
    text = " ".join(str(rule["expr"]) for rule in _rules())
    assert re.findall(r"\bdcgm_\w+|nvidia_gpu_\w+|nvidia\.com/gpu", text) == []
    assert re.findall(r"kueue_admission_wait_time_seconds\b(?!_)", text) == []
    assert "count(kube_pod_container_resource" not in text
