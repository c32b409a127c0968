"""A tick's store operations after a month and after a year, each kind of store by itself."""

from collections import Counter
from dataclasses import replace

import pytest
from test_history import Book
from test_state_contract import BACKENDS

from own_operations import CountingState
from pilotlight.ports.state import State

MONTH, YEAR = 31, 366
MORE = 6
"""Operations by which two minutes differ, as budgets' windows and pods come and go."""


def _with_all(book: Book, state: State) -> CountingState:
    """A store that counts, with everything that the book's has."""
    page = book.state.scan("")
    while True:
        for key, stored in page.items:
            state.put(key, stored.value)
        if not page.next:
            return CountingState(book.on.world, state)
        page = book.state.scan("", after=page.next)


@pytest.fixture(params=["sqlite", "dynamodb", "firestore"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each kind of store that lasts."""
    return str(request.param)


def test_a_ticks_operations_do_not_grow_with_history(backend: str, request: pytest.FixtureRequest) -> None:
    """Over records of a month and of a year: as many calls, documents and writes."""
    make = BACKENDS[backend](request)
    book, found = Book(), dict[int, Counter[str]]()
    for days in (MONTH, YEAR):
        book.play(days)
        there = book.state
        book.state = _with_all(book, make(book.on.world.clock))
        book.on.deps = replace(book.on.deps, state=book.state)
        found[days] = book.minute(ticks=4, first=2)
        book.state = there
        book.on.deps = replace(book.on.deps, state=there)
    month, year = found[MONTH], found[YEAR]
    assert all(counts["calls"] > 40 for counts in found.values()), found
    for name in ("calls", "reads", "writes", "deletes"):
        assert year[name] <= month[name] + MORE, found
