"""--policy of every command that goes by a policy: it stands before the variable, and a wrong one is named."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_forks import CommandForks

from pilotlight.tools.cli.front.completion import TABLE

ROOT = Path(__file__).parents[3]
READERS = (
    *("status", "pools", "gpus", "budget", "queues", "shadow report", "shadow canary"),
    *("alerts list", "alerts redeliver", "alerts test --channel x", "pause --reason x --pool t4"),
    *("resume --pool t4", "reclaim list", "report", "bill", "conformance --pool t4 --max-usd 5 --cloud civo"),
    *("send pod.json", "send pod.json --dry-run", "serve --port 18799"),
    *("spot", "commitments --rate g5.xlarge:one-year=0.6", "waste --prometheus http://127.0.0.1:1"),
    *("plan --sample", "preempt --pods pods.json --nodes nodes.json", "lint .", "world --port 0"),
    *("manifests placement", "manifests rules", "manifests quota", "manifests queues", "manifests nodepools"),
    *("manifests prepull --image x", "manifests hpa ml/x", "manifests keda ml/x --query y"),
)
LATER = {
    **dict.fromkeys(("doctor", "connect", "takeover", "reconcile"), "the cluster is asked for first"),
    **dict.fromkeys(("replay", "tune"), "the trace is read first"),
    "drill": "the world is asked for first",
    **dict.fromkeys(
        ("approve", "alerts ack", "targets", "why", "reclaim snooze", "reclaim wake"),
        "a record of the state is asked for first",
    ),
}
"""Commands that take it and read it later, by why."""
NONE = {
    **dict.fromkeys(("init", "check", "schema"), "the file is their argument, or what they write"),
    **dict.fromkeys(("demo", "week", "synth", "stats", "trace", "runs", "whatif", "cost-of-self"), "own figures"),
    **dict.fromkeys(("deadline", "prices", "sizes", "monitor", "notice-agent", "show"), "asked for one thing"),
    **dict.fromkeys(("handback", "uninstall", "lift", "kueue take", "kueue handback"), "they go by the cluster alone"),
    **dict.fromkeys(("audit verify", "audit export"), "what was decided"),
    **dict.fromkeys(("state ls", "state get", "state export", "state import", "state init"), "the records themselves"),
    "manifests sharing": "they go by measured use",
}
"""Commands that go by no policy, by what they go by."""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForks]:
    """Commands of a person whose variable names another policy that is not there."""
    folder = tmp_path_factory.mktemp("policies")
    for name in ("pods", "nodes"):
        (folder / f"{name}.json").write_bytes((ROOT / "examples/cluster" / f"{name}.json").read_bytes())
    (folder / "pod.json").write_bytes((ROOT / "events/samples/kubernetes/pod_unschedulable.json").read_bytes())
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HOME": str(folder / "home")}
    deployed = {"PILOTLIGHT_CLUSTER": "x", "PILOTLIGHT_API": "kubeconfig:none", "PILOTLIGHT_POOLS": "advisor"}
    made = CommandForks(folder, tmp_path_factory.mktemp("kept"), own | deployed | {"PILOTLIGHT_POLICY": "other.yaml"})
    yield made
    made.end()


@pytest.mark.parametrize("line", READERS)
def test_the_option_names_the_policy_that_is_read(line: str, forks: CommandForks) -> None:
    """A file that is not there is the error, whatever PILOTLIGHT_POLICY says."""
    ended = forks.run([*shlex.split(line), "--policy", "gone.yaml"])
    assert "gone.yaml: No such file" in ended.stderr, ended
    assert ended.code == 2


def test_an_event_that_is_sent_elsewhere_is_judged_there(forks: CommandForks) -> None:
    """A policy of one's own goes with a flow in this process alone."""
    ended = forks.run(["send", "pod.json", "--url", "http://127.0.0.1:1", "--policy", "gone.yaml"])
    said = "error: the functions at http://127.0.0.1:1 go by their own policy: leave --policy or --url out\n"
    assert (ended.code, ended.stderr) == (2, said)


def test_every_command_takes_a_policy_or_goes_by_none() -> None:
    """A new command stands in one of the three lists."""
    table = json.loads(Path(TABLE).read_text("utf-8"))
    leaves = {path: row["options"] for path, row in table.items() if path and "commands" not in row}
    taken = {path for path, options in leaves.items() if "--policy" in options}
    assert taken == {path for path in leaves if any(f"{line} ".startswith(f"{path} ") for line in READERS)} | {*LATER}
    assert leaves.keys() - taken == {*NONE}
