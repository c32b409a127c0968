"""YAML within bounds: what is small in the file and endless when it is written out is refused before it is made."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pilotlight.codec.bills.rates import read_rates
from pilotlight.codec.bounded_yaml import LARGEST, load
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import Reject
from pilotlight.tools.advice.whatif import read_cases
from pilotlight.tools.install.connect_account import read_objects

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "pilotlight"


def _levels(how: str) -> bytes:
    """Thirty levels, each of which names the one before nine times."""
    lines = [f"a0: &a0 {how.format('x: 1') if '{}' in how else '[x]'}"]
    for n in range(1, 30):
        inner = ", ".join([f"*a{n - 1}"] * 9)
        lines.append(f"a{n}: &a{n} " + (f"{{<<: [{inner}], k{n}: 1}}" if "{" in how else f"[{inner}]"))
    return "\n".join(lines).encode()


BOMBS = {
    "lists of lists": _levels("[]"),
    "merges of merges": _levels("{{{}}}"),
    "a list in itself": b"a: &a [*a]",
    "a table in itself": b"a: &a {b: *a}",
    "many aliases": b"a: &a x\nb: [" + b"*a, " * 2_000 + b"]",
    "many values": b"a: [" + b"1," * 250_000 + b"]",
    "a large file": b"# " + b"x" * LARGEST + b"\na: 1",
}
READERS: dict[str, Callable[[bytes], object]] = {
    "a policy": lambda text: read_policy(text, "f.yaml"),
    "a catalogue": lambda text: read_catalog(text, "f.yaml"),
    "rates": lambda text: read_rates(text, "f.yaml"),
    "worked examples": lambda text: read_cases(text, "f.yaml"),
    "manifests": lambda text: read_objects({"f.yaml": text}),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_bomb_is_refused_in_one_line(reader: Callable[[bytes], object], bomb: bytes) -> None:
    """Whoever reads it, it is bad input, and nothing was made of it."""
    with pytest.raises(Reject) as caught:
        reader(bomb)
    assert len(str(caught.value)) < 300


def test_a_file_nested_too_deep_is_refused() -> None:
    """Neither the stack nor the process ends over it."""
    for reader in READERS.values():
        with pytest.raises(Reject):
            reader(b"[" * 100_000)


def test_aliases_and_merges_of_people_are_read() -> None:
    """An anchor that is used a few times is what YAML has it for."""
    text = b"base: &b {x: 1, y: [1, 2]}\none: {<<: *b, z: 3}\ntwo: *b"
    assert load(text, yaml.SafeLoader)["one"] == {"x": 1, "y": [1, 2], "z": 3}


def test_no_yaml_is_read_past_the_bounds() -> None:
    """Nobody in the package loads YAML but this one place."""
    outside = [path for path in PACKAGE.rglob("*.py") if path.name != "bounded_yaml.py"]
    loads = {
        path.name
        for path in outside
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
        if node.attr
        in ("load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "compose", "parse")
    }
    assert loads == set()
