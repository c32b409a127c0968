"""The real terraform over infra/terraform, with the stand-in providers of the shelf: a graph, and a state of it all.

The stand-ins refuse to plan, so that values come from ``terraform test -verbose -json`` on mocks.
"""

import importlib.machinery
import importlib.util
import inspect
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from terraform_rules import Graph, Made, State

needs_terraform = pytest.mark.skipif(not shutil.which("terraform"), reason="needs terraform 1.11 or newer")
Rule = Callable[..., Iterator[str]]

ROOT = Path(__file__).resolve().parents[3]
TERRAFORM = ROOT / "infra" / "terraform"


class Runs:
    """One process of stand-in providers, asked about as many trees as are tried."""

    def __init__(self, check: Any, providers: Any, folder: Path) -> None:
        self._check, self._providers, self._folder = check, providers, folder
        self._count = 0

    def tree(self) -> Path:
        """A copy of infra/terraform that may be changed."""
        self._count += 1
        copy: Path = self._folder / f"tree{self._count}"
        self._check.copy(TERRAFORM, copy)
        return copy

    def graph(self, tree: Path, module: str = "google") -> Graph:
        """What each resource of a module comes after."""
        edges: dict[str, set[str]] = {}
        for line in self._run(tree / module, "graph").splitlines():
            words = line.strip().split('"')
            if len(words) >= 3 and not words[0]:  # A resource, not the frame around a module's.
                edges.setdefault(words[1], set())
            if " -> " in line:
                edges[words[1]].add(words[3])
        return Graph(edges)

    def state(self, tree: Path, module: str = "google") -> list[Made]:
        """Every instance that a module's tests/everything.tftest.hcl makes, with its values."""
        out = self._run(tree / module, "test", "-verbose", "-json", "-filter=tests/everything.tftest.hcl")
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        states = [line["test_state"] for line in lines if line["type"] == "test_state"]
        assert states, "\n".join(line["@message"] for line in lines)
        return list(_made(states[0]["root_module"]))

    def refused(self, tree: Path, module: str, file: str) -> list[str]:
        """The reasons for which what tests/FILE.tftest.hcl of a module tells cannot be made."""
        out = self._run(tree / module, "test", "-json", f"-filter=tests/{file}.tftest.hcl")
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        told = [line["diagnostic"]["detail"] for line in lines if line["type"] == "diagnostic"]
        said = (detail.partition("\n\nThis was checked by the validation rule")[0] for detail in told)
        return [reason for detail in said for reason in detail.splitlines()]

    def _run(self, module: Path, *words: str) -> str:
        if not (module / ".terraform").exists():
            status, said, _ = self._providers.run(module, "init", "-backend=false", "-input=false", "-no-color")
            assert status == 0, said
        _status, out, _ = self._providers.run(module, *words)
        return str(out)


class Tree:
    """One tree of a module, looked at as far as a rule asks."""

    def __init__(self, runs: Runs, path: Path, module: str = "google") -> None:
        self.runs, self.path, self._module, self._found = runs, path, module, dict[str, Any]()

    def broken(self, rule: Rule) -> list[str]:
        """What a rule finds: its parameters say what it reads."""
        return list(rule(*(self._part(name) for name in inspect.signature(rule).parameters)))

    @property
    def state(self) -> State:
        """Every instance of it."""
        return list(self._part("state"))

    def _part(self, name: str) -> Any:
        if name == "tree":
            return self.path
        if name not in self._found:
            ask = {"graph": self.runs.graph, "state": self.runs.state}[name]
            self._found[name] = ask(self.path, self._module)
        return self._found[name]


def rule_name(rule: Rule) -> str:
    """A rule in words."""
    return rule.__name__.replace("_", " ")


def _made(module: dict[str, Any]) -> Iterator[Made]:
    for each in module.get("resources", ()):
        yield Made(each["address"], each["mode"], each["type"], each["values"])
    for child in module.get("child_modules", ()):
        yield from _made(child)


@contextmanager
def terraform(shelf: Path) -> Iterator[Runs]:
    """Runs on the shelf's stand-ins, until the end."""
    loader = importlib.machinery.SourceFileLoader("tfcheck", str(shelf / "tfcheck" / "check"))
    spec = importlib.util.spec_from_loader("tfcheck", loader)
    assert spec is not None
    check = importlib.util.module_from_spec(spec)
    loader.exec_module(check)
    executable, _version, platform = check.terraform()
    folder = Path(tempfile.mkdtemp(prefix="terraform-rules-"))
    providers = check.Providers(folder, executable, platform)
    try:
        yield Runs(check, providers, folder)
    finally:
        providers.close()
        shutil.rmtree(folder)
