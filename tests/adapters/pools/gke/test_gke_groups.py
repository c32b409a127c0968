"""GKE's groups as they are read: what is not made yet, tries for ever, is another hand's, or is refused."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from gke_answers import told
from gke_project import Project
from google_documents import CONTAINER, document
from small_cloud import START

from pilotlight.errors import (
    BadRequest,
    Busy,
)
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.world.faults import Faults


def test_done_is_not_made(here: Project) -> None:
    """The operation is DONE and nothing is there: it counts, as one on its way of no age."""
    here.gke.slow = True
    here.pools.grow("one", 1)
    here.gke.world.advance(600)
    state = here.pool()
    assert (state.desired, here.gke.world.launches) == (1, 0)
    assert [one.requested_at for one in state.booting] == [START + timedelta(seconds=600)]
    assert (state.refused, state.owed, state.refusal) == ((), 0, None)


def test_done_is_not_even_listed(here: Project) -> None:
    """Where the list lags behind the size, the size counts."""
    here.gke.slow = here.gke.hidden = True
    here.pools.grow("one", 2)
    assert (here.pool().desired, here.pool().booting) == (2, ())
    name = next(iter(here.gke.unmade))
    for ask in (here.pools.release, here.pools.instance):
        with pytest.raises(Busy, match="has size 2 and lists 0 instances"):
            ask("one", name)
    assert here.pools.grow("one", 2).desired == 2
    assert len(here.sent("createInstances")) == 1


def test_an_instance_that_its_group_deletes_is_told_beside_its_size(here: Project) -> None:
    """Its node may be seen for minutes, and hides none that boots."""
    here.pools.grow("one", 1)
    here.gke.going["old"] = "one", "europe-west4-a"
    state = here.pool()
    assert (state.desired, len(state.booting), state.leaves) == (1, 1, ("old",))


def test_what_is_to_come_again_and_finds_no_room_is_refused_and_called_off(here: Project) -> None:
    """Spot that was taken is recreated for ever: a stock-out refuses it as any, and its name is deleted."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.world.set_faults(Faults(shortage=1.0))
    here.gke.recreate(name)
    state = here.pool()
    assert (state.desired, state.refused, state.booting) == (1, (name,), ())
    assert state.refusal is not None
    assert state.refusal.reason == "no-capacity"
    here.pools.release("one", name)
    assert (here.pool().desired, here.gke.tried) == (0, {})


@pytest.mark.parametrize(("action", "refused"), [("CREATING", 0), ("RECREATING", 1)])
def test_an_error_of_its_creation_refuses_nothing_that_is_recreated(here: Project, action: str, refused: int) -> None:
    """It was made in the end: of one that comes again only errors of that count."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.recreate(name)
    here.gke.world.terminate(name, "taken", evict=True)
    here.gke.unmade[name] = "one", "europe-west4-a"
    here.gke.world.fleet.desired["one"] = 1
    here.gke.told = [told(name, "ZONE_RESOURCE_POOL_EXHAUSTED", START, action)]
    assert len(here.pool().refused) == refused


def test_an_instance_that_could_not_be_made_is_refused_by_its_name(here: Project) -> None:
    """The group goes on trying for it: it is told apart, with Google's own words, until it is called off."""
    name = here.short()
    state = here.pool()
    assert (state.desired, state.refused, state.booting, state.owed) == (1, (name,), (), 0)
    assert state.refusal is not None
    assert (state.refusal.reason, state.refusal.zone) == ("no-capacity", "europe-west4-a")
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in state.refusal.message
    here.pools.release("one", name)
    here.gke.try_again()
    assert (here.pool().desired, here.gke.world.launches) == (0, 0)


def test_one_that_comes_hours_later_is_an_instance_as_any(here: Project) -> None:
    """A stock-out that nobody called off: the group makes it, and it is refused no longer."""
    name = here.short()
    here.gke.world.advance(3 * 3600)
    here.gke.try_again()
    state = here.pool()
    assert (state.refused, state.refusal, [one.instance for one in state.booting]) == ((), None, [name])


def test_an_old_error_of_an_instance_that_is_there_says_nothing(here: Project) -> None:
    """A stale last attempt: it runs all the same."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.stale[name] = [{"code": "QUOTA_EXCEEDED", "message": "no more"}]
    for _ in range(2):
        assert (here.pool().refused, here.pool().refusal) == ((), None)
        here.gke.world.advance(200)


def test_errors_of_others_are_not_a_new_instances(here: Project) -> None:
    """What listErrors still tells of earlier instances refuses none that is asked for now."""
    here.gke.slow = True
    here.pools.grow("one", 1)
    here.gke.told = [told("gke-prod-one-pool-0a1b2c3d-0ld0ld00", "ZONE_RESOURCE_POOL_EXHAUSTED", START)]
    assert (here.pool().refused, here.pool().refusal) == ((), None)


def test_the_last_error_of_a_list_refuses_one_whose_attempt_is_under_way(here: Project) -> None:
    """Between two attempts its last one tells nothing, and the list does: the newest of them."""
    here.gke.slow = True
    here.pools.grow("one", 1, token="step-1")
    (name,) = here.gke.unmade
    later = START + timedelta(minutes=3)
    here.gke.told = [told(name, "QUOTA_EXCEEDED", later), told(name, "ZONE_RESOURCE_POOL_EXHAUSTED", START)]
    state = here.pool()
    assert state.refusal is not None
    assert (state.refused, state.refusal.reason) == ((name,), "quota")


def test_a_pool_in_two_colours_is_left_alone(here: Project) -> None:
    """Blue and green are both listed while GKE upgrades: it counts the nodes of both, and nothing is asked."""
    here.pools.grow("one", 1)
    here.gke.doubled.add("one")
    state = here.pool()
    assert state.rules is not None
    assert "NODE_POOL_SOAKING" in state.rules.closed
    assert state.desired == 1
    (name,) = here.gke.world.nodes
    for change in (lambda: here.pools.grow("one", 2), lambda: here.pools.release("one", name)):
        with pytest.raises(Busy, match="GKE works on node pool one-pool"):
            change()
    assert len(here.gke.changes()) == 1


def test_a_name_that_is_used_again_has_the_age_of_what_is_there(here: Project) -> None:
    """A repair makes another instance by the same name: it is as young as it is."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.world.advance(7200)
    here.gke.recreate(name)
    here.gke.world.advance(7800)
    (one,) = here.pool().booting
    seen = here.pools.instance("one", name)
    assert seen is not None
    assert (one.instance, one.requested_at, seen.created_at) == (name, *[START + timedelta(hours=2)] * 2)


def test_an_instance_that_a_person_took_out_of_its_group_is_not_told_gone(here: Project) -> None:
    """``abandonInstances``: it runs on and costs, so a release says how it ends; once it is gone it is gone."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.abandoned.add(name)
    assert here.pool().desired == 0
    assert here.pools.instance("one", name) == InstanceState(there=True, runs=True)
    with pytest.raises(BadRequest, match=f"gcloud compute instances delete {name} --zone europe-west4-a"):
        here.pools.release("one", name)
    here.gke.world.terminate(name, "by a person", evict=True)
    here.pools.release("one", name)
    assert here.pools.instance("one", name) == InstanceState(there=False)
    assert here.gke.deleted() == []


def test_what_another_hand_made_counts_and_is_not_called_off(here: Project) -> None:
    """A pool that grows beside us: its size is what it is, and what another waits for is owed, not ours to delete."""
    here.gke.another_hand("one")
    assert here.pools.grow("one", 1).desired == 1
    here.gke.world.set_faults(Faults(shortage=1.0))
    here.gke.another_hand("one")
    state = here.pool()
    assert (state.desired, state.owed, state.refused) == (2, 1, ())
    assert here.gke.changes() == []


def test_a_resize_request_that_is_rolled_back_leaves_what_was_there(here: Project) -> None:
    """Another hand's request asks for three, each tried once, and takes one that was made with it: ours alone stays,
    and what its group still lists of it while it goes is none."""
    here.pools.grow("one", 1)
    (ours,) = here.gke.world.nodes
    here.gke.resize_request("one", 1)
    here.gke.make()
    here.gke.resize_request("one", 2)
    state = here.pool()
    assert (state.desired, len(state.booting), state.refused, state.owed) == (4, 4, (), 0)
    assert [one.unmade for one in state.booting] == [False, False, True, True]  # A name alone costs nothing.
    here.gke.rolls_back()
    state = here.pool()
    assert (state.desired, [one.instance for one in state.booting]) == (1, [ours])
    assert here.sent("deleteInstances") == []


@pytest.mark.parametrize("paged", [True, False], ids=["page by page", "all at once, whatever is asked for"])
def test_every_instance_is_read(here: Project, paged: bool) -> None:
    """A group that is PAGELESS ignores the size of a page; the others lead on by tokens."""
    here.gke.paged = paged
    here.pools.grow("one", 5)
    here.gke.world.advance(60)
    assert [one.requested_at for one in here.pool().booting] == [START] * 5


EXCLUDED = {
    "window": {
        "maintenanceExclusions": {
            "jobs": {
                "startTime": "2026-06-01T00:00:00Z",
                "endTime": "2026-12-01T00:00:00Z",
                "maintenanceExclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
            }
        }
    }
}
REPAIRS = {"management": {"autoRepair": True}}
CLOSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "autoscaling is on": ({"autoscaling": {"enabled": True, "maxNodeCount": 3}}, {}, "--no-enable-autoscaling"),
    "Autopilot": ({}, {"autopilot": {"enabled": True}}, "use a Standard cluster"),
    "auto-provisioned": ({"autoscaling": {"autoprovisioned": True}}, {}, "create one by hand"),
    "of a ComputeClass": ({"config": {"labels": {"cloud.google.com/compute-class": "gpu"}}}, {}, "a ComputeClass made"),
    "queued provisioning": ({"queuedProvisioning": {"enabled": True}}, {}, "takes queued provisioning alone"),
    "flex-start": ({"config": {"flexStart": True}}, {}, "no static size"),
    "auto-repair": (REPAIRS, {}, "--no-enable-autorepair"),
    "auto-repair, and an exclusion that ended": (
        REPAIRS, {"maintenancePolicy": json.loads(json.dumps(EXCLUDED).replace("2026-12", "2026-06"))}, "autorepair",
    ),
    "auto-repair, and an exclusion of minor upgrades alone": (
        REPAIRS, {"maintenancePolicy": json.loads(json.dumps(EXCLUDED).replace("_OR_NODE_UPGRADES", "_UPGRADES"))},
        "autorepair",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "kind"), [
    ({}, "on-demand"), ({"spot": True}, "spot"), ({"preemptible": True}, "spot"), ({"flexStart": True}, "flex-start"),
])  # fmt: skip
def test_a_pool_tells_how_its_nodes_are_paid_for(here: Project, config: dict[str, Any], kind: str) -> None:
    """Its dollars are held by the policy's word, which doctor compares with this one."""
    here.gke.extra["one"] = {"config": config}
    rules = here.pool("one").rules
    assert rules is not None
    assert rules.kind == kind


@pytest.mark.parametrize(("pool", "cluster", "says"), CLOSED.values(), ids=CLOSED)
def test_a_pool_that_another_keeps_is_refused_with_the_way_out(
    here: Project, pool: dict[str, Any], cluster: dict[str, Any], says: str
) -> None:
    """Nothing is bought, and the look says why before anything is planned."""
    here.gke.extra["one"], here.gke.cluster = pool, cluster
    rules = here.pool().rules
    assert rules is not None
    assert says in rules.closed
    with pytest.raises(BadRequest, match=re.escape(says)):
        here.pools.grow("one", 1)
    assert here.gke.changes() == []


@pytest.mark.parametrize(("pool", "cluster", "says"), CLOSED.values(), ids=CLOSED)
def test_what_we_asked_for_goes_back_in_a_pool_that_closed_since(
    here: Project, pool: dict[str, Any], cluster: dict[str, Any], says: str
) -> None:
    """By its name, whatever closed the pool; where another makes nodes there too, one of the group's own names stays.
    Nobody repairs by buying, nor makes nodes of the queue but for us: there all go."""
    here.pools.grow("one", 1)
    (ours,) = here.gke.world.nodes
    here.gke.another_hand("one")
    (other,) = set(here.gke.world.nodes) - {ours}
    here.gke.extra["one"], here.gke.cluster = pool, cluster
    shared = says not in ("--no-enable-autorepair", "autorepair", "takes queued provisioning alone")
    rules = here.pool().rules
    assert rules is not None
    assert set(rules.gives) == ({ours} if shared else {ours, other})
    if shared:
        with pytest.raises(BadRequest, match=re.escape(says)):
            here.pools.release("one", other)
    here.pools.release("one", ours)
    assert list(here.gke.world.nodes) == [other]


def test_an_instance_of_limited_run_duration_says_when_it_ends(here: Project) -> None:
    """Flex-start's seven days, or the pool's own maxRunDuration: its group tells the moment, and it goes then."""
    here.pools.grow("one", 2)
    first, second = here.gke.world.nodes
    here.gke.until[first] = START + timedelta(days=7)
    told, other = (here.pools.instance("one", name) for name in (first, second))
    assert told is not None
    assert other is not None
    assert (told.going, told.deadline) == (True, START + timedelta(days=7))
    assert (other.going, other.deadline) == (None, None)


STATUSES = document(CONTAINER)["schemas"]["NodePool"]["properties"]["status"]["enum"]


@pytest.mark.parametrize("status", STATUSES)
def test_a_pool_that_gke_works_on_is_waited_for(here: Project, status: str) -> None:
    """By each status of Google's document: two are steady, ERROR is for a person; in any other nothing is bought or
    given back, and the look says that it passes."""
    here.pools.grow("one", 1)
    (node,) = here.gke.world.nodes
    here.gke.extra["one"] = {"status": status}
    rules = here.pool().rules
    assert rules is not None
    if status in ("RUNNING", "RUNNING_WITH_ERROR"):
        assert rules.closed == ""
        here.pools.release("one", node)
        return
    if status == "ERROR":
        assert (rules.closed.partition(":")[0], rules.gives) == ("node pool one-pool has status ERROR", (node,))
        with pytest.raises(BadRequest, match="has status ERROR"):
            here.pools.grow("one", 2)
        here.pools.release("one", node)
        return
    assert rules.gives == ()
    assert f"({status}): nothing is asked of it until that is over" in rules.closed
    for ask in (lambda: here.pools.grow("one", 2), lambda: here.pools.release("one", node)):
        with pytest.raises(Busy, match=f"GKE works on node pool one-pool .{status}"):
            ask()
    assert len(here.gke.changes()) == 1


def test_a_pool_that_is_broken_is_told_in_gkes_own_words(here: Project) -> None:
    """Its conditions say why; of one without any a person has to look."""
    said = {"canonicalCode": "RESOURCE_EXHAUSTED", "message": "Quota 'NVIDIA_L4_GPUS'\n exceeded"}
    for conditions, words in (([said], "Quota 'NVIDIA_L4_GPUS' exceeded; mend"), ([], "look into its status message;")):
        here.gke.extra["one"] = {"status": "ERROR", "conditions": conditions}
        rules = here.pool("one").rules
        assert rules is not None
        assert words in rules.closed


def test_auto_repair_within_a_maintenance_exclusion_is_taken(here: Project) -> None:
    """GKE leaves nodes as they are until it ends."""
    here.gke.extra["one"], here.gke.cluster = REPAIRS, {"maintenancePolicy": EXCLUDED}
    assert here.pools.grow("one", 1).desired == 1
