"""Which releases lower what a purchase whose answer is lost asked its pool to have."""

from datetime import timedelta

import pytest
from stage import START, Stage
from test_call_steps import recorded

from pilotlight.facts.decisions import CallStep
from pilotlight.flow.records import call_steps


@pytest.mark.parametrize(
    ("pool", "after_s", "sent", "left"),
    [
        ("one", 1, True, 4),
        ("one", 0, True, 4),
        ("one", -1, True, 5),
        ("eight", 1, True, 5),
        ("one", None, True, 5),
        ("one", 1, False, 5),
    ],
)
def test_only_what_goes_after_a_purchase_was_sent_lowers_its_size(
    pool: str, after_s: float | None, sent: bool, left: int
) -> None:
    """A node of its pool whose release was sent no sooner was counted in the size that was asked for."""
    stage = Stage()
    (sending,) = call_steps.write_planned(stage.deps, recorded(stage))[:1]
    grow = CallStep(n=0, call="grow", pool="one", target="o", count=2, to=5, sent_at=START if sent else None)
    sending.step = grow
    at = None if after_s is None else START + timedelta(seconds=after_s)
    sending.one_less(CallStep(n=1, call="release", pool=pool, target="n1", count=1, sent_at=at))
    assert sending.step.to == left
