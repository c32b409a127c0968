"""GKE takes an instance on and never makes it, without a word: after the boot deadline it is refused and called off."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from gke_server import Gke
from stage import Stage
from test_on_gke import on_gke

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

BOTH = {"one": PoolPolicy(instance_type="one", max=2), "eight": PoolPolicy(instance_type="eight", max=2)}
DAY = (Budget(name="all", usd=Decimal(1000), period="day"),)


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def until_deleted(stage: Stage, gke: Gke, most: int) -> int:
    """Minutes that tick by until something is deleted."""
    for minute in range(1, most + 1):
        stage.wait(60)
        with suppress(Retry):
            stage.tick()
        if gke.deleted():
            return minute
    return 0


def test_one_that_is_never_made_is_called_off_after_its_deadline_and_its_pod_goes_elsewhere() -> None:
    """DONE without an error, CREATING for ever: it is deleted by its name, told, and costs nothing; the pod runs."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.never.add("one")
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        (name,) = gke.unmade
        deadline = stage.deps.policy.gpu_ready_deadline / 60
        assert deadline <= until_deleted(stage, gke, 60) <= deadline + 3
        assert gke.deleted() == [name]
        stage.minutes(10)
        assert (gke.unmade, stage.world.fleet.desired["one"], stage.nodes("eight")) == ({}, 0, 1)
        (told,) = [alert for alert in stage.alerts if alert.kind == "capacity-release"]
        assert told.why == (
            "its cloud took it on and says nothing: no machine 16 min later (gpu_ready_deadline): called off"
        )
        gke.never.clear()
        gke.make()
        stage.minutes(30)
        assert stage.world.launches == 1
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1


def test_one_that_is_made_late_but_within_its_deadline_stays() -> None:
    """From its machine on its own age counts."""
    with on_gke(pools=BOTH) as (stage, gke):
        gke.never.add("one")
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        within = stage.deps.policy.gpu_ready_deadline / 60 - 2
        assert until_deleted(stage, gke, int(within)) == 0
        gke.never.clear()
        gke.make()
        assert until_deleted(stage, gke, 20) == 0
        assert stage.nodes("one") == 1


def test_what_another_hand_waits_for_is_not_called_off() -> None:
    """Its name is none of ours: it may wait for as long as it likes."""
    with on_gke(pools=BOTH) as (stage, gke):
        gke.never.add("one")
        gke.another_hand("one")
        assert until_deleted(stage, gke, 60) == 0


def test_one_that_is_taken_and_not_made_again_has_its_own_time() -> None:
    """Spot that is to come again without an error: from then on, not from its purchase, it has the boot deadline."""
    with on_gke(pools=BOTH) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=9 * HOUR))
        stage.minutes(30)
        (name,) = gke.world.nodes
        gke.world.terminate(name, "taken", evict=True)
        gke.again.add(name)
        gke.never.add("one")
        gke.unmade[name] = "one", "europe-west4-a"
        gke.world.fleet.desired["one"] += 1
        deadline = timedelta(seconds=stage.deps.policy.gpu_ready_deadline) / timedelta(minutes=1)
        assert deadline <= until_deleted(stage, gke, 60) <= deadline + 3


def test_one_that_is_never_even_listed_is_owed_after_its_deadline_and_its_pod_goes_elsewhere() -> None:
    """Its group has the size and tells no name: nothing can be called off; it is told, and its dollars stay held."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.never.add("one")
        gke.hidden = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.minutes(35)
        assert (stage.nodes("eight"), len(list(HOLD.scan(stage.deps.state, "")))) == (1, 2)
        told = [alert.why for alert in stage.alerts if alert.kind == "finding-launch-owed"]
        assert told[0].startswith("1 of 1 node could not be launched")
        assert gke.deleted() == []
        gke.hidden = False
        stage.minutes(20)
        assert len(gke.deleted()) == 1


def test_a_pool_that_lags_behind_its_size_gives_its_idle_node_back() -> None:
    """Nothing is bought there until a person lowers the size; what it does list goes by its name."""
    with on_gke(pools={"one": BOTH["one"]}) as (stage, gke):
        stage.event(stage.submit("a", run_s=25 * 60))
        stage.minutes(5)
        (name,) = gke.world.nodes
        gke.never.add("one")
        gke.hidden = True
        stage.event(stage.submit("b", run_s=600))
        assert len(gke.unmade) == 1
        stage.minutes(60)
        assert gke.deleted() == [name]
