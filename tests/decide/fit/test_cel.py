"""Selectors of devices: the part of CEL that is read, against its rules and against another implementation."""

import sys
from collections.abc import Iterator
from typing import Any

import celpy
import pytest
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from hypothesis import example, given, reject
from hypothesis import strategies as st

from pilotlight.decide.fit.cel import evaluate_selector
from pilotlight.decide.fit.cel_values import Absent, Unknown, Unread
from pilotlight.facts.fit.claimed_devices import DeviceKind

GPU = "gpu.nvidia.com"
A100 = DeviceKind(
    driver=GPU,
    resource="nvidia.com/gpu",
    count=8,
    attributes={f"{GPU}/type": "gpu", f"{GPU}/productName": "NVIDIA A100-SXM4-40GB", f"{GPU}/cores": 7, "x.y/on": True},
    versions={f"{GPU}/driverVersion": "580.126.20", f"{GPU}/next": "1.0.0-rc.1"},
    capacity={f"{GPU}/memory": "40Gi"},
    differs=(f"{GPU}/uuid",),
)
OF, CAPACITY = f"device.attributes['{GPU}']", f"device.capacity['{GPU}']"

SAID: dict[str, tuple[str, object]] = {
    "the driver": (f"device.driver == '{GPU}'", True),
    "a text in other quotes": (f'{OF}.productName == "NVIDIA A100-SXM4-40GB"', True),
    "a part of a text": (f"{OF}.productName.contains('A100')", True),
    "how a text begins and ends": (f"{OF}.productName.startsWith('NVIDIA') && {OF}.productName.endsWith('40GB')", True),
    "a pattern, in small letters": (f"{OF}.productName.lowerAscii().matches('^nvidia a[13]00')", True),
    "a raw pattern": (f"{OF}.productName.matches(r'SXM\\d')", True),
    "a name in brackets": (f"{OF}['type'] == 'gpu'", True),
    "a number": (f"{OF}.cores * 2 + 1 > 14 && {OF}.cores % 4 == 3", True),
    "another domain": ("device.attributes['x.y'].on", True),
    "a quantity": (f"{CAPACITY}.memory.compareTo(quantity('40960Mi')) == 0", True),
    "more than a quantity": (f"{CAPACITY}.memory.isGreaterThan(quantity('40Gi'))", False),
    "a version": (f"{OF}.driverVersion.isGreaterThan(semver('580.9.0'))", True),
    "a part of a version": (f"{OF}.driverVersion.major() == 580", True),
    "a prerelease is before its release": (f"{OF}.next.isLessThan(semver('1.0.0'))", True),
    "one of a list": (f"{OF}.type in ['gpu', 'mig']", True),
    "a domain that is there": (f"'{GPU}' in device.attributes && 'type' in {OF}", True),
    "a choice": (f"{OF}.type == 'gpu' ? {OF}.cores < 8 : false", True),
    "an optional field": (f"{OF}.?rack.orValue('none') == 'none'", True),
    "has, of what is not there": (f"has({OF}.rack)", False),
    "what is not there": (f"{OF}.rack == 'r7'", Absent(f"{GPU}/rack")),
    "an error beside what decides": (f"{OF}.rack == 'r7' || {OF}.type == 'gpu'", True),
    "what differs from device to device": (f"{OF}.uuid == 'GPU-1'", Unknown(f"{GPU}/uuid")),
    "what is unknown beside what decides": (f"{OF}.uuid == 'GPU-1' && {OF}.type == 'mig'", False),
    "a text that is compared with a number": (f"{OF}.type < 3", Absent("a value of that type")),
    "no truth": (f"{OF}.cores", Absent("a truth")),
    "a division by nothing": (f"{OF}.cores / 0 == 1", Absent("a value of that type")),
}


@pytest.mark.parametrize(("expression", "answer"), SAID.values(), ids=SAID.keys())
def test_a_selector_is_answered(expression: str, answer: object) -> None:
    """A selector chooses a kind of devices, or not, or says what its answer depends on."""
    assert evaluate_selector(expression, A100) == answer


UNREAD = {
    "a comprehension": "[1].exists(n, n == 1)",
    "a function that is not known": "url('x') == 'y'",
    "a method that is not known": f"{OF}.type.split('p') == []",
    "a field of a device that is not known": "device.name == 'gpu-0'",
    "a pattern that may take long": f"{OF}.productName.matches('(a+)+$')",
    "many repeats": f"{OF}.productName.matches('.*.*.*.*x')",
    "an open bracket": f"({OF}.type == 'gpu'",
    "an open text": "device.driver == 'x",
    "something after the end": f"{OF}.type == 'gpu' device",
    "nothing": "",
    "nested deep": "(" * 400 + "true" + ")" * 400,
    "too long": " " * 20_000 + "true",
}


@pytest.mark.parametrize("expression", UNREAD.values(), ids=UNREAD.keys())
def test_what_is_not_read_is_said(expression: str) -> None:
    """An expression that uses more than is read here is refused, never guessed."""
    with pytest.raises(Unread):
        evaluate_selector(expression, A100)


def test_what_no_driver_published_is_unknown() -> None:
    """Of devices that nobody has seen an attribute that is not expected is unknown, not absent."""
    unseen = DeviceKind(driver=GPU, resource="nvidia.com/gpu", count=1, attributes={f"{GPU}/type": "gpu"}, seen=False)
    assert evaluate_selector(f"{OF}.rack == 'r7'", unseen) == Unknown(f"{GPU}/rack")
    assert evaluate_selector(f"has({OF}.rack)", unseen) == Unknown(f"{GPU}/rack")


TEXTS = st.sampled_from(["'gpu'", "'mig'", "'NVIDIA A100'", f"{OF}.type", f"{OF}.productName"])
NUMBERS = st.one_of(st.integers(-9, 9).map(str), st.just(f"{OF}.cores"))
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
LEAVES = st.one_of(
    st.tuples(TEXTS, SIGNS, TEXTS).map(" ".join),
    st.tuples(NUMBERS, SIGNS, NUMBERS).map(" ".join),
    st.tuples(NUMBERS, st.sampled_from(["+", "-", "*"]), NUMBERS, st.just(">"), NUMBERS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["contains", "startsWith", "endsWith"]), TEXTS).map(
        lambda t: f"{t[0]}.{t[1]}({t[2]})"
    ),
    st.lists(TEXTS, max_size=3).flatmap(lambda many: TEXTS.map(lambda one: f"{one} in [{', '.join(many)}]")),
    st.sampled_from(["true", "false", f"{OF}.rack == 'r7'"]),
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda one: f"!({one})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) ? ({t[1]}) : ({t[2]})"),
    ),
    max_leaves=6,
)


def _other(expression: str) -> object:
    """What cel-python says; None for an error."""
    deepest = sys.getrecursionlimit()
    environment = celpy.Environment()  # It sets a limit of its own.
    sys.setrecursionlimit(deepest)
    said: dict[str, Any] = {"type": "gpu", "productName": "NVIDIA A100-SXM4-40GB", "cores": 7}
    device = json_to_cel({"driver": GPU, "attributes": {GPU: said}})
    try:
        found = environment.program(environment.compile(expression)).evaluate({"device": device})
    except CELEvalError:
        return None
    except IndexError:  # It fails at printing some errors of its own.
        reject()
    return bool(found) if isinstance(found, celtypes.BoolType | bool) else None


@given(EXPRESSIONS)
@example(
    "!(((true) ? (device.attributes['gpu.nvidia.com'].rack == 'r7') : ('gpu' in [])) && "
    "((device.attributes['gpu.nvidia.com'].rack == 'r7') ? (true) : ('gpu' in [])))"
)
def test_it_says_what_another_implementation_says(expression: str) -> None:
    """On texts, numbers, lists and logic the answer is that of cel-python; where that has an error, ours has none."""
    ours = evaluate_selector(expression, A100)
    assert (ours if isinstance(ours, bool) else None) == _other(expression)


FAR = {
    "a number of five thousand digits": "1" * 5000 + " == 1",
    "a sum of four thousand": "+".join(["1"] * 4000) + " == 1",
    "four thousand fields": "device" + ".a" * 4000,
    "nine thousand negations": "!" * 9000 + "true",
    "nine thousand signs": "-" * 9000 + "1 < 1",
    "a thousand calls": "'a'" + ".size()" * 1000,
    "three thousand brackets": "(" * 3000,
    "a pattern that backtracks": "'" + "a" * 4000 + "'.matches('a*a*a*[bc]')",
    "eleven thousand characters": "true " + " " * 11_000 + "|| true || 1",
}


@pytest.fixture
def plain_python() -> Iterator[None]:
    """Python's own limit of frames: hypothesis leaves a higher one to the tests after it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("plain_python")
@pytest.mark.parametrize("text", FAR.values(), ids=FAR)
def test_an_expression_of_any_length_and_depth_is_read_or_refused(text: str) -> None:
    """Whatever a tenant writes in a selector ends in ``Unread`` with few words, and so does the next look at it."""
    for _ in range(2):
        with pytest.raises(Unread) as refused:
            evaluate_selector(text, A100)
        assert len(str(refused.value)) < 200


def test_a_long_chain_of_alternatives_is_read() -> None:
    """Fourteen hundred of them are one step, not fourteen hundred within each other."""
    assert evaluate_selector("||".join(["false"] * 1399 + ["true"]), A100) is True
    assert evaluate_selector("&&".join(["true"] * 1400), A100) is True
