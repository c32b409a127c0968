"""Steps until pods work on new nodes, learned of those that just began: a look asks for the image pulls of a few."""

from collections.abc import Sequence
from datetime import datetime

from pilotlight.decide.offers.first_work import newly_working, with_begun
from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.memory import Memory
from pilotlight.flow.deps import Deps
from pilotlight.ports.cluster import PullingCluster


def learn(deps: Deps, memory: Memory, nodes: Sequence[Node], now: datetime) -> Memory:
    """The memory with what pods took that began to work since the last count. A cluster that does not tell of pulls
    teaches when pods began, and nothing of their images.
    """
    began = newly_working(memory, nodes, now)
    pods = [pod for _, pod in began]
    try:
        pulls = deps.cluster.pulls(pods) if pods and isinstance(deps.cluster, PullingCluster) else {}
    except (Denied, Retry):
        pulls = {}
    return with_begun(memory, began, pulls, now)
