"""Calls "idle" on fleets that no constant was chosen on."""

import idle_calls


def test_calls_on_fleets_of_other_shapes_keep_the_promise() -> None:
    """By the bench: at most one call in ten is active within four hours, and a third of idle dollars is called."""
    found = idle_calls.by_shape(range(101, 103))["all"]
    assert found.called > 100
    assert found.back_share <= idle_calls.MOST_BACK
    assert found.called_share >= idle_calls.LEAST_CALLED
