"""Civo's charges: hours become dollars by the price file; what cannot be counted is told and never $0."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.codec.bills.charges import Read, read_charges
from pilotlight.codec.bills.rates import read_rates
from pilotlight.errors import BadInput

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
RATES = read_rates(
    b"""
charges:
  - {code: k8s-worker-a100, region: LON1, usd_per_hour: 2.50, gpus: 1, pool: a100, source: t, date: 2026-11-01}
  - {code: volume, usd_per_gb_hour: 0.0001, source: t, date: 2026-11-01}
""",
    "rates",
)
WORKER = {
    "code": "k8s-worker-a100", "product_id": "w1", "label": "ml-gpu-pool", "from": "2026-11-01T22:00:00+01:00",
    "to": "2026-11-02T03:00:00+00:00", "num_hours": 6, "size_gb": None, "region": "LON1",
}  # fmt: skip
VOLUME = {"code": "volume", "label": "Volume pvc-1 (10GB)", "from": "2026-11-01T09:54:09+00:00",
          "to": "2026-11-02T04:01:01+00:00", "num_hours": 18, "size_gb": 10}  # fmt: skip


def _read(*charges: object) -> Read:
    return read_charges(list(charges), RATES, "LON1", START, END)


def test_hours_become_dollars_by_code_and_region() -> None:
    """A charge is its hours at its code's rate, cut at UTC midnight with its offset taken off, and its parts add up."""
    read = _read(WORKER)
    assert [(row.day, row.usd, row.pool, row.gpu_hours) for row in read.rows] == [
        (date(2026, 11, 1), Decimal("7.5"), "a100", Decimal(3)),
        (date(2026, 11, 2), Decimal("7.5"), "a100", Decimal(3)),
    ]
    assert (read.findings, read.doubtful) == ((), ())


def test_what_is_sold_by_size_costs_by_size() -> None:
    """A volume costs its gigabytes times its hours; the region's own rate is not needed where there is one for all."""
    assert sum(row.usd for row in _read(VOLUME).rows) == Decimal("0.018")


def test_a_charge_that_two_windows_tell_counts_once() -> None:
    """The same charge twice is one charge; two of the same code at the same time are two."""
    other = {**WORKER, "product_id": "w2"}
    assert sum(row.usd for row in _read(WORKER, WORKER, other).rows) == Decimal(30)


def test_only_the_period_is_counted() -> None:
    """A charge that began before the period has only its later days in it."""
    early = {**WORKER, "from": "2026-10-31T00:00:00Z", "to": "2026-11-02T00:00:00Z", "num_hours": 48}
    assert [(row.day, row.usd) for row in _read(early).rows] == [(date(2026, 11, 1), Decimal(60))]


BROKEN: dict[str, tuple[object, str]] = {
    "a code without a price": ({**WORKER, "code": "gpu-new"}, "code: 'gpu-new' in LON1 has no price"),
    "a code priced elsewhere": ({**WORKER, "region": "NYC1"}, "in NYC1 has no price"),
    "no code": ({k: v for k, v in WORKER.items() if k != "code"}, "code: missing"),
    "no hours": ({k: v for k, v in WORKER.items() if k != "num_hours"}, "num_hours: missing"),
    "hours below zero": ({**WORKER, "num_hours": -1}, "num_hours: -1 is no number"),
    "hours that are no number": ({**WORKER, "num_hours": float("nan")}, "num_hours: nan is no number"),
    "hours without end": ({**WORKER, "num_hours": float("inf")}, "num_hours: inf is no number"),
    "hours as text": ({**WORKER, "num_hours": "6"}, "num_hours: '6' is no number"),
    "hours as truth": ({**WORKER, "num_hours": True}, "num_hours: True is no number"),
    "more hours than time": ({**WORKER, "num_hours": 60}, "more than lie between from and to"),
    "no beginning": ({k: v for k, v in WORKER.items() if k != "from"}, "from: missing is no time"),
    "a time without a zone": ({**WORKER, "to": "2026-11-02T03:00:00"}, "is no time with its zone"),
    "an end before the beginning": ({**WORKER, "to": "2026-10-02T03:00:00Z"}, "is before from"),
    "a size that is missing": ({**VOLUME, "size_gb": None}, "size_gb: missing"),
    "a size below zero": ({**VOLUME, "size_gb": -3}, "size_gb: -3 is no number"),
    "text": ("charge", "expected an object, got text"),
    "nothing": (None, "expected an object, got nothing"),
}


@pytest.mark.parametrize(("charge", "says"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_counted_is_a_finding(charge: object, says: str) -> None:
    """The finding names the charge and the field, nothing is counted for it, and its days are in doubt."""
    read = _read(charge, WORKER)
    assert sum(row.usd for row in read.rows) == Decimal(15)
    (finding,) = read.findings
    assert (finding.subject, says in finding.message) == ("charges[0]", True)
    assert read.doubtful


@pytest.mark.parametrize("document", [None, {}, {"result": "x"}, "text", 7], ids=repr)
def test_an_answer_that_is_no_list_counts_nothing(document: object) -> None:
    """It bills no day, with one finding."""
    read = read_charges(document, RATES, "LON1", START, END)
    assert (read.rows, len(read.findings), read.readable) == ((), 1, False)


def test_new_fields_are_told_and_do_no_harm() -> None:
    """A field nobody reads is named once; its charge counts."""
    read = _read({**WORKER, "discount": 3}, {**VOLUME, "discount": 1})
    assert [f.message for f in read.findings] == ["fields that are not read: discount"]
    assert (len(read.rows) > 0, read.doubtful) == (True, ())


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


NO_NUMBER = st.none() | st.booleans() | st.text(max_size=8) | st.lists(st.integers(), max_size=2)
WRONG: dict[str, st.SearchStrategy[Any]] = {
    "code": NO_NUMBER | st.integers(),
    "from": NO_NUMBER | st.integers() | st.just("2026-11-01T22:00:00"),
    "to": NO_NUMBER | st.integers() | st.just("2025-01-01T00:00:00Z"),
    "num_hours": NO_NUMBER | st.integers(max_value=-1) | st.sampled_from([float("nan"), float("inf"), 1e9]),
}
BAD = st.sampled_from(sorted(WRONG)).flatmap(lambda key: WRONG[key].map(lambda value: {**WORKER, key: value}))
BAD |= st.sampled_from(sorted(WRONG)).map(lambda key: {k: v for k, v in WORKER.items() if k != key})


@settings(max_examples=200)
@given(st.lists(BAD, min_size=1, max_size=4), st.integers(0, 3))
def test_two_hundred_malformed_payloads_are_findings_and_never_counted(bad: list[Any], good: int) -> None:
    """Each bad charge is told of by its place and field, and the dollars are those of the good ones alone."""
    read = _read(*bad, *({**WORKER, "product_id": f"good-{n}"} for n in range(good)))
    assert sum(row.usd for row in read.rows) == 15 * good
    assert {f.subject for f in read.findings} == {f"charges[{n}]" for n in range(len(bad))}
    assert read.doubtful


@settings(max_examples=300)
@given(st.lists(st.one_of(ANY, st.fixed_dictionaries({key: st.just(WORKER[key]) | ANY for key in WORKER})), max_size=5))
def test_no_payload_raises_and_nothing_negative_is_counted(document: list[Any]) -> None:
    """Whatever comes: rows and findings, every row of a finite sum from 0 on, a finding for each charge left out."""
    read = read_charges(document, RATES, "LON1", START, END)
    assert all(row.usd.is_finite() and row.usd >= 0 for row in read.rows)
    counted = {json.dumps(c, sort_keys=True) for c in document if isinstance(c, dict) and c == WORKER}
    assert bool(read.rows) or not counted


def test_the_documented_shapes_are_read(shelf: Path) -> None:
    """Both documented answers are read: every charge is counted, or told of as without a price."""
    folder = shelf / "contracts" / "provider" / "civo"
    api = json.loads((folder / "composed" / "charges_api_doc_shape.json").read_text())
    library = json.loads((folder / "charges_civogo_fixture.json").read_text())["response"]
    read = read_charges(api + library, RATES, "LON1", datetime(2016, 1, 1, tzinfo=UTC), END)
    assert sum(row.usd for row in read.rows) == Decimal("0.018")
    unpriced = ("k8s-worker-g4g.kube.small", "instance-g1.small")
    assert [code in f.message for code, f in zip(unpriced, read.findings, strict=True)] == [True, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("charges: [{code: a, source: s, date: d}]", "name usd_per_hour or usd_per_gb_hour", id="no price"),
        pytest.param("charges: [{code: a, usd_per_hour: -1, source: s, date: d}]", "from 0 on", id="below zero"),
        pytest.param("charges: [{code: a, usd_per_hour: 1, date: d}]", "source", id="without its source"),
        pytest.param(
            "charges: [{code: a, usd_per_hour: 1, source: s, date: d}, {code: a, usd_per_hour: 2, source: s, date: d}]",
            "is there twice", id="twice",
        ),
        pytest.param("charges: {", "not YAML", id="not YAML"),
    ],
)  # fmt: skip
def test_a_price_file_is_refused_where_it_is_wrong(text: str, says: str) -> None:
    """The refusal names the file and what to mend."""
    with pytest.raises(BadInput, match=f"rates.yaml: .*{says}"):
        read_rates(text.encode(), "rates.yaml")
