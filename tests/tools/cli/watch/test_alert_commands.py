"""``pilotlight alerts``: channels are tried, tellings listed, dead letters redelivered; secrets never show."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput, Failed
from pilotlight.tools.cli.main import build

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = str(ROOT / "events" / "samples" / "pilotlight" / "alert.json")
SECRET = "s3cr3t-path"

POLICY = """
version: 1
alerts:
  channels:
    screen: {kind: console}
    ops: {kind: webhook, url_env: OPS_URL}
"""


@pytest.fixture(autouse=True)
def _deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment of its own, whose web hook leads inside."""
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "local")
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPS_URL", f"http://127.0.0.1:9/{SECRET}")


def _run(*words: str) -> str:
    result = CliRunner().invoke(build(list(words)), list(words), env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_a_dry_run_shows_what_would_be_sent() -> None:
    """Every part of the alert is shown, nothing is sent, and the URL stays secret."""
    said = _run("alerts", "test", "--channel", "ops", "--dry-run")
    assert said.startswith("would send to ops, a webhook:\nINFO: this is a test")
    assert SECRET not in said


def test_a_channel_can_be_tried() -> None:
    """A console takes the alert; as JSON the outcome says that it was sent."""
    said = _run("alerts", "test", "--channel", "screen", "--json")
    assert json.loads(said.splitlines()[-1])["sent"] is True


def test_a_channel_that_fails_says_why_without_its_url() -> None:
    """A web hook that leads inside is a failed run whose reason names host and cure."""
    with pytest.raises(Failed, match=r"channel ops: web hook at 127\.0\.0\.1 .* allow_private") as caught:
        _run("alerts", "test", "--channel", "ops")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ("test", "--channel", "nope"),
        ("test", "--channel", "screen", "--severity", "loud"),
        ("list", "--channel", "nope"),
        ("redeliver", "--channel", "nope"),
    ],
    ids=" ".join,
)
def test_what_is_not_known_is_bad_input(words: tuple[str, ...]) -> None:
    """A channel that the policy does not have, and a severity there is not."""
    with pytest.raises(BadInput):
        _run("alerts", *words)


def test_a_policy_without_channels_says_that_nobody_is_told(tmp_path: Path) -> None:
    """An empty list is explained where nothing could ever be on it."""
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    assert "no channels" in _run("alerts", "list")


def test_what_was_told_is_listed_and_what_was_given_up_redelivered() -> None:
    """An alert reaches one channel and is given up on the other; redelivering tries it and says what came of it."""
    assert _run("alerts", "list").endswith("home/state.db\nno alert was told lately, and none waits\n")
    _run("send", SAMPLE)
    told = {entry["channel"]: entry["status"] for entry in json.loads(_run("alerts", "list", "--json"))}
    assert told == {"screen": "told", "ops": "gave up"}
    assert "would try again 1 alert" in _run("alerts", "redeliver", "--dry-run")
    said = json.loads(_run("alerts", "redeliver", "--json").splitlines()[-1])
    assert said == {"dry_run": False, "tried": 1, "told": 0}
    assert SECRET not in _run("alerts", "list", "--json")
    table = _run("alerts", "list", "--channel", "ops")
    assert "gave up" in table
    assert "screen" not in table


@pytest.mark.parametrize("by", ["eve\nall is well", "eve\x1b[2J", "x" * 81, "eve\u202ebob"])
def test_a_name_that_is_no_name_acknowledges_nothing(by: str) -> None:
    """What would write a line of its own, or hide in one, is refused as an approver's is; the alert still waits."""
    _run("send", SAMPLE)
    fingerprint = json.loads(_run("alerts", "list", "--json"))[0]["alert"]["fingerprint"]
    with pytest.raises(BadInput, match="--by: write the name of a person"):
        _run("alerts", "ack", fingerprint, "--by", by)
    assert "seen to by ann" in _run("alerts", "ack", fingerprint, "--by", " ann ")


def test_a_warning_stays_listed_once_it_is_over(tmp_path: Path) -> None:
    """What began and its end are two lines, and two entries as JSON: the end hides nothing."""
    began = json.loads(Path(SAMPLE).read_text())
    over = {**began, "id": f"{began['id']}.end", "data": {**began["data"], "resolved": True, "what": "it ended"}}
    over["data"]["at"] = "2100-01-01T00:00:00Z"
    (tmp_path / "over.json").write_text(json.dumps(over))
    for sent in (SAMPLE, str(tmp_path / "over.json"), str(tmp_path / "over.json")):
        _run("send", sent)
    listed = json.loads(_run("alerts", "list", "--channel", "screen", "--json"))
    assert [(e["alert"]["what"], e["alert"]["resolved"]) for e in listed if e["alert"]["kind"] != "undelivered"] == [
        (began["data"]["what"], False),
        ("it ended", True),
    ]
    table = _run("alerts", "list", "--channel", "screen")
    assert began["data"]["severity"] in table
    assert "over: it ended" in table
