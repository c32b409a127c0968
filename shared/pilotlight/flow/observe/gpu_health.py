"""Monitoring's alerts on GPUs that are not well: kept when they come, seen at a tick as a condition is.

An alert is a hint: of a node that is not there it says nothing, nor of one that has come since.
"""

from msgspec.structs import replace

from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.messages import Alert
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.state_schema.cluster_records import AILMENT, Ailment

MOST_WORDS = 200
"""So much is kept of what an alert says."""


def keep(state: State, alert: Alert) -> None:
    """Remember what an alert says of its node. What began before it was last said to be over is old news."""
    if alert.at is None or not alert.subject:
        return
    said = f"alert {alert.kind}: {alert.what}"[:MOST_WORDS]
    new = Ailment(why=said, at=alert.at, over=alert.resolved)

    def newer(was: Ailment | None) -> Ailment:
        late = was is not None and (was.at > new.at or (was.at == new.at and was.over))
        return was if was is not None and late else new

    AILMENT.change(state, f"{alert.cluster}/{alert.subject}/{alert.fingerprint}", newer)


def with_told(deps: Deps, view: ClusterView) -> ClusterView:
    """The view with what was said of its nodes; what a node shows by itself goes first."""
    told = {
        entry.name.split("/")[-2]: entry.value
        for entry in AILMENT.scan(deps.alerts or deps.state, f"{deps.name}/")
        if not entry.value.over
    }
    nodes = view.nodes
    ill = {node.name for node in nodes if node.name in told and not node.sick and told[node.name].at >= node.created_at}
    if not ill:
        return view
    seen = tuple(replace(n, sick=told[n.name].why) if n.name in ill else n for n in nodes)
    return replace(view, nodes=seen)
