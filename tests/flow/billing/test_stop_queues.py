"""Kueue's queues stopped by a budget's step and opened after it, with the real adapter over a stand-in API server."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from api_server import ApiServer, api_server
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.facts.money.budgets import Ladder, Rung, StepInForce
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.billing.billing_tick import stop_queues
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import LADDER
from pilotlight.tools.install import queue_checks

BEFORE = "pilotlight.dev/stop-policy-before"
BUDGET = Budget(name="b", usd=Decimal(40), queues=("research", "ml/batch"))


class Site:
    """A cluster with one queue of each kind, and a budget that names both."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        for name in ("kueue-queues", "kueue-local-queues"):
            server.store.serve(name)
        self.queue("ClusterQueue", {"name": "research"})
        self.queue("LocalQueue", {"name": "batch", "namespace": "ml"}, stopPolicy="None")
        stage = Stage(budgets=(BUDGET,))
        self.api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        cluster = KubernetesCluster(self.api, stage.deps.policy, stage.deps.clock)
        self.deps: Deps = replace(stage.deps, cluster=cluster)

    def queue(self, kind: str, meta: dict[str, str], **spec: Any) -> None:
        """Make a queue."""
        self.server.add({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, "spec": spec})

    def step(self, does: Any) -> tuple[str, ...]:
        """Put the budget on a step, or on none, and do what follows."""
        now = self.deps.state.now()
        until = now + timedelta(hours=3)
        step = (
            StepInForce(budget="b", scope="all", do=does, why="$41.00 of $40.00 is spent", until=until)
            if does
            else None
        )
        found = LADDER.get(self.deps.state, self.deps.name)
        new = Ladder(rungs={"b": Rung(start=now, step=step)})
        LADDER.put(self.deps.state, self.deps.name, new, if_version=found.version if found else 0)
        return stop_queues(self.deps)

    def stands(self) -> list[tuple[str, str | None]]:
        """Each queue's stopPolicy, and the earlier value that is kept."""
        store = self.server.store
        found = (store.get("clusterqueues", "research"), store.get("localqueues", "batch", "ml"))
        notes = [(each["metadata"].get("annotations") or {}).get(BEFORE) for each in found]
        return [(each["spec"].get("stopPolicy", "None"), note) for each, note in zip(found, notes, strict=True)]


@pytest.fixture
def site() -> Iterator[Site]:
    """The cluster."""
    with api_server() as server:
        yield Site(server)


def test_a_step_stops_the_queues_and_its_end_opens_them(site: Site) -> None:
    """While nothing more is bought the queues admit no more, then they are as before; nothing is written twice."""
    assert site.step("spot-only") == ()
    assert site.stands() == [("None", None)] * 2
    assert len(site.step("no-new-buys")) == 2
    assert site.stands() == [("Hold", "None")] * 2
    assert site.step("no-new-buys") == ()
    assert site.step(None) == (
        "queue ml/batch is as it was before budget b stopped it",
        "queue research is as it was before budget b stopped it",
    )
    assert site.stands() == [("None", None)] * 2
    assert len(site.server.lines("PATCH")) == 4


def test_what_others_stopped_is_theirs(site: Site) -> None:
    """A queue that a person drains stays drained before, during and after a step."""
    site.server.store.patch(
        site.server.store.resource("localqueues"), ("ml", "batch"), {"spec": {"stopPolicy": "HoldAndDrain"}}
    )
    site.step("no-new-buys")
    assert site.stands() == [("Hold", "None"), ("HoldAndDrain", None)]
    site.server.store.patch(
        site.server.store.resource("clusterqueues"), ("", "research"), {"spec": {"stopPolicy": "HoldAndDrain"}}
    )
    site.step(None)
    assert site.stands() == [("HoldAndDrain", None)] * 2


def test_a_queue_that_is_not_there_stops_no_other(site: Site) -> None:
    """One that cannot be stopped is said, and the rest are stopped."""
    site.api.ask("DELETE", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/research", NOTHING)
    said = site.step("no-new-buys")
    assert [line.partition(":")[0] for line in said] == [
        "queue ml/batch admits no more",
        "queue research could not be stopped",
    ]


def test_handing_back_opens_what_was_stopped(site: Site) -> None:
    """Without any state of ours the command finds what a budget stopped, and a dry run only names it."""
    site.step("no-new-buys")
    named = [(q.name, q.opened) for q in queue_checks.hand_back(site.api, dry_run=True)]
    assert named == [("research", True), ("ml/batch", True)]
    assert site.stands() == [("Hold", "None")] * 2
    assert [q.name for q in queue_checks.hand_back(site.api, dry_run=False)] == ["research", "ml/batch"]
    assert site.stands() == [("None", None)] * 2


def test_a_deployment_that_only_advises_stops_nothing(site: Site) -> None:
    """In a mode that buys nothing a budget's queues stay as they are."""
    site.deps = replace(site.deps, mode="advise")
    assert site.step("no-new-buys") == ()
    assert site.stands() == [("None", None)] * 2
