"""Refusals of queued work, counted and told through kills, clocks that step back, and Workloads that are made anew."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from api_server import api_server
from played_kueue import Played
from stage import START

from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.decide.demand.queue_refusals import recent
from pilotlight.facts.money.budgets import Refusals
from pilotlight.state_schema.billing_records import REFUSED


@pytest.fixture
def played() -> Iterator[Played]:
    """An empty cluster with Kueue."""
    with api_server() as server:
        yield Played(server)


class Died(BaseException):
    """The worker is killed."""


@pytest.mark.parametrize("call", ["PATCH", "POST"])
@pytest.mark.parametrize("done", [False, True], ids=["before it", "after it"])
def test_what_it_is_told_survives_a_kill(
    played: Played, monkeypatch: pytest.MonkeyPatch, call: str, done: bool
) -> None:
    """Killed around the request that takes it out of its queue, or around the Event that says why: it is told once, and
    looks that come later ask for nothing more."""
    site = played.site({"poor": "0.01"}, strategy="StrictFIFO")
    site.submit("poor", "train")
    played.settle()
    ask, killed = Api.ask, [True]

    def dies(api: Api, method: str, path: str, *rest: Any) -> Any:
        dying = method == call and path.endswith(("/workloads/train", "/events")) and killed
        if dying and not done:
            raise Died(killed.pop())
        answer = ask(api, method, path, *rest)
        if dying:
            raise Died(killed.pop())
        return answer

    monkeypatch.setattr(Api, "ask", dies)
    with pytest.raises(Died):
        site.tick()
    played.settle()
    assert (site.stands("poor", "train") == "out") == (call == "POST" or done)
    for _ in range(3):
        site.tick(120)
    assert site.stands("poor", "train") == "out"
    assert [each.partition(":")[0] for each in site.events("poor", "train")] == ["OutOfQueue"]
    told = len(played.server.lines("^POST .*/events$"))
    site.tick(120)
    assert len(played.server.lines("^POST .*/events$")) == told


@pytest.mark.parametrize(("ahead", "counted"), [(-59, 1), (0, 1), (59, 1), (300, 1), (-61, 0)])
def test_evictions_count_for_an_hour(ahead: int, counted: int) -> None:
    """One that is still to come was noted by a clock that has stepped back since: it is of now."""
    noted = Refusals(times=(START + timedelta(minutes=ahead),))
    assert recent(noted, START) == (min(noted.times[0], START),) * counted


def test_a_clock_that_steps_back_evicts_no_more(played: Played) -> None:
    """Six evictions noted three hours ahead: the next refusal takes it out of its queue, and it is back within an hour
    of the right clock once its budget has room."""
    site = played.site({"poor": "0.01"})
    ahead = Refusals(times=(site.deps.clock.now() + timedelta(hours=3),) * 6)
    REFUSED.put(site.deps.state, "c/q-poor.train", ahead)
    site.submit("poor", "train")
    played.settle()
    site.tick(60)
    assert (site.stands("poor", "train"), played.evictions("q-poor/train")) == ("out", 1)
    site.raise_budget("poor", "10")
    site.tick(3000)
    assert site.stands("poor", "train") == "out"
    site.tick(660)
    assert site.stands("poor", "train") == "reserved"


def test_a_clock_that_steps_back_keeps_work_out_an_hour_at_most(played: Played) -> None:
    """Out of its queue with evictions noted three hours ahead: they are an hour old an hour after they are seen."""
    site = played.site({"poor": "0.01"}, strategy="StrictFIFO")
    site.submit("poor", "train")
    played.settle()
    site.tick()
    ahead = Refusals(times=(site.deps.clock.now() + timedelta(hours=3),) * 6)
    REFUSED.put(site.deps.state, "c/q-poor.train", ahead)
    site.raise_budget("poor", "10")
    site.tick(60)
    assert site.stands("poor", "train") == "out"
    site.tick(3660)
    assert site.stands("poor", "train") == "reserved"


def test_a_workload_that_is_made_anew_is_counted_on(played: Played) -> None:
    """Its controller deletes what was taken out and makes it again by its name: it is out at its first refusal."""
    site = played.site({"poor": "0.01"})
    site.submit("poor", "train")
    for _ in range(9):
        played.settle()
        site.tick(60)
    assert (site.stands("poor", "train"), played.evictions("q-poor/train")) == ("out", 6)
    played.server.store.remove("workloads", "train", "q-poor")
    site.submit("poor", "train")
    for _ in range(9):
        played.settle()
        site.tick(60)
    assert (site.stands("poor", "train"), played.evictions("q-poor/train")) == ("out", 7)
