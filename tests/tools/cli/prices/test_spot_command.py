"""``pilotlight spot`` over a policy with a spot pool, and a zone's record."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import build

POLICY = """
version: 1
pools:
  cheap: {instance_type: t4.small, capacity_type: spot, max: 4, cloud: world}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: world, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, interruptions_per_hour: 0.05,
             prices: {on-demand: {usd_per_hour: 2, source: a test, date: 2026-11-01},
                      spot: {usd_per_hour: 0.5, source: a test, date: 2026-11-01}}}
"""


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A record of a zone that is up for three hours of four, beside the files of a deployment."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    own = {"PILOTLIGHT_HOME": tmp_path, "PILOTLIGHT_POLICY": tmp_path / "policy.yaml"}
    for name, value in {**own, "PILOTLIGHT_CATALOG": tmp_path / "catalog.yaml"}.items():
        monkeypatch.setenv(name, str(value))
    path = tmp_path / "west-1a.json"
    path.write_text(json.dumps({"gap_s": 600, "runs": [[1, 18], [0, 6]] * 42}))
    return path


def run(*words: str, columns: int = 220) -> str:
    """What is printed."""
    wide = {"COLUMNS": str(columns)}
    done = CliRunner().invoke(build(["spot"]), ["spot", *words], catch_exceptions=False, env=wide)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_row_says_price_share_life_and_verdict(zone: Path) -> None:
    """And what a useful hour costs beside on-demand."""
    told = run("--zones", str(zone), "--run", "24h", "--checkpoint", "30m")
    for words in ("west-1a", "$0.50", "75%", "3.0 h (41 seen, its record)", "$2.00", "spot: a checkpoint every 30 min"):
        assert words in told
    assert "not told" in told


def test_json_has_every_figure(zone: Path) -> None:
    """By cluster, with the job it is for."""
    found = json.loads(run("--zones", str(zone), "--json"))
    assert found["job"]["run_s"] == 86_400
    [[row]] = found["clusters"].values()
    assert (row["zone"], row["up"], row["sample"], row["least"]) == ("west-1a", 0.75, 41, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "soon"), "--run 'soon' is no duration"),
        (("--run", "0"), "--run is 0: give at least 60s"),
        (("--zones", "/no/such.json"), "/no/such.json: No such file"),
        (("--region", "mars"), "--region: the cloud that sells these pools tells no prices of the past"),
    ],
    ids=["no duration", "no run", "no file", "a cloud that tells none"],
)
def test_bad_input_is_said_in_one_line(zone: Path, words: tuple[str, ...], said: str) -> None:
    """With what to do; nothing is asked of a cloud for it."""
    with pytest.raises(BadInput, match=said):
        run(*words)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (POLICY.replace("t4.small", "t9.none"), "no spot price of t9.none in catalogue small: name one"),
        (POLICY.replace("spot", "on-demand"), "the policy has no spot pool: add one"),
    ],
    ids=["a type that the catalogue has not", "no spot pool"],
)
def test_why_there_is_no_row_is_said(zone: Path, policy: str, said: str) -> None:
    """Whether the pool or its price is missing, and what to write."""
    (zone.parent / "policy.yaml").write_text(policy)
    with pytest.raises(BadInput, match=said):
        run()


def test_the_table_is_whole_at_any_width(zone: Path) -> None:
    """What is folded has the same letters, in lines that fit."""
    narrow = run("--zones", str(zone), columns=60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow


def test_a_share_of_spot_is_printed_with_what_is_used(zone: Path) -> None:
    """Below the table and in JSON, where the policy names one."""
    policy = zone.parent / "policy.yaml"
    policy.write_text(f"{POLICY}teams:\n  research: {{max_spot_share: 0.5}}\n")
    assert "team research: 0 of 0 GPUs on spot, at most 50%" in run("--zones", str(zone))
    [[share]] = json.loads(run("--zones", str(zone), "--json"))["shares"].values()
    assert (share["kind"], share["name"], share["gpus"], share["spot_gpus"]) == ("team", "research", 0, 0)
