"""A bill proved by node: the parts of a difference add up to it, and no cause is named without evidence."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.invoice_proof import (
    CAUSES,
    HALF_CENT,
    FirstCharge,
    InvoiceProof,
    NodeCharge,
    NodeLife,
    NodeMeter,
    prove_invoice,
)

START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)
PRICE = Decimal("3.6")
HOUR = timedelta(hours=1)


def _life(minutes: float, *, since: datetime = NOON, paid: float | None = None, minimum_s: float = 0) -> NodeLife:
    """A life that ended after so many minutes; paid for so many."""
    ended = since + timedelta(minutes=minutes)
    return NodeLife("i-1", since, ended, since + timedelta(minutes=paid or minutes), minimum_s)


def _meter(life: NodeLife, price: Decimal = PRICE) -> NodeMeter:
    assert life.paid_until is not None
    hours = Decimal((life.paid_until - life.since).total_seconds()) / 3600
    return NodeMeter("n1", "a100", hours * price, hours, (life,))


def _charge(hours: str | None, usd: str | None = None, **of: Any) -> NodeCharge:
    """Time billed at the metered price, where nothing else is said, from noon on."""
    billed = Decimal(usd) if usd is not None else Decimal(hours or 0) * PRICE
    fields: dict[str, Any] = {
        "category": "Usage", "timed": True, "covered": False, "rows": 1, "billed": billed, "listed": billed,
        "exact": Decimal(hours or 0) * PRICE if usd is None else billed, "effective": billed,
        "hours": Decimal(hours) if hours is not None else None,
        "first": FirstCharge(NOON, NOON + HOUR, min(Decimal(hours or 0), Decimal(1))),
    }  # fmt: skip
    return NodeCharge("i-1", "a100", **{**fields, **of})


def _beside(category: str, usd: str, **of: Any) -> NodeCharge:
    return _charge(None, usd, category=category, timed=False, first=None, **of)


FOUR = _life(240)
LATE = FirstCharge(NOON, NOON + HOUR, Decimal("0.7"))
CASES: list[tuple[str, NodeLife, list[NodeCharge], dict[str, str]]] = [
    ("they agree", FOUR, [_charge("4")], {}),
    ("the bill has another price", FOUR, [_charge("4", "16")], {"price": "1.6"}),
    ("a discount is taken off", FOUR, [_charge("4", "10.4", listed=Decimal("14.4"), exact=Decimal("14.4"))],
     {"discount": "-4"}),
    ("a commitment pays", FOUR, [_charge("4", "0", listed=Decimal("14.4"), exact=Decimal("14.4"), covered=True)],
     {"commitment": "-14.4"}),
    ("a credit, tax and moved data stand beside", FOUR,
     [_charge("4"), _beside("Credit", "-2"), _beside("Tax", "1.5"), _beside("Usage", "0.3")],
     {"discount": "-2", "tax": "1.5", "other charges": "0.3"}),
    ("a refund is no discount", FOUR, [_charge("4"), _beside("Adjustment", "-5")], {"other charges": "-5"}),
    ("the bill rounds to the cent", _life(241), [_charge("4.016666666", "14.46", exact=Decimal("14.459999998"))],
     {}),
    ("the bill rounds up to the hour", _life(150), [_charge("3")], {"rounding": "1.8"}),
    ("the bill rounds up to the minute", _life(149.5), [_charge("2.5")], {"rounding": "0.03"}),
    ("a short life is billed an hour", _life(12), [_charge("1")], {"minimum": "2.88"}),
    ("a short life is billed a minute", _life(0.5), [_charge("0.016666667")], {"minimum": "0.03"}),
    ("we counted a minimum that is not billed", _life(0.5, paid=10, minimum_s=600), [_charge("0.008333333333")],
     {"minimum": "-0.57"}),
    ("we counted an hour that is not billed whole", _life(150, paid=180), [_charge("2.5")], {"rounding": "-1.8"}),
    ("the bill begins twenty minutes before us", _life(220, since=NOON + HOUR / 3),
     [_charge("4")], {"rounding": "1.2"}),
    ("the bill began forty minutes before we saw it", _life(200, since=NOON + HOUR * 2 / 3),
     [_charge("3.7", first=LATE)], {"late start": "1.32"}),
    ("the bill begins after our boot", _life(240), [_charge("3.7", first=LATE)],
     {"late start": "-1.08"}),
    ("an hour is billed beyond those of the clock", FOUR, [_charge("5")], {"unexplained": "3.6"}),
    ("half an hour more is billed for nothing", FOUR, [_charge("4.51")], {"unexplained": "1.836"}),
    ("two hours more are billed for nothing", FOUR, [_charge("6")], {"unexplained": "7.2"}),
    ("an hour less is billed for nothing", FOUR, [_charge("3")], {"unexplained": "-3.6"}),
    ("the bill is silent on hours", FOUR, [_charge(None, "15")], {"unexplained": "0.6"}),
    ("nothing is billed", FOUR, [], {"unexplained": "-14.4"}),
]  # fmt: skip


def _prove(life: NodeLife, charges: list[NodeCharge]) -> InvoiceProof:
    return prove_invoice([_meter(life)], charges, START, END)


@pytest.mark.parametrize(("life", "charges", "parts"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_every_cause_is_named_where_the_bill_shows_it(
    life: NodeLife, charges: list[NodeCharge], parts: dict[str, str]
) -> None:
    """A node at $3.60 an hour from noon on: what is billed beside, and the parts of the difference."""
    (node,) = _prove(life, charges).nodes
    assert {cause: told for cause, usd in node.parts.items() if (told := round(usd, 3))} == {
        cause: Decimal(usd) for cause, usd in parts.items()
    }
    assert sum(node.parts.values()) == node.more


def test_a_node_that_the_meter_does_not_know_is_unexplained() -> None:
    """But for its tax; one figure says how much of what is billed was metered."""
    other_charges = [one._replace(instance="i-2") for one in (_charge("1"), _beside("Tax", "0.4"))]
    proof = prove_invoice([_meter(FOUR)], [_charge("4"), *other_charges], START, END)
    other, known = proof.nodes
    assert (other.node, other.pool, dict(other.parts)) == (
        "i-2", "a100", {"tax": Decimal("0.4"), "unexplained": Decimal("3.6")},
    )  # fmt: skip
    assert (known.node, dict(known.parts)) == ("n1", {})
    assert proof.unexplained == Decimal("3.6")
    assert round(proof.percent or 0, 2) == Decimal("78.26")


def test_what_is_effective_is_told_where_the_bill_tells_it() -> None:
    """A commitment's usage is billed at nothing; one row without an effective cost leaves the sum untold."""
    covered = _charge("4", "0", listed=Decimal("14.4"), exact=Decimal("14.4"), covered=True, effective=Decimal(9))
    assert _prove(FOUR, [covered]).total.effective == 9
    assert _prove(FOUR, [covered, _beside("Tax", "1", effective=None)]).total.effective is None


def test_too_much_and_too_little_do_not_make_up_for_each_other() -> None:
    """A node billed $3.60 too much beside one billed $3.60 too little: $7.20 is unexplained."""
    more = _meter(FOUR)._replace(node="n2", lives=(FOUR._replace(instance="i-2"),))
    proof = prove_invoice([_meter(FOUR), more], [_charge("3"), _charge("5")._replace(instance="i-2")], START, END)
    assert [proof.total.more, proof.total.unexplained, proof.unexplained] == [0, 0, Decimal("7.2")]


MONEY = st.decimals(-50, 500, places=6)
HOURS = st.decimals(0, 60, places=4)
SPANS = st.integers(0, 40 * 24 * 60).map(lambda minutes: START - 5 * 24 * HOUR + timedelta(minutes=minutes))


@st.composite
def _lives(draw: st.DrawFn, instance: str) -> NodeLife:
    since = draw(SPANS)
    if draw(st.booleans()):
        return NodeLife(instance, since)
    ended = since + timedelta(seconds=draw(st.integers(1, 200_000)))
    return NodeLife(instance, since, ended, ended + timedelta(seconds=draw(st.integers(0, 3600))), 600)


METERS = st.builds(
    lambda name, usd, hours, lives: NodeMeter(name, "p", usd, hours, tuple(lives)),
    st.sampled_from(["n1", "n2"]), MONEY.map(abs), HOURS, st.lists(_lives("i-1") | _lives("i-3"), max_size=3),
)  # fmt: skip
CHARGES = st.builds(
    NodeCharge,
    instance=st.sampled_from(["i-1", "i-2", "i-3", "n1"]), pool=st.just("p"),
    category=st.sampled_from(["Usage", "Usage", "Usage", "Tax", "Credit", "Purchase", "Adjustment", ""]),
    timed=st.booleans(), covered=st.booleans(), rows=st.integers(1, 800), billed=MONEY, listed=MONEY, exact=MONEY,
    effective=st.none() | MONEY, hours=st.none() | HOURS,
    first=st.none() | st.builds(FirstCharge, SPANS, SPANS, HOURS), uncounted=st.integers(0, 3),
)  # fmt: skip


@given(st.lists(METERS, max_size=2, unique_by=lambda one: one.node), st.lists(CHARGES, max_size=8))
def test_parts_add_up_to_the_difference_exactly(meters: list[NodeMeter], charges: list[NodeCharge]) -> None:
    """Of each node and of all, whatever is metered and billed; no dollar of either is lost or counted twice."""
    proof = prove_invoice(meters, charges, START, END)
    for one in (*proof.nodes, proof.total):
        assert sum(one.parts.values()) == one.more
        assert set(one.parts) <= set(CAUSES)
    assert proof.total.billed == sum(one.billed for one in charges)
    assert proof.total.metered == sum(one.usd for one in meters)
    assert proof.total.uncounted == sum(one.uncounted for one in charges)
    assert abs(proof.total.unexplained) <= proof.unexplained


@given(st.lists(CHARGES, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_charges_changes_nothing(charges: list[NodeCharge], random: Any) -> None:
    """Whatever order the bill's rows come in, every node has the same parts."""
    meter = NodeMeter("n1", "p", Decimal(72), Decimal(20), (NodeLife("i-1", START + HOUR),))
    once = prove_invoice([meter], charges, START, END)
    shuffled = list(charges)
    random.shuffle(shuffled)
    assert {one.node: one.parts for one in prove_invoice([meter], shuffled, START, END).nodes} == {
        one.node: one.parts for one in once.nodes
    }


@given(HOURS, st.integers(1, 40))
def test_time_that_was_not_metered_is_never_explained_without_evidence(more: Decimal, hours: int) -> None:
    """A life of whole hours of the clock has nothing to round up: what is billed beyond some seconds is unexplained."""
    (node,) = _prove(_life(hours * 60), [_charge(f"{hours + more:f}")]).nodes
    assert node.unexplained == (node.more if more * 3600 > 4 else 0)
    assert node.more == more * PRICE


@given(st.integers(1, 800), st.decimals("-9", "9", places=4))
def test_rounding_is_at_most_half_a_cent_a_row(rows: int, off: Decimal) -> None:
    """What the bill has above its own hours at its own price is rounding up to there, and unexplained beyond."""
    exact = Decimal("14.4")
    (node,) = _prove(FOUR, [_charge("4", f"{exact + off:f}", exact=exact, rows=rows)]).nodes
    assert node.parts.get("rounding", 0) == (off if abs(off) <= rows * HALF_CENT else 0)
    assert node.unexplained == off - node.parts.get("rounding", 0)
