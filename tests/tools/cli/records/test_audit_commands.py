"""pilotlight audit, as a person runs it: a chain is proved, carried away and proved there."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from typer.testing import CliRunner, Result

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.money.bill import NodeCost
from pilotlight.flow.billing import node_costs
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import COST
from pilotlight.state_schema.decision_records import DECISION, HEAD
from pilotlight.tools.cli.main import build

LATELY = datetime.now(UTC) - timedelta(hours=2)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """A deployment's store with twenty decisions of the last hours."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'state.db'}")
    state = SqliteState(tmp_path / "state.db", SystemClock())
    for n in range(20):
        file(state, n)
    return state


def file(state: State, n: int) -> None:
    """A decision of the minute ``n`` is filed."""
    at = LATELY + timedelta(minutes=n)
    id = ledger.new_id(at, str(n))
    record = Record(
        id=id, cluster="local", flow="reconcile", trigger="a tick", at=at, status="open", plan=Plan(), steps=()
    )
    ledger.close(state, record)


def run(*words: object) -> Result:
    """The command's outcome; what it raises goes on to the test."""
    return CliRunner().invoke(build(["audit"]), ["audit", *map(str, words)], catch_exceptions=False)


def test_verify_says_that_the_chain_is_whole_and_its_anchor(state: State) -> None:
    """Count and head are printed as --anchor takes them, and hold."""
    done = run("verify")
    assert done.exit_code == 0
    assert "20 records, from 1 to 20," in done.stdout
    told = done.stdout.split("anchor ")[-1].strip()
    assert run("verify", "--anchor", told).stdout.count("1 anchor holds") == 1
    with pytest.raises(BadInput, match="COUNT:HEAD"):
        run("verify", "--anchor", "20")


def test_an_edit_a_cut_and_a_stranger_are_named(state: State) -> None:
    """With the place and the id, and exit code 1; as JSON too."""
    key = next(iter(DECISION.scan(state, "local/", after="local/"))).name
    record = DECISION.get(state, key)
    assert record is not None
    DECISION.put(state, "local/99999999999999-aa", msgspec.structs.replace(record.value, id="99999999999999-aa"))
    assert "99999999999999-aa) was added" in run("verify").stdout
    DECISION.put(state, key, msgspec.structs.replace(record.value, trigger="nothing"))
    done = run("verify", "--json")
    assert (done.exit_code, json.loads(done.stdout)["tampered"]["seq"]) == (1, 1)
    DECISION.delete(state, key)
    assert "was cut: its record is gone" in run("verify").stdout


def test_an_export_is_verified_by_itself_and_against_the_state(state: State, tmp_path: Path) -> None:
    """A line that was edited is named; a store whose chain was made anew differs from the export."""
    file = tmp_path / "audit.jsonl"
    done = run("export", file)
    assert "20 records in" in done.stdout
    assert run("verify", file).exit_code == 0
    assert run("verify", "--against", file).exit_code == 0
    assert run("export", "-", "--after", "15").stdout.count("\n") == 5
    lines = file.read_bytes().splitlines()
    lines[6] = lines[6].replace(b"a tick", b"a tock")
    file.write_bytes(b"\n".join(lines) + b"\n")
    assert "record 7 " in run("verify", file).stdout
    del lines[6]
    file.write_bytes(b"\n".join(lines) + b"\n")
    assert "record 7 was cut" in run("verify", file).stdout
    with pytest.raises(BadInput, match="nowhere"):
        run("verify", tmp_path / "nowhere")


def test_a_file_without_an_end_is_refused_by_its_first_line() -> None:
    """A device that gives bytes for ever takes no more memory than a line."""
    with pytest.raises(BadInput, match="/dev/zero: a line is longer than any record"):
        run("verify", "/dev/zero")


def test_a_bucket_takes_what_is_new_once(state: State, dynamodb_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each export is an object of its own, locked where asked, with its anchor; the folder is verified as one chain,
    and a state that was cut since differs from it."""
    boto3: Any = pytest.importorskip("boto3", reason="needs pilotlight[aws]")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", dynamodb_server)
    bucket, client = f"audit-{uuid4()}", boto3.client("s3")
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    where = f"s3://{bucket}/p"
    assert "20 records in" in run("export", where, "--lock-days", "30").stdout
    assert json.loads(run("export", where, "--json").stdout)["records"] == 0
    file(state, 21)
    assert json.loads(run("export", where, "--json").stdout) == {
        "where": where,
        "records": 1,
        "last": 21,
        "head": json.loads(run("verify", "--json").stdout)["head"],
    }
    names = [item["Key"] for item in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert names[0] == "p/local/000000000001-000000000020.jsonl"
    assert len(names) == 4
    assert client.head_object(Bucket=bucket, Key=names[0])["ObjectLockMode"] == "COMPLIANCE"
    assert "21 records, from 1 to 21," in run("verify", f"{where}/local").stdout
    assert run("verify", "--against", f"{where}/local").exit_code == 0
    HEAD.delete(state, "local")
    assert (
        "was cut: the chain ends at 0, and elsewhere it has 21" in run("verify", "--against", f"{where}/local").stdout
    )


def test_an_empty_chain_says_when_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was decided yet: that is no fault."""
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'new.db'}")
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "local")
    done = run("verify")
    assert done.exit_code == 0
    assert "begins with the next decision" in done.stdout


def test_what_nodes_came_to_is_proved_and_exported(state: State, tmp_path: Path) -> None:
    """A cost is a record as any: counted, carried away, and named where it is edited."""
    cost = NodeCost(
        decision="d",
        instance="i-1",
        node="gpu-1",
        pool="t4",
        instance_type="t4",
        capacity_type="spot",
        since=LATELY,
        ended_at=LATELY,
        paid_until=LATELY,
        usd=Decimal("1.23"),
    )
    node_costs.put(state, "local", "2026-11-20/i-1/0", cost, state.now())
    assert "1 of them say what a node came to" in run("verify").stdout
    run("export", tmp_path / "a.jsonl")
    assert "1 of them say what a node came to" in run("verify", tmp_path / "a.jsonl").stdout
    key = COST.key("local/2026-11-20/i-1/0")
    state.put(key, COST.format.write(msgspec.structs.replace(cost, usd=Decimal(1))))
    done = run("verify")
    assert (done.exit_code, done.stdout.splitlines()[1].partition(":")[0]) == (
        1,
        "record 21 (cost 2026-11-20/i-1/0) was edited",
    )
