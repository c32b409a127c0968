"""The audit of the meter: what it says of nodes whose time is written only where there is news of them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from harness.judges.spend_invariants import SpendInvariants
from harness.judges.strangers_books import StrangersBooks
from harness.scene import START

from pilotlight.facts.policy import Policy
from pilotlight.units import HOUR

MIDNIGHT_S = 11 * HOUR + 600
"""From the world's start to the end of its first day."""


def node(since_s: float, until_s: float, gone: bool = False) -> dict[str, Any]:
    """A node at $12 an hour as a part has it, counted up to a moment."""
    begin, until = ((START + timedelta(seconds=s)).isoformat() for s in (since_s, until_s))
    counted = ["idle", "", "", "", begin, round((until_s - since_s) * 1e6)]
    return {"usd_per_hour": "12", "until": until, "gone_at": until if gone else None, "stretches": [counted]}


def audit(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """What is wrong with two days of a node that lived from half an hour before midnight to half an hour after it."""
    books = StrangersBooks(Policy(version=1, pools={}))
    spend = SpendInvariants(books, ())
    begin_s, end_s = MIDNIGHT_S - 1800, MIDNIGHT_S + 1800
    launch = {"t": begin_s, "event": "launch", "node": "n1", "type": "four", "capacity_type": "on-demand"}
    books.log(launch)
    books.log({"t": end_s, "event": "terminate", "node": "n1", "reason": "released"})
    for minute in range(62):
        spend.note_look(begin_s + minute * 60, begin_s + minute * 60)
    days = {"2026-11-20/05": first, "2026-11-21/05": second}
    parts = {key: json.dumps({"nodes": {"n1": found}}).encode() for key, found in days.items()}
    return list(spend.miscounted(parts, {}, end_s + 60))


def test_a_day_that_is_over_counts_a_node_to_its_end_though_that_is_not_written() -> None:
    """Its last news was a minute after its launch: the rest of the day is its own."""
    first = node(MIDNIGHT_S - 1800, MIDNIGHT_S - 1740)
    assert audit(first, node(MIDNIGHT_S, MIDNIGHT_S + 1800, gone=True)) == []


def test_a_node_is_missed_only_after_whoever_saw_it_has_written_that_down() -> None:
    """A worker that stood still writes late of a node that is gone: it is counted to the first look after that."""
    books = StrangersBooks(Policy(version=1, pools={}))
    spend = SpendInvariants(books, ())
    books.log({"t": 0, "event": "launch", "node": "n1", "type": "four", "capacity_type": "on-demand"})
    books.log({"t": 240, "event": "terminate", "node": "n1", "reason": "lost"})
    for begin_s, end_s in ((300, 310), (10, 620), (700, 700)):
        spend.note_look(begin_s, end_s)
    part = json.dumps({"nodes": {"n1": node(0, 700, gone=True)}}).encode()
    assert list(spend.miscounted({"2026-11-20/05": part}, {}, 2000)) == []


def test_looks_that_could_not_read_a_pool_saw_nothing_that_its_group_made() -> None:
    """A node of an unread pool that goes before two looks could read it may be metered at nothing; else it may not."""
    for unread, wrong in ((("four-on-demand",), 0), (("eight-spot",), 1)):
        books = StrangersBooks(Policy(version=1, pools={}))
        spend = SpendInvariants(books, ())
        books.unread.note(unread, 0)
        books.log({"t": 30, "event": "launch", "node": "n1", "type": "four", "capacity_type": "on-demand"})
        books.log({"t": 160, "event": "terminate", "node": "n1", "reason": "released"})
        for begin_s in (40, 90, 300):
            spend.note_look(begin_s, begin_s + 10)
        assert len(list(spend.miscounted({}, {}, 2000))) == wrong


@pytest.mark.parametrize(("failed_s", "wrong"), [((), 1), ((45, 95), 0), ((95,), 1), ((45, 95, 145), 0)])
def test_a_look_whose_call_for_a_group_failed_did_not_see_what_boots_there(
    failed_s: tuple[float, ...], wrong: int
) -> None:
    """A node may be metered at nothing where no look but the last could have seen it; not where the first one did."""
    books = StrangersBooks(Policy(version=1, pools={}))
    spend = SpendInvariants(books, ())
    for at_s in failed_s:
        books.unread.untold("four-on-demand", at_s)
    books.log({"t": 30, "event": "launch", "node": "n1", "type": "four", "capacity_type": "on-demand"})
    books.log({"t": 160, "event": "terminate", "node": "n1", "reason": "released"})
    for begin_s in (40, 90, 140, 300):
        spend.note_look(begin_s, begin_s + 10)
    assert len(list(spend.miscounted({}, {}, 2000))) == wrong


def test_one_that_died_after_writing_late_made_a_node_known_as_late() -> None:
    """Its node is counted to the first look after its death, not to one that ended before what it wrote."""
    books = StrangersBooks(Policy(version=1, pools={}))
    spend = SpendInvariants(books, ())
    books.log({"t": 0, "event": "launch", "node": "n1", "type": "four", "capacity_type": "on-demand"})
    books.log({"t": 240, "event": "terminate", "node": "n1", "reason": "lost"})
    part = json.dumps({"nodes": {"n1": node(0, 700, gone=True)}}).encode()
    for begin_s in (300, 700):
        spend.note_look(begin_s, begin_s + 10)
    assert len(list(spend.miscounted({"2026-11-20/05": part}, {}, 2000))) == 1
    spend.broke_off(10, 620)
    assert list(spend.miscounted({"2026-11-20/05": part}, {}, 2000)) == []


@pytest.mark.parametrize("until_s", [MIDNIGHT_S + 600, MIDNIGHT_S + 3600])
def test_a_node_that_is_gone_counts_as_far_as_is_written(until_s: float) -> None:
    """Twenty minutes too few and half an hour too many are told."""
    first = node(MIDNIGHT_S - 1800, MIDNIGHT_S - 1740)
    assert len(audit(first, node(MIDNIGHT_S, until_s, gone=True))) == 1
