"""GKE's pools: what is sent, and what each answer and each refusal means."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import WHERE, ZONE, error
from gke_project import Project
from gke_server import Gke
from gke_site import serving
from google_documents import COMPUTE, Call
from small_cloud import world

from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.adapters.pools.gke import pools as gke_pools
from pilotlight.adapters.pools.gke.groups import Group, Seen
from pilotlight.adapters.pools.gke.own_names import is_own
from pilotlight.adapters.pools.gke.pool_states import names
from pilotlight.adapters.pools.gke.refusals import THROTTLED_S, Reason, reason_of
from pilotlight.errors import (
    BadRequest,
    Busy,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.ports.clouds import CloudAccount

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OURS = re.compile(r"gke-prod-one-pool-0a1b2c3d-[0-9a-f]{12}")


def test_instances_are_created_by_names_of_the_step(here: Project) -> None:
    """The base of the group and a hash, with a UUID; the same step has the same of both, another has others."""
    for token in ("step-1", "step-1", "step-2"):
        here.pools.grow("one", 2, token=token)
        for name in list(here.gke.world.nodes):
            here.pools.release("one", name)
    named = [[one["name"] for one in body["instances"]] for body in here.sent("createInstances")]
    ids = [query["requestId"] for method, _, query, _ in here.gke.calls if method.endswith("createInstances")]
    assert all(OURS.fullmatch(name) for names in named for name in names)
    assert all(UUID.fullmatch(one) for one in ids)
    assert (named[0] == named[1], ids[0] == ids[1]) == (True, True)
    assert set(named[0]).isdisjoint(named[2])
    assert len(set(named[0])) == 2


def test_a_step_that_arrives_twice_makes_its_instances_once(here: Project) -> None:
    """Google ignores the second request of an id; of another id it would refuse the names."""
    here.pools.grow("one", 2, token="step-1")
    call = next(call for call in here.gke.calls if call[0].endswith("createInstances"))
    here.gke.answer(Call(COMPUTE, *call[:3], "Operation"), call[3])
    assert here.gke.world.launches == 2


def test_a_name_is_no_longer_than_an_instance_may_have(here: Project) -> None:
    """A group's long base is cut, and the hash stays whole."""
    long = "gke-" + "very-long-cluster-name-" * 2 + "0a1b2c3d"
    seen = Seen(Group("p", "z", "g"), long, 0)
    (name,) = names(seen, "step", range(1, 2))
    assert len(name) == 62
    assert re.fullmatch(r"gke-very.*-[0-9a-f]{12}", name)
    assert is_own(seen.base, name)


@pytest.mark.parametrize("other", ["deadbeef", "deadbeefcafe", "0a1b2c3d4e5f", "x7k2", "deadbeefcaf", ""])
def test_another_hands_name_is_not_ours_though_it_ends_in_digits_of_a_hash(here: Project, other: str) -> None:
    """One that waits is left alone: its machine is another's to call off."""
    name = f"{here.gke.base('one')}-{other}"
    here.gke.unmade[name] = "one", ZONE
    here.gke.world.fleet.desired["one"] += 1
    here.gke.never.add("one")
    (waits,) = here.pool().booting
    assert (waits.instance, waits.doubt) == (name, "another hand asked for it")


def test_a_node_of_a_group_with_a_long_name_tells_when_it_was_made(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own name begins with a part of its group's base: it is found among the zone's instances all the same."""
    base = "gke-a-cluster-with-a-name-pool-with-a-long-name-0a1b2c3d"
    monkeypatch.setattr(Gke, "base", lambda *_: base)
    here.pools.grow("one", 1)
    here.gke.world.advance(60)
    (boots,) = here.pool().booting
    assert len(boots.instance) == 63
    assert boots.requested_at == here.gke.world.clock.now() - timedelta(seconds=60)


def test_a_release_names_one_instance_of_its_zone(here: Project) -> None:
    """One that left meanwhile fails nothing: the group skips it."""
    here.pools.grow("one", 2)
    first = next(iter(here.gke.world.nodes))
    here.pools.release("one", first)
    assert here.sent("deleteInstances") == [
        {"instances": [f"zones/europe-west4-a/instances/{first}"], "skipInstancesOnValidationError": True}
    ]
    assert here.pool().desired == 1


def test_no_size_is_ever_set(here: Project) -> None:
    """Whatever is asked of the port, only two verbs change anything: a size lets the group choose who goes."""
    here.pools.grow("one", 3)
    for name in list(here.gke.world.nodes):
        here.pools.release("one", name)
    assert {verb for verb, _ in here.gke.changes()} == {"createInstances", "deleteInstances"}
    source = "".join(file.read_text() for file in gke_source())
    assert not re.search(r"[\"'/:](resize|setSize|setNodePoolSize|recreateInstances)\b", source)


def gke_source() -> list[Any]:
    """The adapter's files."""
    return sorted(Path(gke_cloud.__file__).parent.glob("*.py"))


CODES: dict[str, tuple[str, str, Reason]] = {
    "a stock-out": ("RESOURCE_POOL_EXHAUSTED", "", "no-capacity"),
    "a zone's": ("ZONE_RESOURCE_POOL_EXHAUSTED", "", "no-capacity"),
    "a zone's, with details": ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", "no-capacity"),
    "no capacity": ("INSUFFICIENT_CAPACITY", "", "no-capacity"),
    "a quota": ("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded", "quota"),
    "a quota of another kind": ("GPU_QUOTA_ZERO", "", "quota"),
    "no addresses": ("IP_SPACE_EXHAUSTED", "", "no-capacity"),
    "no addresses, with details": ("IP_SPACE_EXHAUSTED_WITH_DETAILS", "", "no-capacity"),
    "no right": ("PERMISSIONS_ERROR", "", "other"),
    "a reservation that is full": ("RESERVATION", "No available resources in specified reservations", "no-capacity"),
    "a reservation that does not fit": ("RESERVATION", "Specified reservation does not exist", "other"),
    "anything else": ("CONDITION_NOT_MET", "", "other"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "message", "reason"), CODES.values(), ids=CODES)
def test_each_code_is_a_shortage_a_quota_or_neither(code: str, message: str, reason: Reason) -> None:
    """As cluster-autoscaler sorts them, and reservations by their words."""
    assert reason_of(code, message) == reason


def test_an_operation_that_ends_with_an_error_is_a_refusal(here: Project) -> None:
    """It is asked after until it is DONE, and its error says why nothing was made."""
    here.gke.later = True
    here.gke.ends["createInstances"] = [{"code": "QUOTA_EXCEEDED", "message": "no more"}]
    with pytest.raises(QuotaExceeded, match="QUOTA_EXCEEDED"):
        here.pools.grow("one", 1)
    assert here.pool().desired == 0


@pytest.mark.parametrize("what", ["reset", (403, b"{}"), (401, b"{}"), (404, b"{}")], ids=str)
def test_an_operation_that_cannot_be_asked_after_was_taken_on(here: Project, what: Any) -> None:
    """The change was answered, whoever may see its operation: what came of it the next look tells."""
    here.gke.later = True
    here.gke.faults = [Fault(what, method="get-operation")]
    assert here.pools.grow("one", 1).desired == 1
    assert here.pool().desired == 1


ANSWERS: dict[str, tuple[int, bytes, type[PilotlightError]]] = {
    "no right": (403, error(403, "forbidden", "Required 'compute.instanceGroupManagers.update'"), Forbidden),
    "no login": (401, error(401, "authError", "Invalid Credentials"), Forbidden),
    "a quota": (403, error(403, "quotaExceeded", "Quota 'NVIDIA_L4_GPUS' exceeded"), QuotaExceeded),
    "too many calls": (403, error(403, "rateLimitExceeded", "Rate Limit Exceeded"), Throttled),
    "too many requests": (429, error(429, "rateLimitExceeded", "slow down"), Throttled),
    "a conflict": (409, error(409, "resourceInUseByAnotherResource", "busy"), Busy),
    "not ready": (400, error(400, "resourceNotReady", "not ready"), Busy),
    "a stock-out": (400, error(400, "ZONE_RESOURCE_POOL_EXHAUSTED", "none left"), NoCapacity),
    "our own fault": (400, error(400, "invalid", "Invalid value"), BadRequest),
    "an error of theirs": (500, error(500, "backendError", "Internal error"), Unsure),
    "a server's that has too many": (503, error(503, "rateLimitExceeded", "backend"), Unsure),
    "a request that took too long": (408, b"", Unsure),
    "a gateway's": (503, b"<html>bad gateway</html>", Unsure),
    "no answer of theirs": (302, b"", Unsure),
}


@pytest.mark.parametrize(("status", "body", "kind"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("verb", ["createInstances", "deleteInstances"])
def test_each_answer_is_its_own_kind(
    here: Project, verb: str, status: int, body: bytes, kind: type[PilotlightError]
) -> None:
    """A change is sent once whatever the answer, and says whether it may have been done."""
    here.pools.grow("one", 1)
    (name,) = here.gke.world.nodes
    here.gke.faults = [Fault((status, body), method=verb)]
    before = len(here.gke.changes())
    with pytest.raises(PilotlightError) as no:
        here.pools.grow("one", 2) if verb == "createInstances" else here.pools.release("one", name)
    assert type(no.value) is kind
    assert len(here.gke.changes()) == before + 1


@pytest.mark.parametrize("what", ["hang", "reset", "cut", "drip", (200, b"<html>"), (200, b"")], ids=str)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_answer_that_is_lost_is_unsure(here: Project, monkeypatch: pytest.MonkeyPatch, what: Any, when: str) -> None:
    """Whether Google acted only a read tells, and that one says it."""
    monkeypatch.setattr(gke_pools, "WRITE_S", 0.2)
    here.gke.faults = [Fault(what, when, "createInstances")]
    with pytest.raises(Unsure):
        here.pools.grow("one", 1)
    assert here.pool().desired == (when == "after")


WAYS_OUT: dict[int, tuple[type[PilotlightError], str]] = {
    401: (Forbidden, "run `gcloud auth application-default login`"),
    403: (Forbidden, "pilotlight show docs/guides/gke.md, or mend PROJECT in PILOTLIGHT_POOLS"),
    404: (
        BadRequest,
        "/clusters/prod: name gke:PROJECT/LOCATION/CLUSTER in PILOTLIGHT_POOLS as `gcloud container clust",
    ),
}


@pytest.mark.parametrize(("status", "told"), WAYS_OUT.items(), ids=str)
def test_a_cluster_that_cannot_be_read_says_what_to_mend(
    here: Project, status: int, told: tuple[type[PilotlightError], str]
) -> None:
    """A login that is over, a right that lacks and an address that is wrong each have a way out of their own."""
    here.gke.faults = [Fault((status, error(status, "x", "no")), method="get")] * 3
    with pytest.raises(told[0]) as no:
        here.pools.describe()
    assert told[1] in str(no.value)


def test_reads_are_tried_again_and_no_longer_than_that(here: Project) -> None:
    """Two faults are bridged; three are told."""
    here.gke.faults = [Fault("reset", method="get"), Fault((503, b"<html>"), method="get")]
    assert here.pool().desired == 0
    here.gke.faults = [Fault((503, b"<html>"), method="get")] * 3
    with pytest.raises(Unavailable):
        here.pools.describe()


@pytest.mark.parametrize(
    ("after", "told_s"), [("3600", 3600), ("9" * 400, 3600), ("11", 11)], ids=["an hour", "for ever", "eleven seconds"]
)
def test_a_read_does_not_sleep_for_as_long_as_an_answer_asks(here: Project, after: str, told_s: float) -> None:
    """More than ten seconds are the caller's to wait for, and no more than an hour is told."""
    slow = Fault((429, error(429, "rateLimitExceeded", "slow down")), method="get", retry_after=after)
    here.gke.faults = [slow]
    with pytest.raises(Throttled) as no:
        here.pools.describe()
    assert no.value.after_s == told_s


def test_a_time_to_wait_that_is_no_number_is_the_usual_one(here: Project) -> None:
    """A digit that only some alphabets count as one stops no change from being told as slowed down."""
    slow = Fault((429, error(429, "rateLimitExceeded", "slow down")), method="createInstances", retry_after="²")
    here.gke.faults = [slow]
    with pytest.raises(Throttled) as no:
        here.pools.grow("one", 1)
    assert no.value.after_s == THROTTLED_S


def test_a_zone_is_named_where_a_pool_has_several(here: Project) -> None:
    """A purchase goes to the group of its zone; without one nothing is bought, and what to write is said. A look says
    so before dollars are held: no other pool has to be named a zone of."""
    here.gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
    assert [one.rules and one.rules.names_zone for one in map(here.pool, ("one", "eight"))] == [True, False]
    with pytest.raises(BadRequest, match=re.escape("zones europe-west4-a, europe-west4-b: name those to buy in")):
        here.pools.grow("one", 1)
    with pytest.raises(BadRequest, match="no group in europe-west4-c"):
        here.pools.grow("one", 1, "europe-west4-c")
    here.pools.grow("one", 1, "europe-west4-b")
    (name,) = here.gke.world.nodes
    assert (here.gke.zone_of[name], here.pool().desired) == ("europe-west4-b", 1)
    here.pools.release("one", name)
    assert here.sent("deleteInstances")[0]["instances"] == [f"zones/europe-west4-b/instances/{name}"]


@pytest.mark.parametrize(
    "where", ["acme-ml", "acme-ml/europe-west4", "a/b/c", "acme-ml/europe-west4-a/prod/x", "acme-ml/europe-west4-a/"]
)
def test_an_address_that_names_no_cluster_is_none(where: str) -> None:
    """Project, location and cluster, each as Google writes it."""
    assert gke_cloud.open_pools(where, CloudAccount({}, world().clock, str, {})) is None


def test_a_shop_tells_the_types_of_its_location(here: Project) -> None:
    """Those of its zone, with the GPUs that are built in; no price and no quota."""
    with serving(here.gke) as environ:
        shop = gke_cloud.open_shop(WHERE, CloudAccount({}, here.gke.world.clock, str, environ))
        (size,) = shop.sizes()
        assert (size.name, size.gpus, size.gpu_model, size.memory_mib) == ("g2-standard-4", 1, "nvidia-l4", 16384)
        assert list(shop.assortment(["g2-standard-4"]).sizes) == ["g2-standard-4"]
        assert shop.prices(["g2-standard-4"]).prices == {}


def test_no_token_is_shown_to_an_address_that_anybody_may_read() -> None:
    """A stand-in over plain HTTP gets none, and needs no credentials to be there."""
    token = GoogleToken()
    assert google_rest.GoogleRest("http://127.0.0.1:1", token, {})._token is None
    assert google_rest.GoogleRest("https://compute.googleapis.com", token, {})._token is token


SURGE = "gcloud container node-pools update one-pool --cluster prod --location europe-west4-a --project acme-ml"


@pytest.mark.parametrize(("settings", "more"), [
    ({}, ""), ({"strategy": "SURGE", "maxUnavailable": 1}, ""), ({"strategy": "SHORT_LIVED", "maxSurge": 1}, ""),
    ({"strategy": "SURGE", "maxSurge": 2}, "2 nodes"), ({"maxSurge": 1}, "1 node"),
    ({"strategy": "BLUE_GREEN"}, "as many nodes"),
])  # fmt: skip
def test_what_an_upgrade_lights_beside_a_pool_is_told(here: Project, settings: dict[str, Any], more: str) -> None:
    """Nodes beside those that a budget holds, with the command that makes none of them."""
    here.gke.extra["one"] = {"upgradeSettings": settings}
    rules = here.pool().rules
    assert rules is not None
    found, _, fix = rules.surges.partition(": ")
    assert found == (f"an upgrade lights {more} beside those of one-pool, which no budget holds" if more else "")
    assert fix == (f"{SURGE} --enable-surge-upgrade --max-surge-upgrade 0 --max-unavailable-upgrade 1" if more else "")
    assert rules.closed == ""
