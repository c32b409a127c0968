"""`pilotlight check` and `pilotlight schema`."""

import json
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from pilotlight.tools.cli.main import build
from pilotlight.tools.cli.start.policy_commands import register

EXAMPLE = Path(__file__).parents[4] / "examples" / "policy.yaml"


def run(*words: str) -> Result:
    """The command's outcome."""
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_a_good_policy() -> None:
    """A valid policy is said to be fine, with exit code 0."""
    result = run("check", str(EXAMPLE))
    assert (result.exit_code, result.stderr) == (0, "")
    first, *costs = result.stdout.splitlines()
    assert first.endswith("fine (5 pools, 0 rules)")
    assert costs[0] == "pool t4: $0.53/h a node on-demand, 20 at most: $10.52/h, $7,679.60 a month"
    assert len(costs) == 5


def test_price_files_are_read_too(tmp_path: Path) -> None:
    """A file beside the policy that is not there, or is none of prices, is a problem of the key that names it."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nprices: {files: [gone.yaml, odd.yaml], charges: [odd.yaml]}\n")
    (tmp_path / "odd.yaml").write_text("hello: world\n")
    result = run("check", str(policy))
    assert result.exit_code == 2
    said = result.stderr.splitlines()
    assert said[0].startswith(f"error: {policy}: prices.files[0]: {tmp_path}/gone.yaml: No such file")
    assert [line.partition(": ")[2].split(": ")[1] for line in said] == [
        "prices.files[0]",
        "prices.files[1]",
        "prices.charges[0]",
    ]


CIVO = {"PILOTLIGHT_BILLS": "civo:LON1"}
TWO = {"PILOTLIGHT_BILLS": "focus:bill.csv", "PILOTLIGHT_CLUSTERS": '{"ml": {"api": "a"}, "web": {"api": "b"}}'}
BILLS = {
    "Civo's bill without prices": (CIVO, "", "prices.charges: names no file"),
    "a bill of two clusters": (TWO, "", "bill: is missing: ml, web have one bill"),
    "two clusters that are not told apart": (TWO, "bill: {accounts: ['1']}", "bill: ml, web would each count the same"),
}


@pytest.mark.parametrize(("environ", "text", "says"), BILLS.values(), ids=BILLS)
def test_a_bill_that_this_policy_cannot_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], text: str, says: str
) -> None:
    """Each is a problem of the key that mends it, where the environment names a bill; without one there is none."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\n{text}\n")
    assert run("check", str(policy)).exit_code == 0
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    result = run("check", str(policy))
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_clusters_told_apart_by_a_tag_have_one_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One policy serves several where a tag carries the cluster's name."""
    policy = tmp_path / "policy.yaml"
    policy.write_text('version: 1\nbill: {tags: {"eks:cluster-name": "{cluster}"}}\n')
    for name, value in TWO.items():
        monkeypatch.setenv(name, value)
    assert run("check", str(policy)).exit_code == 0


def test_a_bad_policy(tmp_path: Path) -> None:
    """Every problem is one line on stderr, with exit code 2."""
    bad = tmp_path / "policy.yaml"
    bad.write_text("version: 1\npols: {}\ncaps: {gpus: -1}\n")
    result = run("check", str(bad))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"error: {bad}: pols: unknown key; did you mean pools?",
        f"error: {bad}: caps.gpus: -1 is negative",
    ]


def test_as_json(tmp_path: Path) -> None:
    """The same as JSON."""
    bad = tmp_path / "policy.yaml"
    bad.write_text("version: 3\n")
    result = run("check", str(bad), "--json")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    assert (answer["valid"], len(answer["problems"])) == (False, 1)


def test_of_a_policy_without_pools_it_is_said_what_that_means(tmp_path: Path) -> None:
    """Nothing is bought by it, and the next command writes pools; one with pools says nothing of it."""
    (tmp_path / "none.yaml").write_text("version: 1\n")
    result = run("check", str(tmp_path / "none.yaml"))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1] == (
        "no pool is set, so no node is bought or released; next: pilotlight init --context CONTEXT -o NEW.yaml writes "
        "those of a cluster"
    )
    (tmp_path / "one.yaml").write_text("version: 1\npools: {t4: {cloud: eks, instance_type: g4dn.xlarge}}\n")
    assert "no pool is set" not in run("check", str(tmp_path / "one.yaml")).stdout


def test_runs_that_budgets_hold_for(tmp_path: Path) -> None:
    """Of each budget it tells the longest run it holds for, by the classes it counts."""
    file = tmp_path / "policy.yaml"
    file.write_text(
        "version: 1\nclasses: {batch: {max_runtime: 90m}, training: {may_move: [hard-cap]}, "
        "serving: {max_runtime: 7d}, "
        "notebook: {max_runtime: 12h, may_move: [hard-cap], hold: 1h}}\nbudgets:\n"
        "- {name: all, usd: 10}\n"
        "- {name: batch, usd: 10, scope: {class: batch}}\n"
        "- {name: soft, gpu_hours: 10, scope: {class: batch}, hard: false}\n"
        "- {name: lit, usd: 10, period: hour}\n"
    )
    assert run("check", str(file)).stdout.splitlines()[2:] == [
        "budget all holds for each node: training 4 h, serving 168 h, notebook 1 h, batch 1.5 h",
        "budget batch holds for each node: batch 1.5 h",
        "budget soft holds for each node: batch 1 h",
        "budget lit holds for each node: its price",
    ]
    assert json.loads(run("check", str(file), "--json").stdout)["run_s_held_by_budget"]["batch"] == {"batch": 5400}


MANY = {
    "prod": {"api": "in-cluster"},
    "lab": {"api": "in-cluster"},
    "edge": {"api": "in-cluster", "policy": "POLICY"},
}
RULES = """version: 1
classes: {batch: {max_runtime: 1h}}
budgets: [{name: ours, usd: 10, scope: {class: batch}}]
alerts: {channels: {log: {kind: console}}}
"""
OF_MANY = {
    "the policy of all": (True, ["budgets.ours is a cap in each of prod, lab, edge,"]),
    "one cluster's own": (False, ["alerts are not used for edge:"]),
}


@pytest.mark.parametrize(("of_all", "noted"), OF_MANY.values(), ids=OF_MANY.keys())
def test_what_a_policy_of_many_clusters_does_not_do(
    of_all: bool, noted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget is a cap in each cluster and not of all, and alerts go by one policy: both are noted, and no problem."""
    file = tmp_path / "policy.yaml"
    file.write_text(RULES)
    monkeypatch.setenv("PILOTLIGHT_CLUSTERS", json.dumps(MANY).replace("POLICY", str(file)))
    monkeypatch.setenv("PILOTLIGHT_POLICY", str(file) if of_all else "other.yaml")
    result = run("check", str(file))
    notes = [line.removeprefix(f"note: {file}: ") for line in result.stdout.splitlines() if line.startswith("note: ")]
    assert [note.startswith(start) for note, start in zip(notes, noted, strict=True)] == [True]
    answer = json.loads(run("check", str(file), "--json").stdout)
    assert (answer["valid"], answer["notes"]) == (True, [f"{file}: {note}" for note in notes])


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ("instance_type: g4dn.xlrge", "did you mean g4dn.xlarge?"),
        ("instance_type: g4dn.xlarge, capacity_type: spot", "no spot price of g4dn.xlarge is known"),
    ],
)
def test_a_pool_that_nothing_known_prices_ends_a_check_with_one(pool: str, said: str, tmp_path: Path) -> None:
    """A type with a typo, whose nearest is named, and spot without a price: no run of a script goes on after them."""
    file = tmp_path / "policy.yaml"
    file.write_text(f"version: 1\npools:\n  a: {{{pool}}}\n")
    result = run("check", str(file))
    assert (result.exit_code, said in result.stdout) == (1, True)


ENDLESS = {
    "a class with neither": ("classes: {batch: {gpu_models: any}}", "{class: batch}", ["batch"]),
    "a class that the file does not name": ("classes: {}", "{class: serving}", ["serving"]),
    "one of all classes": (
        "classes: {batch: {max_runtime: 1h}, training: {may_move: [hard-cap]}, serving: {max_runtime: 7d}}",
        "all",
        ["notebook"],
    ),
    "none: its run is written": ("classes: {batch: {max_runtime: 1h}}", "{class: batch}", []),
}  # fmt: skip


@pytest.mark.parametrize(("classes", "scope", "named"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_hard_budget_asks_for_no_end(tmp_path: Path, classes: str, scope: str, named: list[str]) -> None:
    """Classes without an end are no fault: a note says what is held, what happens at the cap, and how to stop there."""
    file = tmp_path / "policy.yaml"
    file.write_text(f"version: 1\n{classes}\nbudgets:\n- {{name: b, usd: 10, scope: {scope}}}\n")
    result = run("check", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    notes = [line.split(": budgets.b: ")[1] for line in result.stdout.splitlines() if "no end" in line]
    assert [note.split(" ha")[0] for note in notes] == [" and ".join(named)][: len(named)]
    if named:
        assert "a day of each node is held ahead" in notes[0]
        asked = notes[0].split("write ")[1]
        base = yaml.safe_load(file.read_text())
        stops = {
            name: base["classes"].get(name, {}) | rules for name, rules in yaml.safe_load(asked)["classes"].items()
        }
        file.write_text(json.dumps(base | {"classes": base["classes"] | stops}))
    else:
        file.write_text(file.read_text().replace("usd: 10", "usd: 10, hard: false"))
    assert "no end" not in run("check", str(file)).stdout


FIRST = "version: 1\nbudgets: [{name: all, usd: 10}]  # mine\npols: {a: {instance_type: g4dn.xlarge}}\n"


def test_fix_writes_what_it_can_and_says_it(tmp_path: Path) -> None:
    """A misspelt key beside the guide's first budget, which asks for nothing more."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(FIRST)
    result = run("check", str(policy), "--fix")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[:2] == [
        "fixed: pols: is now pools",
        f"{policy}: fine (1 pool, 0 rules)",
    ]
    assert "# mine\n" in policy.read_text()
    again = run("check", str(policy), "--fix").stdout.splitlines()
    assert again[:2] == ["--fix: no key to mend", f"{policy}: fine (1 pool, 0 rules)"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("missing.yaml", "No such file or directory; name a file that can be read"), (".", "Is a directory"),
     ("bytes", "not YAML: it holds what is no UTF-8 text"), ("/dev/null", "--fix writes a file of this machine")],
)  # fmt: skip
def test_fix_says_of_a_file_what_check_says(tmp_path: Path, name: str, said: str) -> None:
    """What cannot be mended is told as without --fix; only what is no file is refused for it."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    words = ["check", str(tmp_path / name), "--fix"]
    result = CliRunner().invoke(build(["check"]), words)
    assert result.exit_code != 0
    assert said in f"{result.stderr}{result.exception}"


def test_types_prices_and_names_are_known(tmp_path: Path) -> None:
    """A type and a price that nobody knows are findings, for a cloud may know them: the policy is not said to be fine.
    A name that is no label is a fault, and hides no other fault and no finding.
    """
    policy = tmp_path / "policy.yaml"
    pools = "a: {instance_type: g4dn.xlrge}, b: {instance_type: p3.8xlarge, capacity_type: spot}"
    policy.write_text(f"version: 1\npools: {{{pools}}}\n")
    first, *found = run("check", str(policy)).stdout.splitlines()
    assert first == f"{policy}: 2 findings (2 pools, 0 rules)"
    assert [line.startswith(f"finding: {policy}: pools.") for line in found] == [True, True]
    assert ["did you mean g4dn.xlarge?" in found[0], "no spot price of p3.8xlarge is known" in found[1]] == [True, True]
    assert len(json.loads(run("check", str(policy), "--json").stdout)["findings"]) == 2
    policy.write_text(f"version: 1\nbudgts: []\npools: {{a b: {{instance_type: g4dn.xlarge}}, {pools}}}\n")
    result = run("check", str(policy))
    assert result.exit_code == 2
    assert "pools.a b: 'a b' is no value of a label" in result.stderr
    assert "budgts: " in result.stderr
    assert result.stderr.count("error: ") == 2
    assert result.stdout.count("finding: ") == 2


def test_schema() -> None:
    """The schema is JSON and describes every key of the file."""
    schema = json.loads(run("schema").stdout)
    assert {"version", "pools", "classes", "caps", "budgets", "rules", "alerts", "prices"} <= set(
        schema["$defs"]["Policy"]["properties"]
    )


TEAM = "budgets: [{name: r, scope: {team: research}, usd: 5, period: hour}]\n"
CLAIMS = {
    "no namespace": ("claims: {Ml!: {}}\n", "claims.Ml!: 'Ml!' is no namespace"),
    "no class": ("claims: {ml: {classes: []}}\n", "claims.ml.classes: is empty"),
    "an empty team": ("claims: {ml: {teams: ['']}}\n", "claims.ml.teams[0]: is empty"),
    "a pattern that pays": ("claims: {ml: {team: '*'}}\n", "claims.ml.team: '*' is no name of one team"),
    "no pattern": ("claims: {ml: {teams: ['nlp*x[']}}\n", "claims.ml.teams[0]: 'nlp*x[' is no team and no pattern"),
    "a priority below none": ("claims: {ml: {priority: -5}}\n", "claims.ml.priority: -5 is negative"),
    "a team that is not said": ("claims: {ml: {team: ''}}\n", "claims.ml.team: '' is empty"),
    "a default that is not said": ("default_team: ''\n", "default_team: '' is empty"),
    "an id that is not said": ("budgets: [{name: a, usd: 1, id: ''}]\n", "budgets[0].id: '' is empty"),
    "an unknown class": ("claims: {ml: {classes: [tea]}}\n", "claims.ml.classes[0]: 'tea' is not one of"),
    "no amount": ("budgets: [{name: a, usd: .inf}]\n", "budgets[0].usd: '.inf' is not a number"),
    "a long id": (
        f"budgets: [{{name: a, usd: 1, id: {'x' * 3000}}}]\n",
        f"budgets[0].id: '{'x' * 80}'... (3,000 characters) is no id: write letters, digits, dots, dashes or "
        "underscores, at most 63",
    ),
    "a default without a budget": (f"default_team: web\n{TEAM}", "default_team: 'web' has no budget"),
}


@pytest.mark.parametrize(("text", "problem"), CLAIMS.values(), ids=CLAIMS.keys())
def test_claims_that_say_nothing_are_problems(tmp_path: Path, text: str, problem: str) -> None:
    """An entry that no namespace has, and a default team that no budget limits, are named with their path."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\n{text}")
    result = run("check", str(policy))
    assert result.exit_code == 2
    assert f"error: {policy}: {problem}" in result.stderr
    assert result.stderr.count("error: ") == 1


def test_teams_of_claims_without_a_budget_are_noted(tmp_path: Path) -> None:
    """A team that claims name and no budget limits is a note with its path and who pays; one with a budget is none."""
    policy = tmp_path / "policy.yaml"
    claims = "claims: {ml: {team: ghost, teams: [research, '5', 'x-*']}}\n"
    policy.write_text(f"version: 1\ndefault_team: research\n{TEAM}{claims}")
    result = run("check", str(policy))
    assert result.exit_code == 0
    notes = [line.split(": ", 2)[2] for line in result.stdout.splitlines() if "claims.ml" in line]
    assert notes == [
        "claims.ml.team: ghost has no budget: research pays (default_team)",
        "claims.ml.teams[1]: 5 has no budget: research pays (default_team)",
    ]


@pytest.mark.parametrize(
    ("more", "noted"),
    [("", True), ("default_team: research\n", False)],
    ids=["nobody pays for the others", "the default team does"],
)
def test_work_that_nobody_pays_for_is_noted(tmp_path: Path, more: str, noted: bool) -> None:
    """A policy whose teams have hard budgets says who pays for the others, or is told that they get no nodes."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\n{TEAM}{more}")
    result = run("check", str(policy))
    assert result.exit_code == 0
    assert ("Nothing is bought for teams without a budget" in result.stdout) == noted
