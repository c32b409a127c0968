"""A real Prometheus reads the figures: dashboards find data, and alerts fire for what was done."""

import json
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from stage import START, Stage
from werkzeug.serving import make_server

from fleet import free_port, until
from pilotlight.adapters.state.counted import CountedState
from pilotlight.cli import own_pages
from pilotlight.doorway import gate
from pilotlight.facts.doors import Caller
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import Budget
from pilotlight.flow.billing.tick import billing
from pilotlight.flow.memory import brakes
from pilotlight.settings import Settings
from pilotlight.units import HOUR
from pilotlight.wiring import App, app

pytestmark = pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus (apt-get install prometheus)")

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-that-only-reads"
PHASES = ("detect", "decide", "boot", "bind")
TELLS = ("PilotlightPaused", "PilotlightBudgetSpent")


def deployment() -> App:
    """A paused cluster, and a budget of a dollar of which two are spent."""
    on = Stage(budgets=(Budget(name="day", usd=Decimal(40), period="day", hard=False),))
    on.deps = replace(on.deps, state=CountedState(on.deps.state))
    on.event(on.submit("a", run_s=6 * HOUR, team="nlp"))
    for _ in range(12):
        on.minutes(10)
        billing(on.deps, Tick(cluster="c", what="billing"))
    brakes.pause(on.deps.state, "c", "", "trying", START)
    deps = on.deps
    ports: Any = {name: getattr(deps, name) for name in ("cluster", "pools", "state", "outbox", "clock", "policy")}
    # The limit is lowered after the dollars were spent: no purchase passes one.
    lower = msgspec.structs.replace(deps.policy.budgets[0], usd=Decimal(1))
    ports["policy"] = msgspec.structs.replace(deps.policy, budgets=(lower,))
    return app(Settings(cluster="c"), catalog=on.catalog, **ports)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """The URL of a Prometheus that reads the figures every second, by our rules without their waits."""
    callers = {"prometheus": Caller(token=TOKEN, roles=("read",))}
    server = make_server("127.0.0.1", 0, gate.guarded(own_pages.pages(deployment()), callers), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    rules = yaml.safe_load((ROOT / "infra" / "prometheus" / "rules.yaml").read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
        group["rules"] = [{**rule, "for": "0s"} if "alert" in rule else rule for rule in group["rules"]]
    scrape = {
        "job_name": "pilotlight",
        "authorization": {"credentials": TOKEN},
        "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    told = {"global": {"scrape_interval": "1s"}, "rule_files": ["rules.yaml"], "scrape_configs": [scrape]}
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(told))
    words = [f"--config.file={tmp_path}/prometheus.yaml", f"--storage.tsdb.path={tmp_path}/data"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        ["prometheus", *words, f"--web.listen-address=127.0.0.1:{port}"], cwd=tmp_path, stdout=quiet, stderr=quiet
    )
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()
    server.shutdown()


def _ask(url: str, **fields: str) -> Any:
    try:
        with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(fields)}") as answer:
            return json.loads(answer.read())["data"]
    except OSError:
        return {}


def test_dashboards_find_data_and_alerts_fire(prometheus: str) -> None:
    """Each query over what this cluster has returns data, and a paused cluster and a spent budget are told."""

    def firing() -> set[str]:
        alerts = _ask(f"{prometheus}/api/v1/alerts").get("alerts", [])
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def answers(query: str) -> Any:
        return _ask(f"{prometheus}/api/v1/query", query=query).get("result")

    until(lambda: firing() >= set(TELLS))
    assert firing() == {*TELLS, "PilotlightBudgetRunsOut"}
    waits = answers("pilotlight_wait_seconds_count")
    assert {each["metric"]["phase"]: each["value"][1] for each in waits} == dict.fromkeys(PHASES, "1")
    for name in ("pilotlight-money", "pilotlight-health"):
        board = json.loads((ROOT / "infra" / "grafana" / f"{name}.json").read_text())
        for panel in board["panels"]:
            empty = {"Alerts that wait, and that were given up", "Until the token ends", "Dead letters"}
            query = panel["targets"][0]["expr"].replace("$cluster", "c")
            if panel["title"] in empty:
                assert not answers(query), panel["title"]
            else:  # A rate is there with the second reading.
                until(partial(answers, query))
