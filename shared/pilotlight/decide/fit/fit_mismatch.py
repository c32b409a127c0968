"""Pods that the scheduler does not bind where we say they fit: something keeps them off that is not modelled here.

A plan's "fits" is a belief. It is given up for a shape and a node on the scheduler's own word alone: when it says after
the belief began that a pod of the shape fits nowhere, or when it has said so, was heard since, and the pod waits
unbound beside that node for ``BESIDE_S``. Conditions of a pod change only with their message, so that their times say
nothing: that the scheduler lived through its next try makes its word one on the node that is there. A scheduler that
is silent says nothing against a node; people are told. What was given up ends once a pod of the shape is bound there;
once one is bound anywhere, refusals by two nodes keep the shape off their own pools alone.

Where nodes have homes others may have the room sooner: ``HOME_S`` after both were seen, the ready node and the pod's
toleration of it, once the scheduler has passed the pod over. It tries pods of a priority in the order in which they
could be bound, however slow it is; so it has where it tried one that came later, or said something new of this one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

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

TRIES = timedelta(seconds=15)
"""A scheduler that lives tries a pod again within so long of a change, a node that is new included."""

BETWEEN, COUNTED = timedelta(seconds=90), timedelta(seconds=30)
"""Looks come every minute. Where more passes between two of them, looks failed: it counts for so little."""

UNEXPLAINED = "it said so in an event"

LOOKED = "@"
"""The name under which the last look stands among the beliefs."""

MOST_PODS = 20
"""Of so many pods of a shape it is looked whether one was bound."""

MOST = 500
"""So many beliefs are watched at a time."""


class Heard(NamedTuple):
    """When schedulers last showed that they live: when a pod was ``bound``, by whichever, and by the Lease of the
    cluster's default one, its ``beat``. None where nothing says it.
    """

    bound: datetime | None = None
    beat: datetime | None = None

    def heard_after(self, at: datetime, pods: Iterable[PodDemand]) -> bool:
        """True where the scheduler of one of these pods, which said something of it, lived through a try after ``at``.
        The default one's Lease says nothing of others.
        """
        said = [pod for pod in pods if pod.said]
        heard = [self.bound, self.beat if any(not pod.scheduler for pod in said) else None]
        return bool(said) and any(one is not None and one > at + TRIES for one in heard)


Beliefs = Mapping[str, datetime]
"""Since when a pod is believed to fit, by ``<pod uid>@<node>``. Beside these: when a node last carried our mark, by
``@<node>``, and when the last look was, by ``@``.

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
    gap = now - was.get(LOOKED, now)
    unseen = gap - COUNTED if gap > BETWEEN else timedelta(0)
    for name in names:
        since = was.get(name)
        if since is None:
            unmarked = marked.get(f"@{name.partition('@')[2]}")
            since = max(now, unmarked + AFTER_MARK) if unmarked is not None else now
        else:
            since += unseen
        marked[name] = since
    marked.pop(LOOKED, None)
    return {**marked, LOOKED: now} if marked else {}


def unbound_beside(
    found: Beliefs, pending: Iterable[PodDemand], now: datetime
) -> list[tuple[PodDemand, str, datetime]]:
    """Pods that have waited for ``BESIDE_S`` beside a node that they seem to fit on, with it, and since when."""
    pods = {pod.uid: pod for pod in pending}
    beside = (
        (name.partition("@"), since) for name, since in found.items() if (now - since).total_seconds() >= BESIDE_S
    )
    return [(pods[uid], node, since) for (uid, _, node), since in beside if uid in pods]


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
    found: Beliefs,
    pending: Iterable[PodDemand],
    nodes: Iterable[Node],
    refused: Mapping[str, datetime],
    heard: Heard,
    now: datetime,
) -> list[FitMismatch]:
    """The beliefs to give up. ``refused`` says by pod uid when the scheduler last said that it fits nowhere, ``heard``
    when schedulers last showed that they live.
    """
    pods = {pod.uid: pod for pod in pending}
    pools = {node.name: node.pool for node in nodes}
    out: dict[tuple[str, str], FitMismatch] = {}
    for name, since in found.items():
        uid, _, node = name.partition("@")
        pod = pods.get(uid)
        if pod is None or node not in pools:
            continue
        told = refused.get(uid)
        stands = (now - since).total_seconds() >= BESIDE_S and heard.heard_after(since, [pod])
        if stands or (told is not None and told > since + SKEW):
            why = f"does not fit there, says the scheduler: {pod.said or UNEXPLAINED}"
            until = now + MISFIT
            out[pod.shape.key, node] = FitMismatch(
                shape=pod.shape.key, node=node, pool=pools[node], until=until, why=why
            )
    return list(out.values())


def given_up(memory: Memory, found: Sequence[FitMismatch], pending: Iterable[PodDemand], now: datetime) -> Memory:
    """The memory with beliefs given up: the first of a shape keeps it off that pool, the second off every purchase."""
    quarantines = {(q.shape, q.pool): q for q in memory.quarantines}
    waiting = _by_shape(pending)
    for one in found:
        pods = tuple(pod.uid for pod in waiting.get(one.shape, ())[:MOST_PODS])
        quarantines[one.shape, one.pool] = Quarantine(
            shape=one.shape, pool=one.pool, until=one.until, why=one.why, pods=pods
        )
    known = {(one.shape, one.node): one for one in (*memory.misfits, *found) if one.until > now}
    return msgspec.structs.replace(memory, misfits=tuple(known.values()), quarantines=tuple(quarantines.values()))


def drop_refuted(memory: Memory, pending: Iterable[PodDemand], nodes: Iterable[Node]) -> Memory:
    """The memory after pods of doubted shapes were bound; of shapes still doubted it is noted which pods wait.

    One that is bound in a pool ends all that keeps its shape off that pool. One that is bound elsewhere says nothing of
    this pool, and that the shape fits somewhere: refusals by nodes speak of their own pools alone from then on.
    """
    waiting = _by_shape(pending)
    shapes = {uid: q.shape for q in memory.quarantines for uid in q.pods}
    came = {(shapes[pod.uid], node.pool) for node in nodes for pod in node.gpu_pods if pod.uid in shapes}
    fit = {shape for shape, _ in came}
    kept: list[Quarantine] = []
    for one in memory.quarantines:
        if (one.shape, one.pool) not in came:
            more = [pod.uid for pod in waiting.get(one.shape, ()) if pod.uid not in one.pods]
            kept.append(msgspec.structs.replace(one, pods=(*one.pods, *more)[-MOST_PODS:]) if more else one)
    misfits = tuple(
        msgspec.structs.replace(one, apart=True) if one.shape in fit else one
        for one in memory.misfits
        if (one.shape, one.pool) not in came
    )
    return msgspec.structs.replace(memory, misfits=misfits, quarantines=tuple(kept))


def findings(
    found: Sequence[FitMismatch], unheard: Sequence[tuple[PodDemand, str, datetime]], pending: Iterable[PodDemand]
) -> tuple[Finding, ...]:
    """Findings that tell people: one a shape, however many nodes it is refused on, and one of a scheduler that says
    nothing of pods beside nodes with room.
    """
    waiting = _by_shape(pending)
    nodes: dict[str, list[FitMismatch]] = {}
    for one in found:
        nodes.setdefault(one.shape, []).append(one)
    told = [
        Finding(
            subject=f"pod {waiting[shape][0].full_name}" if shape in waiting else f"node {refused[0].node}",
            code="scheduler-refuses",
            message=f"{_named(waiting.get(shape, []))} {refused[0].why} ({_some([one.node for one in refused])})",
        )
        for shape, refused in nodes.items()
    ]
    given_up = {(one.shape, one.node) for one in found}
    left = [(pod, node, since) for pod, node, since in unheard if (pod.shape.key, node) not in given_up]
    if left:
        told.append(silence([pod.full_name for pod, _, _ in left], min(since for _, _, since in left)))
    return tuple(told)


def silence(pods: Sequence[str], since: datetime) -> Finding:
    """What people should know of a scheduler that says nothing of pods beside nodes with room."""
    return Finding(
        subject="scheduler",
        code="scheduler-unheard",
        message=(
            f"{_some(pods)} beside ready nodes with room since {since:%H:%M}, and it has bound none and was not heard "
            "saying why. See that kube-scheduler runs; nothing more is bought for these pods meanwhile"
        ),
    )


def _by_shape(pending: Iterable[PodDemand]) -> dict[str, list[PodDemand]]:
    pods: dict[str, list[PodDemand]] = {}
    for pod in pending:
        pods.setdefault(pod.shape.key, []).append(pod)
    return pods


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _named(pods: Sequence[PodDemand]) -> str:
    more = f" and {len(pods) - 1} more like it" if len(pods) > 1 else ""
    return f"{pods[0].full_name}{more}" if pods else "a pod"
