"""Workers that die, or stand still, while a hold goes over to another team: the node's time is charged once, all of it.

Dollars are the world's: what the two teams were charged adds up to what its one node cost.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest
from late_worker import Worker
from owners_stage import RUNS_ON, stage, totals
from stage import Stage

from pilotlight.flow.budgets import budget_accounts, budget_holds, renew_holds
from pilotlight.flow.observe.snapshot import look
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR


def handing_over(seen: bool) -> tuple[Stage, Worker]:
    """Team poor's pod is on the node that team rich bought, and a worker is about to hand the hold over.

    Where that is not ``seen`` before, it is the first look that shows the node.
    """
    on = stage({"rich": "900", "poor": "900"}, batch=RUNS_ON)
    on.event(on.submit("first", gpus=8, run_s=600, team="rich"))
    if seen:
        on.minutes(15)
    else:
        on.world.delete(on.world.pending["uid-first"])
    on.submit("second", gpus=8, run_s=2 * HOUR, team="poor")
    on.wait(60 if seen else 300)
    snapshot = look(on.deps)
    assert [pod.team for node in snapshot.view.nodes for pod in node.gpu_pods] == ["poor"]
    return on, Worker(on.deps.state, lambda state: renew_holds.keep(replace(on.deps, state=state), snapshot))


def charged_once(on: Stage) -> None:
    """Nothing is held any more, and what was charged is what the node cost."""
    on.minutes(5)
    assert budget_accounts.every_hold(on.deps) == []
    assert sum(totals(on).values()) == pytest.approx(on.world.cost(), abs=Decimal("0.01"))


def at_every_call(then: Callable[[Stage, Worker], None], seen: bool = True) -> None:
    """A worker comes so far, for each call of its hand-over, and something else happens."""
    calls, over = 0, False
    while not over:
        on, worker = handing_over(seen)
        for _ in range(calls):
            worker.step()
        calls, over = calls + 1, worker.over
        then(on, worker)
        charged_once(on)
    assert calls > 10


def lost(on: Stage) -> None:
    """A minute passes, the node is taken away, and the next look is at once."""
    on.wait(60)
    (node,) = on.world.nodes
    on.world.finish("uid-second")
    on.world.terminate(node, "lost", evict=True)
    on.tick()


def test_a_node_that_goes_before_its_hand_over_was_done_is_charged_to_its_end() -> None:
    """The worker died at any call of it, and no look saw the node since: one team pays for its last minute."""

    def dies(on: Stage, worker: Worker) -> None:
        worker.die()
        lost(on)

    at_every_call(dies)


@pytest.mark.parametrize("seen", [True, False], ids=["a node that was seen", "one that was not"])
def test_a_hand_over_that_others_find_half_done_is_done_once(seen: bool) -> None:
    """The worker died at any call of it: the next looks end it, and nobody pays a minute twice."""

    def dies(on: Stage, worker: Worker) -> None:
        worker.die()
        on.minutes(2)
        lost(on)

    at_every_call(dies, seen)


@pytest.mark.parametrize("rests", [0, 2], ids=["the node goes at once", "others look before"])
def test_a_worker_that_comes_late_to_its_hand_over_charges_nothing_twice(rests: int) -> None:
    """It stood still at any call of it while others handed over, and goes on once the node is gone."""

    def stalls(on: Stage, worker: Worker) -> None:
        on.minutes(rests)
        lost(on)
        on.minutes(1)
        worker.finish()

    at_every_call(stalls)


def test_a_worker_that_comes_late_while_the_node_goes_on_charges_nothing_twice() -> None:
    """It stood still at any call of it while others handed over, and goes on beside them."""

    def stalls(on: Stage, worker: Worker) -> None:
        on.minutes(2)
        worker.finish()
        on.minutes(2)
        lost(on)

    at_every_call(stalls)


def test_two_hand_overs_that_go_on_in_turns_charge_nothing_twice() -> None:
    """One worker stands still at any call of its hand-over, another's begins, and they go on call by call."""

    def in_turns(on: Stage, worker: Worker) -> None:
        on.wait(30)
        snapshot = look(on.deps)
        other = Worker(on.deps.state, lambda state: renew_holds.keep(replace(on.deps, state=state), snapshot))
        while not (worker.over and other.over):
            other.step()
            worker.step()
        lost(on)

    at_every_call(in_turns)


@pytest.mark.parametrize("id", ["00", "zz"], ids=["the new hold is read first", "the old one is"])
def test_a_node_that_is_given_back_amid_its_hand_over_is_charged_whole(id: str) -> None:
    """Two holds name it as its release is settled: the older one pays for all of it, whichever is read first."""
    on = stage({"rich": "900"}, batch=RUNS_ON)
    on.event(on.submit("first", gpus=8, run_s=HOUR, team="rich"))
    on.minutes(15)
    ((_, _, old),) = budget_accounts.every_hold(on.deps)
    now = on.deps.now()
    new = msgspec.structs.replace(old, id=id, since=now, matched_at=now, after=old.id, until=now, accounts=())
    HOLD.put(on.deps.state, f"c/{id}", new, over=None)
    on.wait(60)
    budget_holds.settle(on.deps, {old.instance}, ())
    on.world.finish("uid-first")
    on.world.terminate(old.instance, "released")
    assert totals(on)["rich"] == pytest.approx(on.world.cost(), abs=Decimal("0.01"))
