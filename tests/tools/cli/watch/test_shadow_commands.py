"""pilotlight shadow report over a deployment's state: a table for people, every figure for machines."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.alerts.advice import Advised
from pilotlight.state_schema.alert_records import ADVICE
from pilotlight.tools.cli.main import build


def run(*words: str, columns: int = 120) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    line, wide = ["shadow", *(words or ("report",))], {"COLUMNS": str(columns)}
    return CliRunner().invoke(build(["shadow"]), line, catch_exceptions=False, env=wide)


@pytest.fixture(autouse=True)
def advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three days ago a node would have been given back, and work came back to it a minute later."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    state = SqliteState(tmp_path / "state.db", SystemClock())
    at = state.now() - timedelta(days=3)
    over = at + timedelta(minutes=1)
    what = {"call": "release", "pool": "t4", "target": "gpu-node", "boot_s": 180, "usd_per_hour": Decimal(20)}
    made = Advised(**what, at=at, end="used", ended_at=over)  # type: ignore[arg-type]
    ADVICE.put(state, f"local/{over:%Y-%m-%dT%H:%M:%S}/release/gpu-node", made)


def test_advice_that_would_have_hurt_is_named() -> None:
    """The node, what came of it, dollars and waiting."""
    shown = " ".join(run().stdout.split())
    assert "would have hurt: release gpu-node at" in shown
    assert "work came back to it 60 s later" in shown
    assert "3 min of waiting" in shown


def test_every_figure_is_there_as_json() -> None:
    """$20 an hour: a minute saved, three minutes of a new node paid."""
    [pool] = json.loads(run("report", "--json").stdout)["pools"]
    assert (pool["pool"], pool["releases"], pool["added_s"]) == ("t4", 1, 180)
    assert round(Decimal(pool["saved_usd"]), 4) == Decimal("-0.6667")
    assert pool["hurt"][0]["advice"]["target"] == "gpu-node"


def test_what_is_older_is_not_in_it() -> None:
    """Nothing was advised in one day: that is said, with what it may be for."""
    out = run("report", "--days", "1")
    assert "no advice of cluster local ended in the last 1 day:" in out.stderr
    assert "gpu-node" not in out.stdout


def test_the_header_comes_before_all_else() -> None:
    """Also before what goes to stderr: a terminal shows the cluster first."""
    out = run("report", "--days", "1")
    assert out.output.startswith("cluster local")


def test_a_cluster_that_there_is_not_is_refused() -> None:
    """In one line, with those there are."""
    with pytest.raises(BadInput, match="--cluster other: is none of ours; name one of local"):
        run("report", "--cluster", "other")


POLICY = """
version: 1
pools:
  new: {instance_type: g4dn.xlarge, max: 2, mode: canary, canary: {control: old}}
  old: {instance_type: g4dn.xlarge, max: 2, mode: advise}
"""


def test_a_canary_is_shown_beside_its_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both pools' figures, and whether a bound was passed."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml"))
    shown = " ".join(run("canary").stdout.split())
    assert "new (canary)" in shown
    assert "old (control)" in shown
    assert "new: within its bounds" in shown
    [one] = json.loads(run("canary", "--json").stdout)["canaries"]
    assert ([side["pool"] for side in one["sides"]], one["over"], one["bounds"]["control"]) == (
        ["new", "old"],
        "",
        "old",
    )


def test_without_a_canary_that_is_said() -> None:
    """Nothing is shown of pools that are no canaries."""
    assert "no pool of the policy has mode: canary" in run("canary").stderr


def test_the_table_is_whole_at_any_width() -> None:
    """What is folded has the same letters, in lines that fit."""
    narrow = run(columns=60).stdout
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow
