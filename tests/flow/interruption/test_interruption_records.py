"""Interruptions as the state keeps them: many of them, of oddly named instances, with very many pods."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from stage import START, Stage

from pilotlight.facts.interruption.interruption import MOST_LOST, Interruption, Lost, bound_interruption
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.ports.state import ABSENT, LARGEST
from pilotlight.state_schema.instance_records import RESCUE
from pilotlight.tools.report.texts import interruption_text

MANY = 1100
"""More than one page of a store."""


def _found(instance: str, minutes: int = 0, **fields: object) -> Interruption:
    at = START + timedelta(minutes=minutes)
    made = Interruption(cluster="c", instance=instance, kind="scheduled-change", received_at=at, begin=at)
    return msgspec.structs.replace(made, **fields)


@pytest.mark.parametrize("instance", ["zones/b/instances/vm", "vm/..", "vm%2F", "ü nit", "é" * 253])
def test_an_instance_is_found_by_its_whole_name(instance: str) -> None:
    """Names with slashes and signs are names: none is a folder in which another's past lies."""
    deps = Stage().deps
    first = instance.split("/")[0]
    interruption_records.close(
        deps, interruption_records.write(deps, Versioned(_found(instance, outcome="gone"), ABSENT))
    )
    kept = interruption_records.find(deps, instance)
    assert kept is not None
    assert kept.found.instance == instance
    assert first == instance or interruption_records.find(deps, first) is None


@pytest.mark.parametrize(
    ("in_days", "says"), [(0, "it goes at 12:30:00 UTC, "), (9, "it goes at 2026-11-29 12:30:00 UTC, ")]
)
def test_an_end_on_another_day_is_told_with_its_date(in_days: int, says: str) -> None:
    """Clouds announce maintenance days ahead: its time alone would be taken for today's."""
    deadline = START.replace(hour=12, minute=30) + timedelta(days=in_days)
    told = interruption_records.opening(_found("i", deadline=deadline), 0, Decimal(0), START)
    assert says in bytes(told.data).decode()
    assert says.replace(" UTC", "") in " ".join(interruption_text.lines(_found("i", deadline=deadline)))


def test_every_rescue_is_carried_on() -> None:
    """However many notices a cluster has, all that are at work are seen, the first deadline first."""
    deps = Stage().deps
    for n in range(MANY):
        interruption_records.write(deps, Versioned(_found(f"i-{n}", MANY - n), ABSENT))
    assert [kept.found.instance for kept in interruption_records.open_interruptions(deps)] == [
        f"i-{n}" for n in reversed(range(MANY))
    ]


def test_the_last_of_very_many_is_the_last() -> None:
    """An instance that was interrupted more often than a page holds is known by its last interruption."""
    deps = Stage().deps
    for n in range(MANY):
        interruption_records.close(deps, Versioned(_found("i", n, outcome="stayed"), ABSENT))
    kept = interruption_records.find(deps, "i")
    assert kept is not None
    assert kept.found.received_at == START + timedelta(minutes=MANY - 1)


def test_a_gang_larger_than_a_record_is_kept_with_its_sums() -> None:
    """The dearest losses are kept by name, the others as sums: a record never outgrows the store."""
    uids = [f"{n:08d}-aaaa-bbbb-cccc-dddddddddddd" for n in range(8000)]
    lost = {uid: Lost(pod=f"ml/train-worker-{uid}", gpu_hours=1.0, usd=Decimal(n)) for n, uid in enumerate(uids)}
    done = {uid: START + timedelta(seconds=n) for n, uid in enumerate(uids)}
    found = _found("i", lost=lost, asked=done, evicted=dict(list(done.items())[:4000]))
    kept = bound_interruption(bound_interruption(found))
    assert len(RESCUE.format.write(kept)) < LARGEST
    assert (kept.lost_usd, kept.lost_gpu_hours) == (found.lost_usd, found.lost_gpu_hours)
    assert {uids[-n] for n in range(1, MOST_LOST + 1)} <= kept.lost.keys()


@pytest.mark.parametrize(("outcome", "kept"), [("disproved", False), ("unknown", False), ("released", True)])
def test_what_was_untrue_is_kept_for_a_day(outcome: str, kept: bool) -> None:
    """Many forged notices fill no store; what really happened is kept for a month."""
    stage = Stage()
    interruption_records.close(stage.deps, Versioned(_found("i", outcome=outcome), ABSENT))
    assert interruption_records.find(stage.deps, "i") is not None
    stage.wait(25 * 3600)
    assert (interruption_records.find(stage.deps, "i") is not None) is kept
