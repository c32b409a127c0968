"""The audit chain's count and head are told daily; what is older than a year leaves it behind a checkpoint."""

from dataclasses import replace
from datetime import timedelta

import pytest
from failing_store import Failing
from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Tick
from pilotlight.flow.billing import audit_chain
from pilotlight.flow.billing.audit_chain import anchor
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.records import ledger
from pilotlight.state_schema.decision_records import LINKS, LINKS_AT_HEAD
from pilotlight.tools.lint.audit_proof import lines, verify

DAY = 24 * 3600.0


def test_a_day_has_one_anchor() -> None:
    """Count and head are told once a day, while something is decided: by an alert, which leaves the store."""
    stage = Stage()

    def anchors() -> list[str]:
        return [alert.how for alert in stage.alerts if alert.kind == "audit-anchor"]

    billing(stage.deps, Tick(cluster="c", what="billing"))
    assert anchors() == []
    stage.event(stage.submit("a"))
    stage.wait(DAY)
    for _ in range(3):
        billing(stage.deps, Tick(cluster="c", what="billing"))
    head = audit_chain.head(stage.deps.state, "c")
    assert head is not None
    assert anchors() == [f"pilotlight audit verify --anchor {head.seq}:{head.hash}"]
    for _ in range(4):
        stage.wait(DAY)
        billing(stage.deps, Tick(cluster="c", what="billing"))
    assert len(anchors()) == 1  # Nothing was added: the last one still says it.


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_tick_after_one_that_died_makes_no_message_with_two_contents(meanwhile: bool) -> None:
    """It had told it, and died before it could write that. What was decided meanwhile makes it another message of the
    same fingerprint, which people are told of once."""
    stage = Stage()
    state = Failing(stage.world.clock)
    stage.deps = replace(stage.deps, state=state)
    stage.event(stage.submit("a"))
    state.at = 1
    with pytest.raises(Unavailable):
        anchor(stage.deps, stage.deps.now())
    stage.wait(60)
    if meanwhile:
        ledger.chain(state, "c", "cost", "later", stage.deps.now(), "0" * 64)
    assert anchor(stage.deps, stage.deps.now()) == (f"anchored the audit chain at {1 + meanwhile}",)
    assert anchor(stage.deps, stage.deps.now()) == ()
    first, second = (message for message in stage.outbox.sent if b"audit-anchor" in bytes(message.data))
    assert (first.id == second.id, first == second, first.key == second.key) == (not meanwhile, not meanwhile, True)


def test_links_of_over_a_year_leave_behind_a_checkpoint() -> None:
    """What is left is whole by what the checkpoint says; without the checkpoint, or with more gone, it is not."""
    state, now = Stage().deps.state, Stage().deps.state.now()
    for n in range(4 * LINKS_AT_HEAD):
        old = timedelta(days=500) if n < 2 * LINKS_AT_HEAD else timedelta(0)
        ledger.chain(state, "c", "cost", f"day-{n}", now - old, "0" * 64)
    assert audit_chain.retain(state, "c", now) == 2
    assert audit_chain.retain(state, "c", now) == 0
    left = list(lines(state, "c"))
    found = verify(left, kept_since=now + timedelta(days=1))
    assert (found.tampered, found.first, found.last) == (None, 2 * LINKS_AT_HEAD + 1, 4 * LINKS_AT_HEAD + 1)
    assert verify(left[:-1], kept_since=now + timedelta(days=1)).tampered is not None
    LINKS.delete(state, next(iter(LINKS.scan(state, "c/"))).name)
    cut = verify(lines(state, "c"), kept_since=now + timedelta(days=1)).tampered
    assert cut is not None
    assert (cut.seq, cut.how) == (1, "cut")
