"""Decoding in several threads: the first use of a type ends no process, and no module goes round it."""

import re
import subprocess
import sys
from pathlib import Path

SHARED = Path(__file__).parents[2] / "shared"
FRESH = """
import sys
from threading import Barrier, Thread

import msgspec

from pilotlight import typed_json

sys.setswitchinterval(1e-6)
fields = [("text", "str"), ("more", "list[int]"), ("each", "dict[str, int]"), ("end", "int | None")]
body = b'{"inner": {"text": "a", "more": [1], "each": {"b": 2}, "end": 3}, "many": []}'
for n in range(400):
    inner = msgspec.defstruct(f"Inner{n}", fields, module="builtins")
    outer = msgspec.defstruct(f"Outer{n}", [("inner", inner), ("many", list[inner])], module="builtins")
    ready = Barrier(4)

    def use(kind=outer, ready=ready):
        ready.wait()
        DECODE

    crowd = [Thread(target=use) for _ in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
"""


def ends(call: str) -> int:
    """The exit code of a process whose threads decode fresh types at the same moment."""
    text = FRESH.replace("DECODE", call)
    return subprocess.run([sys.executable, "-c", text], env={"PYTHONPATH": str(SHARED)}, timeout=120).returncode


def test_threads_that_decode_a_type_first_at_one_moment() -> None:
    """Four threads that decode fresh types at one moment all get their values; by msgspec alone the process dies."""
    assert ends("typed_json.decode(body, kind)") == 0
    assert ends("typed_json.convert({'inner': {'text': '', 'more': [], 'each': {}, 'end': 1}, 'many': []}, kind)") == 0
    assert ends("msgspec.json.decode(body, type=kind)") != 0


def test_types_are_decoded_in_one_way() -> None:
    """No module decodes into a type but by ``pilotlight.typed_json``."""
    direct = re.compile(r"msgspec\.convert\(|json\.Decoder\(|json\.decode\([^\n]*type=|import (convert|Decoder)\b")
    others = (p for p in SHARED.rglob("*.py") if p.name != "typed_json.py")
    assert [str(p.relative_to(SHARED)) for p in others if direct.search(p.read_text())] == []
