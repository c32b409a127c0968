"""Only settings.py reads the environment, and completion what a shell asks by it: everything else is given values."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "pilotlight"
READERS = {PACKAGE / "settings.py", PACKAGE / "tools" / "cli" / "front" / "completion.py"}
"""The second answers a shell, whose question stands in variables, before the settings could be imported."""
OF_THE_ENVIRONMENT = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")


def readings(source: str) -> Iterator[int]:
    """The lines that touch the environment, by whatever name ``os`` has there."""
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("os", "posix")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OF_THE_ENVIRONMENT:
            if isinstance(node.value, ast.Name) and node.value.id in names:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            taken = {alias.name for alias in node.names}
            if node.module in ("os", "posix") and taken & {*OF_THE_ENVIRONMENT, "*"}:
                yield node.lineno


PLANTED = {
    "a value": "import os\nx = os.environ['A']",
    "a value by a call": "import os\nx = os.getenv('A')",
    "another name for os": "import os as system\nx = system.environ.get('A')",
    "the mapping itself": "from os import environ\nx = environ['A']",
    "inside a function": "def f():\n    import os\n    return os.environ",
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_every_way_to_the_environment_is_seen(source: str) -> None:
    """A planted reading is found."""
    assert list(readings(source))


def test_nothing_else_of_os_is_one() -> None:
    """Process ids, terminals and paths are not the environment."""
    assert not list(readings("import os\nx = os.getpid(), os.pathsep, os.isatty(1), settings.environ"))


def test_only_settings_reads_the_environment() -> None:
    """No other module of the package touches it."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in READERS
        for line in readings(path.read_text("utf-8"))
    ]
    assert found == []
