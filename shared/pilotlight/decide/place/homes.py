"""Homes: each pod gets the toleration of the one node that it is planned on, by whose taint all other pods keep off.

A homed node is born with the taint ``pilotlight.dev/home=new``, which no pod tolerates. When it is seen it is given a
home: that of the purchase it came of, else one of its own. Which pods a node takes is the plan's alone: the ordinary
scheduler binds them there by its other rules. Nothing is opened and closed again.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pilotlight.decide.fit.fit import Bin, fill, of_node
from pilotlight.decide.place.belonging import acting_pools
from pilotlight.decide.place.purchase import Group, by_age, in_order
from pilotlight.facts.capacity import Node
from pilotlight.facts.labels import NEW_HOME, ODD_HOME, ZONE
from pilotlight.facts.place.homes import NO_HOMES, HomePlan, Tolerate, home_id
from pilotlight.facts.place.pod_verdicts import NOT_HELPED
from pilotlight.facts.workload import TAKES_HOMES, Finding, PodDemand, PodShape

if TYPE_CHECKING:
    from pilotlight.decide.place.provision import Provisioner
    from pilotlight.decide.work import Work

MOST_TRIED = 8
"""A pod without GPUs that is bound to none of so many nodes is kept off for a reason of its own."""

ANY_HOME = "*"
"""A pod's homes where it tolerates the taint whatever its value."""


class Housed(NamedTuple):
    """Pods that a plan puts on one node, there or on its way."""

    bin: Bin
    pods: Sequence[PodDemand]


def steer_home(work: "Work") -> None:
    """Keep nodes of homed pools for the pods that they are given: those in ``act`` that nobody has paused."""
    may = work.view.limited is not False  # Else nobody keeps us to tolerations, or we may add none: nodes are opened.
    work.steered = acting_pools(work.view, work.policy, work.look.brakes) & work.policy.homed if may else ()


def name_bins(work: "Work") -> None:
    """Give every bin of a homed pool that has no home yet the home of the purchase it is of, the oldest first.

    A node that is there and of no purchase gets one of its own; one on its way of which nothing is known gets none.
    """
    run, memory = work.run, work.memory
    bins = [*run.ready, *run.booting]
    given = {node.home for node in work.view.nodes}
    zones = {offering.name: offering.zone for offering in work.offerings}
    left: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for entry in sorted((*memory.in_flight, *memory.came), key=lambda e: (e.requested_at, e.decision, e.n)):
        homes = (home_id(entry.decision, entry.n, k) for k in range(entry.count))
        left[entry.pool] += [(home, zones.get(entry.offering, "")) for home in homes if home not in given]
    there = [bin_ for bin_ in bins if bin_.home == NEW_HOME]
    coming = [bin_ for bin_ in bins if bin_.coming and bin_.pool in work.steered]
    for bin_ in (*there, *coming):
        zone, own = bin_.labels.get(ZONE, ""), left[bin_.pool]
        home = next((one for one in own if not zone or one[1] in ("", zone)), None)
        if home is not None:
            own.remove(home)
            bin_.home = home[0]
        elif bin_.home:
            bin_.home = own_home(bin_.where)


def own_home(node: str) -> str:
    """The home of a node that no purchase is known of."""
    return f"node-{blake2b(node.encode(), digest_size=8).hexdigest()}"


def keep_homes(run: "Provisioner", pending: Sequence[PodDemand]) -> dict[str, str]:
    """Put pods on the nodes whose toleration they have, or that were bought for them; the offering of each, by uid.

    A home that the scheduler does not bind its pod to is no home of it any more: it is planned anew.
    """
    bins = {bin_.home: bin_ for bin_ in (*run.ready, *run.booting) if bin_.home}
    if not bins:
        return {}
    homes = _homes_of(run, pending, bins)
    turn = [pod for pod in sorted(pending, key=by_age) if homes[pod.uid]]
    kept: dict[str, str] = {}
    while turn:
        by_bin: dict[tuple[str, str], Group] = {}
        for pod in turn:
            by_bin.setdefault((pod.shape.key, homes[pod.uid].pop(0)), Group(pod.shape, [])).pods.append(pod)
        for (_, home), group in sorted(by_bin.items(), key=lambda item: (in_order(item[1]), item[0])):
            kept |= _keep(run, bins[home], group)
        turn = [pod for pod in turn if pod.uid not in kept and homes[pod.uid]]
    return kept


def _homes_of(run: "Provisioner", pending: Sequence[PodDemand], bins: Mapping[str, Bin]) -> dict[str, list[str]]:
    """The homes that are there of each pod, by uid: those that it tolerates, then the one that was bought for it."""
    bought: dict[str, str] = {}
    for entry in (*run.memory.in_flight, *run.memory.came):
        for uid, k in zip(entry.demands, entry.homes, strict=False):
            bought[uid] = home_id(entry.decision, entry.n, k)
    return {
        pod.uid: [
            home
            for home in dict.fromkeys((*pod.homes, bought.get(pod.uid, "")))
            if home in bins
            and not run.memory.has_mismatch(pod.shape.key, bins[home].where, run.now)
            and not run.too_risky(pod.shape, bins[home].pool)
        ]
        for pod in pending
    }


def _keep(run: "Provisioner", bin_: Bin, group: Group) -> dict[str, str]:
    """Pods of a group that find room at home; the offering of its node for each, by uid."""
    here = sum(count for _, count in fill(group.shape, len(group.pods), [bin_], run.allowed))
    if not here:
        return {}
    pods, ready = group.pods[:here], bin_.kind == "ready"
    why = "its node is ready; the scheduler will bind it" if ready else "its node is on its way"
    run.tell("fits" if ready else "booting", Group(group.shape, pods), bin_.where, why)
    run.take_spot_share(bin_.pool, group.shape, here)
    run.house(bin_, pods)
    offering = next((o.name for o in run.offerings if bin_.in_pool_of(o)), bin_.pool)
    return {pod.uid: offering for pod in pods}


def place_homes(work: "Work") -> None:
    """Tolerations to add, homes to give, and nodes to open, by where the plan puts each pod."""
    view, run = work.view, work.run
    bins = {bin_.where: bin_ for bin_ in (*run.ready, *run.booting) if bin_.home}
    kept = [node for node in view.nodes if node.home]
    opened = tuple(sorted(n.name for n in kept if n.pool not in work.steered or n.unserved or n.home == ODD_HOME))
    new = (node.name for node in kept if node.home == NEW_HOME and node.name in bins)
    names = {name: bins[name].home for name in new if name not in opened}
    closed = {*opened, *(node.node for node in work.plan.releases)}
    given = [*_given(work, run.housed, opened), *_given(work, _for_the_unhelped(work, closed), opened)]
    given += [*_given(work, _beside(work, closed), opened), *_next_in_line(work, closed), *_for_others(work, closed)]
    plan = HomePlan(tolerate=tuple(given), name=names, open=opened)
    if plan != NO_HOMES:
        work.plan = replace(work.plan, homes=plan)
    strangers = tuple(_strangers(work))
    if strangers:
        work.plan = replace(work.plan, findings=(*work.plan.findings, *strangers))


def _given(work: "Work", houses: Iterable[Housed], opened: Collection[str]) -> Iterator[Tolerate]:
    """Tolerations that pods lack of the nodes that they are put on, there or on their way."""
    to_come = {uid for queued in work.view.queued for each in queued.sets for uid in each.uids}  # No pods yet.
    for bin_, pods in houses:
        if not bin_.home or bin_.kind == "new" or bin_.where in opened:
            continue
        node = bin_.where if bin_.kind == "ready" else ""
        for pod in pods:
            if bin_.home not in pod.homes and pod.uid not in to_come:
                yield Tolerate(namespace=pod.namespace, pod=pod.name, uid=pod.uid, home=bin_.home, node=node)


def _for_the_unhelped(work: "Work", opened: Collection[str]) -> Iterator[Housed]:
    """Free room for pods that nothing is bought for after all, as by a pause, while nobody else is planned there.

    Not for those that wait for a zone, because a dearer node would cost more than their waiting; nor for a gang's part.
    """
    run, pods = work.run, {pod.uid: pod for pod in work.view.pending}
    bins = [bin_ for bin_ in run.ready if bin_.home and bin_.where not in opened]
    for group in work.plan.pods if bins else ():
        left = [pods[uid] for uid in group.uids if uid in pods and pods[uid].shape.gang is None]
        if group.verdict not in NOT_HELPED or group.code == "zone" or not left:
            continue
        shape = left[0].shape
        free = [bin_ for bin_ in bins if not run.memory.has_mismatch(shape.key, bin_.where, run.now)]
        for bin_, count in fill(shape, len(left), free, run.allowed):
            yield Housed(bin_, left[:count])
            left = left[count:]


def _next_in_line(work: "Work", closed: Collection[str]) -> Iterator[Tolerate]:
    """Tolerations for pods at a cap, of nodes that are full: whoever is next takes room when it frees, not at a look.

    So many a node as it has devices, each pod of one; only where they belong.
    """
    away = {*closed, *work.no_room}
    nodes = [n for n in work.standing if n.ready and n.schedulable and n.home not in ("", NEW_HOME)]
    nodes = [n for n in nodes if n.name not in away]
    has = Counter(home for pod in work.view.pending for home in pod.homes)
    for pod in _at_cap(work) if nodes else ():
        own = work.run.homes_of(pod.shape)
        able = (n for n in nodes if (own is None or n.pool in own) and has[n.home] < len(n.devices))
        able = (n for n in able if _has_devices(n, pod.shape) and work.run.allowed(pod.shape, of_node(n)))
        node = next(able, None)
        if node is not None and not any(n.home in pod.homes for n in nodes):
            has[node.home] += 1
            yield Tolerate(namespace=pod.namespace, pod=pod.name, uid=pod.uid, home=node.home)


def _at_cap(work: "Work") -> Iterator[PodDemand]:
    """Pods, of no gang, for which a cap alone lets nothing be bought."""
    pods = {pod.uid: pod for pod in work.view.pending}
    capped = (group for group in work.plan.pods if group.verdict == "refused" and group.code == "cap")
    return (pods[uid] for group in capped for uid in group.uids if uid in pods and pods[uid].shape.gang is None)


def _has_devices(node: Node, shape: PodShape) -> bool:
    """True where a node has what a pod asks for of GPUs, once it is empty."""
    whole = shape.gpu.resource == node.resource and len(node.devices) >= shape.gpu.count
    return whole or node.slices.get(shape.gpu.resource, 0) >= shape.gpu.count


def _beside(work: "Work", closed: Collection[str]) -> Iterator[Housed]:
    """Free room of their pool for pods whose node was seen and is not ready: it may be dead, and replaced."""
    run = work.run
    for housed in list(run.housed):
        shape, left, own = housed.pods[0].shape if housed.pods else None, list(housed.pods), housed.bin
        if shape is None or own.kind != "booting" or own.coming:
            continue
        free = [b for b in run.ready if b.home and b.where not in closed and b.pool == own.pool]
        free = [b for b in free if b.labels.get(ZONE) == own.labels.get(ZONE) or shape.gang is None]
        free = [b for b in free if not run.memory.has_mismatch(shape.key, b.where, run.now)]
        for bin_, count in fill(shape, len(left), free, run.allowed):
            yield Housed(bin_, left[:count])
            left = left[count:]


def _for_others(work: "Work", closed: Collection[str]) -> Iterator[Tolerate]:
    """Tolerations for pods without GPUs that wait: of a node with room that nobody is planned on, another at each look
    while they are not bound.
    """
    run = work.run
    bins = [bin_ for bin_ in run.ready if bin_.home not in ("", NEW_HOME) and bin_.where not in closed]
    there = {bin_.home for bin_ in bins}
    for pod in work.view.others if bins else ():
        free = [bin_ for bin_ in bins if bin_.home not in pod.homes and bin_.room_for(pod.shape)]
        bin_ = next((b for b in free if run.allowed(pod.shape, b)), None)
        if bin_ is not None and len(there.intersection(pod.homes)) < MOST_TRIED:
            bin_.take_beside_gpus(pod.shape)
            yield Tolerate(namespace=pod.namespace, pod=pod.name, uid=pod.uid, home=bin_.home)


def _strangers(work: "Work") -> Iterator[Finding]:
    """Pods that tolerate homes which nobody gave them: all, or some before the first look that could have."""
    seen = work.look.memory.counted_to
    for pod in work.view.pending:
        if ANY_HOME in pod.homes or any(one.takes_all for one in pod.shape.tolerations):
            why = "it tolerates every taint, so it may take any node's room: name the taints that it needs"
        elif pod.homes and seen is not None and pod.created_at > seen:
            why = "it was made with a toleration of pilotlight.dev/home, which only Pilotlight gives: take it out"
        else:
            continue
        yield Finding(subject=pod.full_name, code=TAKES_HOMES, message=why, uid=pod.uid, team=pod.shape.team)
