"""What `check --fix` writes: misspelt keys, with the rest of the text as it stood."""

import pytest

from pilotlight.tools.lint.policy_fix import fix_policy


def test_no_end_is_written_that_nobody_asked_for() -> None:
    """A hard budget over classes without an end is no fault: the text stays as it is."""
    text = "version: 1\nbudgets: [{name: all, usd: 10}]  # a hard one\n"
    assert fix_policy(text, "p") == (text, ())


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("pols: {a: {instance_type: x}}", "pools: {a: {instance_type: x}}"),
        ("pools:\n  a:\n    instnce_type: x  # ours\n", "pools:\n  a:\n    instance_type: x  # ours\n"),
        (
            "budgets: [{name: a, usd: 1, hard: false, perod: day}]",
            "budgets: [{name: a, usd: 1, hard: false, period: day}]",
        ),
    ],
)
def test_a_misspelt_key_is_written_right(wrong: str, right: str) -> None:
    """Where one known key is meant."""
    assert fix_policy(f"version: 1\n{wrong}", "p").text == f"version: 1\n{right}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pools: [",
        "version: 1\npools: {a: {max: many, instance_type: x}}\n",
        "version: 1",
        "version: 1\npools: {a: {instance_type: x, capacity_types: [spot]}}\n",
    ],
)
def test_what_needs_a_choice_is_left(text: str) -> None:
    """Nothing is written, and nothing raises."""
    assert fix_policy(text, "p") == (text, ())
