"""Keys of the policy file: how many there are, in which tiers, and the page that is written of them."""

from collections import Counter

import reference
from pilotlight.settings import default_file
from pilotlight.tools.lint.policy_keys import START, policy_keys

MOST, FIRST, LINES = 183, 12, 20


def test_there_are_no_more_keys_than_a_person_was_given_once() -> None:
    """A key that is added takes another's place; each says in one sentence what it is."""
    keys = policy_keys()
    assert len(keys) <= MOST
    assert len({key.path for key in keys}) == len(keys)
    assert [key.path for key in keys if not key.told] == []


def test_a_first_policy_is_written_of_few_keys() -> None:
    """Twelve to start with, each there; the rest in two tiers more."""
    count = Counter(key.tier for key in policy_keys())
    assert (len(START), count["start"]) == (FIRST, FIRST)
    assert min(count["often"], count["rarely"]) > FIRST


def test_the_example_is_twenty_lines() -> None:
    """It applies where no policy is named."""
    assert len(default_file("examples/policy.yaml").read_text().splitlines()) == LINES


def test_the_reference_page_is_what_the_types_say() -> None:
    """docs/reference/policy.md is what `make reference` writes."""
    assert reference.POLICY_PAGE.read_text("utf-8") == reference.policy_page(), "run: make reference"
