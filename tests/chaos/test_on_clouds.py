"""The chaos harness with a real adapter as its cloud, each in turn; ``bench/chaos/chaos_on_*.py`` try many seeds."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from harness.asg_hazard import broken, on_asg
from harness.gke_hazard import on_gke
from harness.karpenter_hazard import on_karpenter
from harness.queue_hazard import on_queue
from harness.serial_run import run
from planted import BUGS, Bug, plant

from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.errors import Unsure
from pilotlight.ports.clouds import OPEN, Gate

MORE = 200
"""Deliveries beside those of a run, while pods wait that could be served."""

WAYS = {
    "launching at once": (3, 16, {"at_once": True}, "LaunchInstances"),
    "by a size": (3, 16, {"at_once": False}, "SetDesiredCapacity"),
    "by a size, of which AWS launches none in the end": (319, 8, {"at_once": False}, "SetDesiredCapacity"),
    "by a size, with nodes that stand by": (41, 8, {"at_once": False, "stops": True}, "PutWarmPool"),
}


@pytest.mark.parametrize(("seed", "deliveries", "way", "call"), WAYS.values(), ids=WAYS)
def test_answers_that_are_lost_cut_late_or_wrong_break_nothing(
    seed: int, deliveries: int, way: dict[str, bool], call: str
) -> None:
    """Deaths, stalls, doubles and faults of the cloud in most changes: each count stays zero, and AWS was asked."""
    with pytest.MonkeyPatch.context() as patch, on_asg(seed, **way, patch=patch) as accounts:
        outcome = run(seed, deliveries)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert call in {action for aws in accounts for action, _ in aws.calls}


def test_an_adapter_that_sends_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, under another token."""
    change = QueryApi.change

    def twice(
        api: QueryApi, deadline: Deadline, action: str, shape: type[Any], asked: Mapping[str, str], gate: Gate
    ) -> Any:
        try:
            return change(api, deadline, action, shape, asked, gate)
        except Unsure:
            anew = {"ClientToken": "another"} if "ClientToken" in asked else {}
            return change(api, deadline, action, shape, {**asked, **anew}, OPEN)

    monkeypatch.setattr(QueryApi, "change", twice)
    with on_asg(3, at_once=True, patch=monkeypatch):
        found = broken(run(3, 16))
    assert any("double_buys" in each for each in found)


def test_faults_lost_answers_and_late_instances_break_nothing() -> None:
    """Deaths, stalls, doubles and faults of Google in most changes: each count stays zero, and some is called off."""
    with pytest.MonkeyPatch.context() as patch, on_gke(17, patch=patch) as projects:
        outcome = run(17, 16)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert sum(gke.called_off for gke in projects) > 0


def test_an_adapter_that_asks_twice_by_other_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, under another id and other names."""
    change = GoogleRest.change

    def twice(
        api: GoogleRest, deadline: Deadline, path: str, shape: type[Any], body: Mapping[str, Any], gate: Gate
    ) -> Any:
        try:
            return change(api, deadline, path, shape, body, gate)
        except Unsure:
            if "createInstances" not in path:
                raise
            anew = {"instances": [{"name": f"{one['name'][:-1]}z"} for one in body["instances"]]}
            return change(api, deadline, path.partition("?")[0], shape, anew, OPEN)

    monkeypatch.setattr(GoogleRest, "change", twice)
    with on_gke(71, patch=monkeypatch):
        found = broken(run(71, 16, MORE))
    assert any("double_buys" in each for each in found)


AMID = {"gke": (on_gke, (1, 4)), "karpenter": (on_karpenter, (0, 1)), "queue": (on_queue, (9, 14))}


@pytest.mark.parametrize("cloud", AMID)
def test_most_is_bought_amid_faults_and_breaks_nothing(cloud: str) -> None:
    """Faults go on while pods wait: more than half of the nodes are launched before they stop."""
    opened, seeds = AMID[cloud]
    launches = amid = 0
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch, opened(seed, patch=patch):
            outcome = run(seed, 16, MORE)
        assert broken(outcome) == []
        launches, amid = launches + outcome.launches, amid + outcome.amid
    assert 2 * amid > launches > 0


def test_gke_s_own_faults_are_met() -> None:
    """Made after it was DONE or never, old errors and several, two colours, another hand, pools that close, groups
    that are deleted, groups and lists that are not told whole: two seeds meet each of them."""
    met: Counter[str] = Counter()
    for seed in (1, 291):
        with pytest.MonkeyPatch.context() as patch, on_gke(seed, patch=patch) as projects:
            assert broken(run(seed, 16, MORE)) == []
        met = sum((gke.met for gke in projects), met)
    late = {"made later", "never made", "old error", "several errors"}
    assert met.keys() == late | {"upgraded", "another hand", "closed", "unread", "deleted", "told twice"}


AMID_BUGS = {
    "an old error of an instance of GKE's refuses it": (on_gke, 17),
    "an instance that is only a name is paid for": (on_gke, 1),
}


@pytest.mark.parametrize("name", AMID_BUGS)
def test_the_judges_see_a_planted_bug_amid_faults(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its own test catches breaks a run as well."""
    opened, seed = AMID_BUGS[name]
    plant(BUGS[name], monkeypatch.setattr)
    with opened(seed, patch=monkeypatch):
        assert broken(run(seed, 16, MORE))


CLAIMS_SEED = 1


def test_claims_that_vanish_wait_or_are_lost_break_nothing() -> None:
    """Deaths, stalls, doubles and faults of an API server in most changes: each count stays zero, and one that is
    launched never is called off."""
    with pytest.MonkeyPatch.context() as patch, on_karpenter(CLAIMS_SEED, patch=patch) as servers:
        outcome = run(CLAIMS_SEED, 16)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert sum(server.called_off for server in servers) > 0


def test_an_adapter_that_posts_twice_by_other_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, by another name."""
    change = Api.change

    def twice(api: Api, method: str, path: str, body: Any, gate: Gate) -> bool:
        try:
            return change(api, method, path, body, gate)
        except Unsure:
            if method != "POST":
                raise
            meta = {**body["metadata"], "name": f"{body['metadata']['name'][:-1]}z"}
            return change(api, method, path, {**body, "metadata": meta}, OPEN)

    monkeypatch.setattr(Api, "change", twice)
    with on_karpenter(4, patch=monkeypatch):
        found = broken(run(4, 16))
    assert any("double_buys" in each for each in found)


DEAF = {
    "what was seen": (
        5,
        Bug("flow.observe.vanished_claims:with_vanished", "        if gone:", "        if ():"),
    ),
    "what went with its purchase's answer": (
        111,
        Bug("flow.cycle.recovery:_with_unheard", "if pool is not None and", "if () and pool is not None and"),
    ),
}


@pytest.mark.parametrize(("seed", "bug"), DEAF.values(), ids=DEAF)
def test_a_claim_that_is_gone_and_no_refusal_is_caught(seed: int, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody hears what Karpenter deletes before its node joined, and it is asked for in its rest."""
    plant(bug, monkeypatch.setattr)
    with on_karpenter(seed, patch=monkeypatch):
        found = broken(run(seed, 16, MORE))
    assert any("ignored_refusals" in each for each in found)


QUEUE_SEED = 19


def test_requests_that_come_late_in_part_or_never_break_nothing() -> None:
    """Deaths, stalls, doubles and faults of an API server in most changes; requests of GKE's queue that fail, that
    somebody deletes, that get their nodes hours later or as they are called off: each count stays zero."""
    with pytest.MonkeyPatch.context() as patch, on_queue(QUEUE_SEED, patch=patch) as projects:
        outcome = run(QUEUE_SEED, 16)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert sum(queue.called_off for queue in projects) > 0


QUEUE = "adapters.pools.gke.queue:Queue"
QUEUE_BUGS = {
    "what waits is no part of its pool": (
        6,
        Bug(f"{QUEUE}.join_to", "state.desired + sum(one.nodes for one in asked)", "state.desired"),
        "cap_overruns",
    ),
    "a request goes whatever has become of it since the look": (
        8,
        Bug(f"{QUEUE}.call_off", '"preconditions": read}', '"gracePeriodSeconds": 0}'),
        "killed_work",
    ),
    "what failed is not called off": (
        1,
        Bug(f"{QUEUE}.join_to", "for one in failed for name", "for one in () for name"),
        "lost_demands",
    ),
}


@pytest.mark.parametrize("name", QUEUE_BUGS)
def test_the_judges_see_a_planted_bug_of_the_queue(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each breaks what it ought to."""
    seed, bug, kind = QUEUE_BUGS[name]
    plant(bug, monkeypatch.setattr)
    with on_queue(seed, patch=monkeypatch):
        found = broken(run(seed, 16))
    assert any(kind in each for each in found)


def test_a_queue_that_is_asked_twice_by_other_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, by another name."""
    change = Api.change

    def twice(api: Api, method: str, path: str, body: Any, gate: Gate) -> bool:
        try:
            return change(api, method, path, body, gate)
        except Unsure:
            if method != "POST" or "provisioningrequests" not in path:
                raise
            meta = {**body["metadata"], "name": f"{body['metadata']['name'][:-1]}z"}
            return change(api, method, path, {**body, "metadata": meta}, OPEN)

    monkeypatch.setattr(Api, "change", twice)
    with on_queue(4, patch=monkeypatch):
        found = broken(run(4, 16))
    assert any("double_buys" in each for each in found)
