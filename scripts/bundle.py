"""build/<function>.zip for every function: what a cloud needs to run it, byte for byte the same each time.

Side by side lie the function's ``main.py``, the package without the tools that people run, the default policy and
catalogue, and a ``requirements.txt`` of exactly the locked versions that the function needs, with the hashes of their
files. Beside them lies their bytecode, compiled by the Python that functions run on, whichever runs this: a cold start
compiles nothing, and reads that of the package from one file (``scripts/bundled.py``). It has no docstrings and no
columns, which nothing reads where functions run; sources lie there without comments and docstrings, each line in its
place: a traceback names and shows lines. Where that Python is not at hand the bytecode is left out, and ``--release``
refuses.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bundled import pack
from pilotlight.codec.bounded_yaml import load

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared" / "pilotlight"
LEFT_OUT = ("tools", "__pycache__")
POLICY, CATALOG = "examples/policy.yaml", "data/catalogs/articles.yaml"
CLOUD = ("gcp",)
NEEDS = {
    "alert_fanout": ("gcp", "alerts"),
    "billing_tick": CLOUD,
    "billing_import": (*CLOUD, "bills"),
    "capacity_reconcile": CLOUD,
    "kueue_admission": CLOUD,
    "pod_pending": CLOUD,
    "spot_interruption": CLOUD,
}
"""The extras of pyproject.toml that a function needs where infra/terraform runs it, beside what every function does."""
LAMBDAS = {"aws_bridge": ("__init__.py", "errors.py", "adapters/__init__.py", "adapters/bridge.py")}
"""Functions of AWS: the few files of the package that they need. Lambda's Python brings botocore and urllib3."""
RUNTIME = (3, 11)
"""The Python that functions run on (runtime in infra/terraform): bytecode of another one is passed by."""
VERSION = ".".join(map(str, RUNTIME))
ON = {"python_version": VERSION, "python_full_version": f"{VERSION}.0", "sys_platform": "linux"}
"""The environment that requirements' markers are asked about."""
LARGEST = 2_200_000
"""Bytes that a zip may have."""
BODIES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
INIT, BIN = "pilotlight/__init__.py", "pilotlight/_bundled.bin"

# The first moment a zip can name; modes as any checkout has them.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16


COMPILE = """
import ast, importlib.util, marshal, pathlib, sys

def without_words(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            texts = [one for one in node.body if isinstance(getattr(one, "value", None), ast.Constant)
                     and isinstance(one, ast.Expr) and isinstance(one.value.value, str)]
            left = [one for one in node.body if one not in texts]
            node.body = left or [ast.copy_location(ast.Pass(), one) for one in texts]
    return tree

for name in sys.stdin.read().splitlines():
    source = pathlib.Path(name).read_bytes()
    tree = ast.parse(source)
    code = compile(without_words(tree) if "ours" in sys.argv else tree, name, "exec", dont_inherit=True)
    # PEP 552: a hash lies there (1), and nobody compares it with the source's.
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    pathlib.Path(name + "c").write_bytes(head + marshal.dumps(code))
"""
"""Compiles the files that it is told of, beside them; ``-X no_debug_ranges`` leaves the columns out. Ours have neither
docstrings nor annotations of functions, which nothing asks for there: a cold start evaluates none."""


def main() -> None:
    """Write every function's zip into build/, or into the folder named on the command line."""
    words = [word for word in sys.argv[1:] if word != "--release"]
    build = Path(words[0]) if words else ROOT / "build"
    build.mkdir(parents=True, exist_ok=True)
    name = f"Python {VERSION}"
    if runtime():
        print(f"bytecode of {name}")
    elif "--release" in sys.argv:
        raise SystemExit(f"error: functions run on {name}, which is not here to compile for; install it")
    else:
        print(f"no bytecode: functions run on {name}, which is not here")
    for folder in sorted((ROOT / "functions").iterdir()):
        if (folder / "main.py").exists():
            target = build / f"{folder.name}.zip"
            write(target, contents(folder))
            size, digest = target.stat().st_size, sha256(target.read_bytes()).hexdigest()
            print(f"{target} {size / 1000:.0f} KB sha256:{digest}")
            if size > LARGEST:
                raise SystemExit(f"error: {target} is larger than {LARGEST / 1e6:.1f} MB; leave something out")


def contents(function: Path) -> dict[str, bytes]:
    """Every file of a function's zip, by its name there."""
    files = {"main.py": (function / "main.py").read_bytes()}
    if function.name in LAMBDAS:
        files |= {f"pilotlight/{name}": without_words((PACKAGE / name).read_bytes()) for name in LAMBDAS[function.name]}
        return files | compiled(files)
    for path in PACKAGE.rglob("*"):
        inside = path.relative_to(PACKAGE)
        if path.is_file() and not set(inside.parts) & set(LEFT_OUT):
            content = path.read_bytes()
            files[f"pilotlight/{inside.as_posix()}"] = without_words(content) if path.suffix == ".py" else content
    files[f"pilotlight/_defaults/{POLICY}"] = (ROOT / POLICY).read_bytes()
    files[f"pilotlight/_defaults/{CATALOG}"] = as_json((ROOT / CATALOG).read_bytes())
    return files | bundled(files) | {"requirements.txt": requirements(NEEDS[function.name]).encode()}


def as_json(text: bytes) -> bytes:
    """A catalogue without anchors and comments, each value as text: a start reads it without the library of YAML."""
    return json.dumps(load(text)).encode()


def without_words(source: bytes) -> bytes:
    """The source without comments, docstrings and strings that stand alone; every other line is where it was."""
    lines = source.decode().splitlines()
    spans = [
        (node.lineno, node.col_offset, node.end_lineno or node.lineno, "pass" if len(body) == 1 else "")
        for body in (each.body for each in ast.walk(ast.parse(source)) if isinstance(each, BODIES))
        for node in body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    for first, column, last, instead in spans:
        lines[first - 1 : last] = [" " * column + instead if instead else "", *[""] * (last - first)]
    kept = "\n".join(lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(kept).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return ("\n".join(lines) + "\n").encode()


def bundled(files: dict[str, bytes]) -> dict[str, bytes]:
    """The package's bytecode in one file, with what takes it from there; ``main.py``'s beside it."""
    first = {
        "main.py": files["main.py"],
        INIT: files[INIT] + b"\nfrom pilotlight._bundled import install\n\ninstall(__path__[0])\n",
        "pilotlight/_bundled.py": (ROOT / "scripts" / "bundled.py").read_bytes(),
    }
    rest = {name: content for name, content in files.items() if name.endswith(".py") and name not in first}
    code = compiled(first | rest)
    if not code:
        return {}
    modules = {_module(name): (Path(name).stem == "__init__", code[_cached(Path(name))][16:]) for name in sorted(rest)}
    magic = code[_cached(Path(INIT))][:4]
    return first | {_cached(Path(name)): code[_cached(Path(name))] for name in first} | {BIN: magic + pack(modules)}


def _module(name: str) -> str:
    return ".".join(Path(name).with_suffix("").parts).removesuffix(".__init__")


@cache
def runtime() -> str:
    """A Python of the runtime's version: the one that runs this, or one in PATH; empty where there is none."""
    name = f"python{VERSION}"
    tried = f"import sys; sys.exit(sys.version_info[:2] != {RUNTIME})"
    for python in (sys.executable, name, f"/usr/bin/{name}"):
        with suppress(OSError):
            if subprocess.run([python, "-c", tried], capture_output=True).returncode == 0:
                return python
    return ""


def compiled(files: dict[str, bytes], ours: bool = True) -> dict[str, bytes]:
    """The bytecode of each file of Python, that Python takes as it is without a look at the source's time or hash.

    What is not ``ours`` keeps its docstrings and annotations: other packages may read them.
    """
    sources = [name for name in files if name.endswith(".py")]
    if not runtime():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sources:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
        command = [runtime(), "-X", "no_debug_ranges", "-c", COMPILE, *(["ours"] if ours else [])]
        subprocess.run(command, cwd=folder, input="\n".join(sources), text=True, check=True)
        return {_cached(Path(name)): Path(folder, f"{name}c").read_bytes() for name in sources}


def _cached(path: Path) -> str:
    return (path.parent / "__pycache__" / f"{path.stem}.cpython-{VERSION.replace('.', '')}.pyc").as_posix()


def write(target: Path, files: dict[str, bytes]) -> None:
    """A zip that depends on the files alone: sorted, with fixed times and modes."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.external_attr = MODE
            entry.create_system = 3
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)


def requirements(extras: Iterable[str], without: Iterable[str] = ()) -> str:
    """The locked versions, with their files' hashes, of what the package with these extras needs to run, ``without``
    some packages and what only those need.
    """
    locked = dict(_locked((ROOT / "requirements.lock").read_text()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for name in ("functions", *extras) for line in project["optional-dependencies"][name]]
    wanted = [need for need in map(Requirement, lines) if canonicalize_name(need.name) not in without]
    needed = _closure(wanted)
    return "".join(f"{locked[name]}\n" for name in sorted(needed) if name in locked)


def _locked(text: str) -> Iterator[tuple[str, str]]:
    """Each package's name, and its lines: version and hashes."""
    for entry in re.split(r"\n(?=\S)", text.strip()):
        if match := re.match(r"([A-Za-z0-9._-]+)(==[^\s;]+)[^\n]*(.*)", entry, re.DOTALL):
            yield canonicalize_name(match[1]), f"{match[1]}{match[2]} \\{match[3]}"


def _closure(first: Iterable[Requirement]) -> set[str]:
    """Names of all distributions that some requirements lead to, on this platform."""
    seen: set[tuple[str, str]] = set()
    todo = [(need, "") for need in first]
    while todo:
        need, extra = todo.pop()
        if need.marker and not need.marker.evaluate({"extra": extra, **ON}):
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
