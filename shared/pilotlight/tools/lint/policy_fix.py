"""Faults of a policy file that can be mended without a choice: written into its text, whose comments stay.

A class under a hard budget whose run ends nowhere gets the run that would be held for it anyhow, but for serving, whose
end is a person's choice; a key that is one known key misspelt is written right.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from pilotlight.codec.bounded_yaml import nodes_of
from pilotlight.codec.policy_file import read_policy
from pilotlight.codec.policy_rules import never_ending
from pilotlight.errors import BadPolicy
from pilotlight.facts.policy import Policy

_MISSPELT = re.compile(r"(?P<path>\S+): unknown key; did you mean (?P<key>\w+)\?$")
DAY_S = 86_400


class Fixed(NamedTuple):
    """A text that was mended, and what was written, a line each."""

    text: str
    said: tuple[str, ...]


class _Edit(NamedTuple):
    """Letters ``begin`` to ``end`` of a text become ``new``."""

    begin: int
    end: int
    new: str


def fix_policy(text: str, where: str) -> Fixed:
    """The text as far as it can be mended. What cannot be is left for ``check`` to tell."""
    said: list[str] = []
    for _ in range(len(text)):
        done = _right_keys(text, where) or _ends(text, where)
        if done is None:
            break
        text, more = done
        said += more
    return Fixed(text, tuple(said))


def _right_keys(text: str, where: str) -> Fixed | None:
    """With keys that are misspelt written right; None where there is none, or the file is no YAML."""
    try:
        read_policy(text, where)
    except BadPolicy as error:
        found = [match for line in error.problems if (match := _MISSPELT.search(line))]
    else:
        return None
    for match in found:
        path, key = match["path"], match["key"]
        node = _key_node(text, path)
        parent = path.rpartition(".")[0]
        if node is not None and _key_node(text, f"{parent}.{key}" if parent else key) is None:
            edit = _Edit(node.start_mark.index, node.end_mark.index, key)
            return Fixed(_edited(text, [edit]), (f"{path}: is now {key}",))
    return None


def _ends(text: str, where: str) -> Fixed | None:
    """With a longest run for each class but serving that ends nowhere under a hard budget; None where none is."""
    try:
        policy = read_policy(text, where)
    except BadPolicy:
        return None
    endless = [path.split(".")[1] for path, _ in never_ending(policy)]
    runs = {name: _run(policy, name) for name in endless if name != "serving"}
    if not runs:
        return None
    said = tuple(f"classes.{name}.max_runtime: {run}" for name, run in runs.items())
    return Fixed(_with_runs(text, runs), said)


def _run(policy: Policy, name: str) -> str:
    return f"{int(policy.of_class(name).longest_run_s // DAY_S)}d"  # type: ignore[arg-type]


def _with_runs(text: str, runs: dict[str, str]) -> str:
    root = nodes_of(text)
    classes = _below(root, "classes")
    if not isinstance(classes, yaml.MappingNode):
        lines = [f"  {name}: {{max_runtime: {run}}}" for name, run in runs.items()]
        return "\n".join([text.rstrip("\n"), "classes:", *lines]) + "\n"
    edits: list[_Edit] = []
    more: list[str] = []
    for name, run in runs.items():
        own = _below(classes, name)
        if isinstance(own, yaml.MappingNode):
            edits.append(_first(own, [f"max_runtime: {run}"]))
        else:
            more.append(f"{name}: {{max_runtime: {run}}}")
    return _edited(text, [*edits, _first(classes, more)])


def _first(table: yaml.MappingNode, entries: Sequence[str]) -> _Edit:
    """Entries put first into a table: on its line where that is one, else each on a line of its own."""
    begin = table.start_mark.index
    if table.flow_style:
        return _Edit(begin + 1, begin + 1, ", ".join([*entries, ""] if table.value else entries))
    return _Edit(begin, begin, "".join(f"{entry}\n{' ' * table.start_mark.column}" for entry in entries))


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    for edit in sorted(edits, key=lambda one: one.begin, reverse=True):
        text = f"{text[: edit.begin]}{edit.new}{text[edit.end :]}"
    return text


def _below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for name, value in _entries(node) if name.value == key), None)


def _entries(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _key_node(text: str, path: str) -> yaml.Node | None:
    """The node of a key by its path; None where it is not there, or a name in it has a dot."""
    node: yaml.Node | None = nodes_of(text)
    found: yaml.Node | None = None
    for part in re.findall(r"\[\d+\]|[^.\[\]]+", path):
        if part.startswith("["):
            items = node.value if isinstance(node, yaml.SequenceNode) else []
            node = items[int(part[1:-1])] if int(part[1:-1]) < len(items) else None
            continue
        found = next((name for name, _ in _entries(node) if name.value == part), None)
        node = _below(node, part)
        if found is None:
            return None
    return found
