"""Homes given: nodes are opened or get a home, and pods the toleration of theirs, as a plan says.

A pod's own tolerations and a node's own taint are the only record: whoever looks next goes on from there. A cluster
that does not answer, or refuses, changes nothing; the next look tries again.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Buy, Plan, Record
from pilotlight.facts.memory import Tally
from pilotlight.facts.place.homes import Tolerate, home_id
from pilotlight.facts.workload import HOME_REFUSED, TAKES_HOMES, Finding, PodDemand
from pilotlight.flow.alerts.wording import mark
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.ports.clouds import CALL_S

Keep = Callable[..., None]
"""Keeps the lease for so many seconds more; raises once it is lost."""

Denials = dict[str, str]
"""Why tolerations were refused, by namespace."""


def give_homes(deps: Deps, _: Snapshot, plan: Plan, keep: Keep) -> tuple[Finding, ...]:
    """Make a plan's writes, where it has any: nodes that are opened first, then homes of nodes, then tolerations.

    Findings name the namespaces whose pods may be given none. Our watchmen, where we have some, hear of us first: one
    would open what we keep, and one hand our pools back.
    """
    homes = plan.homes
    if deps.has_watchmen:
        with suppress(Denied, Retry):
            deps.cluster.beat()
    _write(deps, (partial(deps.cluster.open, name) for name in homes.open), keep)
    _write(deps, (partial(deps.cluster.name_home, name, home) for name, home in homes.name.items()), keep)
    refused: Denials = {}
    _tolerate(deps, homes.tolerate, keep, refused)
    return tuple(
        Finding(
            subject=f"namespace {namespace}",
            code=HOME_REFUSED,
            message=f"its pods may be given no home, so the nodes bought for them are opened to every pod: {why}",
        )
        for namespace, why in sorted(refused.items())
    )


def count_takers(deps: Deps, plan: Plan, tally: Tally) -> Tally:
    """With the pods that take homes of which people were not told yet."""
    found = (mark(f"finding-{TAKES_HOMES}", (one.subject,)) for one in plan.findings if one.code == TAKES_HOMES)
    new = sum(not ledger.was_told(deps.state, deps.name, fingerprint) for fingerprint in found)
    return replace(tally, takers=tally.takers + new) if new else tally


def move_in(deps: Deps, snapshot: Snapshot, _: Plan, done: Record, keep: Keep) -> tuple[str, ...]:
    """Give the pods of purchases that were made the tolerations of their nodes, which are on their way."""
    _tolerate(deps, _of_purchases(done, {pod.uid: pod for pod in snapshot.view.pending}), keep, {})
    return ()


def _of_purchases(done: Record, pods: dict[str, PodDemand]) -> Iterator[Tolerate]:
    for call, step in done.calls_with_steps:
        if isinstance(call, Buy) and step.state == "done":
            for uid, k in zip(call.demands, call.homes, strict=False):
                if uid in pods and k < step.count:
                    home = home_id(done.id, step.n, k)
                    yield Tolerate(namespace=pods[uid].namespace, pod=pods[uid].name, uid=uid, home=home)


def _tolerate(deps: Deps, these: Iterable[Tolerate], keep: Keep, refused: Denials) -> None:
    _write(deps, (partial(_let_in, deps, one, refused) for one in these), keep)


def _let_in(deps: Deps, one: Tolerate, refused: Denials) -> None:
    """Where a pod may be given none, as by another's policy, its node is opened once ready: else it waits for ever."""
    try:
        deps.cluster.tolerate(one.namespace, one.pod, one.uid, one.home)
    except Denied as no:
        refused.setdefault(one.namespace, str(no))
        if one.node:
            deps.cluster.open(one.node)


def _write(deps: Deps, calls: Iterable[Callable[[], None]], keep: Keep) -> None:
    """Make calls, as many at once as the cluster takes: pods wait for them, and nodes cost meanwhile."""
    for _ in deps.write_in_rows((partial(_unless_refused, call) for call in calls), partial(keep, for_s=CALL_S)):
        pass


def _unless_refused(call: Callable[[], None]) -> None:
    with suppress(Denied, Retry):
        call()
