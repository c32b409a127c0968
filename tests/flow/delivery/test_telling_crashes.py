"""A deliverer that dies or loses its store at any call: the alert is told all the same, and twice only where unsure."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

import pytest
from telling_stage import Wall, alert, desk_of, later

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import PilotlightError, Retry, Unavailable
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.deliver import CLAIM_S
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.flow.delivery.flush import flush
from pilotlight.ports.state import Page, State, Stored
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.units import Seconds
from pilotlight.world.world_clock import VirtualClock

T = TypeVar("T")
MOST_CALLS = 40


class Dead(Exception):
    """The process is gone."""


class Frail:
    """A store at whose n-th call the process dies, or the answer is lost, before or after the effect."""

    def __init__(self, state: State, at: int, error: Exception, *, after: bool) -> None:
        self._state, self._left, self._error, self._after = state, at, error, after

    @property
    def met(self) -> bool:
        """Whether it came to that call."""
        return self._left <= 0

    def _call(self, effect: Callable[[], T]) -> T:
        self._left -= 1
        # A process that is dead makes no further call.
        if (self._left == 0 and not self._after) or (self._left < 0 and isinstance(self._error, Dead)):
            raise self._error
        result = effect()
        if self._left == 0:
            raise self._error
        return result

    def now(self) -> datetime:
        """Tell the time, unless this is the call."""
        return self._call(self._state.now)

    def get(self, key: str) -> Stored | None:
        """Read, unless this is the call."""
        return self._call(lambda: self._state.get(key))

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Write, unless this is the call."""
        return self._call(lambda: self._state.put(key, value, if_version=if_version, ttl_s=ttl_s))

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete, unless this is the call."""
        self._call(lambda: self._state.delete(key, if_version=if_version))

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Scan, unless this is the call."""
        return self._call(lambda: self._state.scan(prefix, after=after, limit=limit))


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after it"])
@pytest.mark.parametrize("error", [Dead(), Unavailable("store down")], ids=["it dies", "the store is away"])
def test_at_whichever_call_it_ends_the_alert_is_told(error: Exception, after: bool, clock: VirtualClock) -> None:
    """What was not acknowledged is sent again; the alert comes, and a second time only where that is counted."""
    for at in range(1, MOST_CALLS):
        state, wall = MemoryState(clock), Wall()
        frail = Frail(state, at, error, after=after)
        try:
            fan_out(desk_of(clock, {"a": wall}, state=frail), alert())
        except (Dead, PilotlightError):
            fan_out(desk_of(clock, {"a": wall}, state=state), alert())
        for _ in range(3):
            later(clock, CLAIM_S)
            flush(desk_of(clock, {"a": wall}, state=state))
        [proof] = [entry.value for entry in PROOF.scan(state)]
        assert (proof.status, list(WAITING.scan(state))) == ("told", []), f"call {at}"
        assert 1 <= len(wall.told) <= 1 + proof.unsure, f"call {at}"
        if not frail.met:
            return
    raise AssertionError(f"more than {MOST_CALLS} calls for one alert")


def test_the_last_end_is_told_at_whichever_call_the_one_before_died(clock: VirtualClock) -> None:
    """Begun, over, begun again, over: the second is not taken for the first end, which its worker leaves half told. It
    comes again where that is asked for, and people know in the end that it is over."""
    for at in range(1, MOST_CALLS):
        state, wall = MemoryState(clock), Wall()
        desk, frail = desk_of(clock, {"a": wall}, state=state), Frail(state, at, Dead(), after=True)
        first, end, second, over = (alert(at=clock.now() + timedelta(seconds=n), resolved=n % 2 > 0) for n in range(4))
        fan_out(desk, first)
        with suppress(Dead):
            fan_out(desk_of(clock, {"a": wall}, state=frail), end)
        fan_out(desk, second)
        comes = 3
        while comes:
            comes -= 1
            with suppress(Retry):
                fan_out(desk, over)
                comes = 0
            later(clock, CLAIM_S)
            flush(desk)
        assert (wall.told[-1].resolved, list(WAITING.scan(state))) == (True, []), f"call {at}"
        if not frail.met:
            return
    raise AssertionError(f"more than {MOST_CALLS} calls for one alert")


def test_an_end_is_told_again_after_its_beginning_that_a_worker_shows_late(clock: VirtualClock) -> None:
    """It stands still before it shows it; others tell that and its end meanwhile. People are last told the end."""
    state, wall = MemoryState(clock), Wall()
    first, end = alert(at=clock.now()), alert(at=clock.now() + timedelta(seconds=5), resolved=True)

    class Late(Wall):
        def deliver(self, alert: Alert) -> str:
            others = desk_of(clock, {"a": wall}, state=state)
            later(clock, CLAIM_S + 1)
            flush(others)
            fan_out(others, end)
            return wall.deliver(alert)

    fan_out(desk_of(clock, {"a": Late()}, state=state), first)
    assert [told.resolved for told in wall.told] == [False, True, False]
    later(clock, 60)
    flush(desk_of(clock, {"a": wall}, state=state))
    assert [told.resolved for told in wall.told] == [False, True, False, True]
    assert list(WAITING.scan(state)) == []
