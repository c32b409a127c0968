"""Rota of ticks: the cluster that has waited longest is next, and one that hangs costs itself alone."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from fleet import until
from pilotlight.errors import Unavailable
from pilotlight.tools.serve import rota
from pilotlight.tools.serve.rota import Rota, Turn

START = datetime(2026, 11, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Stage:
    """Clusters whose turns are noted as they begin; ``hang`` and ``fail`` name some, ``go`` ends a hang."""

    def __init__(self, clusters: int) -> None:
        self.now, self.began = START, list[str]()
        self.hang, self.fail, self.go = set[str](), set[str](), threading.Event()
        self.at_once, self.most = Counter[str](), 0
        self.rota = Rota([Turn(f"c{n}", "reconcile") for n in range(clusters)], self.take, lambda: self.now)

    def take(self, turn: Turn) -> datetime:
        """A turn, due again in a minute."""
        self.began.append(turn.cluster)
        self.at_once[turn.cluster] += 1
        self.most = max(self.most, self.at_once[turn.cluster])
        if turn.cluster in self.hang:
            self.go.wait(600)
        self.at_once[turn.cluster] -= 1
        if turn.cluster in self.fail:
            raise Unavailable("its API server is away")
        return self.now + MINUTE

    def look_until(self, turns: int) -> None:
        """Look again and again until so many turns have begun."""

        def reached() -> bool:
            self.rota.look()
            return len(self.began) >= turns

        until(reached)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is slow at once."""
    monkeypatch.setattr(rota, "SLOW_S", 0.01)


def test_every_cluster_has_its_turn_once_an_interval() -> None:
    """A crew of eight sees to a hundred, and nobody twice before its interval is over."""
    on = Stage(100)
    on.look_until(100)
    on.rota.look()
    assert Counter(on.began) == Counter(f"c{n}" for n in range(100))
    on.now += MINUTE
    on.look_until(200)
    assert set(Counter(on.began).values()) == {2}


def test_the_cluster_that_has_waited_longest_is_next() -> None:
    """Of turns that are due, those come first that were due first."""
    on = Stage(0)
    order = [timedelta(seconds=s) for s in (30, 10, 50, 20, 40)]
    turns = {Turn(f"c{n}", "billing"): START + due for n, due in enumerate(order)}
    on.rota = Rota(turns, lambda turn: turns[turn], lambda: on.now)
    on.rota.look()
    until(lambda: not on.rota._began)
    on.rota._take = on.take
    on.now += MINUTE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rota, "CREW", 1)
        on.rota.look()
        until(lambda: len(on.began) == len(order))
    assert on.began == ["c1", "c3", "c0", "c4", "c2"]


@pytest.mark.usefixtures("quick")
def test_clusters_that_hang_delay_no_other() -> None:
    """Thirty of a hundred hang, more than the crew has hands: the others have every turn, and each of those one."""
    on = Stage(100)
    on.hang = {f"c{n}" for n in range(30)}
    on.look_until(100)
    for round_ in (1, 2):
        on.now += MINUTE
        on.look_until(100 + 70 * round_)
    until(lambda: on.at_once.total() == 30)
    counts = Counter(on.began)
    assert {counts[name] for name in on.hang} == {1}
    assert {count for name, count in counts.items() if name not in on.hang} == {3}
    on.go.set()


@pytest.mark.usefixtures("quick")
def test_a_cluster_that_hangs_is_not_begun_again_before_it_is_over() -> None:
    """Its threads do not pile up; once it answers it has its turn again."""
    on = Stage(1)
    on.hang = {"c0"}
    on.look_until(1)
    for _ in range(5):
        on.now += MINUTE
        on.rota.look()
    assert on.began == ["c0"]
    on.go.set()
    until(lambda: not on.rota._began)
    on.now += MINUTE
    on.look_until(2)
    assert on.most == 1


def test_a_turn_that_fails_is_due_again_soon() -> None:
    """Not at once, so that a cluster that is away is not asked without end; and not after a whole interval."""
    on = Stage(1)
    on.fail = {"c0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)
        on.look_until(1)
        until(lambda: not on.rota._began)
        on.rota.look()
        assert on.began == ["c0"]
        on.now += rota.AGAIN
        on.look_until(2)
        until(lambda: not on.rota._began)
