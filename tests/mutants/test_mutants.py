"""`make mutants` plants mutants, finds those that its tests do not kill, and goes on where it was stopped."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutations import Module, named

ROOT = Path(__file__).resolve().parents[2]
NOTICES = "tests/decide/interruption/test_verify_notice.py"


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("return a < b", {"return a <= b"}),
        ("return a == b", {"return a != b"}),
        ("return a.now < b", set()),
        (
            "return a.now - 1 < b",
            {"return a.now + 1 < b", "return a.now < b", "return a.now - 2 < b", "return a.now - 1 <= b"},
        ),
        ("return a and b", {"return a or b", "return b", "return a"}),
        ("return a - 1", {"return a + 1", "return a", "return a - 2"}),
        ("return not a", {"return a"}),
        ("return max(a, b)", {"return min(a, b)"}),
        ("return b if a else 0", {"return b if not (a) else 0", "return b if a else 1"}),
        ("a.append(b)", {"pass"}),
        ("a.b = b", {"pass"}),
        ("a = b", {"pass"}),
        ("c = b", set()),
        ('return f"{a - b} left"', set()),
        ("assert a", set()),
        ("_log.info(a - b)", set()),
        ("return zip(a, b, strict=True)", set()),
    ],
)
def test_what_is_made_of_a_line(tmp_path: Path, line: str, made: set[str]) -> None:
    """Boundaries, conditions, terms, constants and calls are made wrong; words and asserts are left alone."""
    (tmp_path / "one.py").write_text(f"class C:\n    def f(self, a, b):\n        {line}\n", "utf-8")
    module = Module("one.py", tmp_path)
    mutants = list(module.mutants())
    assert {mutant.line_in(module.source) for mutant in mutants} == made
    assert {(mutant.function, mutant.line) for mutant in mutants} <= {("C.f", 3)}


def test_a_guard_that_is_dropped(tmp_path: Path) -> None:
    """A return and a raise inside a condition are passed over, an answer is made empty or its contrary."""
    (tmp_path / "one.py").write_text("def f(a: int) -> bool:\n    if a:\n        raise A\n    return g(a)\n", "utf-8")
    module = Module("one.py", tmp_path)
    made = {(mutant.line, mutant.line_in(module.source)) for mutant in module.mutants()}
    assert made == {(2, "if not (a):"), (3, "pass"), (4, "return not (g(a))")}


def test_a_named_mutant_outlives_moves_and_no_change(tmp_path: Path) -> None:
    """It is found wherever its function stands; where its line is not there any more, that is said."""
    (tmp_path / "one.py").write_text("A = 1\n\n\ndef f(a):\n    return a < 1\n", "utf-8")
    module = Module("one.py", tmp_path)
    assert named(module, "f", "a < 1", "a <= 1").line_in(module.source) == "return a <= 1"
    with pytest.raises(AssertionError, match="plant it where it would be now"):
        named(module, "f", "a > 1", "a >= 1")


def run(kept: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """A run of the script on one room."""
    command = [sys.executable, "scripts/mutants.py", "--json", "--kept", str(kept), "--jobs", "1", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_mutants_of_a_room(tmp_path: Path) -> None:
    """Where a notice is judged its tests kill most; a second run repeats nothing and says the same."""
    arguments = (
        "--only",
        "decide/interruption/verify_notice",
        "--tests",
        NOTICES,
        "--seed",
        "1",
        "--count",
        "8",
    )
    _, first, _ = run(tmp_path, *arguments)
    assert first["mutants"] == 8
    assert first["survived"] <= 3
    assert all(row["killed"].startswith(f"{NOTICES}::") for row in first["rows"] if row["killed"])
    _, again, said = run(tmp_path, *arguments)
    assert again["rows"] == first["rows"]
    assert "0/0" in said


def test_a_survivor_is_told_with_why(tmp_path: Path) -> None:
    """A room that no test enters fails the run, and each mutant of it says so."""
    code, told, _ = run(tmp_path, "--only", "records/lease", "--tests", NOTICES, "--seed", "1", "--count", "3")
    assert code == 1
    assert [row["why"] for row in told["survivors"]] == ["no test enters it"] * 3


def test_what_survived_once_is_killed_since(tmp_path: Path) -> None:
    """Each mutant of the table is killed by the test beside it, which passes without it."""
    code, told, said = run(tmp_path, "--named")
    assert (code, told["survivors"]) == (0, []), said
    assert told["mutants"] > 40
