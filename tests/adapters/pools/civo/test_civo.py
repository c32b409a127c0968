"""Civo's pools: what is sent, what each refusal means, and what happens when an answer is lost."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from civo_server import CLUSTER, PASSWORD, REGION, TOKEN, Civo, Fault, serving
from small_cloud import START, world

from pilotlight.adapters import civo_api
from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.adapters.pools.civo.shop import CivoShop
from pilotlight.errors import (
    BadRequest,
    Busy,
    Forbidden,
    LastNode,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unsure,
)


class Account(NamedTuple):
    """Civo's side and ours."""

    civo: Civo
    pools: CivoPools
    waits: list[float]
    shop: CivoShop


@contextmanager
def account(token: str = TOKEN, **options: Any) -> Iterator[Account]:
    """A small world sold by Civo."""
    here = world()
    civo, waits = Civo(here, **options), list[float]()
    with serving(civo) as url:
        api = CivoApi(token, REGION, url=url, sleep=waits.append)
        yield Account(civo, CivoPools(api, CLUSTER, civo.ids(), here.clock), waits, CivoShop(api))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account whose client is not patient."""
    monkeypatch.setattr(civo_api, "READ_S", 1.0)
    monkeypatch.setattr(civo_api, "WRITE_S", 1.0)
    with account() as made:
        yield made


def _sent(here: Account, method: str) -> list[Any]:
    return [body for verb, _, body in here.civo.calls if verb == method]


def test_labels_and_taints_are_sent_back_with_every_count(here: Account) -> None:
    """A pool that is scaled keeps its labels and taints, and the region is named in the body."""
    here.pools.grow("one", 2)
    assert _sent(here, "PUT") == [
        {
            "id": "one-pool-id",
            "count": 2,
            "labels": {"gpu": "on-demand"},
            "taints": [{"key": "gpu", "value": "one", "effect": "NoSchedule"}],
            "region": REGION,
        }
    ]


def test_a_size_that_is_there_already_is_not_sent(here: Account) -> None:
    """Growing to no more than the desired size reads, and changes nothing."""
    here.pools.grow("one", 2)
    here.pools.grow("one", 1)
    assert len(_sent(here, "PUT")) == 1


def test_an_instance_that_civo_deletes_is_told_beside_what_boots(here: Account) -> None:
    """Its node may be seen for a while, and hides none that boots."""
    states = {"n1": "DELETING", "n2": "BUILDING", "n3": "deleted"}
    instances = [{"id": id_, "status": said} for id_, said in states.items()]
    here.civo.marks["one"] = dict[str, Any](count=1, instances=instances)
    (pool,) = [one for one in here.pools.describe() if one.name == "one"]
    assert ([one.instance for one in pool.booting], pool.leaves) == (["n2"], ("n1", "n3"))


def test_a_pool_goes_to_zero_where_a_deletion_leaves_its_count() -> None:
    """Where deleting an instance does not lower the count, the count is set to what is left: zero is sent as zero."""
    with account(decrements=False) as here:
        here.pools.grow("one", 1)
        here.pools.release("one", "n1")
        assert [body["count"] for body in _sent(here, "PUT")] == [1, 0]
        assert (here.civo.world.nodes, here.civo.world.fleet.desired["one"]) == ({}, 0)


def test_a_count_is_never_lowered_where_other_instances_are() -> None:
    """With others left, a lower count that comes late would let Civo choose who goes: the count stays as it is."""
    with account(decrements=False) as here:
        here.pools.grow("one", 3)
        here.pools.release("one", "n2")
        assert [body["count"] for body in _sent(here, "PUT")] == [3]
        assert sorted(here.civo.world.nodes) == ["n1", "n3"]


def test_a_count_is_not_lowered_while_the_instance_is_there(here: Account) -> None:
    """A deletion that Civo took and has not done: a lower count would let it choose another instance."""
    here.pools.grow("one", 3)
    here.civo.faults = [Fault((200, {"result": "success"}), method="DELETE")]
    here.pools.release("one", "n2")
    assert [body["count"] for body in _sent(here, "PUT")] == [3]


def test_the_last_node_stays_where_civo_keeps_it() -> None:
    """A refusal to take a pool's only instance is its own kind; one of several is an ordinary refusal."""
    with account(last_node_stays=True) as here:
        here.pools.grow("one", 1)
        with pytest.raises(LastNode, match="keeps the last node of pool one"):
            here.pools.release("one", "n1")
        assert list(here.civo.world.nodes) == ["n1"]


def test_a_count_that_civo_will_not_set_to_zero_is_a_node_that_stays() -> None:
    """The instance went, its count may not: another comes, and is not taken again and again."""
    with account(decrements=False) as here:
        here.pools.grow("one", 1)
        here.civo.faults = [Fault((400, {"code": "parameter_count_invalid"}), method="PUT")]
        with pytest.raises(LastNode, match="keeps the count of pool one"):
            here.pools.release("one", "n1")


REFUSALS = {
    "out of capacity, whatever the status": ((500, {"code": "out_of_capacity", "reason": "none"}), NoCapacity),
    "quota": ((402, {"code": "quota_limit_reached", "reason": "q", "details": "ram"}), QuotaExceeded),
    "already rescaling": ((409, {"code": "cannot_scale_already_rescaling_cluster"}), Busy),
    "the quota is locked": ((500, {"code": "database_quota_lock_failed"}), Busy),
    "no authentication": ((401, {"result": "requires_authentication"}), Forbidden),
    "a wrong key": ((401, {"code": "authentication_invalid_key"}), Forbidden),
    "forbidden without a word": ((403, "no"), Forbidden),
    "no such pool": ((404, {"code": "database_cluster_pool_not_found"}), BadRequest),
    "a code nobody knows": ((400, {"code": "something_new", "reason": "hm"}), BadRequest),
    "a code nobody knows, from a server at fault": ((500, {"code": "something_new", "reason": "hm"}), Unsure),
    "what was asked for is wrong, whatever the status": ((500, {"code": "database_size_not_found"}), BadRequest),
    "a status alone": ((500, {"status": 500}), Unsure),
    "a region that Civo does not reach": ((503, {"code": "region_unavailable"}), Unsure),
    "a request that took too long": ((408, {}), Unsure),
    "no JSON": ((502, "<html>bad gateway</html>"), Unsure),
    "too many, for long": ((429, {}), Throttled),
}


@pytest.mark.parametrize(("answer", "kind"), REFUSALS.values(), ids=REFUSALS)
def test_every_refusal_is_told_by_what_to_do_next(here: Account, answer: Any, kind: type[PilotlightError]) -> None:
    """Civo's codes decide before its status; the error names the call and the code, and nothing was bought."""
    here.civo.faults = [Fault(answer, method="PUT")]
    with pytest.raises(kind) as raised:
        here.pools.grow("one", 1)
    assert type(raised.value) is kind or kind is BadRequest
    assert "PUT /v2/kubernetes/clusters" in str(raised.value)
    assert here.civo.world.launches == 0


LOST = {
    "no answer": "hang",
    "a reset": "reset",
    "half an answer": "cut",
    "an answer that never ends": "drip",
    "a wrong type": (200, {"id": 7, "count": "two"}),
    "not JSON": (200, "thanks"),
    "a gateway that waited in vain": (408, {}),
    "a way round that leads nowhere": (302, ""),
}


@pytest.mark.parametrize("what", LOST.values(), ids=LOST)
def test_a_lost_answer_buys_nothing_twice(here: Account, what: Any) -> None:
    """When the answer to a resize is lost after Civo acted, asking again for the same size buys nothing more."""
    here.civo.faults = [Fault(what, when="after", method="PUT")]
    with pytest.raises(Unsure):
        here.pools.grow("one", 2)
    assert here.pools.grow("one", 2).desired == 2
    assert here.civo.world.launches == 2


@pytest.mark.parametrize("what", LOST.values(), ids=LOST)
def test_a_lost_deletion_takes_no_other(here: Account, what: Any) -> None:
    """When the answer to a deletion is lost after Civo acted, asking again takes nothing more."""
    here.pools.grow("one", 3)
    if not isinstance(what, tuple):
        here.civo.faults = [Fault(what, when="after", method="DELETE")]
        with pytest.raises(Unsure):
            here.pools.release("one", "n2")
    here.pools.release("one", "n2")
    assert sorted(here.civo.world.nodes) == ["n1", "n3"]
    assert here.civo.world.fleet.desired["one"] == 2


@pytest.mark.parametrize("what", ["drip", (500, {})], ids=["a drip", "5xx"])
def test_a_release_whose_count_cannot_be_read_again_is_done(here: Account, what: Any) -> None:
    """The instance went. The count is looked at within the release's own time, and left to a later release."""
    here.pools.grow("one", 1)
    here.civo.decrements = False
    here.pools.release("one", "n1", gate=lambda: here.civo.faults.append(Fault(what, method="GET")))
    assert ([body["count"] for body in _sent(here, "PUT")], here.civo.world.nodes) == ([1], {})


@pytest.mark.parametrize("change", ["grow", "release"])
@pytest.mark.parametrize("kept", [True, False], ids=["keeps its connections", "resets its connections"])
def test_a_change_is_sent_once_right_after_its_gate(here: Account, change: str, kept: bool) -> None:
    """When the gate is asked the reads are done and the change is not sent; then it is, once, whatever Civo keeps."""
    here.pools.grow("one", 1)
    here.civo.resets = not kept
    at_gate: list[int] = []
    before = len(here.civo.calls)

    def gate(size: int = 0) -> None:
        at_gate.append(len(here.civo.calls) - before)

    if change == "grow":
        here.pools.grow("one", 2, gate=gate)
    else:
        here.pools.release("one", "n1", gate=gate)
    verbs = [verb for verb, _, _ in here.civo.calls[before:]]
    assert (at_gate, verbs[:2]) == ([1], ["GET", "PUT" if change == "grow" else "DELETE"])
    assert set(verbs[2:]) <= {"GET"}


@pytest.mark.parametrize("what", [*LOST.values(), (500, {}), (429, {})], ids=[*LOST, "5xx", "429"])
def test_a_read_is_tried_again(here: Account, what: Any) -> None:
    """One failed read is not seen by the caller; it is tried again after a pause."""
    here.civo.faults = [Fault(what, method="GET")]
    assert [p.name for p in here.pools.describe()] == ["one", "four", "eight"]
    assert any(wait >= 1 for wait in here.waits)


def test_a_pause_that_civo_names_is_kept(here: Account) -> None:
    """Retry-After is waited for where it is short, and passed on where it is long."""
    here.civo.faults = [
        Fault((429, {}), method="GET", retry_after="3"),
        Fault((429, {}), method="GET", retry_after="90"),
    ]
    with pytest.raises(Throttled) as raised:
        here.pools.describe()
    assert (3.0 in here.waits, raised.value.after_s) == (True, 90.0)


def test_calls_are_spaced(here: Account) -> None:
    """Civo tells no limit on calls: there are at most four a second."""
    for _ in range(3):
        here.pools.describe()
    assert sum(wait > 0.1 for wait in here.waits) >= 2


def test_instances_tell_since_when_they_are_there(here: Account) -> None:
    """An instance's age is Civo's own word for it."""
    here.civo.world.advance(40)
    here.pools.grow("one", 1)
    (booting,) = next(p for p in here.pools.describe() if p.name == "one").booting
    assert (booting.instance, booting.requested_at) == ("n1", START + timedelta(seconds=40))


def test_sizes_and_quota_are_told(here: Account) -> None:
    """The region's types with their GPUs, and the account's limits with what is used of them."""
    assert [(s.name, s.gpus) for s in here.shop.assortment().sizes.values()] == [("g4g.kube.small", 1)]
    assert here.shop.assortment().quota["ram_mb"] == (65536, 4096)


def test_no_secret_is_told(here: Account, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the key nor what Civo sends in clear is in an error, a log or a value."""
    caplog.set_level(logging.DEBUG)
    here.pools.grow("one", 1)
    said = [repr(here.pools.describe())]
    for what in ((400, {"code": "x", "reason": f"bad key {TOKEN}"}), (401, {}), "hang", "cut"):
        here.civo.faults = [Fault(what, method="PUT")]
        with pytest.raises(PilotlightError) as raised:
            here.pools.grow("one", 5)
        said.append(f"{raised.value!r} {raised.value.__cause__!r}")
    told = " ".join([*said, caplog.text])
    assert (TOKEN in told, PASSWORD in told) == (False, False)
