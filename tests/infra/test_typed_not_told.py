"""What the code decides by are types and codes; words are for people. Held by a walk over the syntax trees."""

from pathlib import Path

import pytest
from told_text import offences

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "pilotlight"
FOR_PEOPLE = ("tools",)
"""The wing whose business words are."""

TODAY: dict[str, int] = {}
"""Lines in each file that still decide by words. Only ever fewer: take out what you mend, add nothing."""

FOREIGN: dict[str, int] = {
    "adapters/bills/bigquery.py": 1,
    "adapters/pools/karpenter.py": 1,
    "codec/kubernetes/node_claims.py": 2,
    "codec/kubernetes/nodes/nodes.py": 2,
    "codec/kubernetes/pull_events.py": 2,
}
"""Lines that read what another program says in words alone: a kubelet that stops or pulls, an XID, a full quota."""

PLANTED = {
    "compared": "if answer.why == NOTHING: pass",
    "compared the other way round": "if NOTHING != answer.why: pass",
    "one of several": "if answer.why not in (NOTHING, AT_WORK): pass",
    "a word in it": "if 'bought' in effect.note: pass",
    "its beginning": "if line.why.startswith('released'): pass",
    "its end": "found = [r for r in records if r.note.endswith('approval')]",
    "a line of what was done": "ok = any(line.startswith('released') for line in answer.did)",
    "a line of what was done, in a loop": "for line in answer.did:\n    if line == 'x': pass",
    "a local bound from it": "def f(answer):\n    said = answer.why\n    return said == 'x'",
    "a local bound from a local": "def f(a):\n    one = a.why or ''\n    two = one.lower()\n    return 'x' in two",
    "a local of a walrus": "def f(a):\n    if (said := a.note) and said > 'b': pass",
    "a part of it": "if plan.summary[:3] == 'buy': pass",
    "in other letters": "if no.note.strip().lower() == 'x': pass",
    "an argument of that name": "def f(why):\n    return why == 'x'",
    "matched": "match answer.why:\n    case 'x': pass",
    "searched for": "import re\nre.search('x', finding.message)",
    "searched with a pattern": "PATTERN.fullmatch(answer.summary)",
    "joined": "if 'x' in ' '.join(answer.did): pass",
    "put together": "if f'{a.why}; {b}' == 'x': pass",
    "a part of it, cut off": "def f(a):\n    head, _, rest = a.why.partition(':')\n    return head == 'x'",
    "a line of what was done, counted": "for n, line in enumerate(answer.did):\n    if line == 'x': pass",
    "matched as a field": "match answer:\n    case Answer(why='x'): pass",
    "asked for by its name": "if getattr(answer, 'why', '') == 'x': pass",
    "looked up": "act = ACTS[answer.why]",
    "looked up, if it is there": "act = ACTS.get(effect.note)",
    "of two": "def f(a, b):\n    one, two = a.why, b.name\n    return one == 'x'",
}

ALLOWED = {
    "whether there is any": "if answer.why: pass",
    "whether it is None": "if effect.note is None: pass",
    "its length": "if len(record.did) > 3: pass",
    "passed on": "return_(answer.why, note=effect.note)",
    "put into words": "text = f'{answer.why}; {effect.note}'",
    "the number of a line": "for n, line in enumerate(answer.did):\n    if n == 0: pass",
    "kept by it": "counts[answer.why] = 1",
    "another attribute": "if answer.outcome == 'bought': pass",
    "an event called message": "match message:\n    case Tick(): pass",
    "the other of two": "def f(a, b):\n    one, two = a.why, b.name\n    return two == 'x'",
    "a local of another function": "def f(a):\n    said = a.why\ndef g(said):\n    return said == 'x'",
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_a_decision_by_words_is_found(source: str) -> None:
    """Each way to steer by a sentence is one offence, on its line."""
    assert len({line for line, _ in offences(source)}) == 1


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_what_only_carries_words_is_not(source: str) -> None:
    """Words may be passed on, put together, counted and asked for."""
    assert offences(source) == []


def test_nothing_but_reports_decides_by_words() -> None:
    """No file has more such lines than are known; a new one has none."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        lines = [] if name.parts[0] in FOR_PEOPLE else offences(path.read_text("utf-8"))
        if len(lines) > TODAY.get(name.as_posix(), 0) + FOREIGN.get(name.as_posix(), 0):
            found[name.as_posix()] = [f"{line}: {code}" for line, code in lines]
    assert found == {}


def test_what_was_mended_is_off_the_list() -> None:
    """The list names no file that is clean or gone."""
    clean = [
        name for name in TODAY if not (PACKAGE / name).exists() or not offences((PACKAGE / name).read_text("utf-8"))
    ]
    assert clean == []
