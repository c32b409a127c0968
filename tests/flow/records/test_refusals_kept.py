"""What a cluster's memory keeps of releases that its cloud refuses."""

from datetime import timedelta

from stage import Stage

from pilotlight.facts.memory import Memory
from pilotlight.flow.records import ledger
from pilotlight.flow.records.memory_updates import note_refused_release

SAID = "Forbidden: AWS answers TerminateInstanceInAutoScalingGroup with 403: AccessDenied (" + "User is not that. " * 13


def test_a_fleet_whose_releases_are_all_refused_has_a_memory_that_is_kept() -> None:
    """A right is taken away from a cluster of 5,000 idle nodes: its memory is one record, and the store takes it."""
    stage, memory = Stage(), Memory()
    for n in range(5000):
        at = stage.deps.now() + timedelta(microseconds=137 * n)
        memory = note_refused_release(memory, f"i-{n * 7_919_333_177 % 2**68:017x}", SAID, at)
    was = ledger.recall(stage.deps.state, "c")
    ledger.remember(stage.deps.state, "c", was, memory)
    assert len(ledger.recall(stage.deps.state, "c").memory.refusals) == 5000
