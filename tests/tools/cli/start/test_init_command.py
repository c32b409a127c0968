"""`pilotlight init`: from a cluster's objects to a policy that check and plan take."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
import typer
from api_server import api_server
from typer.testing import CliRunner

from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadInput
from pilotlight.tools.cli.start import init_command, plan_command, policy_commands

CLUSTER = Path(__file__).parents[4] / "examples" / "cluster"
FILES = ["--pods", str(CLUSTER / "pods.json"), "--nodes", str(CLUSTER / "nodes.json")]


def run(*words: str) -> str:
    """What a command prints; raises what it raises."""
    app = typer.Typer()
    for module in (init_command, plan_command, policy_commands):
        module.register(app)
    return CliRunner().invoke(app, [*words], catch_exceptions=False).stdout


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("POLICY", "CATALOG", "CLUSTER", "CLUSTERS", "MODE", "API", "POOLS"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    monkeypatch.chdir(tmp_path)


def test_what_it_writes_is_fine_and_plans(tmp_path: Path) -> None:
    """check, which it names as the next command, finds nothing in it, and plan goes by it."""
    said = run("init", *FILES).splitlines()
    assert said[0].startswith("wrote policy.yaml: 2 pools, from ")
    checks = said[-1].removeprefix("next: pilotlight ").split()
    assert run(*checks).startswith("policy.yaml: fine (2 pools")
    plan = json.loads(run("plan", *FILES, "--policy", "policy.yaml", "--at", "2026-11-21T01:00:00Z", "--json"))
    assert {buy["offering"] for buy in plan["buys"]} >= {"t4/g4dn.xlarge/on-demand"}
    assert [finding for finding in plan["findings"] if finding["subject"].startswith("pool ")] == []


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """Nothing is looked at, the file is as it was, and --force writes over it."""
    (tmp_path / "policy.yaml").write_text("mine")
    with pytest.raises(BadInput, match=r"policy\.yaml is there: name another by -o, or write over it by --force"):
        run("init", *FILES)
    assert (tmp_path / "policy.yaml").read_text() == "mine"
    run("init", *FILES, "--force")
    text = (tmp_path / "policy.yaml").read_text()
    assert text.startswith("# Pilotlight's policy, begun by `pilotlight init`")
    assert not any(folder in text for folder in ("docs/", "infra/", "data/")), "a wheel has none of these"


def test_it_says_the_same_as_json() -> None:
    """Pools, what was assumed, and what to type next."""
    told = json.loads(run("init", *FILES, "--json", "-o", "mine.yaml"))
    assert (told["policy"], [*told["pools"]]) == ("mine.yaml", ["a100", "t4"])
    assert "pool t4: at most 2 nodes, twice as many as there are now" in told["assumed"]
    assert told["next"] == "pilotlight check mine.yaml"


def test_a_budget_and_a_mode_are_written() -> None:
    """The month's dollars, the longest runs that they hold, the mode of each pool; the cloud stands there too."""
    said = run("init", *FILES, "--budget", "2000", "--mode", "advise")
    policy = read_policy(Path("policy.yaml").read_text(), "policy.yaml")
    assert [(budget.name, budget.usd, budget.period) for budget in policy.budgets] == [
        ("month", Decimal(2000), "month")
    ]
    assert {(pool.mode, pool.cloud) for pool in policy.pools.values()} == {("advise", "eks")}
    assert "no budget" not in said
    assert "where pods end: training 1d, notebook 1d, batch 1d\n" in said
    checked = run("check", "policy.yaml")
    assert checked.startswith("policy.yaml: fine (2 pools")
    assert "note: " not in checked
    assert policy.classes["serving"].max_runtime is None
    assert "serving ends only where the budget has no room left" in said


def test_whom_taints_keep_off_is_said_and_the_last_line_is_the_next_command() -> None:
    """A pod that waits and lacks a toleration is named with it."""
    said = run("init", *FILES).splitlines()
    (kept,) = [line for line in said if "lacks the toleration" in line]
    assert kept.startswith(
        "ml-research/no-toleration lacks the toleration nvidia.com/gpu=present:NoSchedule of pool t4:"
    )
    assert [line for line in said if line.startswith(("then:", "next:"))] == [said[-1]]
    assert said[-1] == "next: pilotlight check policy.yaml"
    assert any(line.startswith("no budget: ") for line in said)


def test_it_may_go_to_stdout(tmp_path: Path) -> None:
    """The policy and nothing else, and no file."""
    assert "\nversion: 1\n" in run("init", *FILES, "-o", "-")
    assert list(tmp_path.iterdir()) == []


def test_it_looks_at_a_cluster(tmp_path: Path) -> None:
    """By a kubeconfig, as every other command."""
    with api_server() as cluster:
        cluster.add_samples()
        (tmp_path / "kubeconfig").write_text(cluster.kubeconfig())
        said = run("init", "--kubeconfig", "kubeconfig")
    assert said.endswith("next: pilotlight check policy.yaml\n")
    assert run("check", "policy.yaml").startswith("policy.yaml: fine (2 pools")


def test_in_the_cluster_it_needs_no_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PILOTLIGHT_API names the cluster, as in the home's pod, that is looked at; whatever its policy."""
    monkeypatch.setenv("PILOTLIGHT_POLICY", "gone.yaml")
    monkeypatch.setenv("PILOTLIGHT_CLUSTER", "prod")
    with api_server() as cluster:
        cluster.add_samples()
        (tmp_path / "kubeconfig").write_text(cluster.kubeconfig())
        monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{tmp_path}/kubeconfig")
        assert run("init", "-o", "-").startswith("# Pilotlight's policy, begun by `pilotlight init` from cluster prod.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--pods", "x.json"], "name two files by --pods and --nodes", id="one file"),
        pytest.param([*FILES, "--context", "prod"], "name one of them", id="files and a cluster"),
        pytest.param([*FILES, "--budget", "much"], "--budget much: is no sum of dollars", id="a budget in words"),
        pytest.param([*FILES, "--mode", "go"], "--mode go: is no mode: write observe", id="an unknown mode"),
        pytest.param([*FILES, "-o", "gone/policy.yaml"], "gone/policy.yaml: No such file", id="a folder that is none"),
    ],
)
def test_what_cannot_work_is_one_line(words: list[str], said: str) -> None:
    """Bad input, and nothing is written."""
    with pytest.raises(BadInput, match=said):
        run("init", *words)


def test_the_version_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`pilotlight --version` is one line, without any command."""
    from pilotlight.tools.cli.main import build

    assert CliRunner().invoke(build([]), ["--version"]).stdout.startswith("pilotlight ")
