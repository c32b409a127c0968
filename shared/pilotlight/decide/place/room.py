"""Room for pods: on lit nodes, on nodes on their way, within the caps; and pods that wait, placed in it in order."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import msgspec

from pilotlight.decide.fit.fit import Bin, of_node, of_offering
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.place.gangs import place_gang
from pilotlight.decide.place.homes import name_bins
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.place.purchase import Group, Headroom, in_units
from pilotlight.decide.work import Work, has_homes
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState


def find_room(work: Work) -> None:
    """Free room of ready nodes (fullest first), room on its way, and what the caps leave.

    Failed capacity is no room, but counts against the caps until it is gone. So does what a cloud could not launch yet,
    and instances in doubt, which may be nodes.
    """
    look, by_pool = work.look, work.by_pool
    lit = Counter([f.pool for f in work.failed] + [n.pool for n in work.standing])
    coming: list[Bin] = []
    owed: Counter[str] = Counter()
    asked = _asked(work.memory, work.offerings)
    for state in sorted(look.pools, key=lambda p: p.name):
        if state.name in by_pool:
            owed[state.name] = _count(state, lit, work.in_doubt, coming, by_pool[state.name], asked.get(state.name, ()))
    headroom = Headroom(work.policy)
    for name, count in lit.items():
        if name in by_pool:
            headroom.add(by_pool[name], count)
    work.usd_per_hour_before = headroom.usd_per_hour
    purse = Purse(look.money, look.now) if look.money.balances else None
    headroom = replace(
        headroom, owed=+owed, quotas=look.quotas, purse=purse, paid=work.paid, spot_shares=work.spot_shares
    )
    work.run = Provisioner(work, _ready(work), _registered(work) + coming, headroom)
    if has_homes(work):
        name_bins(work)


def place_pods(work: Work) -> None:
    """Plan for all pods that wait, in order."""
    run, view = work.run, work.view
    pending = [pod for pod in view.pending if pod.uid not in work.infeasible] if work.infeasible else view.pending
    asked = run.in_flight(pending)
    gangs = any(pod.shape.gang for pod in pending)
    running = Counter(p.gang for n in view.nodes for p in n.pods if p.gang) if gangs else Counter()
    for gang, groups in in_units(pending):
        # What was asked for counts in the order, so that the rest of a gang finds the room which that plan left to it.
        flown = [asked[pod.uid] for group in groups for pod in group.pods if pod.uid in asked]
        rest = _without(groups, asked)
        if gang is not None and rest:
            place_gang(run, gang, rest, running[gang], flown)
        elif rest:
            run.place(rest[0])


def _without(groups: Sequence[Group], asked: Container[str]) -> list[Group]:
    """The groups without pods whose node was asked for."""
    rest = [Group(group.shape, [pod for pod in group.pods if pod.uid not in asked]) for group in groups]
    return [group for group in rest if group.pods]


def _count(
    state: PoolState,
    lit: Counter[str],
    in_doubt: Mapping[str, int],
    booting: list[Bin],
    offering: Offering,
    asked: Sequence[Offering],
) -> int:
    """Count a pool's instances that are no nodes yet, with room for those that boot; returns how many it is owed."""
    coming = max(0, state.desired - lit[state.name])
    missing = min(in_doubt.get(state.name, 0), coming)
    lit[state.name] += coming
    coming -= missing
    owed = min(state.owed, coming)
    booted = coming - owed
    bought = asked[-booted:] if booted else ()
    for one in (*[offering] * (booted - len(bought)), *bought):
        bin_ = of_offering(one, "booting", one.name)
        bin_.coming = True
        booting.append(bin_)
    return owed


def _ready(work: Work) -> list[Bin]:
    """Nodes with room, the fullest first."""
    ready = [
        (-node.used_milli / max(1, 1000 * len(node.devices)), node.name, node)
        for node in work.standing
        if node.ready and node.roomy and node.schedulable and node.name not in work.no_room
    ]
    return [of_node(node) for _, _, node in sorted(ready, key=lambda r: r[:2])]


def _registered(work: Work) -> list[Bin]:
    """Nodes that are known to the cluster and not ready yet, without work."""
    by_pool = work.by_pool
    found = []
    for node in work.standing:
        if not node.ready and node.schedulable and node.pool in by_pool and not node.gpu_pods:
            found.append(of_offering(_as_it_came(by_pool[node.pool], node), "booting", node.name))
            found[-1].home = node.home
    return found


def _asked(memory: Memory, offerings: Sequence[Offering]) -> dict[str, list[Offering]]:
    """Offerings on their way, by pool, one for each node, the newest last: they differ by zone."""
    known = {offering.name: offering for offering in offerings if offering.zone} if memory.in_flight else {}
    found: dict[str, list[Offering]] = {}
    for entry in sorted(memory.in_flight, key=lambda e: (e.requested_at, e.decision, e.n, e.offering)):
        if entry.offering in known:
            found.setdefault(entry.pool, []).extend([known[entry.offering]] * entry.count)
    return found


def _as_it_came(offering: Offering, node: Node) -> Offering:
    """The offering with the labels that a node which is not ready yet tells itself."""
    return msgspec.structs.replace(offering, labels={**offering.labels, **node.labels}) if node.labels else offering
