"""The rows of spot in recorded zones: what they say of a small trace, and that what is not met fails."""

import json
from pathlib import Path

import pytest

import spot_rows

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"


def test_a_small_trace_is_judged_from_its_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each policy has a row, runs and logs agree, and the exit code says whether any of ours is met."""
    trace, zones = tmp_path / "t.csv", [tmp_path / "a.json", tmp_path / "b.json"]
    trace.write_text(HEADER + "".join(f"j{n},{n * 5000},9000,1,1000,T4,team,,\n" for n in range(5)))
    zones[0].write_text(json.dumps({"zone": "a", "nodes": 1, "gap_s": 100, "runs": [[1, 20], [0, 30]]}))
    zones[1].write_text(json.dumps({"zone": "a", "nodes": 2, "gap_s": 60, "runs": [[2, 90], [1, 20]]}))
    code = spot_rows.main([str(trace), "--zones", *map(str, zones), "--values", "10", "--json"])
    (said,) = json.loads(capsys.readouterr().out)
    peer, ours = said["rows"]
    assert said["wrong"] == []
    assert (peer["policy"], ours["policy"], ours["jobs_done"]) == ("karpenter-pinned:900", "pilotlight V 10", 5)
    assert ours["over_peer"] == pytest.approx(ours["cost_usd"] / peer["cost_usd"])
    assert code == int(not ours["met"])
