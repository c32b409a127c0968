"""The flows with Karpenter's claims as the cloud: lost answers, shortages, and machines that never join."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from karpenter_claims import KarpenterWorld, claim_pools, on_claims
from stage import Stage

from pilotlight.errors import Conflict, Retry
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Budget, Caps
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

BUDGET = Budget(name="all", usd=Decimal(1000), period="day", hard=True)
POST, DELETE = "POST .*/nodeclaims", "DELETE .*/nodeclaims"


@contextmanager
def on_karpenter(**options: Any) -> Iterator[tuple[Stage, KarpenterWorld]]:
    """A stage whose nodes are those of claims."""
    stage = Stage(**options)
    with on_claims(stage.world) as (server, _):
        stage.deps = replace(stage.deps, pools=claim_pools(server, stage.deps.policy.pools))
        yield stage, server


def test_a_pod_gets_its_node_and_the_node_goes_when_it_ends() -> None:
    """One claim by name; after its run and its idle time that very one is deleted."""
    with on_karpenter() as (stage, server):
        stage.event(stage.submit("a", run_s=600))
        stage.minutes(25)
        assert (len(server.lines(POST)), len(server.lines(DELETE)), server.claims()) == (1, 1, [])
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.finished)) == (1, 0, 1)


@pytest.mark.parametrize("what", ["reset", "cut", 500, "truncated"], ids=str)
def test_an_answer_that_is_lost_buys_nothing_twice(what: Any) -> None:
    """The claim is there or it is not: a second delivery and the ticks after it buy one node in all."""
    with on_karpenter() as (stage, server):
        pod = stage.submit("a", run_s=3600)
        server.fail(what, on=POST)
        try:
            stage.event(pod)
        except Retry:
            stage.event(pod)
        stage.minutes(10)
        assert (stage.world.launches, stage.nodes("one"), len(server.claims())) == (1, 1, 1)


def test_a_lost_purchase_is_told_by_its_claim_though_another_machine_went_meanwhile() -> None:
    """There are as many claims as before: that of the purchase is there by its name, and nobody is told otherwise."""
    with on_karpenter() as (stage, server):
        stage.event(pod := stage.submit("first", run_s=3600))
        stage.minutes(5)
        (first,) = stage.world.nodes.values()
        server.fail("cut", on=POST)
        with pytest.raises(Retry):
            stage.event(stage.submit("second", run_s=3600))
        stage.world.terminate(first.id, "released", evict=True)
        stage.world.delete(stage.world.pending[pod.uid])
        stage.minutes(15)
        assert (len(server.lines(POST)), stage.nodes("one"), len(stage.world.running)) == (2, 1, 1)
        assert "it never came" not in " ".join(alert.why for alert in stage.alerts)


def test_a_shortage_deletes_the_claim_and_its_pod_goes_elsewhere() -> None:
    """At the next looks: the offering rests by what Karpenter said, nothing is held for it, and the pod runs."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.world.set_faults(Faults(shortage=1.0))
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.set_faults(Faults())
        assert (server.claims(), stage.world.launches) == ([], 0)
        stage.minutes(15)
        assert (stage.nodes("one"), stage.nodes("eight"), stage.world.launches) == (0, 1, 1)
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1


def looks(stage: Stage, server: KarpenterWorld, minutes: int) -> None:
    """So many minutes, in each of which Karpenter acts before we look."""
    for _ in range(minutes):
        stage.wait(60)
        server.reconcile()
        with suppress(Retry):
            stage.tick()


def tries(server: KarpenterWorld) -> Counter[str]:
    """Claims that were posted, by their pools."""
    return Counter(claim["metadata"]["labels"]["pilotlight.dev/pool"] for claim in server.kept)


def holds(stage: Stage) -> list[str]:
    """Pools of nodes that dollars are held for."""
    return [entry.value.terms.pool for entry in HOLD.scan(stage.deps.state, "")]


def test_a_claim_that_is_gone_is_a_refusal_though_no_event_says_so() -> None:
    """Events are forbidden, or expire: the offering rests at the next look, and longer after each refusal."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.events = "never"
        stage.world.set_faults(Faults(shortage=1.0))
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 60)
        assert max(tries(server).values()) <= 7
        (rest,) = [one for one in memory(stage).backoffs if one.offering.startswith("one/")]
        assert ("Karpenter deleted it before its node joined" in rest.why, holds(stage)) == (True, [])


def test_an_event_that_comes_late_mends_the_reason_of_its_own_refusal_alone() -> None:
    """It counts no refusal twice."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.events = "later"
        stage.world.set_faults(Faults(quota_nodes=0))
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 1)
        server.tell()
        looks(stage, server, 1)
        told = {one.offering.split("/")[0]: (one.tries, "quota" in one.why) for one in memory(stage).backoffs}
        assert told == {"one": (1, True), "eight": (1, True)}


def test_a_burst_of_pods_buys_a_refused_offering_once() -> None:
    """Each event looks by itself, between two ticks: the first of them hears that the claim is gone."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.events = "never"
        stage.world.set_faults(Faults(shortage=1.0))
        for name in "abcdef":
            stage.event(stage.submit(name, workload_class="batch", run_s=2 * HOUR))
        assert max(tries(server).values()) == 1


def test_a_claim_that_karpenter_gives_up_unlaunched_is_a_refusal() -> None:
    """After five minutes, by Karpenter itself: its pod goes elsewhere, and each try waits longer."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.slow = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 180)
        assert server.lines(DELETE) == []
        assert tries(server).keys() == {"one", "eight"}
        assert tries(server).total() <= 18


def test_machines_that_never_join_are_launched_once_an_hour_and_paid_until_they_are_gone() -> None:
    """Karpenter gives each up after 15 minutes: nothing is held for it then, and its offering rests for an hour."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=7 * HOUR)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 10)
        assert holds(stage) == ["one"]
        looks(stage, server, 170)
        assert tries(server) == {"one": 3, "eight": 3}
        assert server.lines(DELETE) == []
        assert len(holds(stage)) == len(server.world.nodes)
        (rest,) = [one for one in memory(stage).backoffs if one.offering.startswith("one/")]
        assert "UTC, and paid for" in rest.why


def test_a_machine_that_is_taken_while_it_boots_rests_as_a_refusal_does() -> None:
    """Spot, or a person's hand, takes its claim after some minutes: another is bought within a few more."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=600)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 3)
        (claim,) = server.claims()
        server.give_up(claim)
        looks(stage, server, 1)
        (rest,) = memory(stage).backoffs
        assert rest.until - stage.deps.now() <= timedelta(seconds=90)
        assert holds(stage) == ["eight"]


def test_a_machine_whose_end_is_stuck_is_held_for_until_it_is_gone() -> None:
    """Its claim is being deleted and stays: it bills, and is no room for its pod, which gets another."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=7 * HOUR)) as (stage, server):
        server.draining = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.set_faults(Faults())
        looks(stage, server, 40)
        assert sorted(holds(stage)) == ["eight", "one"]
        assert tries(server) == {"one": 1, "eight": 1}
        (told,) = {alert.why for alert in stage.alerts if alert.kind == "finding-end-stuck"}
        assert "goes on billing: see Karpenter's log" in told
        server.end()
        looks(stage, server, 2)
        assert (holds(stage), server.lines(DELETE)) == (["eight"], [])


def test_a_machine_whose_end_is_stuck_counts_against_a_cap_until_it_is_gone() -> None:
    """One node may be lit: its pod waits for another while the first, which Karpenter deletes, still bills."""
    with on_karpenter(caps=Caps(nodes=1), faults=Faults(boot_s=7 * HOUR)) as (stage, server):
        server.draining = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.set_faults(Faults())
        looks(stage, server, 40)
        assert tries(server) == {"one": 1}
        server.end()
        looks(stage, server, 20)
        assert (sum(tries(server).values()), len(stage.world.running)) == (2, 1)


def test_what_we_give_back_before_it_joins_is_no_refusal() -> None:
    """Its pod is deleted while it boots: the claim is deleted by us, and no offering rests."""
    with on_karpenter(budgets=(BUDGET,), faults=Faults(boot_s=600)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.delete(stage.world.pending["uid-a"])
        looks(stage, server, 4)
        assert (len(server.lines(DELETE)), memory(stage).backoffs) == (1, ())


def memory(stage: Stage) -> Memory:
    """What decisions remember."""
    return ledger.recall(stage.deps.state, stage.deps.name).memory


def waiting(stage: Stage, server: KarpenterWorld) -> str:
    """A batch pod is bought for, and its claim is not launched."""
    server.slow = True
    stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
    server.slow = False
    (name,) = server.stuck
    return name


def test_a_claim_that_waits_for_ever_is_called_off_and_its_pod_goes_elsewhere() -> None:
    """Karpenter, which keeps no deadline, would launch it at any time: after five minutes it is deleted by its name."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.idle = True
        name = waiting(stage, server)
        stage.minutes(4)
        assert [claim["metadata"]["name"] for claim in server.claims()] == [name]
        stage.minutes(11)
        assert server.lines(DELETE) == [f"DELETE /apis/karpenter.sh/v1/nodeclaims/{name}"]
        assert (stage.nodes("one"), stage.nodes("eight"), stage.world.launches) == (0, 1, 1)
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1


def test_a_claim_whose_calling_off_is_refused_is_not_told_as_gone() -> None:
    """Its DELETE is answered 429 twice: it is there, so that its release is told once, when it has gone."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.idle = True
        waiting(stage, server)
        stage.minutes(4)
        server.fail(429, on=DELETE, times=2)
        for _ in range(30):
            stage.wait(60)
            with suppress(Retry):
                stage.tick()
        assert len(server.lines(DELETE)) == 3
        told = [bytes(sent.data) for sent in stage.outbox.sent if sent.topic == "capacity"]
        assert sum(b'"change":"release"' in one for one in told) == 1


def test_one_that_is_launched_while_it_is_called_off_stays() -> None:
    """Its version has changed since the look: it is not deleted, and its pod runs there."""
    pools = {"one": PoolPolicy(instance_type="one", max=1)}
    with on_karpenter(pools=pools, faults=Faults(boot_s=5.0)) as (stage, server):
        server.idle = True
        name = waiting(stage, server)

        def late() -> None:
            server.stuck.clear()
            server.launch()

        server.before(DELETE, late)
        for _ in range(12):
            with suppress(Retry):
                stage.minutes(1)
        assert server.lines(DELETE) != []
        assert [claim["metadata"]["name"] for claim in server.claims()] == [name]
        assert (stage.nodes("one"), stage.world.launches) == (1, 1)


def test_a_machine_that_never_joins_goes_and_its_pod_gets_another() -> None:
    """It bills until it is called off by its instance; then the pod is bought for again."""
    with on_karpenter(faults=Faults(boot_s=7 * HOUR)) as (stage, server):
        server.dead = server.idle = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        (first,) = server.claims()
        stage.world.set_faults(Faults())
        server.dead = False
        stage.minutes(40)
        assert first["metadata"]["name"] not in [claim["metadata"]["name"] for claim in server.claims()]
        assert sum(len(node.gpu_pods) for node in stage.deps.cluster.observe().nodes) == 1


def test_a_node_pool_that_is_opened_is_left_alone() -> None:
    """Somebody lets Karpenter buy by it: nothing is asked for there, and both ways out are said."""
    pools = {"one": PoolPolicy(instance_type="one", max=3)}
    with on_karpenter(pools=pools) as (stage, server):
        server.node_pool("one", limit="8")
        answer = stage.event(stage.submit("a"))
        assert server.lines(POST) == []
        assert "limits nvidia.com/gpu to 0" in str(answer)


def test_claims_that_are_gone_before_their_lost_answers_are_looked_for_rest_as_refusals_do() -> None:
    """Events are forbidden: the first such is asked for once more, then the offering rests longer after each."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.events = "never"
        stage.world.set_faults(Faults(shortage=1.0))
        for _ in range(60):
            server.fail("cut", on=POST)
        with suppress(Retry):
            stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 60)
        assert max(tries(server).values()) <= 7
        (rest,) = [one for one in memory(stage).backoffs if one.offering.startswith("one/")]
        assert "answers are lost" in rest.why


def test_a_lost_answer_whose_refusal_is_heard_counts_once() -> None:
    """Its Event is told before it is given up for lost: the offering rests by the first refusal alone."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.world.set_faults(Faults(shortage=1.0))
        server.fail("cut", on=POST)
        with suppress(Retry):
            stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.set_faults(Faults())
        looks(stage, server, 4)
        (rest,) = [one for one in memory(stage).backoffs if one.offering.startswith("one/")]
        assert (rest.tries, "answers are lost" in rest.why) == (1, False)


class Overtaken:
    """A store in which another writes the memory while a claim is posted: the write after that finds it changed."""

    def __init__(self, inner: State, server: KarpenterWorld) -> None:
        self._inner, self._server, self._posts = inner, server, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Write, but for the first memory after each post."""
        posts = len(self._server.lines(POST))
        if key.startswith("memory/") and posts > self._posts:
            self._posts = posts
            raise Conflict("another version is there")
        return self._inner.put(key, value, if_version=if_version, ttl_s=ttl_s)


def test_claims_whose_poster_was_overtaken_before_it_wrote_their_names_rest_as_refusals_do() -> None:
    """Its step is done and its claim is gone: the offering rests longer after each, from the second on."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        server.events = "never"
        stage.deps = replace(stage.deps, state=Overtaken(stage.deps.state, server))
        stage.world.set_faults(Faults(shortage=1.0))
        with suppress(Retry):
            stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 60)
        assert max(tries(server).values()) <= 7


def test_a_claim_that_may_not_be_read_again_is_taken_for_no_refusal() -> None:
    """Its poster was overtaken, and the right to list claims is gone just as it is looked for by its name."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.deps = replace(stage.deps, state=Overtaken(stage.deps.state, server))
        with suppress(Retry):
            stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        server.fail(403, on="GET .*/nodeclaims", skip=2, times=2)
        looks(stage, server, 1)
        assert (memory(stage).backoffs, len(server.claims())) == ((), 1)
