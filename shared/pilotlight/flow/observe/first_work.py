"""Steps until pods work on new nodes, learned of those that just began: a look asks for the image pulls of a few."""

from collections.abc import Sequence
from datetime import datetime

from pilotlight.decide.offers.first_work import began_at_once, newly_working, with_begun
from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.first_work import Pull
from pilotlight.flow.deps import Deps
from pilotlight.ports.cluster import PullingCluster


def learn(deps: Deps, memory: Memory, nodes: Sequence[Node], now: datetime) -> Memory:
    """The memory with what pods took that began to work since the last count. A cluster that does not tell of pulls
    teaches when pods began, and nothing of their images but that those were there which began at once.
    """
    began = newly_working(memory, nodes, now)
    there = {one.pod.uid: Pull(seconds=0.0) for one in began if began_at_once(one.pod)}
    pods = [one.pod for one in began if one.pod.uid not in there]
    try:
        pulls = deps.cluster.pulls(pods) if pods and isinstance(deps.cluster, PullingCluster) else {}
    except (Denied, Retry):
        pulls = {}
    return with_begun(memory, began, {**there, **pulls}, now)
