"""The zips that clouds run: the same every time, and complete in themselves."""

import json
import marshal
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import bundle
import bundled
import lambda_layers
from fleet import free_port
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.json_text import read_json

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "events" / "samples"
SAMPLE = {
    "alert_fanout": "alert",
    "billing_import": "bill_exported",
    "billing_tick": "budget_notice",
    "capacity_reconcile": "tick",
    "kueue_admission": "quota_reserved",
    "pod_pending": "pod_pending",
    "spot_interruption": "interruption_notice",
}
FUNCTIONS = tuple(SAMPLE)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every function's zip."""
    return _build(tmp_path_factory.mktemp("build"))


def _build(folder: Path) -> Path:
    subprocess.run([sys.executable, ROOT / "scripts" / "bundle.py", folder], check=True, capture_output=True)
    return folder


def test_two_builds_are_the_same_bytes(build: Path, tmp_path: Path) -> None:
    """Nothing of the moment or the machine is in a zip."""
    again = _build(tmp_path)
    assert {p.name: p.read_bytes() for p in again.iterdir()} == {p.name: p.read_bytes() for p in build.iterdir()}


def test_no_file_of_a_zip_imports_one_that_was_left_out(build: Path) -> None:
    """What only commands import may stay out: nothing that is in names it, late imports too."""
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        files = [Path(name).with_suffix("") for name in archive.namelist() if name.endswith(".py")]
    there = {".".join(file.parts).removesuffix(".__init__") for file in files}
    graph = grimp.build_graph("pilotlight", cache_dir=None, exclude_type_checking_imports=True)
    missing = {(one, of) for one in there & graph.modules for of in graph.find_modules_directly_imported_by(one)}
    assert not {(one, of) for one, of in missing if of not in there}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_zip_holds_what_the_function_needs(build: Path, function: str) -> None:
    """Beside main.py lie the package, its defaults and pinned requirements, and no command line."""
    with zipfile.ZipFile(build / f"{function}.zip") as archive:
        names = set(archive.namelist())
        requirements = archive.read("requirements.txt").decode().splitlines()
    assert {"main.py", "pilotlight/wiring.py", "pilotlight/_defaults/examples/policy.yaml"} <= names
    assert not [name for name in names if name.startswith(("pilotlight/tools", "pilotlight/chaos"))]
    pins = [line for line in requirements if not line.startswith(" ")]
    assert all(re.fullmatch(r"[\w.-]+==\S+ \\", line) for line in pins)
    assert {"functions-framework", "msgspec", "urllib3"} <= {line.partition("==")[0] for line in requirements}
    assert not {"boto3", "kubernetes", "typer"} & {line.partition("==")[0] for line in requirements}


def test_a_zips_catalogue_is_json_and_says_what_the_file_says(build: Path) -> None:
    """A start reads it without a library, to the same prices."""
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        packed = archive.read("pilotlight/_defaults/data/catalogs/articles.yaml")
    assert read_json(packed) is not None
    written = (ROOT / "data" / "catalogs" / "articles.yaml").read_bytes()
    assert read_catalog(packed, "packed") == read_catalog(written, "written")


def _unheld(requirements: str) -> list[str]:
    """Requirements that are not held to hashes of the lock."""
    locked = (ROOT / "requirements.lock").read_text()
    unheld = []
    for entry in re.split(r"\n(?=\S)", requirements.strip()):
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}", entry)
        if not hashes or any(one not in locked for one in hashes):
            unheld.append(entry.split()[0])
    return unheld


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_zips_requirements_are_held_to_the_hashes_of_the_lock(build: Path, function: str) -> None:
    """The cloud installs the files that the lock was made with, or nothing."""
    with zipfile.ZipFile(build / f"{function}.zip") as archive:
        assert _unheld(archive.read("requirements.txt").decode()) == []


def test_requirements_without_their_hashes_go_red(build: Path) -> None:
    """The fault put back: pins alone, or hashes of other files."""
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        shipped = archive.read("requirements.txt").decode()
    pins = re.sub(r" \\\n +--hash=sha256:[0-9a-f]{64}", "", shipped)
    assert len(_unheld(pins)) == len(pins.split())
    assert _unheld(re.sub(r"(--hash=sha256:)[0-9a-f]{4}", r"\g<1>0bad", shipped))


def test_every_locked_package_is_held_to_its_hashes() -> None:
    """Whoever installs from the lock gets the files that it was made with, or nothing."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    assert len(entries) > 50
    assert [
        entry for entry in entries if not re.match(r"[\w.-]+==\S+[^\n]*\\\n +--hash=sha256:[0-9a-f]{64}", entry)
    ] == []
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text()


def test_a_zip_brings_its_own_functions_requirements(build: Path) -> None:
    """Who tells people gets the channels' packages, who reads bills what reads exports; others get neither."""
    listed = {}
    for function in FUNCTIONS:
        with zipfile.ZipFile(build / f"{function}.zip") as archive:
            lines = archive.read("requirements.txt").decode().splitlines()
        listed[function] = {line.partition("==")[0] for line in lines}
    assert {function for function in FUNCTIONS if "apprise" in listed[function]} == {"alert_fanout"}
    assert {function for function in FUNCTIONS if "duckdb" in listed[function]} == {"billing_import"}


@pytest.mark.parametrize("function", [*FUNCTIONS, "aws_bridge"])
def test_a_zip_is_small_and_compiled(build: Path, function: str) -> None:
    """It is under 2.2 MB, and has the bytecode of each file of Python, which no start needs to check."""
    path = build / f"{function}.zip"
    assert path.stat().st_size < 2_200_000
    with zipfile.ZipFile(path) as archive:
        sources = [name for name in archive.namelist() if name.endswith(".py")]
        together: bundled.Modules = {}
        if function != "aws_bridge":
            said = archive.read(f"pilotlight/{bundled.FILE}")
            together = marshal.loads(said[8 : 8 + int.from_bytes(said[4:8], "little")])
        for name in sources:
            folder, _, file = name.rpartition("/")
            if (module := ".".join(Path(name).with_suffix("").parts).removesuffix(".__init__")) in together:
                assert together[module][0] == (file == "__init__.py")
                continue
            cache = f"{folder}/__pycache__/{file[:-3]}.{sys.implementation.cache_tag}.pyc".lstrip("/")
            # PEP 552: the flags after the magic number say that there is a hash, and that nobody compares it.
            assert archive.read(cache)[4:8] == b"\x01\x00\x00\x00"
    assert "main.py" in sources


def test_another_python_compiles_the_sources(build: Path, tmp_path: Path) -> None:
    """Bytecode that this Python cannot read is passed by, and the package is the same."""
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        archive.extractall(tmp_path)
    there = tmp_path / "pilotlight" / bundled.FILE
    there.write_bytes(b"\0" + there.read_bytes()[1:])
    tried = "import pilotlight.units as u; print(u.__file__, type(u.__loader__).__name__, u.quantity('1Ki'))"
    environ = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "-c", tried], cwd=tmp_path, capture_output=True, text=True, env=environ)
    assert run.stdout.split() == [str(tmp_path / "pilotlight" / "units.py"), "SourceFileLoader", "1024"], run.stderr


def test_bytecode_is_taken_for_what_it_is(build: Path, tmp_path: Path) -> None:
    """The runtime's Python imports the bytecode of a bundle, and looks at no source for it."""
    runtime = next((found for name in ("python3.11", "/usr/bin/python3.11") if (found := shutil.which(name))), "")
    if subprocess.run([runtime or "false", "-c", ""], capture_output=True).returncode:
        pytest.skip("needs Python 3.11")
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        archive.extractall(tmp_path)
    (tmp_path / "pilotlight" / "errors.py").write_text("raise SystemExit('the source was read')\n")
    run = subprocess.run([runtime, "-c", "import pilotlight.errors"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_bytecode_has_no_docstrings_and_knows_its_lines(build: Path, tmp_path: Path) -> None:
    """What no function reads weighs nothing, and a traceback still shows the line that failed."""
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        archive.extractall(tmp_path)
    tried = "import pilotlight.units as u; assert u.__doc__ is u.quantity.__doc__ is None; u.quantity('x')"
    command = [bundle.runtime() or pytest.skip("needs Python 3.11"), "-c", tried]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    lines = (ROOT / "shared" / "pilotlight" / "units.py").read_text().splitlines()
    place = re.findall(r'units\.py", line (\d+), in quantity\n +(.*)', run.stderr)
    assert place, run.stderr
    assert lines[int(place[0][0]) - 1].strip() == place[0][1]


def test_a_zips_sources_keep_their_lines(build: Path) -> None:
    """Sources lie there without words for people; each line of code is where the checkout has it, for tracebacks."""
    package = ROOT / "shared"
    with zipfile.ZipFile(build / "pod_pending.zip") as archive:
        names = [name for name in archive.namelist() if name.endswith(".py") and (package / name).exists()]
        for name in names:
            there, here = archive.read(name).decode().splitlines(), (package / name).read_text("utf-8").splitlines()
            moved = [
                n for n, line in enumerate(there[: len(here)]) if not here[n].startswith(line.removesuffix("pass"))
            ]
            assert (name, moved) == (name, [])
        assert '"""' not in archive.read("pilotlight/decide/plan.py").decode()
    assert len(names) > 400


def test_a_lambda_brings_nothing_but_its_own_files(build: Path) -> None:
    """The bridge needs no requirement: its zip holds main.py and the few files it imports."""
    with zipfile.ZipFile(build / "aws_bridge.zip") as archive:
        sources = {name for name in archive.namelist() if name.endswith(".py")}
    assert "requirements.txt" not in sources
    assert sources == {
        "main.py",
        *(f"pilotlight/{n}.py" for n in ("__init__", "errors", "adapters/__init__", "adapters/bridge")),
    }


@pytest.fixture(params=FUNCTIONS)
def served(request: pytest.FixtureRequest, build: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A function's name, and the URL at which its unzipped folder is served with no PYTHONPATH."""
    with zipfile.ZipFile(build / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path / "app")
    port = free_port()
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH",)}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, request.param, str(port)],
        cwd=tmp_path / "app",
        env={**environ, "PILOTLIGHT_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
    )
    yield request.param, f"http://127.0.0.1:{port}/"
    process.terminate()
    process.communicate()


# The package of the checkout, installed for development, is taken off the path: only the unzipped one is left.
SERVE = """
import sys
sys.path = [p for p in sys.path if not p.endswith("shared")]
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f).lower()]
from functions_framework import create_app
app = create_app(sys.argv[1], "main.py")
import pilotlight, pathlib
assert pathlib.Path(pilotlight.__file__).parents[1] == pathlib.Path.cwd(), pilotlight.__file__
app.run("127.0.0.1", int(sys.argv[2]))
"""


def _post(url: str, body: bytes) -> dict[str, object]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    for _ in range(6000):
        try:
            with urllib.request.urlopen(request) as answer:
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError:
            raise
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing listens at {url}")


def test_an_unzipped_function_answers(served: tuple[str, str]) -> None:
    """In an empty folder, with nothing on the path, each function takes its sample event and refuses a bad one."""
    function, url = served
    answer = _post(url, (SAMPLES / "pilotlight" / f"{SAMPLE[function]}.json").read_bytes())
    assert {"why", "ignored"} & answer.keys()
    assert "rejected" in _post(url, b"{")


@pytest.mark.parametrize(
    ("name", "has"), [("base", "msgspec"), ("alerts", "apprise"), ("bills", "duckdb")], ids=lambda value: str(value)
)
def test_a_lambdas_layer_lists_what_its_functions_import_and_no_server(name: str, has: str) -> None:
    """Lambda installs nothing: its layers hold the locked packages, without what only an HTTP server needs."""
    entries = lambda_layers.listed(lambda_layers.LAYERS[name]).splitlines()
    names = {line.partition("==")[0] for line in entries if "==" in line}
    assert {has, "cloudevents", "msgspec", "pyyaml"} <= names
    assert not names & {"functions-framework", "flask", "gunicorn", "boto3", "google-auth"}
