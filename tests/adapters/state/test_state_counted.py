"""A state that counts what is asked of it."""

from datetime import UTC, datetime

import pytest

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.counted import CountedState
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Conflict
from pilotlight.ports.state import ABSENT, CountsOperations


def test_operations_are_counted_by_kind_until_they_are_asked_for() -> None:
    """A write that found another version is a write and a conflict; asking begins anew."""
    state = CountedState(MemoryState(SystemClock()))
    assert isinstance(state, CountsOperations)
    state.put("a", b"1", if_version=ABSENT)
    with pytest.raises(Conflict):
        state.put("a", b"2", if_version=ABSENT)
    with pytest.raises(Conflict):
        state.delete("a", if_version=9)
    assert state.get("a") is not None
    assert state.scan("").next == ""
    assert state.operations() == {"write": 3, "conflict": 2, "read": 1, "scan": 1}
    assert state.operations() == {}
    assert state.now() <= datetime.now(UTC)
