"""Calls side by side, in rows of as many as a cluster takes."""

import threading

import pytest

from pilotlight.flow.abreast import rows, together


@pytest.mark.parametrize(
    ("at_once", "made"),
    [(1, [[0], [1], [2]]), (2, [[0, 1], [2]]), (8, [[0, 1, 2]])],
    ids=["one by one", "two at once", "all at once"],
)
def test_rows_are_as_wide_as_they_may_be(at_once: int, made: list[list[int]]) -> None:
    """Items come in their order, in rows of so many, and the last row has the rest."""
    assert list(rows(range(3), at_once)) == made


def test_calls_of_a_row_are_made_at_once() -> None:
    """Two calls that wait for each other both end, and what they give comes in their order."""
    meet = threading.Barrier(2, timeout=10)

    def call(name: str) -> str:
        meet.wait()
        return name

    assert together([lambda: call("a"), lambda: call("b")]) == ["a", "b"]


def test_an_error_is_raised_once_all_calls_are_over() -> None:
    """A call that fails stops no other of its row, and is told."""
    made: list[int] = []

    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        together([fails, lambda: made.append(1), lambda: made.append(2)])
    assert sorted(made) == [1, 2]


def test_one_call_stays_on_its_thread() -> None:
    """A cluster that takes one write at a time is asked by whoever decides: no thread is begun."""
    assert together([threading.get_ident]) == [threading.get_ident()]
