"""`pilotlight demo` through serve and a world at sixty times the wall clock: its claims, checked from the raw records.

Nothing here asks the story: order and cost come from the world's log, what people were told from the web hook and from
the state's proofs of delivery, the report from a second reading of the state.
"""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus import Prometheus, needs_prometheus, panels, reading

from chromium import Page
from pilotlight.flow.records import brake_records
from pilotlight.settings import Settings
from pilotlight.tools.serve.workers import CLI
from pilotlight.wiring import App

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
CENT = Decimal("0.01")
UNJUDGED = "Objects that cannot be judged: errors an hour, by object and stage"

TOLD = {
    "capacity-grow": 5,
    "capacity-release": 5,
    "reclaim-idle": 1,
    "reclaim-rested": 1,
    "budget-spot-only": 1,
    "interruption": 1,
    "interruption, over": 1,
    "finding-budget-hold": 1,
    "budget-no-new-buys": 1,
    "refused": 1,
}
STEPS = (
    "pending", "bought", "runs", "idle", "released", "told",  # One pod comes and goes.
    "pending", "bought", "runs",  # A long job, and beside it:
    "pending", "bought", "runs", "noticed", "snoozed", "suspended", "released",  # An idle notebook,
    "rests", "woken", "runs", "idle", "released",  # that is woken.
    "warned",  # The budget at 80 %.
    "notice", "replaced", "released", "runs",  # The cloud takes the node.
    "spent", "pending", "refused",  # The budget at 100 %.
    "idle", "released", "metered", "told",
)  # fmt: skip


@dataclass
class Paged:
    """The live page while the demo ran: how often it was ``live``, what it said each time it had ``lost`` the cluster,
    the ``decisions`` it showed, and what the browser complained of.
    """

    live: int = 0
    lost: list[str] = field(default_factory=list)
    decisions: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def look(self, page: Page) -> None:
        """What it shows now."""
        state, said, ids = json.loads(page.run(STATE))
        self.live += state == "live"
        self.lost += [said] if state == "lost" else []
        self.decisions |= set(ids)
        self.complaints = page.complaints


STATE = """JSON.stringify([document.getElementById('link').className.replace('push ', ''),
  document.getElementById('link').innerText, seen ? seen.decisions.map((one) => one.id) : []])"""
"""The page's own words of its stream, and the decisions that it has."""


class Played(NamedTuple):
    """What the demo printed, where its files are, and the world's own log; ``shown`` is what a Prometheus saw of it:
    the ``alerts`` that fired, and the ``panels`` that had data; and ``paged`` what its live page showed in a browser.
    """

    said: dict[str, Any]
    home: Path
    log: list[dict[str, Any]]
    shown: dict[str, set[str]]
    paged: Paged

    def records(self, event: str, **fields: str) -> list[dict[str, Any]]:
        """The log's records of one event."""
        return [r for r in self.log if r["event"] == event and fields.items() <= r.items()]

    def keys(self, within: str) -> list[str]:
        """The state's keys that begin so."""
        return [row["key"] for row in json.loads(self.run("state", "ls", within, "--json"))]

    def run(self, *words: str) -> str:
        """A command over the demo's state, once it is over."""
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")},
            "PILOTLIGHT_HOME": str(self.home),
            "PILOTLIGHT_POLICY": str(ROOT / "examples" / "demo" / "policy.yaml"),
            "PILOTLIGHT_CATALOG": str(ROOT / "examples" / "demo" / "catalog.yaml"),
        }
        command = [sys.executable, "-c", CLI, *words]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Played]:
    """One run of the whole story, beside a Prometheus and before a browser where there are such."""
    command = [sys.executable, "-c", CLI, "demo", "--json", "--keep"]
    temporary, folder = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("prometheus")
    environ = {**os.environ, "TMPDIR": str(temporary)}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    demo = subprocess.Popen(command, env=environ, **pipes)
    shown: dict[str, set[str]] = {"alerts": set(), "panels": set()}
    paged = Paged()
    port = _port(demo, temporary)
    with ExitStack() as watching:
        page: Page | None = None
        if port and shutil.which("chromium"):
            page = watching.enter_context(request.getfixturevalue("chromium").page())
            page.open(f"http://127.0.0.1:{port}/")
            page.until("!document.getElementById('all').hidden")
        if port and shutil.which("prometheus"):
            _shown(demo, temporary, watching.enter_context(reading(port, folder)), shown, page, paged)
        while demo.poll() is None and page is not None:
            paged.look(page)
            time.sleep(0.5)
    out, err = demo.communicate()
    assert demo.returncode == 0, out + err
    said = json.loads(out)
    home = Path(said["home"])
    log = [json.loads(line) for line in (home / "world.jsonl").read_text().splitlines()]
    yield Played(said, home, log, shown, paged)
    shutil.rmtree(home)


def _port(demo: subprocess.Popen[str], temporary: Path) -> int:
    """Where serve listens; 0 where the demo ended before it did."""
    port = ""
    while not port and demo.poll() is None:
        logs = [path.read_text(errors="replace") for path in temporary.glob("*/serve.log")]
        port = next((found[1] for text in logs if (found := re.search(r"127\.0\.0\.1:(\d+)/pod_pending", text))), "")
        time.sleep(0.1)
    return int(port or 0)


def _shown(
    demo: subprocess.Popen[str],
    temporary: Path,
    prometheus: Prometheus,
    shown: dict[str, set[str]],
    page: Page | None,
    paged: Paged,
) -> None:
    """Gather what a Prometheus and a browser see until serve ends. A pool that the story does not use is paused."""
    [home] = temporary.iterdir()
    deps = App(Settings.from_environ({"PILOTLIGHT_HOME": str(home)}))
    brake_records.pause(deps.state, "local", "spare", "trying", datetime.now(UTC))
    queries = panels("pilotlight-money", "pilotlight-health")
    while demo.poll() is None:
        shown["alerts"] |= prometheus.firing
        shown["panels"] |= {title for title, query in queries.items() if prometheus.answers(query)}
        if page is not None:
            paged.look(page)
        time.sleep(0.5)


def _cost(played: Played) -> Decimal:
    """What the cloud charges for the log's nodes, by the price file: whole seconds, a minute at least."""
    catalog = yaml.safe_load((ROOT / "examples" / "demo" / "catalog.yaml").read_text())
    ended = {record["node"]: record["t"] for record in played.records("terminate")}
    cost = Decimal(0)
    for launch in played.records("launch"):
        price = catalog["instance_types"][launch["type"]]["prices"][launch["capacity_type"]]["usd_per_hour"]
        cost += Decimal(str(price)) * max(60, ceil(ended[launch["node"]] - launch["t"])) / 3600
    return cost


def test_every_step_comes_in_its_order(played: Played) -> None:
    """Each in its place, at a time of the world that does not run back, with dollars that only grow."""
    steps = played.said["steps"]
    assert tuple(step["step"] for step in steps) == STEPS
    assert [s["at"] for s in steps] == sorted(s["at"] for s in steps)
    rows = len(played.said["alerts"])
    assert steps[-1]["text"].startswith(f"{rows} alerts: {sum(TOLD.values())} of the story, each once")
    assert [Decimal(s["usd"]) for s in steps] == sorted(Decimal(s["usd"]) for s in steps)


def test_the_log_is_five_nodes_each_bought_and_given_back_once(played: Played) -> None:
    """No node is bought twice, left behind, or taken by the cloud; none is bought after the budget is spent."""
    bought = [record["node"] for record in played.records("launch")]
    assert bought == sorted(record["node"] for record in played.records("terminate", reason="released"))
    assert len(set(bought)) == len(bought) == 5
    assert not {"u-sweep"} & {record["job"] for record in played.records("start")}


def test_the_replacement_is_asked_for_before_the_drain(played: Played) -> None:
    """Launch, eviction with the work saved, release, all within the notice; the pod finishes on the new node."""
    _, doomed, *_, replacement = played.records("launch")
    [evicted] = played.records("stop", reason="evicted")
    [released] = played.records("terminate", node=doomed["node"])
    assert replacement["t"] < evicted["t"] <= released["t"] < replacement["t"] + 120
    first, again = played.records("start", job="u-finetune")
    assert (first["placement"][0]["node"], again["placement"][0]["node"]) == (doomed["node"], replacement["node"])
    assert evicted["saved_s"] > 0.99 * (evicted["t"] - first["t"]) - 60
    assert played.records("stop", job="u-finetune", reason="done")


def test_the_idle_notebook_rests_after_its_snooze_and_runs_again(played: Played) -> None:
    """Its node is given back meanwhile, and each step is in the audit chain, where ``why`` finds it.

    A look that sees it awake before its record is gone says so too.
    """
    [rested] = played.records("stop", reason="rested")
    first, again = played.records("start", job="u-ada")
    [gone] = played.records("terminate", node=first["placement"][0]["node"])
    assert first["t"] + 60 + 300 + 120 <= rested["t"] < gone["t"] < again["t"]
    assert played.records("stop", job="u-ada", reason="done")
    records = [r for r in json.loads(played.run("why", "studio/ada", "--json")) if r.get("flow") == "reclaim"]
    verdicts = dict.fromkeys(r["plan"]["pods"][0]["verdict"] for r in records)
    assert list(verdicts) == ["woken", "rested", "snoozed", "noticed"]
    assert json.loads(played.run("reclaim", "list", "--json"))["owners"] == []


def test_exactly_the_expected_alerts_and_none_twice(played: Played) -> None:
    """By kind and by fingerprint; the proofs of delivery in the state are of the same alerts."""
    told = played.said["alerts"]
    kinds = Counter(a["kind"] + (", over" if a.get("resolved") else "") for a in told)
    assert kinds.pop("audit-anchor") >= 1
    kinds.pop("capacity-undone", None)  # Where this machine stood still before a call: it was made again.
    assert kinds == TOLD
    assert max(Counter((a["fingerprint"], a.get("resolved", False)) for a in told).values()) == 1
    proofs = json.loads(played.run("alerts", "list", "--json"))
    assert {proof["alert"]["fingerprint"] for proof in proofs} == {alert["fingerprint"] for alert in told}
    assert {proof["status"] for proof in proofs} == {"told"}


def test_every_alert_says_what_where_why_and_how(played: Played) -> None:
    """And those of purchases, releases and budgets the dollars in all; of capacity the dollars an hour too."""
    for alert in (told for told in played.said["alerts"] if told["kind"] != "capacity-undone"):
        assert all(alert.get(part) for part in ("what", "why", "next", "how", "cluster")), alert
        if alert["kind"].startswith(("capacity-", "budget-")):
            assert Decimal(alert["usd"]) > 0
        if alert["kind"].startswith("capacity-"):
            assert Decimal(alert["usd_per_hour"]) == Decimal("1.46")


def test_the_refusal_carries_the_figure(played: Played) -> None:
    """What is spent and what the limit is; and both warnings came at their step of the ladder."""
    by_kind = {a["kind"]: a for a in played.said["alerts"]}
    assert "of $1.20 a day is spent" in by_kind["refused"]["why"]
    assert Decimal("0.96") <= Decimal(by_kind["budget-spot-only"]["usd"]) < Decimal("1.20")
    assert Decimal(by_kind["budget-no-new-buys"]["usd"]) >= Decimal("1.20")


def test_the_report_is_what_the_cloud_charged(played: Played) -> None:
    """Its total is the log's to a cent a node; teams, idle and shared are the total, also as they are printed."""
    report = json.loads(played.run("report", "--month", "2026-11", "--json"))
    total = Decimal(report["total"]["usd"])
    for charged in (_cost(played), Decimal(played.said["cloud"]["usd"])):
        assert abs(total - charged) < 5 * CENT  # An end is known when the call's answer is back: at 60 times, seconds.
    teams = sum((Decimal(team["held"]["usd"]) for team in report["teams"]), Decimal(0))
    parts = teams + Decimal(report["idle"]["usd"]) + Decimal(report["shared"]["usd"])
    assert abs(parts - total) < Decimal("1e-20")
    rows = list(csv.DictReader(StringIO(played.run("report", "--month", "2026-11", "--csv"))))
    went = [Decimal(row["usd"]) for row in rows if row["part"] == "where it went"]
    assert (len(went), sum(went)) == (3, total.quantize(CENT))


def test_a_story_that_breaks_off_says_where_and_fails(tmp_path: Path) -> None:
    """With serve gone no step comes: exit code 1, one line that names what did not come and the log to read."""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", CLI, "demo", "--speed", "120"]
    demo = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    while "bought" not in demo.stdout.readline():
        assert demo.poll() is None
    [serve] = {pid for file in Path(f"/proc/{demo.pid}/task").glob("*/children") for pid in _pids(file)}
    os.kill(serve, signal.SIGTERM)
    _, complaint = demo.communicate()
    assert (demo.returncode, complaint.count("\n")) == (1, 1)
    assert "serve.log" in complaint
    assert "serve ended before the step" in complaint or "does not answer" in complaint


def _pids(file: Path) -> list[int]:
    """The processes that a thread started; none of a thread that has ended meanwhile."""
    with suppress(FileNotFoundError):
        return [int(pid) for pid in file.read_text().split()]
    return []


@needs_prometheus
def test_a_prometheus_sees_the_story(played: Played) -> None:
    """While it plays, the alerts on a pause and on the spent budget fire, and dashboards have data."""
    assert {"PilotlightPaused", "PilotlightBudgetSpent"} <= played.shown["alerts"]
    assert not {"PilotlightClusterSilent", "PilotlightAlertsGivenUp"} & played.shown["alerts"]
    without = {"Alerts that wait, and that were given up", "Until the token ends", "Dead letters", UNJUDGED}
    assert panels("pilotlight-money", "pilotlight-health").keys() - without <= played.shown["panels"]


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium (apt-get install chromium)")
def test_the_live_page_follows_the_whole_story(played: Played) -> None:
    """In a browser its stream is live from the first step to the last, no look fails, and every decision is on it."""
    paged = played.paged
    assert paged.live > 20
    assert [said for said in paged.lost if "cannot be looked at" in said] == []
    assert [one for one in paged.complaints if "net::ERR_" not in one] == []
    filed = sorted(key.rpartition("/")[2] for key in played.keys("decision/local/"))
    flows = {
        record["flow"] for record in map(json.loads, (played.run("state", "get", f"decision/local/{i}") for i in filed))
    }
    assert {"reclaim", "reconcile", "provision"} <= flows
    assert set(filed[:-2]) <= paged.decisions  # The last two may come as serve ends.
