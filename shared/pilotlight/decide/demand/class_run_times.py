"""Run times of a class's pods, learned from those that came and went: budgets with ``hard: false`` hold for them."""

from collections.abc import Iterable
from datetime import datetime

from pilotlight.facts.capacity import Node
from pilotlight.facts.money.budgets import Runs
from pilotlight.units import Seconds

LEAST, MOST = 5, 99
"""A median counts from so many runs on; no more than the last so many are kept of a class."""


def learn_run_times(runs: Runs, nodes: Iterable[Node], now: datetime) -> Runs:
    """The runs after another look. One lasts from the look that first saw the pod to the first that did not."""
    here = {pod.uid: pod.workload_class for node in nodes for pod in node.gpu_pods}
    lengths = dict(runs.lengths)
    for uid, (name, since) in runs.begun.items():
        if uid not in here:
            lengths[name] = (*lengths.get(name, ()), (now - since).total_seconds())[-MOST:]
    begun = {uid: runs.begun.get(uid, (name, now)) for uid, name in here.items()}
    return Runs(begun=begun, lengths=lengths)


def typical(runs: Runs) -> dict[str, Seconds]:
    """The median run of each class that was seen often enough."""
    if not runs.lengths:
        return {}
    from statistics import median

    return {name: median(known) for name, known in runs.lengths.items() if len(known) >= LEAST}
