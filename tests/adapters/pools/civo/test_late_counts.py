"""What the decision about Civo's counts says of late ones, held by the same count of interleavings."""

import pytest

from late_counts import AFTER, BEFORE, LATE, ONE, ONLY, RAISE, Case, cases

EVERY = list(cases())


@pytest.mark.parametrize(
    ("call", "moment"),
    [
        pytest.param(RAISE, BEFORE, id="a raise whose gate finds that another acted"),
        pytest.param(ONE, BEFORE, id="a release of one of several, before it is written"),
        pytest.param(ONE, AFTER, id="a release of one of several, once it is written"),
        pytest.param(ONE, LATE, id="a release of one of several, however late"),
    ],
)
def test_what_cannot_take_a_node_by_count(call: str, moment: str) -> None:
    """In no interleaving does Civo choose a node."""
    found = [case.taken() for case in EVERY if (case.call, case.moment) == (call, moment)]
    assert (set(found), len(found) > 2) == ({0}, True)


@pytest.mark.parametrize("case", [case for case in EVERY if case.call == RAISE and case.moment != BEFORE], ids=str)
def test_a_late_raise_takes_no_more_than_the_other_asked_for_beyond_it(case: Case) -> None:
    """It sets its own count, which is more than was there: what goes are as many as the higher count brought."""
    assert case.taken() == max(0, case.other - (case.nodes + 1))


@pytest.mark.parametrize("case", [case for case in EVERY if case.call == ONLY], ids=str)
def test_a_late_zero_takes_what_was_asked_for_meanwhile(case: Case) -> None:
    """The pool was empty when 0 was sent: only nodes that were asked for since can go."""
    assert case.taken() <= case.other
