"""A group of GKE's, or its queue, does not answer for a while: its pool alone waits, and a blip sends no pod away."""

from decimal import Decimal
from typing import NamedTuple

import pytest
from civo_server import Fault
from gke_answers import Refused
from google_documents import Call
from stage import Stage
from test_on_gke import on_gke, short
from test_on_gke_closed import BOTH, DAY, go_on
from test_on_gke_queue import held, name_of, on_queue

from pilotlight.adapters.pools.gke import google_rest, refusals
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.budgets.interruption_records import open_interruptions
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.tools.checkup.clouds.gke_rights import ACT, LOOK
from pilotlight.tools.glance.look_at_cluster import glance
from pilotlight.units import HOUR

QUEUE = "GET .*/provisioningrequests"
CAP = (Budget(name="cap", usd=Decimal(3), period="day", hard=True),)
MAY_STOP = {"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))}
UNREAD = "pool eight cannot be read whole"


class Site(NamedTuple):
    """What a glance needs of a deployment."""

    deps: Deps
    alerts: State


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(refusals, "THROTTLED_S", 0.0)


def told(stage: Stage) -> set[str]:
    """What alerts are about."""
    return {alert.what for alert in stage.alerts}


def test_a_right_to_reservations_that_is_missing_is_told_by_look_and_status() -> None:
    """By its name, and with what goes without it; the pod runs in a pool that is paid by the hour."""
    pools = {
        "one": PoolPolicy(instance_type="one", max=2, capacity_type="reserved"),
        "eight": PoolPolicy(instance_type="eight", max=2),
    }
    with on_gke(pools=pools, budgets=DAY) as (stage, gke):
        gke.granted = {*LOOK, *ACT} - {"compute.reservations.list"}
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        stage.minutes(2)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)
        assert "pool one cannot be read whole" in told(stage)
        (found,) = glance(Site(stage.deps, stage.deps.state)).findings  # type: ignore[arg-type]
        assert (found.subject, found.code) == ("pool one", "pool-unread")
        assert found.message.startswith("compute.reservations.list is refused, so nothing is bought on a reservation: ")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_group_that_does_not_answer_stops_no_other_pool(status: int) -> None:
    """One pool's group is down for half an hour: the other buys and gives back, and it is told after five minutes."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.refuses["eight"] = status
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(4)
        assert (stage.nodes("one"), UNREAD in told(stage)) == (1, False)
        stage.minutes(26)
        assert (stage.world.launches, len(gke.deleted()), stage.nodes("one")) == (1, 1, 0)
        assert UNREAD in told(stage)


def test_a_node_past_its_hard_budget_goes_while_another_group_is_down() -> None:
    """Its dollars run out at any hour: the end of a hard budget waits for no other pool's group."""
    with on_gke(pools=BOTH, budgets=CAP, classes=MAY_STOP) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        stage.minutes(5)
        gke.refuses["eight"] = 503
        go_on(stage, 4 * 60)
        assert (stage.nodes("one"), len(gke.deleted())) == (0, 1)


def test_a_pod_waits_for_its_cheapest_pool_through_a_blip() -> None:
    """No dearer node is bought, the plan says why, and the pod gets its node once the group answers again."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.refuses["one"] = 503
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        stage.minutes(3)
        assert stage.world.launches == 0
        (group,) = preview(stage.deps, releases=True)[1].pods
        assert group.verdict == "waiting"
        assert "group gke-prod-one-pool-0a1b2c3d-grp" in group.why
        assert "what waits for it goes elsewhere from 12:06 UTC on" in group.why
        gke.refuses.clear()
        stage.minutes(2)
        assert (stage.nodes("one"), stage.nodes("eight")) == (1, 0)


def test_a_pod_goes_elsewhere_after_five_minutes_without_an_answer() -> None:
    """The next-best node is bought, as in a pool that may not be read."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        stage.minutes(1)
        gke.refuses["one"] = 503
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR))
        stage.minutes(5)
        assert stage.nodes("eight") == 0
        stage.minutes(3)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


def test_blips_each_have_five_minutes_of_their_own() -> None:
    """A group that answered in between has been silent since only then."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        for name in "ab":
            gke.refuses["one"] = 503
            stage.event(stage.submit(name, workload_class="batch", run_s=HOUR))
            stage.minutes(3)
            gke.refuses.clear()
            stage.minutes(1)
        assert stage.nodes("eight") == 0


def test_what_boots_while_its_group_is_down_is_not_bought_twice() -> None:
    """Its pod waits for it, its dollars are held, and nothing of it is called off or given back."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.never.add("one")
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        gke.refuses["one"] = 503
        stage.minutes(12)
        assert (stage.nodes("eight"), len(held(stage)), gke.deleted()) == (0, 1, [])
        gke.refuses.clear()
        gke.never.clear()
        gke.make()
        stage.minutes(5)
        assert (stage.nodes("one"), stage.world.launches) == (1, 1)


def test_what_boots_while_its_group_is_down_amid_an_upgrade_is_metered_on() -> None:
    """The pool is closed for the upgrade, and its group silent at one count: the node is not taken for gone by that."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        stage.event(stage.submit("a", run_s=2 * HOUR))
        gke.doubled.add("one")
        stage.wait(60)
        meter_nodes.count(stage.deps)
        gke.refuses["one"] = 503
        stage.wait(60)
        meter_nodes.count(stage.deps)
        gke.refuses.clear()
        stage.wait(600)
        (node,) = stage.world.nodes
        stage.world.terminate(node, "lost", evict=True)
        usd = sum(line.usd for line in meter_nodes.count(stage.deps).lines)
        assert usd == pytest.approx(stage.world.cost(), abs=Decimal("0.001"))


def test_a_blip_of_one_zone_gives_nothing_back_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be made in the other zone is called off after five minutes, as where a zone may not be read."""
    with on_gke(pools={"one": PoolPolicy(instance_type="one", max=2)}, budgets=DAY) as (stage, gke):
        short(stage)
        (name,) = gke.tried
        gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
        real = gke._pool

        def down(call: Call) -> str:
            if call.path["zone"] == "europe-west4-b":
                raise Refused(503, "backendError", "the zone is down")
            return real(call)

        monkeypatch.setattr(gke, "_pool", down)
        stage.minutes(4)
        assert gke.deleted() == []
        stage.minutes(4)
        assert gke.deleted() == [name]


def test_a_request_waits_in_a_queue_that_cannot_be_asked() -> None:
    """The API is down for two hours: the request is neither bought again nor given up, and another pool goes on."""
    pools = {"one": PoolPolicy(instance_type="eight", max=2), "eight": PoolPolicy(instance_type="one", max=2)}
    with on_queue(pools=pools, budgets=DAY) as (stage, site):
        stage.event(stage.submit("a", workload_class="batch", gpus=8, run_s=HOUR))
        name = name_of(site)
        site.server.fail(503, on=QUEUE, times=10_000)
        stage.event(stage.submit("b", workload_class="batch", run_s=300))
        stage.minutes(120)
        assert (stage.world.launches, len(stage.world.finished), stage.nodes("eight")) == (1, 1, 0)
        assert [hold.terms.pool for hold in held(stage)] == ["one"]
        (said,) = {alert.why for alert in stage.alerts if alert.what == "pool one cannot be read whole"}
        assert said.startswith("the queue of node pool one-pool does not answer: ")
        site.server.forget_faults()
        site.provision(name)
        stage.minutes(10)
        assert (len(site.requests()), stage.nodes("one"), len(stage.world.running)) == (1, 1, 1)


def test_nothing_goes_by_a_cloud_of_which_no_group_answers() -> None:
    """Then it is no matter of a pool: the look says so, and the next one does it all."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.refuses = dict.fromkeys(BOTH, 503)
        with pytest.raises(Retry, match="cannot be read"):
            stage.event(stage.submit("a", run_s=300))
        gke.refuses.clear()
        stage.minutes(2)
        assert stage.nodes("one") == 1


def test_a_stop_at_a_hard_budget_waits_for_the_group_of_its_own_node() -> None:
    """Its group is silent as its dollars run out: its stop is not over, and goes on once the group answers."""
    with on_gke(pools=BOTH, budgets=CAP, classes=MAY_STOP) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        stage.minutes(5)
        while not (begun := list(open_interruptions(stage.deps))):
            go_on(stage, 1)
        gke.refuses["one"] = 503
        go_on(stage, 3)
        assert [kept.found.kind for kept in open_interruptions(stage.deps)] == [begun[0].found.kind] == ["hard-cap"]
        gke.refuses.clear()
        go_on(stage, 15)
        assert (stage.nodes("one"), len(gke.deleted())) == (0, 1)


@pytest.mark.parametrize("status", [403, 503])
def test_a_lost_purchase_is_settled_once_its_group_is_seen_again(status: int) -> None:
    """It never came, and its group was hidden for long since: nobody is told that the cloud shows it."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        pod = stage.submit("a", workload_class="batch", run_s=HOUR)
        gke.faults = [Fault("reset", when="before", method="createInstances")]
        with pytest.raises(Retry):
            stage.event(pod)
        gke.refuses["one"] = status
        go_on(stage, 20)
        assert "the cloud shows it" not in " ".join(alert.why for alert in stage.alerts)
        assert (stage.world.launches, "one" in [hold.terms.pool for hold in held(stage)]) == (1, True)
        gke.refuses.clear()
        go_on(stage, 3)
        told = " ".join(alert.why for alert in stage.alerts)
        assert ("it never came" in told, "the cloud shows it" in told) == (True, False)
        assert "one" not in [hold.terms.pool for hold in held(stage)]
