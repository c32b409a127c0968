"""A spot interruption through a Kubernetes API server: cordon, Event, eviction and release over the real adapter."""

from collections.abc import Iterator

import msgspec
import pytest
from api_server import api_server
from small_cloud import CATALOG, SPOT, pod, world
from world_as_kubernetes import WorldApi

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.world.world_pools import WorldPools

RULES = ClassPolicy(gpu_models="any", capacity_types=("spot",), max_runtime=7200)
POLICY = Policy(
    version=1,
    pools={"one": PoolPolicy(instance_type="one", capacity_type="spot")},
    classes={"batch": RULES, "training": RULES},
)
PDB = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "keep", "namespace": "default"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}


class Site:
    """A deployment over the API server of a small world."""

    def __init__(self, api: WorldApi) -> None:
        self.api, self.world = api, api.world
        self.deps = Deps(
            name="c",
            cluster=api.cluster(POLICY),
            pools=WorldPools(api.world),
            state=MemoryState(api.world.clock),
            outbox=MemoryOutbox(),
            clock=api.world.clock,
            policy=POLICY,
            offerings=offerings(POLICY, CATALOG)[0],
            throughput={str(name): speeds for name, speeds in CATALOG.throughput.items()},
            mode="act",
        )

    def notice(self) -> Answer:
        """The cloud says that it takes the node in two minutes."""
        deadline = self.world.moment(self.world.interrupt("n1", 120))
        now = self.world.clock.now()
        message = InterruptionNotice(
            cluster="c", instance="n1", kind="spot-interruption", cloud="world", at=now, deadline=deadline
        )
        return interrupt(self.deps, message)

    def until(self, seconds: float) -> None:
        """So long passes, and the rescue goes on every five seconds."""
        for _ in range(int(seconds // 5)):
            self.world.advance(self.world.now_s + 5)
            go_on(self.deps)


@pytest.fixture
def site() -> Iterator[Site]:
    """A spot node on which a pod that can save has run for an hour."""
    here = world(pools=SPOT, faults={"reclaim": False, "checkpoint_s": 1e9})
    here.launch("one")
    here.submit(msgspec.structs.replace(pod("train-0"), checkpoint_takes_s=20.0), 40_000)
    here.advance(3700)
    with api_server(WorldApi(world=here)) as api:
        assert isinstance(api, WorldApi)
        yield Site(api)


def test_a_pod_is_replaced_asked_to_save_evicted_and_its_node_given_back(site: Site) -> None:
    """The Event asks it, its own annotation tells when it has saved, and then it leaves with an hour of work kept."""
    answer = site.notice()
    assert answer.did[:2] == ("cordoned n1", "asked default/train-0 for a checkpoint")
    assert answer.did[2].startswith("asked pool one for 1 x one/one")
    site.until(110)
    kept = interruption_records.find(site.deps, "n1")
    assert kept is not None
    assert (kept.found.outcome, site.world.launches, "n1" in site.world.nodes) == ("released", 2, False)
    (job,) = [*site.world.pending.values(), *site.world.running.values()]
    assert job.saved_s == 3600


def test_a_disruption_budget_is_asked_and_honoured(site: Site) -> None:
    """The API server refuses the eviction until the margin: only then does the pod go, with its node."""
    site.api.store.write(site.api.store.resource("poddisruptionbudgets"), PDB)
    site.notice()
    site.until(100)
    assert "n1" in site.world.nodes
    assert [job.placement[0].node.id for job in site.world.running.values()] == ["n1"]
    site.until(15)
    assert "n1" not in site.world.nodes


def test_a_deletion_names_the_pod_by_its_uid_and_asks_no_budget(site: Site) -> None:
    """It gives the pod its grace; one that is gone, or has another's name, is no error."""
    site.api.store.write(site.api.store.resource("poddisruptionbudgets"), PDB)
    site.deps.cluster.delete("default", "train-0", "another-uid", 45)
    site.deps.cluster.delete("default", "ghost", "ghost", 45)
    assert site.api.store.has(site.api.store.resource("pods"), ("default", "train-0"))
    site.deps.cluster.delete("default", "train-0", "train-0", 45)
    asked = [request for request in site.api.requests if request.method == "DELETE"]
    assert asked[-1].json()["gracePeriodSeconds"] == 45
    assert not site.api.store.has(site.api.store.resource("pods"), ("default", "train-0"))
