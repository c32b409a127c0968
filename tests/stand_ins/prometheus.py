"""A real Prometheus beside a test: what it is told to read, and what it answers."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet import free_port

ROOT = Path(__file__).resolve().parents[2]
needs_prometheus = pytest.mark.skipif(
    not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)"
)


class Prometheus:
    """One that runs. ``url`` is where it answers."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def firing(self) -> set[str]:
        """The alerts that fire now."""
        alerts = self._ask("alerts").get("alerts", [])
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def answers(self, query: str) -> Any:
        """What it answers to a query now; nothing while it does not answer."""
        return self._ask("query", query=query).get("result")

    def _ask(self, what: str, **fields: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(fields)}") as answer:
                return json.loads(answer.read())["data"]
        except OSError:
            return {}


@contextmanager
def reading(port: int, folder: Path, token: str = "") -> Iterator[Prometheus]:
    """A Prometheus that reads the figures at a port every second, by our rules without their waits."""
    rules = yaml.safe_load((ROOT / "infra" / "prometheus" / "rules.yaml").read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
        group["rules"] = [{**rule, "for": "0s"} if "alert" in rule else rule for rule in group["rules"]]
    scrape = {"job_name": "pilotlight", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    if token:
        scrape["authorization"] = {"credentials": token}  # type: ignore[assignment]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    told = {"global": {"scrape_interval": "1s"}, "rule_files": ["rules.yaml"], "scrape_configs": [scrape]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(told))
    words = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
    mine, quiet = free_port(), subprocess.DEVNULL
    process = subprocess.Popen(
        ["prometheus", *words, f"--web.listen-address=127.0.0.1:{mine}"], cwd=folder, stdout=quiet, stderr=quiet
    )
    try:
        yield Prometheus(f"http://127.0.0.1:{mine}")
    finally:
        process.terminate()
        process.wait()


def panels(*boards: str) -> dict[str, str]:
    """The first query of each panel of some dashboards, by its title, for every cluster."""
    read = (json.loads((ROOT / "infra" / "grafana" / f"{name}.json").read_text()) for name in boards)
    return {
        panel["title"]: panel["targets"][0]["expr"].replace("$cluster", ".*")
        for board in read
        for panel in board["panels"]
    }
