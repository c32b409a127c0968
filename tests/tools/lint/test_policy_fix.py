"""What `check --fix` writes: longest runs and misspelt keys, with the rest of the text as it stood."""

import pytest

from pilotlight.codec.policy_file import read_policy
from pilotlight.codec.policy_rules import never_ending
from pilotlight.tools.lint.policy_fix import fix_policy

BUDGET = "version: 1\nbudgets: [{name: all, usd: 10}]  # a hard one\n"
RUNS = {"training": 86_400, "notebook": 86_400, "batch": 86_400}

TEXTS = {
    "no classes": BUDGET,
    "no end of line": BUDGET.rstrip("\n"),
    "classes on one line": f"{BUDGET}classes: {{batch: {{gpu_models: any}}, training: {{}}}}\n",
    "classes without one": f"{BUDGET}classes: {{}}\n",
    "classes of lines": f"{BUDGET}classes:\n  # ours\n  batch:\n    gpu_models: any  # cheap\n  training: {{}}\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_each_class_gets_the_run_that_would_be_held_anyhow(text: str) -> None:
    """All but serving end then, whose end is a person's choice; comments and every other value stay."""
    fixed = fix_policy(text, "p")
    policy = read_policy(fixed.text, "p")
    assert {name: policy.of_class(name).max_runtime for name in policy.classes} == RUNS
    assert [path for path, _ in never_ending(policy)] == ["classes.serving.max_runtime"]
    assert len(fixed.said) == len(RUNS)
    assert all(line in fixed.text for line in ("# a hard one", *(["# cheap", "# ours"] if "# ours" in text else [])))
    assert fix_policy(fixed.text, "p") == (fixed.text, ())


def test_a_run_that_is_written_stays() -> None:
    """Only what is missing is added."""
    text = f"{BUDGET}classes: {{batch: {{max_runtime: 2h}}, training: {{may_move: [hard-cap]}}}}\n"
    fixed = fix_policy(text, "p")
    assert read_policy(fixed.text, "p").of_class("batch").max_runtime == 7200
    assert fixed.said == ("classes.notebook.max_runtime: 1d",)


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
    "text", ["", "pools: [", "version: 1\npools: {a: {max: many, instance_type: x}}\n", "version: 1"]
)
def test_what_needs_a_choice_is_left(text: str) -> None:
    """Nothing is written, and nothing raises."""
    assert fix_policy(text, "p") == (text, ())
