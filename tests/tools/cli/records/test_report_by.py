"""pilotlight report --since --until --by: rows of one attribute, which add up to what the nodes cost."""

import csv
import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus import needs_prometheus
from rich.console import Console, RenderableType
from typer.testing import CliRunner, Result

from fleet import free_port, until
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.http import Broken, fetch
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import CostLine, LineKind, MeterDay
from pilotlight.state_schema.billing_records import METER
from pilotlight.tools.advice.money.month import month
from pilotlight.tools.advice.money.spend_by import BY, UNKNOWN, PodTime, spend_by, spend_by_pods
from pilotlight.tools.cli.main import build
from pilotlight.tools.report.tables.month_table import render
from pilotlight.tools.report.tables.spend_table import Spend, table

DAY = date(2026, 10, 5)
DAYS = ("--since", "2026-10-05", "--until", "2026-10-06")


def _line(kind: LineKind, usd: str, team: str = "", project: str = "", node: str = "n") -> CostLine:
    where: dict[str, Any] = {"pool": "t4", "instance_type": "g4dn.xlarge", "capacity_type": "spot"}
    return CostLine(
        kind=kind, node=node, team=team, project=project, usd=Decimal(usd), gpu_hours=Decimal(usd) / 3, **where
    )


LINES = (
    _line("used", "10.004", "research", "nlp"), _line("used", "5.004", "vision", "cv"),
    _line("idle", "2.004"), _line("shared", "1.004"),
)  # fmt: skip


def _metered(day: date, lines: tuple[CostLine, ...] = LINES) -> MeterDay:
    return MeterDay(day=day, until=datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1), lines=lines)


@pytest.fixture(autouse=True)
def deployment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with three days of October alike."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("PILOTLIGHT_HOME", str(folder))
    state = SqliteState(folder / "state.db", SystemClock())
    for day in (DAY + timedelta(n) for n in range(3)):
        METER.write(state, f"local/{day}", _metered(day))


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["report"]), ["report", *words], catch_exceptions=False, env={"COLUMNS": "160"})


def test_a_period_is_its_days_with_the_last() -> None:
    """Two of the three days are in it, and the whole report of them has the same total as each table."""
    assert "2026-10-05 to 2026-10-06: $36.03" in run(*DAYS).stdout
    for by in BY:
        told = json.loads(run(*DAYS, "--by", by, "--json").stdout)
        assert told["usd"] == "36.032"
        assert sum(Decimal(row["usd"]) for row in told["rows"]) == Decimal(told["usd"])


def test_rows_are_the_dearest_first_and_idle_time_has_its_own() -> None:
    """In cents that add up, on a terminal and for a spreadsheet."""
    rows = list(csv.reader(StringIO(run(*DAYS, "--by", "namespace", "--csv").stdout)))
    assert [(row[0], row[2]) for row in rows] == [
        ("namespace", "usd"), ("nlp", "20.00"), ("cv", "10.01"),
        ("(idle: lit, held by nobody)", "4.01"), ("(shared: boots, minimums)", "2.01"),
    ]  # fmt: skip
    assert sum(Decimal(row[2]) for row in rows[1:]) == Decimal("36.03")
    shown = run(*DAYS, "--by", "namespace").stdout
    assert "2026-10-05 to 2026-10-06: $36.03" in shown
    assert "$20.00" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("--since", "2026-10-09", "--until", "2026-10-01"), "is after --until", id="reversed"),
        pytest.param(("--since", "yesterday"), "write a day as 2026-10-31", id="no day"),
        pytest.param(("--since", "0001-01-01"), "write a day as 2026-10-31", id="before all computers"),
        pytest.param(("--until", "2026-10-31"), "name the first by --since", id="an end alone"),
        pytest.param((*DAYS, "--month", "2026-10"), "a period of its own", id="two periods"),
        pytest.param(("--month", "9999-12"), "write it as 2026-10", id="a month beyond all"),
        pytest.param((*DAYS, "--by", "owner"), "label=KEY", id="by what there is not"),
        pytest.param((*DAYS, "--by", "label="), "label=KEY", id="a label without a key"),
        pytest.param((*DAYS, "--by", "label=app"), "name the Prometheus", id="labels from nowhere"),
        pytest.param((*DAYS, "--by", "team", "--prometheus", "http://x"), "add --by pod", id="asked for nothing"),
        pytest.param((*DAYS, "--by", "team", "--per", "epochs=2"), "one table", id="a unit of a table"),
        pytest.param((*DAYS, "--by", "team", "--focus", "o.csv"), "one table", id="a file of a table"),
        pytest.param((*DAYS, "--csv", "--focus", "o.csv"), "choose one", id="two forms"),
        pytest.param((*DAYS, "--per", "epochs=2", "--focus", "o.csv"), "whole report", id="a unit of a file"),
        pytest.param((*DAYS, "--focus", "o.xlsx"), "end the file's name with .csv or .parquet", id="a form unknown"),
        pytest.param((*DAYS, "--by", "pod", "--prometheus", "ftp://x"), "names no Prometheus", id="no address"),
    ],
)
def test_what_is_no_period_or_attribute_is_said(words: tuple[str, ...], says: str) -> None:
    """In one line that says what to write instead."""
    with pytest.raises(BadInput, match=says):
        run(*words)


def test_a_focus_file_has_the_days_and_the_team_that_were_asked_for(tmp_path: Path) -> None:
    """Its rows add up to the same total, by cluster; the command says how many there are."""
    path = tmp_path / "october.csv"
    assert run(*DAYS, "--focus", str(path)).stdout == f"{path} written: 8 rows of FOCUS 1.2\n"
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("36.032")
    assert {row["BillingAccountId"] for row in rows} == {"local"}
    state = SqliteState(Path(os.environ["PILOTLIGHT_HOME"]) / "state.db", SystemClock())
    METER.write(state, f"local/{DAY}", msgspec.structs.replace(_metered(DAY), unpriced=("new-node",)))
    told = run(*DAYS, "--focus", str(path), "--team", "vision").stdout
    assert told.endswith("in no row, for their price is not known: new-node\n")
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert [(row["x_Team"], row["BilledCost"]) for row in rows] == 2 * [("vision", "5.004")]


USD = st.decimals(min_value=0, max_value=1000, places=9)
LINE = st.builds(
    _line,
    st.sampled_from(["used", "used", "idle", "shared"]),
    USD.map(str),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["n", "m", ""]),
)
TIME = st.builds(
    PodTime, st.just(DAY), st.sampled_from(["n", "m"]), st.sampled_from(["x", "y"]), st.sampled_from(["p", "q", "r"]),
    st.floats(min_value=0, max_value=1e9, allow_subnormal=False),
)  # fmt: skip


@given(st.lists(LINE, max_size=8), st.lists(TIME, max_size=8))
def test_the_rows_of_every_attribute_add_up_to_the_report(lines: list[CostLine], times: list[PodTime]) -> None:
    """To the billionth: by what the meter knows, and by pods, whatever is known of those."""
    days = [_metered(DAY, tuple(lines))]
    total = month(days, [], DAY, DAY).total
    by_pods = spend_by_pods(days, DAY, DAY, times)
    for rows in (*(spend_by(days, DAY, DAY, name) for name in BY.values()), by_pods):
        assert sum(row.amount.usd for row in rows) == total.usd
        assert sum(row.amount.gpu_hours for row in rows) == total.gpu_hours
    assert all(row.amount.usd >= Decimal("-1e-8") for row in by_pods)


@given(st.lists(LINE, max_size=8))
def test_the_report_and_its_rows_by_team_say_the_same_figures(lines: list[CostLine]) -> None:
    """Tenths of an hour and cents of each team, of idle and of shared GPUs are one figure in both tables."""
    days = [_metered(DAY, tuple(lines))]
    whole, by_team = month(days, [], DAY, DAY), Spend("team", DAY, DAY, spend_by(days, DAY, DAY, BY["team"]))
    told = _figures(render(whole))
    assert all(told[name] == figures for name, figures in _figures(table(by_team)).items())


def _figures(printed: RenderableType) -> dict[str, list[str]]:
    """Hours and dollars by the name that they stand beside."""
    out = StringIO()
    Console(file=out, width=160).print(printed)
    row = re.compile(r"\(?(idle|shared|a|b)(?:: [^)]*\))? +([\d,.]+) h +(\$[\d,.]+)")
    rows = map(row.match, out.getvalue().splitlines())
    return {row[1]: [row[2], row[3]] for row in rows if row}


def test_what_no_pod_is_known_of_is_not_known() -> None:
    """It stands in a row of its own; what is known of another node or namespace takes nothing of it."""
    times = [PodTime(DAY, "n", "nlp", "nlp/a", 3.0), PodTime(DAY, "n", "nlp", "nlp/b", 1.0)]
    rows = spend_by_pods([_metered(DAY)], DAY, DAY, times)
    assert [(row.name, row.amount.usd) for row in rows if row.kind == "used"] == [
        ("nlp/a", Decimal("7.503")), (UNKNOWN, Decimal("5.004")), ("nlp/b", Decimal("2.501")),
    ]  # fmt: skip


def _recorded() -> str:
    """On node n, two pods of a namespace ran on the first day, one on three times the GPUs; only one has a label."""
    start = int(datetime(2026, 10, 5, tzinfo=UTC).timestamp())
    asked, phase, labels = [], [], []
    for minute in range(240):
        at = start + 60 * minute
        for pod, gpus in (("a", 6), ("b", 2)):
            who = f'namespace="nlp",pod="{pod}"'
            asked.append(
                f'kube_pod_container_resource_requests{{{who},container="c",node="n",resource="nvidia_com_gpu",'
                f'unit="integer"}} {gpus} {at}'
            )
            phase.append(f'kube_pod_status_phase{{{who},phase="Running"}} 1 {at}')
        labels.append(f'kube_pod_labels{{namespace="nlp",pod="a",label_app_kubernetes_io_name="chat"}} 1 {at}')
    series = {
        "kube_pod_container_resource_requests": asked,
        "kube_pod_status_phase": phase,
        "kube_pod_labels": labels,
    }
    lines = [line for name, rows in series.items() for line in (f"# TYPE {name} gauge", *rows)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def kube_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus with recorded series of kube-state-metrics."""
    folder: Path = tmp_path_factory.mktemp("kube-state")
    (folder / "recorded.txt").write_text(_recorded())
    (folder / "prometheus.yml").write_text("{}")
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "recorded.txt", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    url = f"127.0.0.1:{free_port()}"
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *words, f"--web.listen-address={url}"], cwd=folder, stdout=log, stderr=log
        )
    until(lambda: _ready(f"http://{url}") or process.poll() is not None)
    yield f"http://{url}"
    process.kill()
    process.wait()


def _ready(url: str) -> bool:
    try:
        return fetch(f"{url}/-/ready", 5).status == 200
    except Broken:
        return False


@needs_prometheus
def test_pods_and_labels_come_from_kube_state_metrics(kube_state: str, tmp_path: Path) -> None:
    """A namespace's dollars on a node are divided by the GPU-time of its pods there; the total stays, in a file too."""

    def by(what: str) -> list[tuple[str, str]]:
        told = json.loads(
            run("--since", f"{DAY}", "--until", f"{DAY}", "--by", what, "--prometheus", kube_state, "--json").stdout
        )
        assert Decimal(told["usd"]) == Decimal("18.016")
        return [(row["name"], f"{Decimal(row['usd']):.3f}") for row in told["rows"] if row["kind"] == "used"]

    assert by("pod") == [("nlp/a", "7.503"), (UNKNOWN, "5.004"), ("nlp/b", "2.501")]
    assert by("label=app.kubernetes.io/name") == [("chat", "7.503"), (UNKNOWN, "5.004"), ("", "2.501")]
    path = tmp_path / "pods.csv"
    run("--since", f"{DAY}", "--until", f"{DAY}", "--prometheus", kube_state, "--focus", str(path))
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert [row["x_Pod"] for row in rows] == ["nlp/a", "nlp/b", UNKNOWN, "", ""]
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("18.016")


def test_each_table_says_where_idle_and_shared_time_is() -> None:
    """By pool the month's report includes it in a pool's row; --by has only what was held, and says so."""
    whole, held = (
        run("--since", "2026-10-05", "--until", "2026-10-05"),
        run("--since", "2026-10-05", "--until", "2026-10-05", "--by", "pool"),
    )
    assert re.search(r"by pool, with idle and shared time\nt4 .* \$18\.02", whole.stdout)
    assert re.search(r"by what each held\n.*\nt4 .* \$15\.02", held.stdout)
