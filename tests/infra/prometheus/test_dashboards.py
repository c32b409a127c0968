"""The dashboards: written from one description, over figures that are exported, in queries that Prometheus takes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import dashboards
from pilotlight.facts.alerts.figures import FAMILIES

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "infra" / "prometheus" / "rules.yaml"
ENDS = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (apt-get install prometheus)")


def _queries() -> list[str]:
    """Every query of every board, for one cluster."""
    boards = [json.loads(path.read_text()) for path in sorted((ROOT / "infra" / "grafana").glob("*.json"))]
    return [
        target["expr"].replace("$cluster", "ml")
        for board in boards
        for panel in board["panels"]
        for target in panel["targets"]
    ]


def _recorded() -> set[str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def test_the_files_are_those_of_the_description() -> None:
    """`python scripts/dashboards.py` would change nothing."""
    for path, text in dashboards.files().items():
        assert path.read_text() == text


@needs_promtool
def test_prometheus_takes_every_query(tmp_path: Path) -> None:
    """promtool parses each query of each panel."""
    rules = [{"record": f"try:q{n}", "expr": query} for n, query in enumerate(_queries())]
    assert len(rules) > 20
    (tmp_path / "q.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    run = subprocess.run(["promtool", "check", "rules", str(tmp_path / "q.yaml")], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_dashboards_and_alerts_ask_for_what_is_exported() -> None:
    """Each name in a query is a figure of ours or recorded by our rules, and each figure of ours is shown somewhere."""
    alerts = [
        str(rule["expr"])
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for rule in group["rules"]
        if group["name"] == "pilotlight-own"
    ]
    names = {
        name for text in _queries() + alerts for name in re.findall(r"\b(?:pilotlight_\w+|\w+:\w+(?::\w+)?)\b", text)
    }
    known = {family.name: [family.name + end for end in ENDS[family.kind]] for family in FAMILIES}
    assert names <= {name for exported in known.values() for name in exported} | _recorded()
    assert [name for name, exported in known.items() if names.isdisjoint(exported)] == []


def test_labels_in_queries_are_the_figures_own() -> None:
    """What a query groups a figure by, or chooses it by, is a label of that figure."""
    labels = {family.name: set(family.labels) for family in FAMILIES}
    for query in _queries():
        for by, name, chosen in re.findall(r"by \(([^)]*)\) \((pilotlight_\w+)(\{[^}]*\})?\)", query):
            asked = {word.strip() for word in by.split(",")} | set(re.findall(r"(\w+)=", chosen))
            assert asked <= labels[name], query


def test_the_guide_lists_every_figure() -> None:
    """docs/guides/figures.md has each figure with its labels, in the order of the page, and no other."""
    text = (ROOT / "docs" / "guides" / "figures.md").read_text()
    told = text.partition("<!-- figures -->\n")[2].partition("<!-- /figures -->")[0].splitlines()[2:]
    assert told == [
        f"| `{family.name}{ENDS[family.kind][0].removesuffix('_bucket')}` | {', '.join(family.labels)} | "
        f"{family.what}{' (histogram)' if family.kind == 'histogram' else ''} |"
        for family in FAMILIES
    ]
