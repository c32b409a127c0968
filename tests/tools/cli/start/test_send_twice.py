"""A sample event that is sent twice: the second answer says plainly that it was heard, and does nothing again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_forks import CommandForks

SAMPLES = Path(__file__).parents[4] / "events" / "samples"
SECOND = {
    "kubernetes/pod_unschedulable.json": "pod_pending: capacity for nlp/finetune-0 is on its way: v100/",
    "aws/spot_interruption.json": ": no node is known by this instance",
    "alertmanager/webhook.json": "alert_fanout: this alert was taken in before",
    "aws/sns_budget.json": "billing_tick: people were told of it already",
    "google/scheduler_tick.json": "capacity_reconcile: ",
}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandForks]:
    """Commands of one person, whose state stays."""
    folder = tmp_path_factory.mktemp("twice")
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HOME": str(folder)}
    made = CommandForks(folder, tmp_path_factory.mktemp("kept"), own)
    yield made
    made.end()


@pytest.mark.parametrize("sample", SECOND)
def test_a_sample_that_is_sent_twice_answers_plainly(sample: str, forks: CommandForks) -> None:
    """Exit code 0 both times; the second answer names what was known."""
    first, second = (forks.run(["send", str(SAMPLES / sample)]) for _ in range(2))
    assert (first.code, second.code) == (0, 0), second
    assert SECOND[sample] in second.stdout
    assert "did:" not in second.stdout


def test_a_world_that_is_new_beside_records_of_another_is_said(forks: CommandForks) -> None:
    """One line on stderr, with the way to a state of its own; none where the state is new as well."""
    words = ["send", str(SAMPLES / "google/scheduler_tick.json")]
    kept = forks.run(words)
    assert "was left by a world that has ended; this one is new" in kept.stderr
    assert "PILOTLIGHT_STATE=sqlite:PATH" in kept.stderr
    assert "a world" not in forks.run(words, {"PILOTLIGHT_STATE": "memory:"}).stderr
