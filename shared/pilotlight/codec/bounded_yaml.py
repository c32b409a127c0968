"""YAML read within bounds: every file of YAML comes in here.

A few lines with aliases can stand for billions of values, and merging them takes as long. So the tree is weighed, with
each alias as heavy as what it stands for, before anything is made of it.
"""

from collections.abc import Iterator
from typing import Any

import yaml

LARGEST = 2_000_000
"""Bytes, or letters, of a file."""
MOST_NODES = 200_000
"""Values and keys of a file with its aliases written out."""
MOST_ALIASES = 1_000
DEEPEST = 100
TOO_MUCH = f"over {MOST_NODES:,} values with its aliases written out, {MOST_ALIASES:,} aliases, or {DEEPEST} levels"

TextLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Makes text of every value, so that no figure passes through a binary float."""
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str | bytes, loader: Any = TextLoader) -> Any:
    """The one document in a text. Raises ``yaml.YAMLError``, of what is too much as of what is no YAML."""
    _read_through(text, loader)
    made = loader(text)
    try:
        node = made.get_single_node()
        return None if node is None else made.construct_document(_weighed(node))
    finally:
        made.dispose()


def nodes_of(text: str) -> yaml.Node | None:
    """The nodes of the one document in a text, with the marks of where each stands; None where it is empty."""
    _read_through(text, yaml.SafeLoader)
    made = yaml.SafeLoader(text)
    try:
        node = made.get_single_node()
        return None if node is None else _weighed(node)
    finally:
        made.dispose()


def load_all(text: str | bytes, loader: Any = SafeLoader) -> Iterator[Any]:
    """Every document in a text, each within the bounds of one."""
    _read_through(text, loader)
    made = loader(text)
    try:
        while made.check_node():
            yield made.construct_document(_weighed(made.get_node()))
    finally:
        made.dispose()


def _read_through(text: str | bytes, loader: Any) -> None:
    """Read the text once without keeping anything: what is nested too deep would end the process."""
    if len(text) > LARGEST:
        raise yaml.MarkedYAMLError(problem=f"over {LARGEST:,} bytes: no file of ours is so large")
    depth = values = aliases = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > DEEPEST or values > MOST_NODES or aliases > MOST_ALIASES:
            raise _too_much(event, TOO_MUCH)


def _weighed(root: yaml.Node) -> yaml.Node:
    """The tree, where it is not too heavy. Each node is looked at once, however often it is named."""
    weights = dict[int, int]()
    open_, todo = set[int](), [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            open_.discard(id(node))
            weights[id(node)] = 1 + sum(weights[id(child)] for child in _children(node))
            continue
        if id(node) in open_:
            raise _too_much(node, "it contains itself")
        if id(node) in weights:
            continue
        open_.add(id(node))
        todo.append((node, True))
        todo += [(child, False) for child in _children(node)]
    if weights[id(root)] > MOST_NODES:
        raise _too_much(root, TOO_MUCH)
    return root


def _children(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.MappingNode():
            return [part for pair in node.value for part in pair]
        case yaml.SequenceNode():
            return list(node.value)
    return []


def _too_much(node: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
