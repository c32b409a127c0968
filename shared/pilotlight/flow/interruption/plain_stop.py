"""Stops at the end of a hard cap whose steps cannot be worked out: done plainly, so that the cap is kept all the same.

A stop was begun only where the classes of all pods allow it. Its pods are evicted from its beginning on, asked by their
disruption budgets; at its deadline they are deleted, and the node is given back once it is empty.
"""

from datetime import timedelta

from pilotlight.errors import Busy, Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.interruption.interruption import STOP_KINDS, Interruption
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.cycle.cycle import run_cycle
from pilotlight.flow.cycle.planning import Aim
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.departing_node import node_of
from pilotlight.flow.records import brake_records, node_marks

AHEAD = timedelta(seconds=60)
"""Pods that their disruption budgets keep are deleted so long before the deadline."""


def carry_on(deps: Deps) -> None:
    """Carry on the stops at a cap that are set apart. A refusal is met again at the next look."""
    names = deps.set_apart("rescue")
    stops = [
        one for one in interruption_records.every(deps.state, deps.name) if one.instance in names and not one.is_over
    ]
    for found in stops:
        acts = deps.mode_of(found.pool) == "act" and not brake_records.pause_reason(deps.state, deps.name, found.pool)
        node = node_of(deps.observe(), found.instance, found.node) if found.kind in STOP_KINDS and acts else None
        if node is not None:
            _stop(deps, found, node)


def _stop(deps: Deps, found: Interruption, node: Node) -> None:
    now, deadline = deps.now(), found.deadline
    try:
        node_marks.hold(deps, node.name, "rescue", f"{found.kind} of {found.instance}")
        left = [
            pod
            for pod in deps.cluster.bound_pods(deps.known_as(node.name))
            if pod.gpu is not None and not pod.daemonset
        ]
        for pod in left:
            try:
                deps.cluster.evict(pod.namespace, pod.name, pod.uid)
            except Busy:
                if deadline is not None and now >= deadline - AHEAD:
                    deps.cluster.delete(pod.namespace, pod.name, pod.uid, pod.grace_s)
    except (Retry, Denied):
        return
    if not left:
        verdict = NodeVerdict(
            node=node.name,
            pool=node.pool,
            instance=node.instance or node.name,
            verdict="release",
            why=f"{found.kind}: its steps cannot be worked out, and nothing is left on it",
            usd_per_hour=next((o.usd_per_hour for o in deps.offerings if o.pool == node.pool), None),
            forced=True,
        )
        run_cycle(deps, "interrupt", f"{found.kind} {found.instance}", Aim(releases=False, gives=(verdict,)))
