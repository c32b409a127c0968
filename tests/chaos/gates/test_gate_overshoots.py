"""A gate over a Karpenter that overshoots, one fault a walk; ``bench/chaos/chaos_on_clouds.py gate`` tries more."""

import pytest
from harness.gate_walk import FAULTS, walked
from planted import Bug, plant

COUNTS, WRITES = "decide.money.karpenter_gate", "flow.budgets.karpenter_gates:_Keeper"


@pytest.mark.parametrize("seed", range(2 * len(FAULTS)))
def test_machines_stay_within_the_dollars_but_for_named_gaps(seed: int) -> None:
    """Two walks of each fault: the judge's own account is passed in no way that the guide does not name, what there are
    dollars for is open again when all is calm, and no claim is deleted by us."""
    found, walk = walked(seed)
    assert found == []
    assert walk.judge.launched > 0


BUGS = {
    "what drains is counted": (
        "drains uncounted",
        Bug(f"{COUNTS}:count_gpus", "claim.going or marked", "False and marked"),
    ),
    "a machine that is no node yet costs nothing": (
        "drains uncounted",
        Bug(f"{COUNTS}:count_gpus", "owed += node is None", "owed += 0"),
    ),
    "nothing stays free for drift": (
        "drift",
        Bug(f"{COUNTS}:count_gpus", "owed + state.surge(stay)", "owed"),
    ),
    "a further node takes nothing for those that may replace it": (
        "consolidation",
        Bug(f"{COUNTS}:further_nodes", "1 + after - before", "1"),
    ),
    "an expiry is met when it has come": (
        "expiry",
        Bug(f"{COUNTS}:count_gpus", "now + AHEAD", "now - AHEAD"),
    ),
    "a node without a GPU closes nothing and is counted by its claim": (
        "shows no GPU",
        Bug(f"{COUNTS}:refusal", "not node.gpus or", "False or"),
        Bug(f"{COUNTS}:count_gpus", "lack += max", "lack += 0 * max"),
    ),
    "another hand's value is left": (
        "GitOps",
        Bug(f"{WRITES}._limited", "limit == state.limit and state.before", "state.before"),
    ),
    "machines of a NodePool that is gone cost nothing": (
        "made anew",
        Bug("codec.kubernetes.karpenter_objects:unread_state", "claims=tuple(there)", "claims=()"),
    ),
    "a share is of those that stay alone": (
        "consolidation",
        Bug("facts.money.gates:Surge.at_once", "(100 - self.percent)", "100"),
    ),
    "a conflict is not tried again": (
        "409",
        Bug(f"{WRITES}._write", "range(TRIES - 1)", "range(0)"),
    ),
    "a limit whose answer is lost stands as it was": (
        "lost answer",
        Bug(f"{WRITES}._limited", "ours if isinstance(no, Retry) else state", "state"),
    ),
    "what claims say is not looked at": (
        "says fewer",
        Bug(f"{COUNTS}:refusal", "for claim in state.claims:", "for claim in ():"),
    ),
    "dollars behind an open limit are free to others": (
        "planned before",
        Bug(f"{WRITES}.write_limits", "max(open_nodes(each, gate.seen, gate.gpus) for each in (stood, stands))", "0"),
    ),
}


RARE = {
    "a share is of those that stay alone": 1382,
    "what claims say is not looked at": 335,
    "dollars behind an open limit are free to others": 382,
}
"""Seeds whose walks show what few do."""


@pytest.mark.parametrize("name", BUGS)
def test_the_judge_sees_a_planted_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within some walks of its fault the judge's account is passed."""
    fault, *bugs = BUGS[name]
    for bug in bugs:
        assert isinstance(bug, Bug)
        plant(bug, monkeypatch.setattr)
    first = FAULTS.index(str(fault))
    seeds = [RARE[name]] if name in RARE else range(first, first + 12 * len(FAULTS), len(FAULTS))
    assert any(walked(seed)[0] for seed in seeds)
