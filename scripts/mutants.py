"""Plants one-line mutants in what guards money and work, and runs the tests that enter their lines: which survive?

``make mutants ARGS="--seed 7 --count 100"``. A mutant is killed by a test that fails, or by one that does not end. A
survivor is told with its line, what it was made, and how many tests entered it: a hole in the tests, or the same
program written otherwise. Results are kept in ``build/mutants``: a run that was stopped goes on where it was. With
``--named``, those of ``tests/mutants/named_mutants.py``: each with the test that kills it.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from mutant_runs import PACKAGE, ROOT, Outcome, Runner, fits
from mutations import Module, Mutant, named

GUARDS = (
    "flow/budgets/*.py", "flow/cycle/*.py", "flow/records/*.py", "flow/interruption/*.py", "flow/observe/settle.py",
    "decide/money/*.py", "decide/interruption/drain_plan.py", "decide/interruption/verify_notice.py",
    "decide/nodes/scale_down.py", "decide/place/purchase.py", "decide/place/provision.py",
    "decide/place/new_nodes.py", "decide/place/belonging.py", "decide/limits/plan_brakes.py",
)  # fmt: skip
"""Modules that guard money and work: each buys, holds, counts a budget, closes, evicts, gives back, or remembers it."""

TOLD = (
    "flow/observe/advice_records.py", "decide/money/hourly_costs.py", "decide/money/node_cost.py",
)  # fmt: skip
"""In these rooms, but only read by people, in reports and alerts: nothing is bought, held or ended by their figures."""

TESTS = (
    "tests/flow",
    "tests/decide",
    "tests/functions/test_kueue_admission.py",
    "tests/functions/test_billing_door.py",
    "tests/functions/isolation/test_isolation.py",
)
"""The tests of these rooms. The floors above are not asked: they would find much of it late, and by chance."""

MOST = 0.1
"""No more of the drawn may survive."""

Row = dict[str, Any]


def drawn(modules: Sequence[Module], seed: int, count: int, only: str) -> list[Mutant]:
    """So many mutants, each as likely as any other, of places whose ``file:function`` contains ``only``."""
    every = [m for module in modules for m in module.mutants() if only in f"{m.file}:{m.function}"]
    random.Random(seed).shuffle(every)
    known = {module.file: module for module in modules}
    return list(islice((mutant for mutant in every if fits(known[mutant.file], mutant)), count))


class Results:
    """Outcomes of mutants, a line each, kept so that a run that was stopped goes on."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        self.known: dict[str, Row] = {row["key"]: row for row in map(json.loads, lines)}

    def add(self, key: str, row: Row) -> None:
        """One more."""
        self.known[key] = {"key": key, **row}
        with self.path.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps(self.known[key]) + "\n")


class Judge:
    """Runs the mutants that ``args`` ask for, with the tests that enter them."""

    def __init__(self, runner: Runner, args: argparse.Namespace) -> None:
        self.runner, self.args = runner, args
        self.results = Results(
            args.kept / f"seed-{'named' if args.named else args.seed}.jsonl", args.fresh or args.named
        )

    def rows(self) -> list[Row]:
        """Every mutant with what became of it."""
        tests = self._named() if self.args.named else self._drawn()
        keys = {self._key(mutant): mutant for mutant in tests}
        self._run({mutant: tests[mutant] for key, mutant in keys.items() if key not in self.results.known})
        self._without_false_kills(keys, tests)
        return [self.results.known[key] for key in keys]

    def _drawn(self) -> dict[Mutant, list[str]]:
        modules = list(self.runner.modules.values())
        mutants = drawn(modules, self.args.seed, self.args.count, self.args.only)
        return {mutant: self._affordable(self.runner.tests_of(mutant)) for mutant in mutants}

    def _named(self) -> dict[Mutant, list[str]]:
        known = self.runner.items
        mutants = ((named(self.runner.modules[one.file], one.function, one.old, one.new), one.test) for one in table())
        return {mutant: [test for test in known if test.partition("[")[0] == killer] for mutant, killer in mutants}

    @cached_property
    def _killers(self) -> Counter[str]:
        """How often each test has killed, of all seeds that are kept: it is tried so much sooner."""
        every = (Results(path, fresh=False) for path in sorted(self.args.kept.glob("seed-*.jsonl")))
        return Counter(row["killed"] for results in every for row in results.known.values())

    def _affordable(self, tests: Sequence[str]) -> list[str]:
        left, out = self.args.limit, []
        for test in sorted(tests, key=lambda test: self.runner.tests[test].seconds / (1 + self._killers[test]) ** 2):
            left -= self.runner.tests[test].seconds
            if left > 0:
                out.append(test)
        return out

    def _run(self, todo: Mapping[Mutant, list[str]]) -> None:
        columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("mutants", total=len(todo))
            for mutant, outcome in self.runner.over(self.args.jobs, todo.items()):
                self.results.add(self._key(mutant), self._row(mutant, outcome))
                bar.advance(task)

    def _without_false_kills(self, keys: Mapping[str, Mutant], tests: Mapping[Mutant, list[str]]) -> None:
        """A test that fails without a mutant as well kills none: those that it killed are tried without it."""
        killers = {self.results.known[key]["killed"] for key in keys} & self.runner.tests.keys()
        false = self.runner.failing(sorted(killers))
        again = [mutant for key, mutant in keys.items() if self.results.known[key]["killed"] in false]
        self._run({mutant: [test for test in tests[mutant] if test not in false] for mutant in again})

    def _key(self, mutant: Mutant) -> str:
        made = mutant.line_in(self.runner.modules[mutant.file].source)
        return f"{mutant.file}:{mutant.function}:{mutant.line}: {made} @{mutant.begin}"

    def _row(self, mutant: Mutant, outcome: Outcome) -> Row:
        entering = len(self.runner.tests_of(mutant))
        why = f"{outcome.ran} tests ran over it" if outcome.ran else "no test enters it"
        if outcome.ran < entering:
            why += f", {entering - outcome.ran} others took too long for --limit"
        return {
            "file": mutant.file,
            "function": mutant.function,
            "line": mutant.line,
            "operator": mutant.operator,
            "was": mutant.text,
            "made": mutant.line_in(self.runner.modules[mutant.file].source),
            "killed": outcome.killed,
            "ran": outcome.ran,
            "seconds": round(outcome.seconds, 2),
            "why": "" if outcome.killed else why,
        }


def table() -> Iterator[Any]:
    """Those that survived once."""
    sys.path.insert(0, str(ROOT / "tests" / "mutants"))
    from named_mutants import NAMED

    return iter(NAMED)


def tell(rows: Sequence[Row], args: argparse.Namespace) -> bool:
    """Say which survived; whether they are few enough."""
    left = [row for row in rows if not row["killed"]]
    if args.json:
        summary = {"commit": _commit(), "seed": None if args.named else args.seed, "mutants": len(rows)}
        print(json.dumps({**summary, "survived": len(left), "survivors": left, "rows": rows}, indent=1))
    elif left:
        shown = Table("where", "operator", "its line, and what it was made", "why", show_lines=True)
        for row in left:
            where = f"{row['file']}\n{row['function']}:{row['line']}"
            shown.add_row(where, row["operator"], f"{row['was']}\n{row['made']}", row["why"])
        Console(width=200).print(shown)
    rate, most = len(left) / max(1, len(rows)), 0 if args.named else MOST
    drawn_by = "named" if args.named else f"seed {args.seed}"
    print(
        f"{drawn_by}: {len(left)} of {len(rows)} mutants survived ({rate:.0%}; at most {most:.0%} may)", file=sys.stderr
    )
    return rate <= most


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="else by chance")
    parser.add_argument("--count", type=int, default=100, help="how many are drawn")
    parser.add_argument("--only", default="", help="places whose file:function contains this")
    parser.add_argument("--named", action="store_true", help="the table of those that survived once, none drawn")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="folders and files of tests")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument(
        "--limit", type=float, default=90.0, help="seconds of tests for a mutant, by what they take without"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what this seed came to before")
    parser.add_argument(
        "--stale", action="store_true", help="trust what tests were seen to enter before the code changed"
    )
    parser.add_argument("--json", action="store_true", help="every mutant, as JSON")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "mutants", help="where results are kept")
    return parser.parse_args()


def main() -> int:
    """Draw, run, tell: 1 where too many survive."""
    args = _arguments()
    files = [str(path.relative_to(PACKAGE)) for pattern in GUARDS for path in sorted(PACKAGE.glob(pattern))]
    files = [file for file in files if file not in TOLD]
    rows: list[Row] = []
    records = None if args.named else args.kept / "entered"
    runner = Runner(files, records, lambda ready: rows.extend(Judge(ready, args).rows()), args.stale, args.jobs)
    tests = sorted({one.test.partition("::")[0] for one in table()}) if args.named else args.tests
    quietly = ("-s", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal")
    code = pytest.main([*quietly, *tests], plugins=[runner])
    return int(code) or int(not tell(rows, args))


if __name__ == "__main__":
    sys.exit(main())
