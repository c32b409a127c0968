"""What a function's start imports: a written list for each, for an event that needs nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cold_start
from pilotlight.settings import Settings
from pilotlight.wiring import App

PROBE = """
import sys
from functions_framework import create_app
create_app("empty", sys.argv[1]).test_client().post("/", data=b"{}")
before = set(sys.modules)
answer = create_app(sys.argv[3], sys.argv[2]).test_client().post("/", data=sys.stdin.buffer.read())
print(answer.status_code, answer.get_data(as_text=True), file=sys.stderr)
print("\\n".join(sorted(set(sys.modules) - before)))
"""

HEAVY = ("google.auth", "google.cloud", "requests", "boto3", "botocore", "kubernetes", "grpc")
"""Each costs more than all the rest of such a start."""

OURS = {"main", "msgspec", "typing_extensions", "pilotlight"}
MAY_IMPORT = {
    "pod_pending": OURS,
    "kueue_admission": OURS,
    "capacity_reconcile": OURS,
    "spot_interruption": OURS,
    "alert_fanout": OURS,
    "billing_tick": OURS,
    "billing_import": OURS,
}
"""Packages beside the standard library and what functions-framework brings."""

NEVER = (
    "pilotlight.world",
    "pilotlight.tools",
    "pilotlight.adapters.cluster",
    "pilotlight.decide.limits.request_routes",
    "pilotlight.facts.limits.routes",
    "pilotlight.flow.cycle.cycle",
)
"""Of ours: what such an event has no use for."""

CASES = [case for case in cold_start.CASES if case.before is not None and not case.what.startswith("a tick")]


def _imported(case: cold_start.Case, folder: Path) -> list[str]:
    """The modules that a start with an event that needs nothing imports beyond those of an empty function."""
    (folder / "empty.py").write_text(cold_start.EMPTY)
    main = cold_start.ROOT / "functions" / case.function / "main.py"
    with cold_start.stand_ins(folder / "home") as environ:
        first = App(Settings.from_environ(environ)).receive(case.function, json.dumps(case.before).encode(), {})
        assert first.status == 200, first.body
        done = subprocess.run(
            [sys.executable, "-c", PROBE, folder / "empty.py", main, case.function],
            input=json.dumps(case.event).encode(),
            env=environ,
            capture_output=True,
            check=True,
        )
    assert b"200 {" in done.stderr, done.stderr.decode()
    return done.stdout.decode().split()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.function}: {case.what}")
def test_an_event_that_needs_nothing_imports_what_is_listed(case: cold_start.Case, tmp_path: Path) -> None:
    """No cloud's library, no cluster's client, no world: only the packages written above."""
    modules = _imported(case, tmp_path)
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert {name for name in packages if not name.startswith("_sysconfigdata")} <= MAY_IMPORT[case.function]
    assert [name for name in modules if name.startswith((*HEAVY, *NEVER))] == []


def test_every_function_has_its_list() -> None:
    """A new function says what its start may import."""
    doors = (cold_start.ROOT / "functions").glob("*/main.py")
    folders = {path.parent.name for path in doors if "functions_framework" in path.read_text()}
    assert folders == MAY_IMPORT.keys() == {case.function for case in CASES}
