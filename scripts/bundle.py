"""build/<function>.zip for every function: what a cloud needs to run it, byte for byte the same each time.

Side by side lie the function's ``main.py``, the package without its command line and replay, the default policy and
catalogue, and a ``requirements.txt`` of exactly the locked versions that the function needs. Beside each file of Python
lies its bytecode, as the Python that runs this compiles it: a cold start compiles nothing, and another Python passes
it by.
"""

import py_compile
import re
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared" / "pilotlight"
LEFT_OUT = ("cli", "chaos", "replay", "report", "__pycache__")
DEFAULTS = ("examples/policy.yaml", "data/catalogs/articles.yaml")
CLOUD = ("gcp",)
NEEDS = {
    "alert_fanout": ("gcp", "alerts"),
    "billing_tick": (*CLOUD, "bills"),
    "capacity_reconcile": CLOUD,
    "pod_pending": CLOUD,
    "spot_interruption": CLOUD,
}
"""The extras of pyproject.toml that a function needs where infra/terraform runs it, beside what every function does."""
LAMBDAS = {"aws_bridge": ("__init__.py", "errors.py", "adapters/__init__.py", "adapters/bridge.py")}
"""Functions of AWS: the few files of the package that they need. Lambda's Python brings botocore and urllib3."""
LARGEST = 2_000_000
"""Bytes that a zip may have."""

# The first moment a zip can name; modes as any checkout has them.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16


def main() -> None:
    """Write every function's zip into build/, or into the folder named on the command line."""
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    build.mkdir(parents=True, exist_ok=True)
    print(f"bytecode of {sys.implementation.cache_tag}")
    for folder in sorted((ROOT / "functions").iterdir()):
        if (folder / "main.py").exists():
            target = build / f"{folder.name}.zip"
            write(target, contents(folder))
            size, digest = target.stat().st_size, sha256(target.read_bytes()).hexdigest()
            print(f"{target} {size / 1000:.0f} KB sha256:{digest}")
            if size > LARGEST:
                raise SystemExit(f"error: {target} is larger than {LARGEST / 1e6:.0f} MB; leave something out")


def contents(function: Path) -> dict[str, bytes]:
    """Every file of a function's zip, by its name there."""
    files = {"main.py": (function / "main.py").read_bytes()}
    if function.name in LAMBDAS:
        files |= {f"pilotlight/{name}": (PACKAGE / name).read_bytes() for name in LAMBDAS[function.name]}
        return files | compiled(files)
    for path in PACKAGE.rglob("*"):
        inside = path.relative_to(PACKAGE)
        if path.is_file() and not set(inside.parts) & set(LEFT_OUT):
            files[f"pilotlight/{inside.as_posix()}"] = path.read_bytes()
    files |= {f"pilotlight/_defaults/{name}": (ROOT / name).read_bytes() for name in DEFAULTS}
    return files | compiled(files) | {"requirements.txt": requirements(NEEDS[function.name]).encode()}


def compiled(files: dict[str, bytes]) -> dict[str, bytes]:
    """The bytecode of each file of Python, that Python takes as it is without a look at the source's time or hash."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, source in files.items():
            path = Path(name)
            if path.suffix == ".py":
                written, pyc = Path(folder, "source.py"), Path(folder, "source.pyc")
                written.write_bytes(source)
                mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(str(written), str(pyc), dfile=name, doraise=True, invalidation_mode=mode)
                cache = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
                found[cache.as_posix()] = pyc.read_bytes()
    return found


def write(target: Path, files: dict[str, bytes]) -> None:
    """A zip that depends on the files alone: sorted, with fixed times and modes."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.external_attr = MODE
            entry.create_system = 3
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)


def requirements(extras: Iterable[str]) -> str:
    """The locked versions of what the package with these extras needs to run, and of what those need."""
    locked = dict(_locked((ROOT / "requirements.lock").read_text().splitlines()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for name in extras for line in project["optional-dependencies"][name])]
    needed = _closure(map(Requirement, lines))
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
