"""The flows with a node pool of GKE's queue: what waits for hours, fails, or is not needed any more."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from gke_queue import QueueSite, queue_site
from stage import Stage

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Retry
from pilotlight.facts.money.budgets import Hold
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR

QUEUE = {"one": PoolPolicy(instance_type="eight", max=4, atomic=True)}
BOTH = {"one": PoolPolicy(instance_type="one", max=4), "eight": PoolPolicy(instance_type="eight", max=4)}
DAY = (Budget(name="all", usd=Decimal(10_000), period="day"),)


@contextmanager
def on_queue(**options: Any) -> Iterator[tuple[Stage, QueueSite]]:
    """A stage whose pool ``one`` is of the queue."""
    stage = Stage(**options)
    with queue_site(stage.world) as site:
        stage.deps = replace(stage.deps, pools=site.pools)
        yield stage, site


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def name_of(site: QueueSite) -> str:
    """The name of the only request."""
    (one,) = site.requests()
    return str(one["metadata"]["name"])


def held(stage: Stage) -> list[Hold]:
    """The holds that there are."""
    return [entry.value for entry in HOLD.scan(stage.deps.state, "")]


def test_a_gang_waits_in_the_queue_for_hours_and_runs_on_nodes_that_come_together() -> None:
    """One request, whatever the looks between; its dollars are held all the while, and count from when they came."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        pods = stage.submit_gang("g", 2, run_s=2 * HOUR)
        for pod in pods:
            stage.event(pod)
        site.says(name_of(site), "Accepted")
        stage.minutes(180)
        assert (len(site.posted("provisioningrequests")), site.gke.changes(), len(held(stage))) == (1, [], 2)
        came = stage.world.clock.now()
        site.provision(name_of(site))
        stage.minutes(30)
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.running)) == (2, 2, 1)
        assert min(hold.since for hold in held(stage)) > came - timedelta(minutes=6)
        stage.minutes(150)
        assert (len(stage.world.finished), stage.nodes("one"), held(stage)) == (1, 0, [])
        assert len(site.posted("provisioningrequests")) == 1


def test_a_request_that_waits_over_midnight_costs_the_day_before_nothing() -> None:
    """Both days hold for it; the first, without a node, is charged nothing, the second what its node cost."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        stage.minutes(9 * 60)
        stage.event(stage.submit("a", gpus=8, run_s=HOUR))
        site.says(name_of(site), "Accepted")
        stage.minutes(210)
        site.provision(name_of(site))
        stage.minutes(120)
        assert (len(stage.world.finished), stage.nodes("one"), held(stage)) == (1, 0, [])
        days = [entry.value.settled for entry in sorted(CAP.scan(stage.deps.state), key=lambda each: each.name)]
        assert days[0] == 0
        assert days[1] == pytest.approx(stage.world.cost(), rel=Decimal("0.1"))


def test_what_the_queue_refused_is_deleted_and_its_pods_go_elsewhere() -> None:
    """A quota: the offering rests, the other pool is bought in, and the request is gone."""
    with on_queue(pools=BOTH, budgets=DAY) as (stage, site):
        stage.event(stage.submit("a"))
        site.says(name_of(site), "Accepted", "Failed", reason="QuotaExceeded", message="Quota 'L4' exceeded")
        stage.minutes(3)
        assert (site.requests(), stage.nodes("one"), stage.nodes("eight")) == ([], 0, 1)
        assert [hold.terms.pool for hold in held(stage)] == ["eight"]


def test_a_request_that_nobody_needs_any_more_is_deleted() -> None:
    """Its pod was deleted while it waited, also hours later than a node would have been expected: nothing is held."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        pod = stage.submit("a", gpus=8)
        stage.event(pod)
        site.says(name_of(site), "Accepted")
        stage.minutes(60)
        assert len(site.requests()) == 1
        stage.world.delete(stage.world.pending[pod.uid])
        stage.minutes(4)
        assert (site.requests(), stage.world.launches, held(stage)) == ([], 0, [])
        (told,) = [alert for alert in stage.alerts if alert.kind == "capacity-release"]
        assert (told.severity, told.why) == ("info", "all that it was bought for ended")


def test_a_lost_request_is_told_by_its_name_though_a_node_went_meanwhile() -> None:
    """The pool counts as many nodes as before: the request is there by its name, and no other is made for its pod."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        stage.event(pod := stage.submit("first", gpus=8, run_s=600))
        site.provision(name_of(site))
        stage.minutes(3)
        (first,) = stage.world.nodes.values()
        site.server.fail("cut", on="POST .*/provisioningrequests")
        with pytest.raises(Retry):
            stage.event(stage.submit("second", gpus=8, run_s=HOUR))
        stage.world.terminate(first.id, "released", evict=True)
        stage.world.delete(stage.world.pending[pod.uid])
        stage.minutes(15)
        assert len(site.posted("provisioningrequests")) == 2
        assert "it never came" not in " ".join(alert.why for alert in stage.alerts)


def cleaned(stage: Stage, site: QueueSite, minutes: int) -> None:
    """So many minutes, at the end of each of which another hand deletes every request."""
    for _ in range(minutes):
        stage.wait(60)
        stage.tick()
        for one in site.requests():
            site.server.store.remove("provisioningrequests", one["metadata"]["name"], "pilotlight")


def test_requests_that_another_hand_deletes_are_asked_for_ever_less_often() -> None:
    """The first at once again, each later one after a longer rest; no dollars pile up, and people hear why."""
    with on_queue(pools={"one": PoolPolicy(instance_type="one", max=4)}, budgets=DAY) as (stage, site):
        stage.event(stage.submit("a", run_s=HOUR))
        cleaned(stage, site, 40)
        assert (2 <= len(site.posted("provisioningrequests")) <= 7, len(held(stage)) <= 1) == (True, True)
        (told,) = [alert for alert in stage.alerts if alert.kind == "finding-request-deleted"]
        assert "another hand deleted it before its nodes came" in told.why


def test_a_request_that_another_hand_deletes_once_is_asked_for_again_at_once() -> None:
    """A slip of a hand rests nothing: the next look asks anew, and no dearer pool is bought in."""
    with on_queue(pools=BOTH, budgets=DAY) as (stage, site):
        stage.event(stage.submit("a", run_s=HOUR))
        cleaned(stage, site, 1)
        stage.minutes(2)
        assert len(site.posted("provisioningrequests")) == 2
        assert (len(site.requests()), stage.nodes("eight")) == (1, 0)


def test_requests_that_we_delete_are_no_refusals() -> None:
    """Each of a gang of two was needed no more: the request goes by the name of one of its nodes, and nothing rests."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        pods = stage.submit_gang("g", 2, run_s=HOUR)
        for pod in pods:
            stage.event(pod)
        stage.world.delete(next(iter(stage.world.pending.values())))
        stage.minutes(6)
        known = ledger.recall(stage.deps.state, stage.deps.name).memory
        assert (site.requests(), known.backoffs, known.asked) == ([], (), {})


def test_requests_that_may_not_be_read_for_a_while_are_not_gone() -> None:
    """The right is taken away and given back: nothing is in back-off, and the request waits on."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        stage.event(stage.submit("a", gpus=8, run_s=HOUR))
        asked = ledger.recall(stage.deps.state, stage.deps.name).memory.asked
        site.server.fail(403, on="GET .*/provisioningrequests", times=99)
        stage.minutes(3)
        site.server.forget_faults()
        known = ledger.recall(stage.deps.state, stage.deps.name).memory
        assert (known.backoffs, known.asked) == ((), asked)
        stage.minutes(3)
        assert len(site.posted("provisioningrequests")) == 1


def test_a_request_without_our_label_is_ours_by_its_name() -> None:
    """Another hand takes the label off: it counts on, no second one is asked for, and it is deleted in the end."""
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        stage.event(pod := stage.submit("a", gpus=8, run_s=HOUR))
        store, off = site.server.store, {"metadata": {"labels": {"pilotlight.dev/pool": None}}}
        store.patch(store.resource("provisioningrequests"), ("pilotlight", name_of(site)), off)
        stage.minutes(10)
        assert (len(site.posted("provisioningrequests")), len(held(stage))) == (1, 1)
        stage.world.delete(stage.world.pending[pod.uid])
        stage.minutes(6)
        assert (site.requests(), held(stage)) == ([], [])


ON_WRITES = ("reset", "cut", 500, 503)


@pytest.mark.parametrize("seed", range(12))
def test_lost_answers_late_nodes_and_failures_buy_nothing_twice(seed: int) -> None:
    """Requests and deletions whose answers are lost, before or after they took effect; hours without a look: no more
    nodes come than pods need at once, and in the end nothing is held, asked for or lit."""
    dice = Random(seed)
    with on_queue(pools=QUEUE, budgets=DAY) as (stage, site):
        for n in range(3):
            for pod in stage.submit_gang(f"g{n}", dice.choice((1, 2)), run_s=HOUR):
                site.server.fail(dice.choice(ON_WRITES), on="(POST|DELETE) .*/provisioningrequests")
                with suppress(Retry):
                    stage.event(pod)
            for _ in range(dice.randrange(4, 12)):
                walk(dice, stage, site)
            assert stage.nodes("one") <= 4
        site.server.forget_faults()
        for wait_s in (*[60] * 10, *[600] * 60):
            for one in site.requests():
                if not conditions(one):
                    site.provision(one["metadata"]["name"])
            stage.wait(wait_s)
            stage.tick()
        wanted = sum(len(job.demands) for job in stage.world.finished)
        assert (len(stage.world.finished), stage.world.pending) == (3, {})
        assert stage.world.launches <= wanted
        assert (stage.nodes("one"), held(stage)) == (0, [])
        assert all(conditions(one) for one in site.requests())


def conditions(request: Any) -> set[str]:
    """What a request is said to be."""
    return {each["type"] for each in request.get("status", {}).get("conditions", [])}


def walk(dice: Random, stage: Stage, site: QueueSite) -> None:
    """A while in which something becomes of a request, and a tick that may meet a fault."""
    waiting = [one["metadata"]["name"] for one in site.requests() if not conditions(one)]
    if waiting and dice.random() < 0.4:
        name = dice.choice(waiting)
        if dice.random() < 0.3:
            site.says(name, "Accepted", "Failed", reason=dice.choice(("ResourcePoolExhausted", "InternalError")))
        else:
            site.provision(name)
    if dice.random() < 0.3:
        site.server.fail(dice.choice(ON_WRITES), on="(POST|DELETE) .*/provisioningrequests")
    stage.wait(dice.choice((0, 60, 600, 4 * HOUR)))
    with suppress(Retry):
        stage.tick()
