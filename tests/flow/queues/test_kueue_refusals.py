"""Queued work without money, over a Kueue that follows its own reconcile: its quota goes on, its evictions are few."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest
from api_server import api_server
from played_kueue import Played
from queue_site import KUEUE, TWO_HOURS, QueueSite
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING
from pilotlight.decide.demand.queue_refusals import needs_of, room_of, takes_room
from pilotlight.facts.labels import OPT_IN
from pilotlight.facts.money.budgets import Refusals
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.place.pod_verdicts import PodGroup, Rejected
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.budgets import budget_holds, interruption_records

HOUR = 3600.0


@pytest.fixture
def played() -> Iterator[Played]:
    """An empty cluster with Kueue."""
    with api_server() as server:
        yield Played(server)


def test_the_next_in_the_queue_has_the_quota_of_what_is_refused(played: Played) -> None:
    """One GPU of quota, two teams, the first without money: the other's node is bought at the very next look."""
    site = played.site({"poor": "0.01", "rich": "100"})
    site.submit("poor", "first")
    site.stage.wait(60)
    site.submit("rich", "second")
    played.settle()
    assert (site.stands("poor", "first"), site.stands("rich", "second")) == ("reserved", "waits")
    site.tick()
    assert (site.stands("poor", "first"), site.stands("rich", "second")) == ("waits", "reserved")
    assert "requeueState" not in site.work("poor", "first")["status"]
    site.tick(60)
    assert [pool.desired for pool in site.deps.pools.describe()] == [1]


def test_a_workload_is_evicted_six_times_an_hour_at_most(played: Played) -> None:
    """Alone in its queue it gets its quota again at once: five refusals, then it is out of its queue, and told so."""
    site = played.site({"poor": "0.01"})
    site.submit("poor", "train")
    for _ in range(30):
        played.settle()
        site.tick(60)
    assert (site.stands("poor", "train"), played.evictions("q-poor/train")) == ("out", 6)
    [told] = site.events("poor", "train")
    assert told.startswith("OutOfQueue: team poor: ")
    assert "a person sets spec.active: true" in told


def test_the_head_of_a_strict_queue_is_taken_out_at_once(played: Played) -> None:
    """It would be the head again, of a queue where nothing passes it: what is behind it has the quota."""
    site = played.site({"poor": "0.01", "rich": "100"}, strategy="StrictFIFO")
    site.submit("poor", "head", priority=9)
    site.submit("rich", "behind")
    played.settle()
    site.tick()
    assert (site.stands("poor", "head"), site.stands("rich", "behind")) == ("out", "reserved")
    assert played.evictions("q-poor/head") == 1


@pytest.mark.parametrize("fault", ["cut", 500])
def test_what_it_is_told_survives_a_lost_answer(played: Played, fault: int | str) -> None:
    """The request that takes it out of its queue is answered by nobody: its Event is there once it is out."""
    site = played.site({"poor": "0.01"}, strategy="StrictFIFO")
    site.submit("poor", "train")
    played.settle()
    played.server.fail(fault, on="^PATCH .*/workloads/train$")
    site.tick()
    site.tick(60)
    assert site.stands("poor", "train") == "out"
    assert [each.partition(":")[0] for each in site.events("poor", "train")] == ["OutOfQueue"]


def test_it_is_back_in_its_queue_when_its_budget_has_room(played: Played) -> None:
    """Out while the other's node is all that it holds, untried; back when it is raised, and bought for."""
    site = played.site({"poor": "2.50"}, strategy="StrictFIFO", gpus=2)
    site.submit("poor", "first")
    site.submit("poor", "second")
    played.settle()
    for _ in range(20):
        site.tick(60)
    stand = {site.stands("poor", name): name for name in ("first", "second")}
    assert (sorted(stand), played.evictions(f"q-poor/{stand['out']}")) == (["out", "reserved"], 1)
    site.raise_budget("poor", "10")
    site.tick(60)
    assert site.stands("poor", stand["out"]) == "reserved"
    site.tick(60)
    assert [pool.desired for pool in site.deps.pools.describe()] == [2]
    told = sorted(site.events("poor", stand["out"]))
    assert [each.partition(":")[0] for each in told] == ["BackInQueue", "OutOfQueue"]


@pytest.mark.parametrize(("usd", "room"), [("69", False), ("72", True)])
def test_pods_on_two_pools_have_room_where_their_sum_has(usd: str, room: bool) -> None:
    """$2.13 on one pool and $68.27 on another, told of one: without room for both others have it."""
    budget = Budget(name="t", scope=BudgetScope(team="t"), usd=Decimal(usd), period="day")
    on = Stage(budgets=(budget,), classes={"batch": TWO_HOURS})
    deps, now = on.deps, on.deps.now()
    pods = [on.submit(f"p{gpus}", gpus=gpus, team="t", workload_class="batch") for gpus in (1, 8)]
    told = Rejected(offering="one/one/on-demand", code="budget", why="", usd_per_useful_hour=Decimal(1))
    group = PodGroup(verdict="refused", pods=("p",), uids=("p",), where="", why="", code="budget", rejected=(told,))
    both, small = (needs_of(group, some, deps.offerings, deps.policy, Refusals()) for some in (pods, pods[:1]))
    assert [node.pool for node in both.nodes] == ["one", "eight"]
    left = room_of(deps.policy, budget_holds.balances(deps, now), (), (), deps.offerings, now)
    assert (takes_room(left, both), takes_room(left, small)) == (room, not room)


def test_it_comes_back_where_nothing_else_waits(played: Played) -> None:
    """A look with no queued work still asks whether there is room for what is out of its queue."""
    site = played.site({"poor": "0.01"}, strategy="StrictFIFO")
    site.submit("poor", "train")
    played.settle()
    site.tick()
    site.tick(60)
    assert site.stands("poor", "train") == "out"
    site.raise_budget("poor", "10")
    site.tick(60)
    assert site.stands("poor", "train") == "reserved"


def test_without_the_right_to_take_it_out_it_is_evicted_on(played: Played) -> None:
    """An account that may only answer checks keeps no quota from others; doctor names the right."""
    site = played.site({"poor": "0.01"})
    played.server.allow = lambda access: (
        (access.verb, access.resource, access.subresource) != ("patch", "workloads", "")
    )
    site.submit("poor", "train")
    for _ in range(9):
        played.settle()
        site.tick(60)
    assert (site.stands("poor", "train"), played.evictions("q-poor/train")) == ("reserved", 9)


def test_a_person_may_put_it_back(played: Played) -> None:
    """spec.active: true is enough; taking it out by hand later is that person's, and stays."""
    site = played.site({"poor": "0.01"}, strategy="StrictFIFO")
    site.submit("poor", "train")
    played.settle()
    site.tick()
    policy = msgspec.structs.replace(site.deps.policy, budgets=())
    site.patch("poor", "train", {"spec": {"active": True}})
    played.settle()
    site.deps = replace(site.deps, policy=policy)
    site.tick(60)
    assert site.stands("poor", "train") == "reserved"
    site.patch("poor", "train", {"spec": {"active": False}})
    played.settle()
    site.tick(60)
    site.tick(HOUR)
    assert site.stands("poor", "train") == "out"


def test_another_s_idle_node_is_no_gift(played: Played) -> None:
    """A team of $0.50 a day is not let in to a ready node of $1 an hour that another bought; with money it is, and the
    dollars are its own from then on."""
    site = played.site({"rich": "100", "poor": "0.50"}, gpus=2)
    site.submit("rich", "first")
    played.settle()
    site.tick()
    site.node("n1")
    site.tick(60)
    assert site.stands("rich", "first") == "admitted"
    done = [{"type": "Finished", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": site.now}]
    site.patch("rich", "first", {"status": {"conditions": done, "admission": None}}, "/status")
    site.submit("poor", "second")
    played.settle()
    site.tick(30)
    assert site.stands("poor", "second") != "admitted"
    assert played.evictions("q-poor/second") == 1
    assert held(site, "poor") == 0
    site.raise_budget("poor", "50")
    site.tick(30)
    assert site.stands("poor", "second") == "admitted"
    assert held(site, "poor") > 2
    site.pod("poor", "second", "n1")
    before = held(site, "rich")
    site.tick(60)
    assert (held(site, "poor") > 2, held(site, "rich") < before) == (True, True)


def test_what_an_earlier_answer_pinned_is_taken_back(played: Played) -> None:
    """Work that was let in and evicted is pinned to no node while it waits for another."""
    site = reserved_with_pins(played)
    site.tick(60)
    [check] = site.work("rich", "train")["status"]["admissionChecks"]
    assert (check["state"], check.get("podSetUpdates")) == ("Pending", None)


def test_nothing_is_bought_until_another_s_check_is_ready(played: Played) -> None:
    """Another's check is answered in an hour: no node stands idle and goes before it, and no work is let in without."""
    site = played.site({"rich": "100"})
    checks = [{"name": "other"}, {"name": "pilotlight"}]
    spec = {"spec": {"admissionChecksStrategy": {"admissionChecks": checks}}}
    site.api.ask("PATCH", f"{KUEUE}/clusterqueues/q", NOTHING, spec, MERGE_PATCH)
    site.submit("rich", "train")
    played.settle()
    for _ in range(60):
        site.tick(60)
    assert (site.stands("rich", "train"), held(site, "rich")) == ("reserved", Decimal(0))
    [other, ours] = site.work("rich", "train")["status"]["admissionChecks"]
    site.patch("rich", "train", {"status": {"admissionChecks": [{**other, "state": "Ready"}, ours]}}, "/status")
    played.settle()
    assert site.stands("rich", "train") == "reserved"
    site.tick(60)
    assert ([pool.desired for pool in site.deps.pools.describe()], held(site, "rich") > 2) == ([1], True)


def reserved_with_pins(played: Played) -> QueueSite:
    """Let in, evicted, and with its quota again; what was applied beside the state stays, as on a real server."""
    site = played.site({"rich": "100"})
    site.submit("rich", "train")
    played.settle()
    check = site.work("rich", "train")["status"]["admissionChecks"][0]
    updates = [{"name": "main", "nodeSelector": {"a": "b"}}]
    site.patch("rich", "train", {"status": {"admissionChecks": [{**check, "podSetUpdates": updates}]}}, "/status")
    return site


def held(site: QueueSite, team: str) -> Decimal:
    """Settled and held in a team's budget."""
    return sum((b.total for b in site.balances if b.meter.budget.name == team), Decimal(0))


@pytest.mark.parametrize("kept", [False, True], ids=["alone", "kept by a disruption budget"])
def test_work_whose_budget_stops_its_pod_goes_back_to_its_queue(played: Played, kept: bool) -> None:
    """Its Job would make another pod, which runs wherever there is room: it is refused in the look that evicts, and not
    before, where a disruption budget keeps the pod for a while."""
    stops = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR, may_move=("hard-cap",), hold=HOUR)
    site = played.site({"poor": "0.50"}, batch=stops)
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    site.submit("poor", "train", owner=job)
    played.settle()
    site.tick()
    site.stage.wait(240)
    (machine,) = (node.instance for node in site.stage.deps.cluster.observe().nodes if node.ready)
    site.node(machine)
    site.tick()
    assert site.stands("poor", "train") == "admitted"
    site.pod("poor", "train-x", machine, owner=job)
    if kept:
        budget = {"minAvailable": 1, "selector": {"matchLabels": {OPT_IN[0]: OPT_IN[1]}}}
        where = f"/apis/policy/v1/namespaces/{site.space('poor')}/poddisruptionbudgets"
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": budget}
        site.api.ask("POST", where, NOTHING, body, JSON)
    stood = [(site.tick(10) and site.stands("poor", "train"), _evicted(site, machine)) for _ in range(180)]
    assert stood[0] == ("admitted", False)
    assert set(stood) <= {("admitted", False), ("reserved", True), ("out", True)}, "a Job whose pod was evicted goes on"
    assert played.evictions("q-poor/train") == 6
    assert site.stands("poor", "train") == "out"


def _evicted(site: QueueSite, machine: str) -> bool:
    found = interruption_records.find(site.deps, machine)
    return bool(found and found.found.evicted)
