"""Mutants that survived their tests once: a line as it is, what it was made, and the test that kills it since.

By the names of functions: they outlive moves. ``make mutants ARGS=--named`` plants each and sees it killed.
"""

from typing import NamedTuple


class Named(NamedTuple):
    """``old`` is in the function's source once; ``new`` takes its place, and ``test`` fails."""

    file: str
    function: str
    old: str
    new: str
    test: str


NAMED: tuple[Named, ...] = ()
