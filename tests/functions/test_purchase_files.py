"""The files that one purchase enters; ``python bench/cold_start/purchase_files.py --names`` lists them."""

from purchase_files import entered, without_world

MOST = 51
"""Three more than when the plan was one function: its work, its room for pods, and its new nodes."""


def test_a_purchase_enters_few_files() -> None:
    """From the event's body to its answer, few files are entered."""
    ours = without_world(entered())
    assert {"doorway/door.py", "flow/cycle/cycle.py", "decide/plan.py", "flow/cycle/act.py"} <= set(ours)
    assert len(ours) <= MOST, "\n".join(ours)
