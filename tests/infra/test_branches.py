"""Sizes of functions; ``python bench/branches.py`` prints the worst."""

from ast import parse

import branches
import pytest
from branches import functions

MOST, MANY, WITH_MANY = 20, 15, 40


def test_no_function_has_more_branches_than_one_reads_at_once() -> None:
    """None has more than 20, and at most 40 have more than 15."""
    found = functions()
    assert [(one.name, one.branches) for one in found if one.branches > MOST] == []
    assert sum(one.branches > MANY for one in found) <= WITH_MANY


def test_no_function_is_longer_than_a_screen() -> None:
    """None has more than 50 lines, docstring included; those of commands have their options beside."""
    assert [(one.name, one.lines) for one in functions() if one.lines > 50] == []


def test_the_plan_and_a_cycle_are_read_from_top_to_bottom() -> None:
    """The plan's table has at most 150 lines with all around it, and what a cycle runs at most 25."""
    assert (branches.ROOT / "shared/pilotlight/decide/plan.py").read_text("utf-8").count("\n") <= 150
    (run,) = [one.lines for one in functions() if one.name == "flow/cycle/cycle.py:run"]
    assert run <= 25


def test_no_function_takes_more_arguments_than_one_remembers() -> None:
    """None takes more than 8, but commands, whose arguments are options."""
    assert [(one.name, one.arguments) for one in functions() if one.arguments > 8 and not one.is_command] == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1", 0),
        ("if a and b or c:\n  return 1", 3),
        ("return 1 if a else 2", 1),
        ("for x in y:\n  while x:\n   pass", 2),
        ("return [x for y in z if y if x for x in y]", 4),
        ("try:\n  pass\n except A:\n  pass\n except B:\n  pass", 2),
        ("match a:\n  case 1: pass\n  case _: pass", 2),
        ("def g():\n  if a: pass\n return g", 0),
    ],
    ids=["none", "conditions", "ternary", "loops", "comprehension", "exceptions", "cases", "of another inside"],
)
def test_a_branch_is_counted_where_the_flow_may_part(body: str, expected: int) -> None:
    """Each kind of branch counts once for each way that it adds; functions inside count for themselves."""
    (function,) = parse(f"def f():\n {body}\n").body
    assert sum(map(branches._branches, branches._own(function))) == expected
