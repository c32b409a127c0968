"""`bench/replays/deadline.py`: its starts are other studies', and its bound is what who knows the future pays."""

from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from deadline import PRICE, Case, Zone, bound, cases, judged, ours, run
from numpy_stream import bounded, numpy_stream
from pilotlight.tools.replay.deadline_runs import DeadlineJob


@pytest.mark.parametrize(
    ("below", "drawn"),
    [(1000, [944, 625, 684, 897, 578, 775]), (7, [6, 4, 4, 6, 4, 5])],
    ids=["of a thousand", "of seven"],
)
def test_starts_are_those_of_numpys_generator(below: int, drawn: list[int]) -> None:
    """``numpy.random.default_rng(7).integers(0, N, 6)`` says so; numpy is not needed for it."""
    stream = numpy_stream(7)
    assert [bounded(stream, below) for _ in drawn] == drawn


def _least(zones: Sequence[Zone], case: Case) -> float:
    """The bound by going through every step that could be taken."""

    @cache
    def pays(tick: int, work: int, place: int, left: int) -> float:
        if not work:
            return 0.0
        if tick == case.job.time:
            return float("inf")
        found = pays(tick + 1, work, -1, 0)
        for to in range(len(zones) + 1):
            if to and not zones[to - 1].up[(case.start + tick) % len(zones[to - 1].up)]:
                continue
            on = tick > 0 and place == to and (not to or zones[to - 1].up[(case.start + tick) % len(zones[to - 1].up)])
            start = left if on else case.job.restart
            price = PRICE if to else 1.0
            after = pays(tick + 1, work, to, start - 1) if start else pays(tick + 1, work - 1, to, 0)
            found = min(found, price + after)
        return found

    return pays(0, case.job.work, -1, 0) / case.job.work


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_what_every_way_of_running_comes_to_at_least(seed: int) -> None:
    """Over one and two zones, with starts of one and two ticks."""
    rng = Random(seed)
    zones = [Zone(f"z{n}", tuple(rng.random() < 0.6 for _ in range(12)), 1.0) for n in range(1 + seed % 2)]
    case = Case(DeadlineJob(work=4, time=9, restart=1 + seed // 3), rng.randrange(12))
    assert bound(zones, case) == pytest.approx(_least(zones, case))


def test_nobody_pays_less_than_the_bound() -> None:
    """Ours costs as much or more, and is not late, on a zone that was drawn."""
    rng, up, row = Random(3), True, []
    for _ in range(2000):
        row.append(up)
        up = not up if rng.random() < 0.05 else up
    zone = Zone("drawn", tuple(row), 1.0)
    for case in list(cases(zone, [100]))[:4]:
        cost, late = judged([zone], case, run([zone], case, ours))
        assert not late
        assert bound([zone], case) <= cost + 1e-9
