"""Homes given: nodes are opened or get a home, and pods the toleration of theirs, as a plan says.

A pod's own tolerations and a node's own taint are the only record: whoever looks next goes on from there. A cluster
that does not answer, or refuses, changes nothing; the next look tries again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Buy, Record
from pilotlight.facts.place.homes import HomePlan, Tolerate, home_id
from pilotlight.facts.workload import PodDemand
from pilotlight.flow.deps import Deps
from pilotlight.ports.clouds import CALL_S

Keep = Callable[..., None]
"""Keeps the lease for so many seconds more; raises once it is lost."""


def give_homes(deps: Deps, homes: HomePlan, keep: Keep) -> None:
    """Make a plan's writes, where it has any: nodes that are opened first, then homes of nodes, then tolerations."""
    if deps.policy.placement == "homes":
        with suppress(Denied, Retry):  # A watchman that does not hear of us opens what is closed.
            deps.cluster.beat()
    for name in homes.open:
        _write(partial(deps.cluster.open, name), keep)
    for name, home in homes.name.items():
        _write(partial(deps.cluster.name_home, name, home), keep)
    _tolerate(deps, homes.tolerate, keep)


def move_in(deps: Deps, done: Record, pending: Sequence[PodDemand], keep: Keep) -> None:
    """Give the pods of purchases that were made the tolerations of their nodes, which are on their way."""
    _tolerate(deps, _of_purchases(done, {pod.uid: pod for pod in pending}), keep)


def _of_purchases(done: Record, pods: dict[str, PodDemand]) -> Iterator[Tolerate]:
    for call, step in done.calls_with_steps:
        if isinstance(call, Buy) and step.state == "done":
            for uid, k in zip(call.demands, call.homes, strict=False):
                if uid in pods and k < step.count:
                    home = home_id(done.id, step.n, k)
                    yield Tolerate(namespace=pods[uid].namespace, pod=pods[uid].name, uid=uid, home=home)


def _tolerate(deps: Deps, these: Sequence[Tolerate] | Iterator[Tolerate], keep: Keep) -> None:
    for one in these:
        _write(partial(deps.cluster.tolerate, one.namespace, one.pod, one.uid, one.home), keep)


def _write(call: Callable[[], None], keep: Keep) -> None:
    keep(for_s=CALL_S)
    with suppress(Denied, Retry):
        call()
