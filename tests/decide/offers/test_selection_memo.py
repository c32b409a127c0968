"""What was worked out once about the very same objects."""

from collections.abc import Callable
from itertools import count

from pilotlight.decide.offers.selection import REMEMBERED, Memo


def counting() -> Callable[[], int]:
    """Works out 0, then 1, then 2."""
    return count().__next__


def test_the_same_objects_under_a_key_are_worked_out_once() -> None:
    """Asked again about them, it answers as it did; under another key it is worked out."""
    memo, work_out, about = Memo[int](), counting(), (["a"], ["b"])
    assert [memo(about, key, work_out) for key in ("x", "x", "y")] == [0, 0, 1]


def test_an_object_that_is_only_equal_is_asked_about_anew() -> None:
    """It may change later where the first does not."""
    memo, work_out = Memo[int](), counting()
    assert [memo((["a"],), "x", work_out) for _ in range(2)] == [0, 1]


def test_none_is_an_answer_too() -> None:
    """It is kept as any other."""
    memo, answers, about = Memo[int | None](), iter([None, 1]), (["a"],)
    assert [memo(about, "x", answers.__next__) for _ in range(2)] == [None, None]


def test_so_many_answers_are_kept_and_no_more() -> None:
    """Then it begins again, so that a process that lives long does not grow."""
    memo, work_out, about = Memo[int](), counting(), (["a"],)
    first = [memo(about, key, work_out) for key in range(REMEMBERED + 1)]
    assert (first[-1], memo(about, 0, work_out)) == (REMEMBERED, REMEMBERED + 1)
