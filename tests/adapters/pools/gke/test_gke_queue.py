"""Node pools of queued provisioning: what is asked of GKE's queue, and what each condition of a request means."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from api_server import Access
from gke_queue import QUEUED, QueueSite, queue_site
from small_cloud import world

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.adapters.pools.gke.own_names import own_name
from pilotlight.errors import BadRequest, Busy, Conflict, Forbidden, PilotlightError, QuotaExceeded, Unavailable, Unsure
from pilotlight.facts.labels import POOL
from pilotlight.facts.nodes.pool_state import InstanceState


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueSite]:
    """A project with a queue, whose client is not patient."""
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))
    with queue_site(world()) as made:
        yield made


def asked(here: QueueSite, nodes: int = 2, token: str = "step-1") -> str:
    """The name of a request for so many nodes."""
    here.pools.grow("one", nodes, token=token)
    return str(here.requests()[-1]["metadata"]["name"])


def test_all_nodes_of_a_step_are_one_request_by_its_name(here: QueueSite) -> None:
    """One ProvisioningRequest of two pods, each as large as a node; no instance is made at Compute Engine."""
    name = asked(here)
    (one,), (template,) = here.requests(), here.posted("podtemplates")
    assert name.startswith("one-pool-")
    assert one["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert one["spec"]["podSets"] == [{"count": 2, "podTemplateRef": {"name": template["metadata"]["name"]}}]
    spec = template["template"]["spec"]
    assert spec["nodeSelector"] == {"cloud.google.com/gke-nodepool": "one-pool"}
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert (here.gke.changes(), here.gke.world.launches) == ([], 0)


def test_what_is_posted_is_by_the_crd_and_the_api_of_pods(here: QueueSite, shelf: Path) -> None:
    """The request by the schema of autoscaling.x-k8s.io/v1, the template by that of its built-in kind."""
    asked(here)
    crd = shelf / "contracts/crds/autoscaler/autoscaling.x-k8s.io_provisioningrequests.yaml"
    versions = next(yaml.safe_load_all(crd.read_text()))["spec"]["versions"]
    (schema,) = [each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == "v1"]
    (request,), (template,) = here.posted("provisioningrequests"), here.posted("podtemplates")
    jsonschema.validate(request, schema)
    kubernetes_validate.validate(template, "1.34", strict=True)


def test_a_step_that_arrives_twice_asks_once(here: QueueSite) -> None:
    """While its nodes wait they count, so nothing more is asked; and a request of that name was made by the step."""
    name = asked(here)
    here.pools.grow("one", 2, token="step-1")
    assert len(here.posted("provisioningrequests")) == 1
    here.server.fail("reset", on="POST .*/provisioningrequests")
    with pytest.raises(PilotlightError):
        here.pools.grow("one", 3, token="step-2")
    here.pools.grow("one", 3, token="step-2")
    names = {one["metadata"]["name"] for one in here.requests()}
    assert (len(names), name in names, here.pool().desired) == (2, True, 3)


@pytest.mark.parametrize("labelled", [True, False])
def test_requests_of_a_pool_whose_name_goes_on_are_that_pools_alone(here: QueueSite, labelled: bool) -> None:
    """Of node pools ``one-pool`` and ``one-pool-2`` each counts its own: the other's is no node of the first."""
    asked(here)
    (own,), store = here.requests(), here.server.store
    labels = {POOL: "one-pool-2"} if labelled else {}
    name = own_name("one-pool-2", "step-2")
    store.write(
        store.resource("provisioningrequests"), {**own, "metadata": {**own["metadata"], "name": name, "labels": labels}}
    )
    assert (here.pool().desired, len(here.pool().queued)) == (2, 2)


def test_a_conflict_is_the_steps_own_request_or_none_at_all(here: QueueSite) -> None:
    """A 409 whose name is there was asked before; without one nothing was; and unread it stays in doubt."""
    conflict, store = "POST .*/provisioningrequests", here.server.store
    asked(here)
    (own,) = here.requests()
    store.remove("provisioningrequests", own["metadata"]["name"], "pilotlight")
    here.server.fail(409, on=conflict, times=2)
    with pytest.raises(Conflict, match="409, and it is not there"):
        here.pools.grow("one", 2, token="step-1")
    here.server.fail(403, on="GET .*/provisioningrequests", skip=1, times=9)
    with pytest.raises(Unsure, match="may be there"):
        here.pools.grow("one", 2, token="step-1")
    here.server.forget_faults()
    here.server.before(conflict, lambda: store.add(own))
    here.pools.grow("one", 2, token="step-1")
    assert (len(here.requests()), here.pool().desired) == (1, 2)


def test_the_gate_stands_before_the_request(here: QueueSite) -> None:
    """What it raises passes, and nothing is asked for."""

    def shut(size: int) -> None:
        raise Busy("not now")

    with pytest.raises(Busy, match="not now"):
        here.pools.grow("one", 2, gate=shut, token="step-1")
    assert here.requests() == []


CONDITIONS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "nothing is said yet": ((), 2, 2),
    "it is in the queue": (("Accepted",), 2, 2),
    "its nodes are its group's": (("Accepted", "Provisioned"), 0, 0),
    "its booking is over": (("Accepted", "Provisioned", "BookingExpired"), 0, 0),
    "its nodes went": (("Accepted", "Provisioned", "BookingExpired", "CapacityRevoked"), 0, 0),
}


@pytest.mark.parametrize(("said", "desired", "waits"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_request_counts_until_it_got_its_nodes(
    here: QueueSite, said: tuple[str, ...], desired: int, waits: int
) -> None:
    """Then its group counts them, while they are there. What waits is on no list of instances: it costs nothing."""
    name = asked(here)
    here.says(name, *said)
    pool = here.pool()
    assert (pool.desired, len(pool.queued), pool.booting, pool.refused) == (desired, waits, (), ())


def test_nodes_that_come_are_counted_once(here: QueueSite) -> None:
    """All at once, by names of their group's; they are released as any other instance is."""
    here.provision(asked(here))
    pool = here.pool()
    assert (pool.desired, len(pool.booting), pool.queued) == (2, 2, ())
    here.pools.release("one", pool.booting[0].instance)
    assert here.pool().desired == 1


REASONS = {
    "QuotaExceeded": "quota",
    "ResourcePoolExhausted": "no-capacity",
    "QueuingInfeasibleNoCapacity": "no-capacity",
    "WaitTimeExceeded": "no-capacity",
    "PermissionDenied": "other",
}


@pytest.mark.parametrize(("code", "reason"), REASONS.items())
def test_a_request_that_failed_is_a_refusal_and_is_called_off(here: QueueSite, code: str, reason: str) -> None:
    """By its code. Each of its nodes is refused by a name, and to release one is to delete the request."""
    name = asked(here)
    here.says(name, "Accepted", "Failed", reason=code, message="no more")
    pool = here.pool()
    assert pool.refusal is not None
    assert (pool.refusal.reason, pool.refusal.message) == (reason, f"ProvisioningRequest {name}: {code}: no more")
    assert (pool.refused, pool.queued, pool.desired) == ((f"{name}.0", f"{name}.1"), (), 2)
    for one in pool.refused:
        here.pools.release("one", one)
    assert (here.requests(), here.pool().desired, here.pool().refusal) == ([], 0, None)
    assert len(here.server.lines("DELETE .*/provisioningrequests/")) == 1


def test_what_waits_is_called_off_by_the_name_of_any_of_its_nodes(here: QueueSite) -> None:
    """They come together or not at all; one that got its nodes meanwhile stays, and so does one that was changed."""
    name = asked(here)
    there = InstanceState(there=True)
    assert here.pools.instance("one", f"{name}.1") == there
    here.server.before("DELETE .*/provisioningrequests/", lambda: here.provision(name))
    with pytest.raises(Busy, match="changed since it was read"):
        here.pools.release("one", f"{name}.1")
    here.pools.release("one", f"{name}.1")
    assert (len(here.requests()), here.pool().desired) == (1, 2)
    second = asked(here, 3, "step-2")
    here.pools.release("one", f"{second}.0")
    assert here.pools.instance("one", f"{second}.0") == InstanceState(there=False)


def test_a_request_that_is_provisioned_between_two_reads_is_counted_twice_and_never_not_at_all(
    here: QueueSite,
) -> None:
    """The queue is read first: what nobody counted would be bought again."""
    name = asked(here)
    answer = here.gke.answer
    read: list[Any] = []

    def late(call: Any, body: Any) -> Any:
        if call.method.endswith("instanceGroupManagers.get") and not read:
            read.append(call)
            here.provision(name)
        return answer(call, body)

    setattr(here.gke, "answer", late)  # noqa: B010  # The stand-in's own, for this one test.
    assert here.pool().desired == 4
    assert here.pool().desired == 2


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "its autoscaling is off": ({"autoscaling": {"enabled": False}}, "needs its autoscaling: gcloud .* --enable-autosc"),
    "flex-start alone": ({"queuedProvisioning": {"enabled": False}}, "no static size: create one with --enable-queued"),
}


@pytest.mark.parametrize(("changed", "why"), SETTINGS.values(), ids=SETTINGS)
def test_a_pool_that_the_queue_does_not_serve_is_left_alone(here: QueueSite, changed: dict[str, Any], why: str) -> None:
    """With the way out, and nothing is asked of it."""
    here.gke.extra["one"] = QUEUED | changed
    with pytest.raises(BadRequest, match=why):
        here.pools.grow("one", 1)
    assert here.requests() == []


@pytest.mark.parametrize("status", [403, 404], ids=["without the right", "without the CRD"])
def test_a_queue_that_cannot_be_read_closes_its_pool_alone(here: QueueSite, status: int) -> None:
    """The other pools are bought in."""
    here.server.fail(status, on="GET .*/provisioningrequests", times=9)
    one, eight = here.pool(), here.pool("eight")
    assert one.rules is not None
    assert eight.rules is not None
    assert "which cannot be asked for" in one.rules.closed
    assert eight.rules.closed == ""
    with pytest.raises(BadRequest, match="cannot be asked for"):
        here.pools.grow("one", 1)


def test_a_request_that_cannot_be_read_costs_its_pool_alone(here: QueueSite) -> None:
    """Its nodes may come: its pool may have more than is seen, nothing is bought there, and the others go on."""
    here.pools.grow("one", 2)
    (made,) = here.requests()
    store = here.server.store
    odd = {"spec": {"podSets": "many"}}
    store.patch(store.resource("provisioningrequests"), ("pilotlight", made["metadata"]["name"]), odd)
    one, eight = here.pool(), here.pool("eight")
    assert one.rules is not None
    assert eight.rules is not None
    assert f"ProvisioningRequest pilotlight/{made['metadata']['name']} cannot be read" in one.unread
    assert (one.hidden, one.rules.closed != "", eight.rules.closed, eight.unread) == (True, True, "", "")
    for ask in (lambda: here.pools.grow("one", 3), lambda: here.pools.release("one", "gone")):
        with pytest.raises(BadRequest, match="cannot be"):
            ask()
    assert here.pools.instance("one", "gone") is None


def test_a_queue_that_does_not_answer_costs_its_pool_alone(here: QueueSite) -> None:
    """Nothing is known of what waits there: it is closed for now, and the other pool goes on."""
    here.server.fail(503, on="GET .*/provisioningrequests", times=99)
    one, eight = here.pool(), here.pool("eight")
    assert one.rules is not None
    assert one.unread.startswith("the queue of node pool one-pool does not answer: ")
    assert (one.rules.closed, one.rules.silent, one.rules.queues, eight.unread) == (one.unread, True, True, "")
    for ask in (lambda: here.pools.grow("one", 1), lambda: here.pools.release("one", "a.0")):
        with pytest.raises(Unavailable, match="does not answer"):
            ask()


def test_a_pool_that_names_no_accelerators_is_asked_for_nothing(here: QueueSite) -> None:
    """How many GPUs a node has is said by its node pool alone."""
    here.gke.extra["one"] = QUEUED | {"config": {"machineType": "one"}}
    with pytest.raises(BadRequest, match="names no accelerators"):
        here.pools.grow("one", 1)


DIVIDED: list[dict[str, Any]] = [
    {"gpuPartitionSize": "1g.10gb"},
    {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "4"}},
    {"gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": "4"}},
]


@pytest.mark.parametrize("how", DIVIDED, ids=str)
def test_a_pool_that_divides_its_gpus_is_asked_for_nothing(here: QueueSite, how: dict[str, Any]) -> None:
    """A pod for each node would share one: fewer nodes would come than were paid for in the plan."""
    gpus = {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": "8", **how}
    here.gke.extra["one"] = QUEUED | {"config": {"machineType": "one", "accelerators": [gpus]}}
    with pytest.raises(BadRequest, match="divides its GPUs"):
        here.pools.grow("one", 1)
    assert here.posted("podtemplates") == here.requests() == []


@pytest.mark.parametrize("bound", [{"totalMaxNodeCount": 2}, {"maxNodeCount": 2}], ids=str)
def test_the_queue_is_asked_for_no_more_than_its_autoscaler_makes(here: QueueSite, bound: dict[str, int]) -> None:
    """A request beyond would wait for six hours, its dollars held: it is refused first, with what to raise."""
    here.gke.extra["one"] = QUEUED | {"autoscaling": {"enabled": True, **bound}}
    with pytest.raises(QuotaExceeded, match="makes at most 2, and 3 are wanted"):
        here.pools.grow("one", 3)
    assert here.requests() == []
    assert here.pools.grow("one", 2).desired == 2
    with pytest.raises(QuotaExceeded):
        here.pools.grow("one", 3)
    (rules,) = [state.rules for state in here.pools.describe() if state.name == "one"]
    assert rules is not None
    assert rules.most == 2


def test_without_the_right_to_ask_nothing_is_asked(here: QueueSite) -> None:
    """The refusal is the API server's, in its words."""
    here.server.fail(403, on="POST .*/provisioningrequests", times=9)
    with pytest.raises(Forbidden):
        here.pools.grow("one", 1)
    assert here.requests() == []


def test_the_roles_grant_what_is_asked_of_the_queue_and_no_more(here: QueueSite) -> None:
    """A purchase, a look and a release against rbac/gke-queue.yaml, both ways; who only reads has list alone."""
    used: set[tuple[str, str]] = set()

    def allow(access: Access) -> bool:
        used.add((access.resource, access.verb))
        return True

    here.server.allow = allow
    name = asked(here)
    here.pool()
    here.pools.release("one", f"{name}.0")
    assert here.requests() == []
    documents = yaml.safe_load_all(
        (Path(__file__).resolve().parents[4] / "infra/kubernetes/rbac/gke-queue.yaml").read_text()
    )
    roles = {one["metadata"]["name"]: one["rules"] for one in documents if one["kind"] == "Role"}
    granted = {
        role: {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
        for role, rules in roles.items()
    }
    assert granted["pilotlight-gke-queue"] | granted["pilotlight-gke-queue-act"] == used
    assert granted["pilotlight-gke-queue"] == {("provisioningrequests", "list")}
