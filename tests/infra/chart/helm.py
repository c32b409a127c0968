"""The Helm chart by Helm 4's own code, which stands in a venv of its own (make build/helm/.installed)."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "infra" / "helm" / "pilotlight"
PYTHON = ROOT / "build" / "helm" / "bin" / "python"
WHERE = {"name": "pilotlight", "namespace": "pilotlight"}

needs_helm = pytest.mark.skipif(
    not (ROOT / "build" / "helm" / ".installed").exists(), reason="needs Helm's code: make build/helm/.installed"
)

Json = dict[str, Any]


def calls(*asked: tuple[str, Json]) -> list[Json]:
    """What Helm answers to each, in one process."""
    words = [str(PYTHON), str(Path(__file__).with_name("run_helm.py"))]
    run = subprocess.run(words, input=json.dumps(asked), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found: list[Json] = json.loads(run.stdout)
    return found


def rendered(*values: Json, namespace: str = "pilotlight") -> list[Json]:
    """The chart by each of these values: its files by their names, or the error."""
    where = {**WHERE, "namespace": namespace}
    return calls(*(("render", {"chart": str(CHART), "values": each, **where}) for each in values))


def objects_of(answer: Json) -> list[Json]:
    """The objects that a rendering makes."""
    assert "value" in answer, answer
    files = (text for name, text in answer["value"].items() if name.endswith(".yaml"))
    return [each for text in files for each in yaml.safe_load_all(text) if each]
