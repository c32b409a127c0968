"""The flows with GKE as the cloud: what a lost answer, a stock-out, an upgrade or another hand leads to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving
from stage import Stage

from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.adapters.pools.gke import pools as gke_pools
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.ports.clouds import CloudAccount
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults


@contextmanager
def on_gke(**options: Any) -> Iterator[tuple[Stage, Gke]]:
    """A stage whose nodes are those of GKE's node pools."""
    stage = Stage(**options)
    gke = Gke(stage.world)
    reserved = {name: p.instance_type for name, p in stage.deps.policy.pools.items() if p.capacity_type == "reserved"}
    with serving(gke) as environ:
        account = CloudAccount(gke.names(), stage.world.clock, str, environ, reserved=reserved)
        pools = gke_cloud.open_pools(WHERE, account)
        assert pools is not None
        stage.deps = replace(stage.deps, pools=pools)
        yield stage, gke


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def test_a_pod_gets_its_node_and_the_node_goes_when_it_ends() -> None:
    """One pod: one call for one instance by name; after its run and its idle time that very one is deleted."""
    with on_gke() as (stage, gke):
        stage.event(stage.submit("a", run_s=600))
        stage.minutes(25)
        (made, asked), (gone, named) = gke.changes()
        assert (made, gone) == ("createInstances", "deleteInstances")
        assert named["instances"] == [f"zones/europe-west4-a/instances/{asked['instances'][0]['name']}"]
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.finished)) == (1, 0, 1)


@pytest.mark.parametrize("what", ["hang", "reset", "cut", (500, "<p>"), (200, "<x/>")], ids=str)
def test_an_answer_that_is_lost_buys_nothing_twice(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google acted and its answer was lost: a second delivery and the ticks after it find the node on its way."""
    monkeypatch.setattr(gke_pools, "WRITE_S", 0.2)
    with on_gke() as (stage, gke):
        pod = stage.submit("a", run_s=3600)
        gke.faults = [Fault(what, when="after", method="createInstances")]
        with pytest.raises(Retry):
            stage.event(pod)
        stage.event(pod)
        stage.minutes(10)
        assert (stage.world.launches, stage.nodes("one")) == (1, 1)


def test_a_lost_purchase_is_told_by_its_names_though_another_node_went_meanwhile() -> None:
    """The group is of the size that it was before: the instance is there by its name, its pod is not bought for
    again, and nobody is told that it never came."""
    with on_gke() as (stage, gke):
        stage.event(pod := stage.submit("first", run_s=3600))
        stage.minutes(5)
        (first,) = stage.world.nodes.values()
        gke.faults = [Fault("cut", when="after", method="createInstances")]
        with pytest.raises(Retry):
            stage.event(stage.submit("second", run_s=3600))
        stage.world.terminate(first.id, "released", evict=True)
        stage.world.delete(stage.world.pending[pod.uid])
        stage.minutes(15)
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.running)) == (2, 1, 1)
        assert "it never came" not in " ".join(alert.why for alert in stage.alerts)


def short(stage: Stage, **pod: Any) -> None:
    """A batch pod is bought for, and its zone has none."""
    stage.world.set_faults(Faults(shortage=1.0))
    stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR, **pod))
    stage.world.set_faults(Faults())


def test_what_could_not_be_made_is_called_off_and_its_pod_goes_elsewhere() -> None:
    """At the next look, as a step of its own: the group tries no more, hours later nothing comes, and the pod runs."""
    with on_gke() as (stage, gke):
        short(stage)
        (name,) = gke.tried
        stage.minutes(2)
        assert [body["instances"] for verb, body in gke.changes() if verb == "deleteInstances"] == [
            [f"zones/europe-west4-a/instances/{name}"]
        ]
        assert (gke.tried, stage.world.fleet.desired["one"], stage.nodes("eight")) == ({}, 0, 1)
        stage.minutes(180)
        gke.try_again()
        assert (stage.world.launches, stage.nodes("one")) == (1, 0)


def test_a_gang_whose_nodes_were_all_refused_goes_elsewhere_at_once() -> None:
    """Nothing of it came or may come: it waits for no deadline of what was called off."""
    pools = {
        "one": PoolPolicy(instance_type="one", max=2),
        "eight": PoolPolicy(instance_type="eight", max=2),
    }
    with on_gke(pools=pools) as (stage, gke):
        pods = stage.submit_gang("g", 2, gpus=1)
        stage.world.set_faults(Faults(shortage=1.0))
        stage.event(pods[0])
        stage.world.set_faults(Faults())
        assert len(gke.tried) == 2
        stage.minutes(3)
        assert (gke.tried, stage.nodes("one"), stage.nodes("eight")) == ({}, 0, 1)


def test_what_is_called_off_costs_nothing_and_holds_nothing_more() -> None:
    """The dollars that were held for it come back once it is gone."""
    with on_gke(budgets=(Budget(name="all", usd=Decimal(1000), period="day"),)) as (stage, gke):
        short(stage)
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1
        stage.minutes(2)
        assert gke.tried == {}
        held = [entry.value.terms for entry in HOLD.scan(stage.deps.state, "")]
        assert len(held) == stage.world.launches == 1


def test_one_that_comes_while_it_is_called_off_is_kept_if_it_works() -> None:
    """The group made it after the look: a pod is bound by then, and it stays."""
    pools = {"one": PoolPolicy(instance_type="one", max=1)}
    with on_gke(pools=pools) as (stage, gke):
        short(stage)
        stage.world.set_faults(Faults(boot_s=5.0))
        look = stage.deps.pools.describe

        def late() -> Any:
            seen = look()
            gke.try_again()
            stage.wait(10)
            return seen

        stage.deps.pools.describe = late  # type: ignore[method-assign]
        stage.tick()
        stage.deps.pools.describe = look  # type: ignore[method-assign]
        stage.minutes(2)
        assert (stage.nodes("one"), [v for v, _ in gke.changes()].count("deleteInstances")) == (1, 0)


@pytest.mark.parametrize("when", ["before", "after"])
def test_calling_off_is_settled_where_its_answer_is_lost(when: str) -> None:
    """Whether Google acted or not, it is called off in the end, and nothing is bought for it."""
    with on_gke() as (stage, gke):
        short(stage)
        gke.faults = [Fault("reset", when, "deleteInstances")]
        with pytest.raises(Retry):
            stage.minutes(2)
        stage.minutes(5)
        assert (gke.tried, stage.world.fleet.desired["one"]) == ({}, 0)


class _Dead(BaseException):
    """The worker is gone."""


class Mortal(MemoryState):
    """A store at whose so many-th write the worker dies, before or after it."""

    left, after = -1, False

    def _write(self, make: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise _Dead
        made = make()
        if self.left == 0:
            raise _Dead
        return made

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Written, unless the worker dies first."""
        made: int = self._write(lambda: super(Mortal, self).put(key, value, if_version=if_version, ttl_s=ttl_s))
        return made

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """The same."""
        self._write(lambda: super(Mortal, self).delete(key, if_version=if_version))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_calling_off_outlives_a_death_at_any_write(after: bool) -> None:
    """At every third write: whoever goes on calls it off, nothing is bought twice, and one node's dollars are held."""
    deaths = 0
    for write in count(1, 3):
        with on_gke(budgets=(Budget(name="all", usd=Decimal(1000), period="day"),)) as (stage, gke):
            state = Mortal(stage.world.clock)
            stage.deps = replace(stage.deps, state=state)
            short(stage)
            stage.wait(60)
            state.left, state.after = write, after
            try:
                stage.tick()
            except _Dead:
                deaths += 1
            else:
                break
            for _ in range(12):
                stage.wait(60)
                with suppress(Retry):
                    stage.tick()
            gke.try_again()
            assert (gke.tried, sum(stage.world.fleet.desired.values()), stage.world.launches) == ({}, 1, 1), write
            assert len(list(HOLD.scan(state, ""))) == 1, write
    assert deaths > 5


def test_a_pool_that_gke_upgrades_is_left_alone_and_says_why() -> None:
    """Neither bought from nor given back while both colours are there; the pod goes elsewhere."""
    with on_gke() as (stage, gke):
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(5)
        gke.doubled.add("one")
        before = len(gke.changes())
        stage.event(stage.submit("b", workload_class="batch", run_s=600))
        stage.minutes(20)
        asked = [body for verb, body in gke.changes()[before:]]
        assert not any("-one-" in str(body) for body in asked)
        assert stage.nodes("one") == 1
        gke.doubled.clear()
        stage.minutes(15)
        assert stage.nodes("one") == 0


def test_a_pool_whose_autoscaler_is_on_is_refused_before_anything_is_bought() -> None:
    """It is paused by what its cloud tells, with the command that mends it."""
    with on_gke(pools={"one": PoolPolicy(instance_type="one", max=3)}) as (stage, gke):
        gke.extra["one"] = {"autoscaling": {"enabled": True, "maxNodeCount": 3}}
        answer = stage.event(stage.submit("a"))
        assert gke.changes() == []
        assert "--no-enable-autoscaling" in str(answer)


def test_a_node_that_a_person_took_out_of_its_group_is_not_told_as_given_back() -> None:
    """It is idle and nothing here ends it: its dollars stay held, and the command that ends it is told, once."""
    with on_gke(budgets=(Budget(name="all", usd=Decimal(1000), period="day"),)) as (stage, gke):
        stage.event(stage.submit("a", run_s=600))
        stage.minutes(5)
        (name,) = stage.world.nodes
        gke.abandoned.add(name)
        stage.minutes(50)
        assert (gke.deleted(), len(list(HOLD.scan(stage.deps.state, "")))) == ([], 1)
        told = [alert for alert in stage.alerts if alert.kind.startswith("capacity-")]
        assert [alert.kind for alert in told] == ["capacity-grow", "capacity-kept"]
        assert f"gcloud compute instances delete {name} --zone europe-west4-a" in told[1].why


def test_a_pool_of_several_zones_is_bought_from_where_the_policy_names_them() -> None:
    """Without a name nothing is held or asked, and what to write is said; a zone that is named is bought in."""
    for zones, bought in (((), 0), (("europe-west4-b",), 1)):
        pools = {"one": PoolPolicy(instance_type="one", max=3, zones=zones)}
        with on_gke(pools=pools, budgets=(Budget(name="all", usd=Decimal(1000), period="day"),)) as (stage, gke):
            gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
            answer = stage.event(stage.submit("a"))
            assert (len(gke.changes()), len(list(HOLD.scan(stage.deps.state, "")))) == (bought, bought)
            assert ("name those to buy in, in pools.one.zones" in str(answer)) == (not bought)


def test_a_pod_that_counts_on_another_hands_request_is_bought_for_once_that_is_rolled_back() -> None:
    """While the request stands the pod waits for its nodes; once they are taken back, one node of ours comes."""
    with on_gke(pools={"one": PoolPolicy(instance_type="one", max=3)}) as (stage, gke):
        gke.slow = True
        gke.resize_request("one", 3)
        stage.event(stage.submit("a", run_s=600))
        assert gke.changes() == []
        gke.slow = False
        gke.rolls_back()
        stage.minutes(5)
        assert ([verb for verb, _ in gke.changes()], stage.nodes("one")) == (["createInstances"], 1)


BY_NAME = {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["r-1"]}


def test_a_pool_on_a_reservation_is_filled_first_and_no_further_than_it_goes() -> None:
    """Two machines are reserved: they cost nothing more, the third pod pays for another pool."""
    pools = {
        "one": PoolPolicy(instance_type="one", max=5, capacity_type="reserved"),
        "eight": PoolPolicy(instance_type="eight", max=2),
    }
    with on_gke(pools=pools, budgets=(Budget(name="all", usd=Decimal(1000), period="day"),)) as (stage, gke):
        gke.extra["one"] = {"config": {"machineType": "one", "reservationAffinity": BY_NAME}}
        gke.reserve("r-1", 2)
        for name in ("a", "b"):
            stage.event(stage.submit(name, run_s=7200))
        held = [entry.value.terms.usd_per_hour for entry in HOLD.scan(stage.deps.state, "")]
        assert held == [0, 0]
        stage.event(stage.submit("c", workload_class="batch", run_s=7200))
        stage.minutes(10)
        assert (stage.nodes("one"), stage.nodes("eight"), len(gke.tried)) == (2, 1, 0)


def test_a_pool_that_is_bound_and_full_is_refused_before_its_group_tries_for_ever() -> None:
    """The policy does not call it reserved: nothing is sent, its offering rests, and the pod runs elsewhere."""
    with on_gke() as (stage, gke):
        gke.extra["one"] = {"config": {"machineType": "one", "reservationAffinity": BY_NAME}}
        gke.reserve("r-1", 1)
        gke.others["r-1"] = 1
        stage.event(stage.submit("a", workload_class="batch", run_s=600))
        stage.minutes(10)
        assert not any("-one-" in str(body) for _, body in gke.changes())
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)
