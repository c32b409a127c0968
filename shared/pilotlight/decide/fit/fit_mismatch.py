"""Pods that the scheduler does not bind where we say they fit: something keeps them off that is not modelled here.

A plan's "fits" is a belief. It is given up for a shape and a node when one pod of it waits unbound beside that node for
``BESIDE_S``, or when the scheduler says after that belief began that the pod fits nowhere. Conditions of a pod change
only with their message, so that their times say nothing; what counts is how long the belief has lasted.

Where nodes have homes others may have the room sooner: ``HOME_S`` after both were seen, the ready node and the pod's
toleration of it, once the scheduler has passed the pod over. It tries pods of a priority in the order in which they
could be bound, however slow it is; so it has where it tried one that came later, or said something new of this one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b

import msgspec

from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import NEW_HOME
from pilotlight.facts.memory import FitMismatch, Memory, Quarantine
from pilotlight.facts.workload import Finding, PodDemand
from pilotlight.units import Seconds

BESIDE_S: Seconds = 120.0
"""The scheduler binds a pod to a ready node with room well within this."""

HOME_S: Seconds = 30.0
"""A pod that is bound to its home is so within this of the scheduler's first try: it tries again after 10 s at most."""

AFTER_MARK = timedelta(seconds=15)
"""So long after our taint came off, or was given its home, a node is new to the scheduler."""

SKEW = timedelta(seconds=5)
"""The API server's clock may be so far ahead of the store's."""

MISFIT = timedelta(hours=6)
"""A belief that was given up is tried again after so long."""

UNSAID = "it stays unbound beside a ready node with room"

MOST = 500
"""So many beliefs are watched at a time."""

Beliefs = Mapping[str, datetime]
"""Since when a pod is believed to fit: by ``<pod uid>@<node>``; and when a node last carried our mark: ``@<node>``.

Of pods at home also since when the scheduler says of one what it does, ``<pod uid>#<digest of its words>``, and when it
was seen to have come to its turn: ``<pod uid>!``.
"""


def not_due(
    plan: Plan, pending: Iterable[PodDemand], moving: Collection[str], closed: Collection[str] = ()
) -> frozenset[str]:
    """The pods that no scheduler would bind yet, though they fit: those that still run on a node they move from, those
    that wait for a ``closed`` node to open, and members of a gang of which others find no ready node.
    """
    waiting = {uid for group in plan.pods if group.where in closed for uid in group.uids}
    gangs = {pod.uid: pod.shape.gang.key for pod in pending if pod.shape.gang}
    ready = {uid for group in plan.pods if group.verdict == "fits" for uid in group.uids}
    lacking = {key for uid, key in gangs.items() if uid not in ready or uid in moving}
    return frozenset(moving).union(waiting, (uid for uid, key in gangs.items() if key in lacking))


def untold(plan: Plan, pending: Iterable[PodDemand], nodes: Iterable[Node]) -> frozenset[str]:
    """The pods that were not seen yet with the toleration of their node's home: no scheduler would bind them."""
    kept = {node.name: node.home for node in nodes if node.home}
    homes = {pod.uid: pod.homes for pod in pending}
    fits = (group for group in plan.pods if group.verdict == "fits" and group.where in kept)
    return frozenset(uid for g in fits for uid in g.uids if not {kept[g.where], "*"} & {*homes.get(uid, ())})


def believed_fits(
    plan: Plan, nodes: Iterable[Node], was: Beliefs, now: datetime, but: Collection[str] = ()
) -> dict[str, datetime]:
    """Beliefs of a plan, each since when; nothing of the pods in ``but``."""
    fits = (group for group in plan.pods if group.verdict == "fits")
    names = [f"{uid}@{group.where}" for group in fits for uid in group.uids if uid not in but][:MOST]
    marked = {name: at for name, at in was.items() if name.startswith("@") and now - at < AFTER_MARK}
    marked |= {f"@{node.name}": now for node in nodes if node.marked or node.home == NEW_HOME}
    for name in names:
        since = was.get(name)
        if since is None:
            unmarked = marked.get(f"@{name.partition('@')[2]}")
            since = max(now, unmarked + AFTER_MARK) if unmarked is not None else now
        marked[name] = since
    return marked


def turns(found: Beliefs, was: Beliefs, view: ClusterView, now: datetime) -> dict[str, datetime]:
    """What the scheduler does about pods that are believed to fit at home: its words, and that it came to their turn.

    It came to a pod's turn where its words are others than when the belief began, and where it tried one whose turn is
    later: made since, or bound though it could be bound only since.
    """
    bound = {pod.uid: pod.priority for node in view.nodes for pod in node.pods}
    tried = [(pod.created_at, pod.shape.priority) for pod in (*view.pending, *view.others) if pod.said]
    tried += [(since, bound[uid]) for uid, since in ((_uid(name), at) for name, at in was.items()) if uid in bound]
    out: dict[str, datetime] = {}
    for pod, since in _at_home(found, view):
        words, turn = f"{pod.uid}#{blake2b(pod.said.encode(), digest_size=6).hexdigest()}", f"{pod.uid}!"
        out[words] = was.get(words, now)
        later = any(at > since + SKEW and priority <= pod.shape.priority for at, priority in tried)
        if later or out[words] > since:
            out[turn] = now
        elif turn in was and was[turn] > since:
            out[turn] = was[turn]
    return out


def passed_over(found: Beliefs, view: ClusterView, now: datetime) -> frozenset[str]:
    """Pods (uid) that did not take their home in time though the scheduler came to their turn: others may have it.

    Never those of a gang, which the scheduler may hold until all can be bound.
    """
    return frozenset(
        pod.uid
        for pod, since in _at_home(found, view)
        if f"{pod.uid}!" in found and pod.shape.gang is None and (now - since).total_seconds() >= HOME_S
    )


def _at_home(found: Beliefs, view: ClusterView) -> Iterator[tuple[PodDemand, datetime]]:
    """Pods that are believed to fit on a node with a home, each since when."""
    pods = {pod.uid: pod for pod in view.pending}
    kept = {node.name for node in view.nodes if node.home}
    for name, since in found.items():
        uid, _, node = name.partition("@")
        if uid in pods and node in kept:
            yield pods[uid], since


def _uid(name: str) -> str:
    return name.partition("@")[0]


def fit_mismatches(
    found: Beliefs, pending: Iterable[PodDemand], nodes: Iterable[Node], refused: Mapping[str, datetime], now: datetime
) -> list[FitMismatch]:
    """The beliefs to give up. ``refused`` says by pod uid when the scheduler last said that it fits nowhere."""
    pods = {pod.uid: pod for pod in pending}
    pools = {node.name: node.pool for node in nodes}
    out: dict[tuple[str, str], FitMismatch] = {}
    for name, since in found.items():
        uid, _, node = name.partition("@")
        pod = pods.get(uid)
        if pod is None or node not in pools:
            continue
        told = refused.get(uid)
        if (now - since).total_seconds() >= BESIDE_S or (told is not None and told > since + SKEW):
            why = f"does not fit there, says the scheduler: {pod.said or UNSAID}"
            until = now + MISFIT
            out[pod.shape.key, node] = FitMismatch(
                shape=pod.shape.key, node=node, pool=pools[node], until=until, why=why
            )
    return list(out.values())


def given_up(memory: Memory, found: Sequence[FitMismatch], now: datetime) -> Memory:
    """The memory with beliefs given up: the first of a shape keeps it off that pool, the second off every purchase."""
    quarantines = {(q.shape, q.pool): q for q in memory.quarantines}
    for one in found:
        quarantines[one.shape, one.pool] = Quarantine(shape=one.shape, pool=one.pool, until=one.until, why=one.why)
    known = {(one.shape, one.node): one for one in (*memory.misfits, *found) if one.until > now}
    return msgspec.structs.replace(memory, misfits=tuple(known.values()), quarantines=tuple(quarantines.values()))


def findings(found: Sequence[FitMismatch], pending: Iterable[PodDemand]) -> tuple[Finding, ...]:
    """Findings that tell people of each."""
    pods: dict[str, list[PodDemand]] = {}
    for pod in pending:
        pods.setdefault(pod.shape.key, []).append(pod)
    return tuple(
        Finding(
            subject=f"node {one.node}",
            code="scheduler-refuses",
            message=f"{_named(pods.get(one.shape, []))} {one.why}",
        )
        for one in found
    )


def _named(pods: Sequence[PodDemand]) -> str:
    more = f" and {len(pods) - 1} more like it" if len(pods) > 1 else ""
    return f"{pods[0].full_name}{more}" if pods else "a pod"
