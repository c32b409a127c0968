"""build/<function>.zip for every function: what a cloud needs to run it, byte for byte the same each time.

Side by side lie the function's ``main.py``, the package without its command line and replay, the default policy and
catalogue, and a ``requirements.txt`` of exactly the locked versions that the function needs.
"""

import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared" / "pilotlight"
LEFT_OUT = ("cli", "replay", "report", "__pycache__")
DEFAULTS = ("examples/policy.yaml", "data/catalogs/articles.yaml")

# The first moment a zip can name; modes as any checkout has them.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16


def main() -> None:
    """Write every function's zip into build/, or into the folder named on the command line."""
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    build.mkdir(parents=True, exist_ok=True)
    for folder in sorted((ROOT / "functions").iterdir()):
        if (folder / "main.py").exists():
            target = build / f"{folder.name}.zip"
            write(target, contents(folder))
            print(f"{target} {target.stat().st_size / 1024:.0f} KB")


def contents(function: Path) -> dict[str, bytes]:
    """Every file of a function's zip, by its name there."""
    files = {"main.py": (function / "main.py").read_bytes(), "requirements.txt": requirements().encode()}
    for path in PACKAGE.rglob("*"):
        inside = path.relative_to(PACKAGE)
        if path.is_file() and not set(inside.parts) & set(LEFT_OUT):
            files[f"pilotlight/{inside.as_posix()}"] = path.read_bytes()
    return files | {f"pilotlight/_defaults/{name}": (ROOT / name).read_bytes() for name in DEFAULTS}


def write(target: Path, files: dict[str, bytes]) -> None:
    """A zip that depends on the files alone: sorted, with fixed times and modes."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.external_attr = MODE
            entry.create_system = 3
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)


def requirements() -> str:
    """The locked versions of what the package needs to run, and of what those need."""
    locked = dict(_locked((ROOT / "requirements.lock").read_text().splitlines()))
    needed = _closure(Requirement(line) for line in requires("pilotlight") or ())
    return "".join(f"{locked[name]}\n" for name in sorted(needed) if name in locked)


def _locked(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if match := re.match(r"([A-Za-z0-9._-]+)==\S+", line):
            yield canonicalize_name(match[1]), match[0]


def _closure(first: Iterable[Requirement]) -> set[str]:
    """Names of all distributions that some requirements lead to, on this platform."""
    seen: set[tuple[str, str]] = set()
    todo = [(need, "") for need in first]
    while todo:
        need, extra = todo.pop()
        if need.marker and not need.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *need.extras):
            name = canonicalize_name(need.name)
            if (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            try:
                todo += [(Requirement(line), wanted) for line in requires(name) or ()]
            except PackageNotFoundError:
                raise SystemExit(f"error: {need.name} is not installed here; run make setup") from None
    return {name for name, _ in seen}


if __name__ == "__main__":
    main()
