"""docs/rooms.md: every module by its folder, with the first sentence that it says of itself.

``--write`` writes the page anew; without it the page is printed.
"""

import argparse
import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "rooms.md"
HOMES = ("shared/pilotlight", "functions", "scripts", "bench")
HEAD = """# Rooms

Every module by its folder, as its first sentence says it. `make rooms` writes this page; [the house](house.md) says
what holds in each room.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/rooms.md anew")
    if not parser.parse_args(argv).write:
        print(page(), end="")
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for home in HOMES for folder in _folders(ROOT / home) for line in _room(folder))])


def _folders(home: Path) -> list[Path]:
    """A folder and those below it that hold modules."""
    return sorted({path.parent for path in home.rglob("*.py")})


def _room(folder: Path) -> Iterator[str]:
    """A folder's heading, what it says of itself, and a line for each of its modules."""
    yield f"## {folder.relative_to(ROOT)}/\n"
    about = folder / "__init__.py"
    if about.exists() and (said := _first(about)):
        yield f"{said}\n"
    modules = [path for path in sorted(folder.glob("*.py")) if path != about]
    yield from (f"- `{path.name}`: {_first(path)}" for path in modules)
    if modules:
        yield ""


def _first(path: Path) -> str:
    """A module's first sentence as Markdown: its docstring's first line, and where that wraps, on to its end."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    lines = docstring.partition("\n\n")[0].splitlines()
    kept = next((n for n, line in enumerate(lines, 1) if line.endswith((".", "?", ":", "``"))), len(lines))
    text = " ".join(line.strip() for line in lines[:kept]).rstrip(":")
    return re.sub(r"(?<!`)([<*])(?![^`]*`)", r"\\\1", text.replace("``", "`"))


if __name__ == "__main__":
    main()
