"""Runs tests over mutants: collected once, then a process forked for each mutant, with the tests that enter its line.

Which tests enter which line is recorded once, by file of tests, with a mark before every statement. A mutant is planted
by a function's code: whoever has imported the function has it too.
"""

import ast
import gc
import hashlib
import json
import os
import resource
import select
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings

import pilotlight
from mutations import Module, Mutant

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(pilotlight.__file__).parent
MEMORY = 4 << 30


class Outcome(NamedTuple):
    """Outcome of a mutant: ``killed`` by a test, or how else; ``""`` where it survived all ``ran`` tests."""

    killed: str
    ran: int
    seconds: float


class Known(NamedTuple):
    """A test as it ran without a mutant."""

    seconds: float
    places: frozenset[str]


class Runner:
    """A pytest plugin that takes the place of the ordinary run. ``work`` is done with the tests collected."""

    def __init__(
        self, files: Sequence[str], records: Path | None, work: "Callable[[Runner], None]", stale: bool, jobs: int = 1
    ) -> None:
        self.modules = {file: Module(file, PACKAGE) for file in files}
        self.records, self.work, self.stale, self.jobs = records, work, stale, jobs
        self.tests: dict[str, Known] = {}

    def pytest_configure(self) -> None:
        """Properties draw the same examples each time, and shrink none."""
        settings.register_profile(
            "mutants",
            settings.get_profile("any machine"),
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record where that is due, then do the work."""
        self.items = {item.nodeid: item for item in session.items}
        for file in self.modules:
            import_module("pilotlight." + file.removesuffix(".py").replace("/", "."))
        if self.records is not None:
            self._know(self.records)
        else:
            self.tests = dict.fromkeys(self.items, Known(5.0, frozenset()))
        self.work(self)
        return True

    def _know(self, records: Path) -> None:
        """Read what each test enters, recorded where that is due."""
        by_file: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in self.items.values():
            by_file[item.nodeid.partition("::")[0]].append(item)
        kept = {file: records / (file.replace("/", ".") + ".json") for file in by_file}
        due = [file for file in by_file if not self._is_fresh(file, kept[file])]
        print(f"what {len(due)} of {len(by_file)} files of tests enter is recorded", file=sys.stderr)
        if due:
            self._wait(self._fork(lambda: self._record_all({file: (by_file[file], kept[file]) for file in due})))
        for path in kept.values():
            self._read(path)

    @cached_property
    def entered(self) -> dict[str, list[str]]:
        """The tests by the places that they enter: lines, and whole functions; the quickest first."""
        out: dict[str, list[str]] = defaultdict(list)
        for test, known in sorted(self.tests.items(), key=lambda pair: pair[1].seconds):
            around = {":".join(place.split(":", 2)[:n]) for place in known.places for n in (1, 2)}
            for place in known.places | around:
                out[place].append(test)
        return out

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those that enter its line; where no record knows that, its function. Of old records both, and its file."""
        line, function, file = (
            self.entered.get(place, []) for place in (mutant.place, f"{mutant.file}:{mutant.function}", mutant.file)
        )
        return list(dict.fromkeys([*line, *function, *file])) if self.stale else line or function

    def over(self, jobs: int, todo: Iterable[tuple[Mutant, list[str]]]) -> Iterator[tuple[Mutant, Outcome]]:
        """Mutants with what became of them, as they end, so many at a time."""
        waiting, running = iter(todo), dict[int, tuple[int, Mutant, float]]()
        while True:
            while len(running) < jobs and (one := next(waiting, None)) is not None:
                mutant, tests = one
                allowed = 30 + 6 * sum(self.tests[test].seconds for test in tests)
                pid, pipe = self._fork(partial(self._run, mutant, tests), cpu_s=allowed)
                running[pipe] = (pid, mutant, time.monotonic() + 5 * allowed)
            if not running:
                return
            ready, _, _ = select.select(list(running), [], [], 1.0)
            for pipe in list(running):
                pid, mutant, until = running[pipe]
                if pipe in ready or time.monotonic() > until:
                    if pipe not in ready:
                        os.killpg(pid, signal.SIGKILL)
                    del running[pipe]
                    said = self._wait((pid, pipe))
                    yield mutant, Outcome(*json.loads(said)) if said else Outcome("it did not end", 0, 0.0)

    def failing(self, tests: Sequence[str]) -> set[str]:
        """Those of the tests that fail though nothing is wrong."""
        said = self._wait(self._fork(lambda: [test for test in tests if not self._passes(test)]))
        return set(json.loads(said)) if said else set(tests)

    def _fork(self, task: "Callable[[], object]", cpu_s: float | None = None) -> tuple[int, int]:
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            return pid, read
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        if cpu_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 1))
        try:
            os.write(write, json.dumps(task()).encode())
        finally:
            os._exit(0)

    def _wait(self, child: tuple[int, int]) -> bytes:
        pid, pipe = child
        with os.fdopen(pipe, "rb") as told:
            said = told.read()
        with suppress(ProcessLookupError):  # What a test began and did not end.
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return said

    def _passes(self, test: str, following: pytest.Item | None = None) -> bool:
        reports = runtestprotocol(self.items[test], log=False, nextitem=following)
        return not any(report.failed for report in reports)

    def _run(self, mutant: Mutant, tests: Sequence[str]) -> Outcome:
        began = time.process_time()
        module = self.modules[mutant.file]
        _plant({module: mutant.applied(module.source)}, {mutant.function})
        for n, test in enumerate(tests):
            following = self.items[tests[n + 1]] if n + 1 < len(tests) else None
            if not self._passes(test, following):
                return Outcome(test, n + 1, time.process_time() - began)
        return Outcome("", len(tests), time.process_time() - began)

    def _is_fresh(self, file: str, kept: Path) -> bool:
        """True where neither the tests nor the code that they entered changed since."""
        found = json.loads(kept.read_text("utf-8")) if kept.is_file() else {"of": "", "code": {}}
        return found["of"] == _digest((ROOT / file).read_bytes()) and (self.stale or found["code"] == self._code(found))

    def _code(self, found: dict[str, Any]) -> dict[str, str]:
        entered = {place.partition(":")[0] for place in found.get("places", ())}
        return {file: _digest(module.source) for file, module in self.modules.items() if file in entered}

    def _read(self, kept: Path) -> None:
        if kept.is_file():
            found = json.loads(kept.read_text("utf-8"))
            for test, (seconds, places) in found["tests"].items():
                if test in self.items:
                    self.tests[test] = Known(seconds, frozenset(found["places"][n] for n in places))

    def _record_all(self, due: Mapping[str, tuple[list[pytest.Item], Path]]) -> None:
        """A file of tests is a process, of several at a time; functions are marked before all of them."""
        seen: set[int] = set()
        places: list[list[str]] = []
        _plant({module: _marked(module, places) for module in self.modules.values()}, None, seen.add)
        waiting, running = iter(due.items()), dict[int, int]()
        for _ in due:
            while len(running) < self.jobs and (one := next(waiting, None)) is not None:
                file, (items, kept) = one
                pid, pipe = self._fork(partial(self._record, items, kept, file, seen, places))
                running[pipe] = pid
            ready = select.select(list(running), [], [])[0][0]
            self._wait((running.pop(ready), ready))

    def _record(
        self, items: Sequence[pytest.Item], kept: Path, file: str, seen: set[int], places: Sequence[list[str]]
    ) -> None:
        """Left out are tests that fail by themselves."""
        tests = {}
        for n, item in enumerate(items):
            seen.clear()
            began = time.process_time()
            if self._passes(item.nodeid, items[n + 1] if n + 1 < len(items) else None):
                tests[item.nodeid] = (time.process_time() - began, sorted(seen))
        names: dict[str, int] = {}
        numbers = {
            test: (seconds, [names.setdefault(place, len(names)) for n in hits for place in places[n]])
            for test, (seconds, hits) in tests.items()
        }
        found: dict[str, Any] = {"tests": numbers, "places": list(names)}
        found |= {"of": _digest((ROOT / file).read_bytes()), "code": self._code(found)}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), "utf-8")


def _digest(read: bytes) -> str:
    return hashlib.sha256(read).hexdigest()


def _marked(module: Module, places: list[list[str]]) -> ast.Module:
    """The module with a mark before every statement of its functions; ``places`` grows by their lines."""
    tree = ast.parse(module.source)
    for name, function in Module.functions(module, tree):
        for node in ast.walk(function):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list):
                    setattr(node, field, [each for one in body for each in (_mark(one, name, module, places), one)])
    return ast.fix_missing_locations(tree)


def _mark(node: ast.stmt, function: str, module: Module, places: list[list[str]]) -> ast.stmt:
    inner = getattr(node, "body", None)
    last = max(node.lineno, inner[0].lineno - 1) if inner else node.end_lineno or node.lineno
    lines = (module.lines[n - 1].decode().strip() for n in range(node.lineno, last + 1))
    places.append([f"{module.file}:{function}:{line}" for line in lines])
    call = ast.Call(ast.Name("__seen__", ast.Load()), [ast.Constant(len(places) - 1)], [])
    return ast.copy_location(ast.Expr(call), node)


def _plant(
    sources: Mapping[Module, bytes | ast.Module], names: set[str] | None, seen: Callable[[int], None] | None = None
) -> None:
    """Give functions their code of other sources: of all of them, or of those that are named."""
    codes = {
        path: dict(_codes(compile(source, path, "exec", dont_inherit=True)))
        for path, source in ((str(PACKAGE / module.file), source) for module, source in sources.items())
    }
    for live in gc.get_objects():
        if type(live) is types.FunctionType and (known := codes.get(live.__code__.co_filename)) is not None:
            code = known.get((live.__code__.co_qualname, live.__code__.co_firstlineno))
            if code is not None and (names is None or code.co_qualname in names):
                if seen is not None:
                    live.__globals__["__seen__"] = seen
                live.__code__ = code


def fits(module: Module, mutant: Mutant) -> bool:
    """True where it compiles to a function that can take the place of the true one."""
    try:
        made = compile(mutant.applied(module.source), "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    true = {at: code.co_freevars for at, code in _codes(compile(module.source, "true", "exec", dont_inherit=True))}
    return true == {at: code.co_freevars for at, code in _codes(made)}


def _codes(code: types.CodeType) -> Iterator[tuple[tuple[str, int], types.CodeType]]:
    for const in code.co_consts:
        if isinstance(const, types.CodeType) and "<locals>" not in const.co_qualname:
            yield (const.co_qualname, const.co_firstlineno), const
            yield from _codes(const)
