"""pilotlight reclaim over a deployment's state: who was told, a snooze, and what cannot be done."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.utilisation.reclaim_steps import PodOwner, Reclaim, Stage
from pilotlight.flow.records.ledger import filed_records
from pilotlight.state_schema.alert_records import RECLAIM
from pilotlight.tools.cli.main import build


def run(*words: str) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["reclaim"]), ["reclaim", *words], catch_exceptions=False, env={"COLUMNS": "160"})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteState:
    """A notebook that was told, and a job that rests."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    kept = SqliteState(tmp_path / "state.db", SystemClock())
    for kind, stage in (("Notebook", "noticed"), ("Job", "resting")):
        _put(kept, PodOwner(kind=kind, namespace="ml", name="ada"), stage)  # type: ignore[arg-type]
    return kept


def _put(state: SqliteState, owner: PodOwner, stage: Stage) -> None:
    now = state.now()
    one = Reclaim(
        owner=owner,
        stage=stage,
        at=now,
        noticed_at=now,
        workload_class="notebook",
        team="vision",
        pool="a100",
        pods=("ml/ada-0",),
        count=2,
        due_at=now + timedelta(minutes=30),
        evidence="1 GPU idle for 2.0 h by DCGM_FI_DEV_GPU_UTIL",
        usd_per_hour=Decimal("2.5"),
    )
    RECLAIM.put(state, f"local/{owner.key}", one)


def test_the_list_says_who_where_they_stand_and_what_it_costs() -> None:
    """A line each; everything as JSON."""
    shown = " ".join(run("list").stdout.split())
    assert "ml/Notebook/ada vision told, rests at" in shown
    assert "had 2" in shown
    assert "$2.50/h" in shown
    owners = json.loads(run("list", "--json").stdout)["owners"]
    assert [one["stage"] for one in owners] == ["resting", "noticed"]


def test_a_snooze_is_written_and_filed(state: SqliteState) -> None:
    """For as long as was said; a dry run writes nothing."""
    assert "would be: Notebook ml/ada is left alone until" in run("snooze", "ml/Notebook/ada", "--dry-run").stdout
    assert not filed_records(state, "local")
    run("snooze", "ml/Notebook/ada", "--for", "8h")
    found = RECLAIM.get(state, "local/ml/Notebook/ada")
    assert found is not None
    assert found.value.snoozed_until is not None
    assert round((found.value.snoozed_until - state.now()).total_seconds() / 3600) == 8
    [record] = filed_records(state, "local")
    assert record.plan.pods[0].verdict == "snoozed"
    assert "snoozed until" in run("list").stdout


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (("snooze", "ml/ada"), BadInput, "no one owner 'ml/ada' .* ml/Job/ada, ml/Notebook/ada"),
        (("snooze", "ml/Notebook/ada", "--for", "soon"), BadInput, "--for 'soon' is no duration"),
        (("snooze", "ml/Job/ada"), Failed, "rests already: wake it with `pilotlight reclaim wake ml/Job/ada`"),
        (("wake", "ml/Notebook/ada"), Failed, "does not rest: it is noticed"),
        (("wake", "ml/Deployment/x"), BadInput, "no one owner"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(words: tuple[str, ...], error: type[Exception], says: str) -> None:
    """And what to do instead."""
    with pytest.raises(error, match=says):
        run(*words)


def test_a_dry_run_of_wake_changes_nothing(state: SqliteState) -> None:
    """It says the count that it would have."""
    assert run("wake", "ml/Job/ada", "--dry-run").stdout.splitlines()[1:] == ["would be: Job ml/ada is woken to 2"]
    assert RECLAIM.get(state, "local/ml/Job/ada") is not None
