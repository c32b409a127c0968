"""GKE's pools where answers lack something: a group that is gone, a field that is absent, an instance told twice."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from gke_answers import told
from gke_project import Project
from google_documents import Call
from small_cloud import START

from pilotlight.adapters.pools.gke.refusals import Problem, Problems, Reason, error_of, gravest, reason_of
from pilotlight.errors import (
    BadRequest,
    Busy,
    Denied,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
)


@pytest.mark.parametrize(("status", "error"), [(404, BadRequest), (403, Forbidden)])
def test_a_group_that_cannot_be_read_costs_its_pool_alone(here: Project, status: int, error: type[Denied]) -> None:
    """Deleted beside us, or not ours to see: it is named, closed and keeps what it may have; the others go on."""
    here.pools.grow("eight", 1)
    (node,) = here.gke.world.nodes
    here.gke.refuses["eight"] = status
    lost = here.pool("eight")
    assert lost.rules is not None
    assert (
        "group gke-prod-eight-pool-0a1b2c3d-grp in europe-west4-a of node pool eight-pool cannot be read" in lost.unread
    )
    assert (lost.rules.closed, lost.desired, lost.booting) == (lost.unread, 0, ())
    assert lost.hidden == (status == 403)
    for ask in (lambda: here.pools.grow("eight", 2), lambda: here.pools.release("eight", node)):
        with pytest.raises((error, BadRequest), match="cannot be read"):
            ask()
    assert here.pools.instance("eight", node) is None
    assert here.pools.grow("one", 1).desired == 1
    assert here.pool("one").unread == ""


def test_a_zone_whose_group_is_gone_leaves_the_pools_other_zone(here: Project) -> None:
    """Nothing is bought there, and what the other group has is seen and goes back."""
    here.gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
    here.pools.grow("one", 1, "europe-west4-b")
    (name,) = here.gke.world.nodes
    here.gke.zones["one"] = ["europe-west4-b"]
    urls = [f"https://www.googleapis.com/compute/v1/projects/acme-ml/zones/europe-west4-{zone}/"
            f"instanceGroupManagers/{here.gke.group('one')}" for zone in "ab"]  # fmt: skip
    here.gke.extra["one"] = {"instanceGroupUrls": urls}
    state = here.pool()
    assert state.rules is not None
    assert (state.desired, [one.instance for one in state.booting], state.rules.gives) == (1, [name], (name,))
    assert "in europe-west4-a" in state.unread
    here.pools.release("one", name)
    assert here.pool().desired == 0


@pytest.mark.parametrize("urls", [[], ["https://x/projects/p/regions/r/instanceGroupManagers/g"]])
def test_a_pool_whose_groups_are_not_told_is_not_empty(here: Project, urls: list[str]) -> None:
    """What it has is not known: nothing is bought there, and the other pools go on."""
    here.gke.extra["one"] = {"instanceGroupUrls": urls}
    state = here.pool()
    assert state.rules is not None
    assert "names no group of a zone for node pool one-pool" in state.unread == state.rules.closed
    assert here.pool("eight").unread == ""


@pytest.mark.parametrize("size", [2**31 - 1, 50_001, -1])
def test_a_size_that_no_group_has_costs_its_pool_alone(here: Project, size: int) -> None:
    """A plan has a place for each node: billions of them would end the process, and every other pool's look."""
    here.gke.sizes["one"] = size
    state = here.pool()
    assert f"its size is {size}, which no group has" in state.unread
    assert (state.desired, state.hidden, here.pool("eight").unread) == (0, True, "")


def test_rights_that_are_gone_altogether_are_an_error(here: Project) -> None:
    """No group can be read: that is no state of its pools."""
    here.gke.refuses = dict.fromkeys(here.gke.world.fleet.pools, 403)
    with pytest.raises(Forbidden, match="cannot be read"):
        here.pools.describe()


def test_an_instance_that_two_pages_tell_is_one(here: Project) -> None:
    """A list that shifts between pages: it counts once, and what it does not tell may be there all the same."""
    here.pools.grow("one", 3)
    here.gke.shifts = 1_000
    missed, *told_ = here.gke.world.nodes
    state = here.pool()
    assert (state.desired, [one.instance for one in state.booting]) == (3, told_)
    for ask in (here.pools.instance, here.pools.release):
        with pytest.raises(Busy, match="has size 3 and lists 2 instances"):
            ask("one", missed)
    assert here.sent("deleteInstances") == []


@pytest.mark.parametrize("readings", [1, 2])
def test_a_list_that_changes_while_it_is_read_is_read_again(here: Project, readings: int) -> None:
    """An instance that a shift between two pages hides would be metered as gone: the next reading tells it."""
    here.pools.grow("one", 3)
    here.gke.world.advance(60)
    here.gke.shifts = readings
    state = here.pool()
    assert [one.instance for one in state.booting] == [*here.gke.world.nodes]
    assert [one.requested_at for one in state.booting] == [START] * 3
    assert (state.lagging, here.gke.shifts) == (0, 0)


EXCLUSION = {"startTime": "2026-06-01T00:00:00Z", "maintenanceExclusionOptions": {
    "scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"}}  # fmt: skip


def test_an_exclusion_without_an_end_goes_on(here: Project) -> None:
    """Until the end of support, says its document: auto-repair is kept off all the while, from its start on."""
    here.gke.extra["one"] = {"management": {"autoRepair": True}}
    for start, closed in (("2026-06-01T00:00:00Z", False), ("2027-06-01T00:00:00Z", True)):
        window = {"maintenanceExclusions": {"eos": {**EXCLUSION, "startTime": start}}}
        here.gke.cluster = {"maintenancePolicy": {"window": window}}
        rules = here.pool().rules
        assert rules is not None
        assert bool(rules.closed) == closed


def without_each(value: Any) -> Iterator[tuple[str, Any]]:
    """A value without each of its fields in turn, at any depth, and what was left out."""
    if isinstance(value, dict):
        for key in value:
            yield key, {name: one for name, one in value.items() if name != key}
            yield from ((f"{key}.{at}", {**value, key: less}) for at, less in without_each(value[key]))
    elif isinstance(value, list):
        for n, one in enumerate(value):
            yield from ((f"{n}.{at}", [*value[:n], less, *value[n + 1 :]]) for at, less in without_each(one))


METHODS = ("clusters_get", "instanceGroupManagers_get", "listManagedInstances", "listErrors", "instances_list",
           "reservations_list")  # fmt: skip
ON_RESERVATIONS = {
    "config": {
        "machineType": "one",
        "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
        "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["r"]},
    },
    "autoscaling": {"enabled": False},
    "updateInfo": {"blueGreenInfo": {"phase": "PHASE_UNSPECIFIED"}},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_field_that_an_answer_lacks_costs_one_pool_at_most(
    here: Project, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Each field of each answer is left out in turn: nothing raises, and the other pool is read as it is."""
    window = {"maintenanceExclusions": {"eos": {**EXCLUSION, "endTime": "2027-01-01T00:00:00Z"}}}
    here.gke.cluster, here.gke.extra["one"] = {"maintenancePolicy": {"window": window}}, ON_RESERVATIONS
    here.gke.reserve("r", 5)
    here.pools.grow("one", 2)
    here.pools.grow("eight", 1)
    here.gke.slow = True
    here.pools.grow("one", 3)
    here.gke.told = [told(name, "QUOTA_EXCEEDED", START) for name in here.gke.unmade]
    whole = {state.name: state for state in here.pools.describe()}
    assert (whole["one"].desired, len(whole["one"].refused), len(whole["one"].paid)) == (3, 1, 1)
    act = next(name for name in dir(here.gke) if name.startswith("_co") and name.endswith(method))
    real, lacks, every = getattr(here.gke, act), "", dict[str, Any]()

    def less(call: Call, asked: Any) -> Any:
        answer = real(call, asked)
        if "eight" in str(call.path):
            return answer
        found = dict(without_each(answer))
        every.update(found)
        return found.get(lacks, answer)

    monkeypatch.setattr(here.gke, act, less)
    here.pools.describe()
    assert every
    for lacks in sorted(every):
        found = {state.name: state for state in here.pools.describe()}
        if not (method == "clusters_get" and (lacks == "nodePools" or lacks.startswith("nodePools.2"))):
            assert found["eight"] == whole["eight"], lacks


FIRST = Problem(code="RESOURCE_OPERATION_FAILED", message="The operation failed")
STOCK_OUT = Problem(code="ZONE_RESOURCE_POOL_EXHAUSTED", message="none")
QUOTA = Problem(code="QUOTA_EXCEEDED", message="no more")
BARRED = Problem(code="PERMISSIONS_ERROR", message="no")


@pytest.mark.parametrize(
    ("errors", "grave", "raised"),
    [
        ((FIRST, STOCK_OUT), STOCK_OUT, NoCapacity),
        ((STOCK_OUT, QUOTA, FIRST), QUOTA, QuotaExceeded),
        ((FIRST, BARRED), BARRED, Forbidden),
        ((BARRED, STOCK_OUT), STOCK_OUT, NoCapacity),
        ((FIRST,), FIRST, BadRequest),
    ],
)
def test_all_errors_of_an_attempt_are_read_and_the_gravest_counts(
    here: Project, errors: tuple[Problem, ...], grave: Problem, raised: type[PilotlightError]
) -> None:
    """A quota before a stock-out, that before a right, that before any other: of an attempt and of an operation."""
    assert gravest(errors) == grave
    assert type(error_of("x", Problems(errors))) is raised
    name = here.short()
    here.gke.codes = [{"code": one.code, "message": one.message} for one in errors]
    refusal = here.pool().refusal
    assert refusal is not None
    assert refusal.identity == f"{name}/{grave.code}"


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        ("OPERATION_FAILED", "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region europe-west4.", "quota"),
        ("UNKNOWN", "Insufficient regional quota to satisfy request: resource \"GPUS\"", "quota"),
        ("UNKNOWN", "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request.",
         "no-capacity"),
        ("GCE_STOCKOUT", "", "no-capacity"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED", "try another zone; your quota is not exceeded", "no-capacity"),
        ("INVALID", "a quota project is needed", "other"),
    ],
)  # fmt: skip
def test_words_say_what_a_general_code_does_not(code: str, message: str, reason: Reason) -> None:
    """Of quotas and stock-outs; a code that says it is believed first."""
    assert reason_of(code, message) == reason


def test_the_gravest_of_the_newest_moment_of_a_list_counts(here: Project) -> None:
    """Page by page; errors of an earlier attempt are over."""
    here.gke.slow = True
    here.pools.grow("one", 1, token="step-1")
    (name,) = here.gke.unmade
    later = START + timedelta(minutes=3)
    here.gke.told = [
        told(name, "QUOTA_EXCEEDED", START),
        told(name, "RESOURCE_OPERATION_FAILED", later),
        told(name, "ZONE_RESOURCE_POOL_EXHAUSTED", later),
    ]
    for here.gke.paged in (False, True):
        refusal = here.pool().refusal
        assert refusal is not None
        assert refusal.reason == "no-capacity"


def test_a_group_whose_size_compute_engines_autoscaler_sets_is_closed(here: Project) -> None:
    """It chooses which instances go: nothing is bought beside it, ours goes back by its name, its own stays."""
    here.pools.grow("one", 1)
    (ours,) = here.gke.world.nodes
    here.gke.another_hand("one")
    here.gke.autoscalers["one"] = "gpu-scaler"
    rules = here.pool().rules
    assert rules is not None
    assert "autoscaler gpu-scaler of Compute Engine sets the size" in rules.closed
    assert rules.gives == (ours,)
    with pytest.raises(BadRequest, match="stop-autoscaling"):
        here.pools.grow("one", 3)
    here.pools.release("one", ours)


@pytest.mark.parametrize(("status", "closed", "gives"), [
    ("RUNNING", False, 0), ("RECONCILING", False, 0), ("DEGRADED", False, 0), ("", False, 0),
    ("PROVISIONING", True, 0), ("STOPPING", True, 0), ("ERROR", True, 1),
])  # fmt: skip
def test_nothing_is_bought_in_a_cluster_that_goes(here: Project, status: str, closed: bool, gives: int) -> None:
    """It is deleted, or will be by GKE ("ERROR": "It will be automatically deleted"): its pools say so."""
    here.pools.grow("one", 1)
    here.gke.cluster = {"status": status} if status else {}
    rules = here.pool().rules
    assert rules is not None
    assert (bool(rules.closed), len(rules.gives)) == (closed, gives)
    assert (f"({status})" in rules.closed) == closed


def test_an_operation_that_failed_by_its_status_alone_is_no_success(here: Project) -> None:
    """DONE with an HTTP status and no list of errors."""
    here.gke.ends["createInstances"] = []
    here.gke.fails_with = 403, "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region europe-west4."
    with pytest.raises(QuotaExceeded, match="NVIDIA_L4_GPUS"):
        here.pools.grow("one", 1)


def test_a_list_without_an_end_costs_its_pool_alone(here: Project) -> None:
    """Each page leads on to itself: it is read within a bound, and said."""
    here.pools.grow("one", 3)
    here.gke.paged = here.gke.endless = True
    state = here.pool()
    assert "has no end" in state.unread
    assert (state.rules is not None and state.rules.silent, here.pool("eight").unread) == (True, "")


def test_a_shared_reservation_whose_project_is_gone_costs_its_own_purchase_alone(here: Project) -> None:
    """Its affinity names it: nothing is known as paid, nothing is bought on it, and the other pools go on."""
    affinity = {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["projects/gone/reservations/r"]}
    here.gke.extra["one"] = {"config": {"machineType": "one", "reservationAffinity": affinity}}
    here.gke.gone_projects.add("gone")
    assert (here.pool().paid, here.pool("eight").desired) == ((), 0)
    with pytest.raises(BadRequest, match="gone"):
        here.pools.grow("one", 1)
