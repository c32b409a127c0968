"""Faults of a policy file that can be mended without a choice: a key that is one known key misspelt is written right.

Comments stay."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from pilotlight.codec.bounded_yaml import nodes_of
from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadPolicy

_MISSPELT = re.compile(r"(?P<path>\S+): unknown key; did you mean (?P<key>\w+)\?$")


class Fixed(NamedTuple):
    """A text that was mended, and what was written, a line each."""

    text: str
    said: tuple[str, ...]


def fix_policy(text: str, where: str) -> Fixed:
    """The text as far as it can be mended. What cannot be is left for ``check`` to tell."""
    said: list[str] = []
    for _ in range(len(text)):
        done = _right_keys(text, where)
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
            begin, end = node.start_mark.index, node.end_mark.index
            mended = f"{text[:begin]}{key}{text[end:]}"
            if not _is_refused(mended, where, f"{parent}.{key}" if parent else key):
                return Fixed(mended, (f"{path}: is now {key}",))
    return None


def _is_refused(text: str, where: str, path: str) -> bool:
    """True where a key's value is none that it takes: it meant another key, or more than one."""
    try:
        read_policy(text, where)
    except BadPolicy as error:
        return any(f"{path}: " in problem for problem in error.problems)
    return False


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
