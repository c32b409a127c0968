"""`pilotlight plan`: a dry run on a cluster's objects."""

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pilotlight.errors import BadInput, Failed
from pilotlight.tools.cli.start.plan_command import register
from pilotlight.tools.report.tables.offers_table import _safe

CLUSTER = Path(__file__).parents[4] / "examples" / "cluster"
FILES = ["--pods", str(CLUSTER / "pods.json"), "--nodes", str(CLUSTER / "nodes.json"), "--at", "2026-11-21T01:00:00Z"]


def run(*words: str, stdin: bytes = b"") -> str:
    """What the command prints; raises what it raises."""
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, ["plan", *words], input=stdin, catch_exceptions=False).stdout


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "PILOTLIGHT_POLICY",
        "PILOTLIGHT_CATALOG",
        "PILOTLIGHT_CLUSTER",
        "PILOTLIGHT_MODE",
        "PILOTLIGHT_POOLS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_sample_cluster() -> None:
    """On the sample cluster it buys for pods that can run, keeps both nodes: since when one is idle no file tells."""
    plan = json.loads(run(*FILES, "--json"))
    verdicts = {pod.rpartition("-")[0]: group["verdict"] for group in plan["pods"] for pod in group["pods"]}
    assert verdicts == {
        "serving/llm-api-59bd599549": "bought",
        "ml-research/train": "bought",
        "ml-research/sweep": "bought",
        "ml-research/wrong": "finding",
        "ml-research/no": "finding",
        "serving/mig": "finding",
    }
    assert {n["node"]: n["verdict"] for n in plan["nodes"]} == {"gpu-t4-1": "keep", "gpu-a100-idle": "keep"}
    [idle] = [n["why"] for n in plan["nodes"] if n["node"] == "gpu-a100-idle"]
    assert re.match(r"ready for .*; idle time is not known and counts from now: 0 s of ", idle)
    assert {b["offering"] for b in plan["buys"]} >= {"t4/g4dn.xlarge/on-demand", "a100/p4d.24xlarge/on-demand"}
    assert {f["code"] for f in plan["findings"]} >= {"selector", "toleration", "scheduling-gated"}


def test_the_sample_is_planned_as_of_its_own_time() -> None:
    """Its nodes do not seem idle since the day that the files were written; --at still says another."""
    assert "gpu-a100-idle  [a100, $32.77/h]: ready for 14 min; " in run("--sample")
    assert "Dry run at 2026-11-21 01:00:00 UTC" in run("--sample", "--at", "2026-11-21T01:00:00Z")


def test_it_opens_with_five_lines() -> None:
    """What is bought, released, waits for something else, costs, and is to be mended, before anything else."""
    of, title, blank, *five = run(*FILES).splitlines()[:8]
    assert of == f"cluster in {CLUSTER}/pods.json and {CLUSTER}/nodes.json; state none, a dry run remembers nothing"
    assert title.startswith("Dry run at 2026-11-21 01:00:00 UTC, with the built-in policy, ")
    assert blank == ""
    assert [" ".join(line.split()) for line in five] == [
        "buy 3 nodes, $66.066/h: 2 x a100/p4d.24xlarge/on-demand, 1 x t4/g4dn.xlarge/on-demand",
        "release nothing",
        "waits 1 pod for a scheduling gate (ml-research/gated)",
        "dollars $33.296/h now, $99.362/h after this plan (+$66.066/h)",
        "to mend 3 pods that no node would help (ml-research/wrong-selector, serving/mig-infer and 1 more); "
        "4 claims that do not count",
    ]


def test_it_says_which_pools_are_homed_and_why() -> None:
    """Pools by equal reasons in the text, each in JSON."""
    text = run(*FILES)
    homes = text[text.index("\nHomes\n") :].splitlines()[2:]
    assert [line.split(":")[0].split(maxsplit=1)[0] for line in homes] == ["open"] * len(homes)
    assert any(
        "costs less on" in line and "list the taint pilotlight.dev/home=new:NoSchedule" in line for line in homes
    )
    told = json.loads(run(*FILES, "--json"))["pool_homes"]
    assert {one["pool"] for one in told} >= {"t4", "a100"}
    assert not any(one["homed"] for one in told)


def test_equal_reasons_are_said_once() -> None:
    """Under pods without help their offerings stand by reason; of the others they stand where options are asked for."""
    text = run(*FILES)
    assert "5 offerings: the pod does not tolerate nvidia.com/gpu=present:NoSchedule" in text
    assert text.count("does not tolerate nvidia.com/gpu=present") == 1
    assert text.count("a useful hour is") == 1
    assert "choice $4.80" not in text
    options = run(*FILES, "--why")
    assert "not: v100x4/p3.8xlarge/on-demand: $6.73 per useful hour and pod, the choice $4.80" in options
    assert "not: 3 offerings: an empty node does not hold it (needs 2 GPUs, a node has 1)" in options


@pytest.mark.parametrize(
    ("subject", "said", "not_said"),
    [
        ("ml-research/sweep-jdpzl", "bought    ml-research/sweep-jdpzl and 3 more", "train-8gpu"),
        ("sweep-jdpzl", "bought    ml-research/sweep-jdpzl and 3 more", "train-8gpu"),
        ("f46a6a18-a92d-42f4-af9d-94b65a2dfc09", "scheduling gate kueue.x-k8s.io/admission", "sweep"),
        ("gpu-t4-1", "keep      gpu-t4-1", "gpu-a100-idle"),
        ("ml-research/gated", "scheduling gate kueue.x-k8s.io/admission", "sweep"),
    ],
)
def test_one_pod_or_node_is_shown_alone(subject: str, said: str, not_said: str) -> None:
    """With its options, and nothing of the others."""
    text = run(*FILES, "--why", subject)
    head = 8
    assert text.splitlines()[:head] == run(*FILES).splitlines()[:head]
    body = "\n".join(text.splitlines()[head:])
    assert said in body
    assert not_said not in body


@pytest.mark.parametrize("words", [("ml-research/wrong-selector",), ("--why", "serving/mig-infer")])
def test_a_reason_of_one_pod_is_said_once(words: tuple[str, ...]) -> None:
    """Its finding is its verdict, and idle nodes and offerings with one reason share a line."""
    body = run(*FILES, *words).splitlines()[8:]
    reasons = [line.rpartition(": ")[2] for line in body if ": " in line]
    assert len(reasons) == len(set(reasons)) > 2
    assert "Findings" not in body


def test_a_pod_that_does_not_wait_is_told() -> None:
    """In one line."""
    with pytest.raises(Failed, match="no GPU pod 'nobody' waits and no GPU node has that name"):
        run(*FILES, "--why", "nobody")


def test_every_offering_has_its_row() -> None:
    """Its price, whether it fits, what a useful hour comes to, and why; the chosen one first; only where asked for."""
    assert "Offerings" not in run(*FILES)
    text = run(*FILES, "--offerings").partition("Offerings")[2]
    chosen = [line for line in text.splitlines() if " chosen " in line]
    assert any("t4/g4dn.xlarge/on-demand" in line and "/h" in line for line in chosen)
    assert " dearer " in text


def test_markdown_is_a_comment_that_formats_nothing_of_its_own() -> None:
    """The five lines and what would change as lists, and the rows as a table where they are asked for."""
    text = run(*FILES, "--markdown", "--offerings")
    assert text.startswith("### Pilotlight plan at 2026-11-21 01:00:00 UTC")
    assert "- **buy**: 3 nodes, $66.066/h" in text
    assert "- buy 1 x t4/g4dn.xlarge/on-demand, $0.53/h: 1 waiting pod" in text
    assert "\nWaits: ml-research/gated: " in text
    assert "| for | offering | price | fit | a useful hour | because |" in text
    assert "| for |" not in run(*FILES, "--markdown")
    assert _safe("a|b `c` [d](e) @all https://x") == "a\\|b \\`c\\` \\[d\\](e) @\u200ball https:\u200b//x"


def test_a_node_of_unknown_price_is_not_counted_as_free(tmp_path: Path) -> None:
    """Dollars are a least, in each form; a pod that its pool may take is told of the price, not of its selector."""
    nodes = tmp_path / "nodes.json"
    nodes.write_text((CLUSTER / "nodes.json").read_text().replace("g4dn.xlarge", "zz9.plural"))
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\npools:\n  t4: {instance_type: zz9.plural, max: 2, taints: [{key: nvidia.com/gpu, value: present, "
        "effect: NoSchedule}]}\n  a100: {instance_type: p4d.24xlarge, max: 2}\n"
    )
    words = ["--pods", FILES[1], "--nodes", str(nodes), "--at", FILES[5], "--policy", str(policy)]
    least = "at least $32.77/h now, at least $32.77/h after this plan ($0.00/h), 1 node of unknown price"
    none = tmp_path / "none.json"
    none.write_text('{"items": []}')
    quiet = ["--pods", str(none), *words[2:]]
    assert f"  dollars   {least}\n" in run(*quiet)
    assert f"- **dollars**: {least}\n" in run(*quiet, "--markdown")
    assert json.loads(run(*quiet, "--json"))["unpriced"] == 1
    policy.write_text(policy.read_text().replace("p4d.24xlarge", "zz9.beta"))
    whys = {pod: group["why"] for group in json.loads(run(*words, "--json"))["pods"] for pod in group["pods"]}
    assert whys["ml-research/train-8gpu"].startswith(
        "pool t4 may take it, but no price of its type zz9.plural is known"
    )


NIGHTS = """
version: 1
pools: {t4: {instance_type: g4dn.xlarge, max: 2, mode: advise, handled_by: HANDLER}}
classes: {notebook: {gpu_models: any, may_move: [MOVE]}}
rules:
  - name: nights
    when: {time: {start: "20:00", end: "07:00", timezone: Europe/Berlin}}
    set: {avoid: {t4: [notebook]}, evict: true}
"""
BUSY = "busy: serving/llm-api-59bd599549-bt52z holds GPUs"


@pytest.mark.parametrize(
    ("at", "move", "handler", "more"),
    [
        ("18:25", "off-hours", "pilotlight", ""),
        ("18:45", "off-hours", "pilotlight", "; rule nights evicts its pods at 20:00 Europe/Berlin, and releases it"),
        ("19:10", "off-hours", "pilotlight", "; rule nights evicts its pods now, and releases it"),
        ("19:40", "off-hours", "pilotlight", "; rule nights evicts its pods now, and releases it"),
        ("19:10", "max-age", "pilotlight", ""),
        ("19:10", "off-hours", "karpenter", ""),
    ],
)
def test_a_busy_node_that_off_hours_empty_is_told_of_its_rule(
    tmp_path: Path, at: str, move: str, handler: str, more: str
) -> None:
    """From the half hour before on, where all its pods consent and the pool's interruptions are ours."""
    policy, pods = tmp_path / "policy.yaml", tmp_path / "pods.json"
    policy.write_text(NIGHTS.replace("MOVE", move).replace("HANDLER", handler))
    pods.write_text((CLUSTER / "pods.json").read_text().replace('"inference"', '"notebook"'))
    words = ["--pods", str(pods), *FILES[2:4], "--at", f"2026-11-21T{at}:00Z", "--policy", str(policy)]
    whys = {node["node"]: node["why"] for node in json.loads(run(*words, "--json"))["nodes"]}
    assert whys["gpu-t4-1"] == BUSY + more


def test_the_exit_code_says_whether_something_would_change(tmp_path: Path) -> None:
    """3 for a pipeline where it would, 0 where not; without the option always 0."""
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    (tmp_path / "none.json").write_text('{"items": []}')
    none = ["--pods", str(tmp_path / "none.json"), "--nodes", str(tmp_path / "none.json")]
    codes = [
        CliRunner().invoke(app, ["plan", *words]).exit_code
        for words in ([*FILES, "--exit-code"], [*none, "--exit-code"], FILES)
    ]
    assert codes == [3, 0, 0]


def test_dollars_add_up() -> None:
    """$/h after is $/h before, plus what is bought, less what is released."""
    plan = json.loads(run(*FILES, "--json"))
    bought = sum(b["count"] * b["usd_per_hour"] for b in plan["buys"])
    released = sum(n["usd_per_hour"] for n in plan["nodes"] if n["verdict"] == "release")
    assert plan["usd_per_hour_after"] == pytest.approx(plan["usd_per_hour_before"] + bought - released)


def test_a_line_of_reason_for_each_group_and_node() -> None:
    """Every group of GPU pods and every node has one line of its own."""
    body = run(*FILES).partition("Pods\n")[2].partition("Claims that do not count")[0]
    own = [line for line in body.splitlines() if not line.startswith(" " * 12)]
    for name in ("ml-research/train-8gpu", "serving/mig-infer", "ml-research/gated", "gpu-t4-1", "gpu-a100-idle"):
        (line,) = [line for line in own if f" {name} " in line or f" {name}:" in line]
        assert ": " in line


def test_nothing_is_written(tmp_path: Path) -> None:
    """A dry run leaves no file behind."""
    run(*FILES)
    assert list(tmp_path.iterdir()) == []


def test_stdin() -> None:
    """One of the lists may come from stdin."""
    pods = (CLUSTER / "pods.json").read_bytes()
    assert run("--pods", "-", *FILES[2:], "--json", stdin=pods) == run(*FILES, "--json")


OBJECTS = {"kind": "List", "items": []}

BAD = {
    "stdin twice": (["--pods", "-", "--nodes", "-"], "stdin can be read only once"),
    "no such file": (["--pods", "nowhere.json", "--nodes", "-"], "nowhere.json: No such file"),
    "files mixed up": ([FILES[0], FILES[3], FILES[2], FILES[1]], "items[0]: a Node where a Pod should be"),
    "no time": ([*FILES[:4], "--at", "soon"], "--at is 'soon'"),
    "a time before all others": ([*FILES[:4], "--at", "0001-01-01T00:00:00Z"], "name a year between 1970 and 2200"),
    "no such policy": ([*FILES, "--policy", "nowhere.yaml"], "nowhere.yaml: No such file"),
    "no such catalogue": ([*FILES, "--catalog", "nowhere.yaml"], "nowhere.yaml: No such file"),
}


@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line(words: list[str], told: str) -> None:
    """What cannot be read is told in one line that names it."""
    with pytest.raises(BadInput) as refused:
        run(*words)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_objects_are_read(tmp_path: Path) -> None:
    """A claim that the lists of objects do not have is a finding."""
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "spec": {
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}],
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"persistentVolumeClaim": {"claimName": "gone"}}],
        },
    }
    (tmp_path / "pods.json").write_text(json.dumps(pod))
    (tmp_path / "pvc.json").write_text(json.dumps(OBJECTS))
    words = ["--pods", str(tmp_path / "pods.json"), *FILES[2:], "--json"]
    assert [group["verdict"] for group in json.loads(run(*words))["pods"]] == ["fits"]
    plan = json.loads(run(*words, "--objects", str(tmp_path / "pvc.json")))
    assert (plan["pods"], [f["code"] for f in plan["findings"]]) == ([], ["pvc-missing"])


def test_each_problem_of_a_policy_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy with two mistakes is refused with two lines, whichever command read it."""
    from pilotlight.errors import BadPolicy
    from pilotlight.tools.cli.main import _report

    assert _report(BadPolicy(["p.yaml: a: x", "p.yaml: b: y"]), debug=False) == 2
    assert capsys.readouterr().err == "error: p.yaml: a: x\nerror: p.yaml: b: y\n"


def test_a_pool_without_a_price_is_told_as_for_a_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the region of PILOTLIGHT_POOLS; the finding names the price that is missing there."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\npools: {one: {cloud: eks, instance_type: p3.2xlarge}}\n"
        "classes: {batch: {capacity_types: [on-demand], gpu_models: any, max_runtime: 1d}}\n"
    )
    catalog = CLUSTER.parents[1] / "data" / "catalogs" / "aws-us-east-1.yaml"
    words = [*FILES, "--policy", str(policy), "--catalog", str(catalog), "--json"]
    for pools, expected in (("", []), ("asg:ap-south-1/cluster", ["unknown-price"])):
        monkeypatch.setenv("PILOTLIGHT_POOLS", pools)
        findings = json.loads(run(*words))["findings"]
        told = [f for f in findings if f["subject"] == "pool one" and f["code"] != "stale-price"]
        assert [f["code"] for f in told] == expected
        assert all("p3.2xlarge/on-demand in ap-south-1" in f["message"] for f in told)
