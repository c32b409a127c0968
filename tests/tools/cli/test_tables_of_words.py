"""Tables that are looked up by a value of one of our types have a row for each value of it."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import pytest

import pilotlight
from pilotlight.facts.decisions import NodeVerdict, Plan
from pilotlight.facts.place.pod_verdicts import PodGroup, Verdict
from pilotlight.flow.alerts.wording import summary
from pilotlight.tools.report.texts.plan_text import Source, lines

PACKAGE = Path(pilotlight.__file__).parent

ONLY_SOME = {
    "pilotlight.decide.interruption.drain_plan.NOTICE_S": "looked up only for kinds that are in it",
    "pilotlight.decide.interruption.drain_plan._AT_ONCE": "looked up only for kinds that are in it",
}
"""Tables that are looked up although rows are absent, each with what makes that safe."""


class Table(NamedTuple):
    """A module's table by its name, and the values that its rows must be for."""

    name: str
    rows: Mapping[Any, Any]
    values: frozenset[Any]


def modules() -> Iterator[tuple[ModuleType, ast.Module]]:
    """Every module whose packages are here, with its source."""
    for found in pkgutil.walk_packages(pilotlight.__path__, "pilotlight."):
        if not found.name.endswith("__main__"):
            try:
                module = importlib.import_module(found.name)
            except ModuleNotFoundError:
                continue
            yield module, ast.parse(Path(str(module.__file__)).read_text("utf-8"))


def looked_up(tree: ast.Module) -> set[str]:
    """Names that a module looks something up in by what is no constant, so that a missing row raises."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
    return {
        node.value.id for node in found if isinstance(node.value, ast.Name) and not isinstance(node.slice, ast.Constant)
    }


def values(kind: Any) -> frozenset[Any]:
    """The values of a Literal, or of a union of some."""
    if get_origin(kind) is Literal:
        return frozenset(get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return frozenset().union(*(values(one) for one in get_args(kind)))
    return frozenset()


def annotated(module: ModuleType, name: str) -> Any:
    """What the keys of a module's table are said to be; None where nothing is."""
    said = module.__annotations__.get(name)
    kinds = get_args(eval(said, vars(module)) if isinstance(said, str) else said)
    return kinds[0] if kinds else None


def tables() -> Iterator[Table]:
    """Every table that is looked up by a value of a type of ours: so annotated, or with nothing but values of one."""
    every = list(modules())
    types = {values(one) for module, _ in every for one in vars(module).values()} - {frozenset()}
    for module, tree in every:
        for name in looked_up(tree):
            rows = getattr(module, name, None)
            if not isinstance(rows, Mapping):
                continue
            wanted = values(annotated(module, name))
            if not wanted and len(rows) > 1:
                wanted = min((one for one in types if rows.keys() <= one), key=len, default=frozenset())
            if wanted:
                yield Table(f"{module.__name__}.{name}", rows, wanted)


def test_every_table_has_a_row_for_each_value_of_its_type() -> None:
    """A value without a row raises where it is looked up: five verdicts without words ended every live page."""
    found = {table.name: table for table in tables()}
    assert "pilotlight.flow.alerts.wording._WORDS" in found
    assert "pilotlight.tools.report.texts.plan_text._STYLES" in found
    lacks = {
        name: sorted(map(str, one.values - one.rows.keys())) for name, one in found.items() if name not in ONLY_SOME
    }
    assert {name: missing for name, missing in lacks.items() if missing} == {}


@pytest.mark.parametrize("verdict", get_args(Verdict))
@pytest.mark.parametrize("count", [1, 3])
def test_every_verdict_has_words(verdict: Verdict, count: int) -> None:
    """In the line of a decision and in a plan's text, of one pod and of more."""
    names = tuple(f"ns/p{n}" for n in range(count))
    group = PodGroup(verdict=verdict, pods=names, uids=names, where="", why="because")
    node = NodeVerdict(node="n", pool="p", instance="i", verdict="keep", why="works", usd_per_hour=None)
    plan = Plan(pods=(group,), nodes=(node,))
    said = summary(plan, ())
    assert verdict == "bought" or f"{count} pod" in said
    from datetime import UTC, datetime

    text = "\n".join(line.plain for line in lines(plan, datetime(2026, 11, 23, tzinfo=UTC), Source("of", "by")))
    assert verdict in text
