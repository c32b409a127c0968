"""Room for pods: on lit nodes, on nodes on their way, within the caps; and pods that wait, placed in it in order.

Of a gang all pods get room, or none does. It goes to the single offering, one type in one zone, that can hold all of it
and adds the fewest dollars an hour; only where no single one can is it spread over several of one zone. Where some of
it is on its way, the rest finds its room first.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.fit.fit import Bin, of_node, of_offering
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.place.homes import name_bins
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.place.purchase import Group, Headroom, in_units
from pilotlight.decide.work import Work, has_homes
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.workload import PodDemand


def find_room(work: Work) -> None:
    """Free room of ready nodes (fullest first), room on its way, and what the caps leave.

    Failed capacity is no room, but counts against the caps until it is gone. So does what a cloud could not launch yet,
    instances in doubt, which may be nodes, and what a cloud ends and still bills.
    """
    look, by_pool, standing = work.look, work.by_pool, work.standing
    lit = Counter([f.pool for f in work.failed] + [n.pool for n in standing])
    coming: list[Bin] = []
    owed: Counter[str] = Counter()
    asked = _asked(work.memory, work.offerings)
    for state in sorted(look.pools, key=lambda p: p.name):
        if state.name in by_pool:
            sized = replace(state, desired=state.size_beside(standing)) if state.leaves else state
            owed[state.name] = _count(sized, lit, work.in_doubt, coming, by_pool[state.name], asked.get(state.name, ()))
            lit[state.name] += state.ending if state.booting else 0
    headroom = Headroom(work.policy)
    for name, count in lit.items():
        if name in by_pool:
            headroom.add(by_pool[name], count)
    work.usd_per_hour_before = headroom.usd_per_hour
    purse = Purse(look.money, look.now, look.policy) if look.money.balances else None
    headroom = replace(
        headroom, owed=+owed, quotas=look.quotas, purse=purse, paid=work.paid, spot_shares=work.spot_shares
    )
    work.run = Provisioner(work, _ready(standing, work.no_room), _registered(standing, by_pool) + coming, headroom)
    if has_homes(work):
        name_bins(work)


def place_pods(work: Work) -> None:
    """Plan for all pods that wait, in order."""
    run, view = work.run, work.view
    pending = [pod for pod in view.pending if pod.uid not in work.infeasible] if work.infeasible else view.pending
    asked = run.in_flight(pending)
    gangs = any(shape.gang for shape in view.shapes)
    running = Counter(p.gang for n in view.nodes for p in n.pods if p.gang) if gangs else Counter()
    for gang, groups in _in_turn(pending, work.look.untaken):
        # What was asked for counts in the order, so that the rest of a gang finds the room which that plan left to it.
        flown = [asked[pod.uid] for group in groups for pod in group.pods if pod.uid in asked] if asked else []
        rest = _without(groups, asked)
        if gang is not None and rest:
            place_gang(run, gang, rest, running[gang], flown)
        elif rest:
            run.place(rest[0])


def _in_turn(pending: Sequence[PodDemand], late: Container[str]) -> Iterator[tuple[str | None, list[Group]]]:
    """Units to place in order, the pods of ``late`` after all others."""
    if late:
        yield from in_units([pod for pod in pending if pod.uid not in late])
        pending = [pod for pod in pending if pod.uid in late]
    yield from in_units(pending)


def _without(groups: list[Group], asked: Collection[str]) -> list[Group]:
    """The groups without pods whose node was asked for."""
    if not asked:
        return groups
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


def _ready(nodes: Sequence[Node], no_room: Collection[str]) -> list[Bin]:
    """Nodes with room, the fullest first."""
    ready = [
        (-node.used_milli / max(1, 1000 * len(node.devices)), node.name, node)
        for node in nodes
        if node.ready and node.roomy and node.schedulable and node.name not in no_room
    ]
    return [of_node(node) for _, _, node in sorted(ready, key=lambda r: r[:2])]


def _registered(nodes: Sequence[Node], by_pool: Mapping[str, Offering]) -> list[Bin]:
    """Nodes that are known to the cluster and not ready yet, without work."""
    found = []
    for node in nodes:
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
    return replace(offering, labels={**offering.labels, **node.labels}) if node.labels else offering


def place_gang(run: Provisioner, gang: str, groups: list[Group], running: int, flown: Sequence[str]) -> None:
    """Plan for a gang. ``running`` pods of it run, and for as many as ``flown`` has offerings one is on its way."""
    size = groups[0].shape.gang.size if groups[0].shape.gang else 0
    here = sum(len(g.pods) for g in groups) + running + len(flown)
    if here < size:
        why = f"gang {gang}: {here} of its {size} pods exist; none is bought for yet"
        for group in groups:
            run.tell("waiting", group, "", why, code="gang")
        return
    alone = (_placed(run, groups, only) for only in _cheapest_first(run, groups))
    if not _joins(run, groups, flown) and not any(alone) and not _mixed(run, groups):
        _refuse(run, gang, size, groups)
    run.only, run.zone = None, ""


def _mixed(run: Provisioner, groups: list[Group]) -> bool:
    """Place it on any mix of offerings that are in one zone."""
    for zone in sorted({offering.zone for offering in run.offerings if offering.zone}) or [""]:
        run.zone = zone
        if _placed(run, groups, None) is not None:
            return True
    run.zone = ""
    return False


def _joins(run: Provisioner, groups: list[Group], flown: Sequence[str]) -> bool:
    """Place the rest of a gang whose other pods were asked for into room that there is: beside those, or anywhere."""
    beside = [offering for offering in run.offerings if offering.name in flown]
    return bool(flown) and any(_placed(run, groups, only, buy=False) for only in (*beside, None))


def _cheapest_first(run: Provisioner, groups: list[Group]) -> list[Offering]:
    """The single offerings that can hold the whole gang: where it belongs first, then by the dollars they add."""
    shape = groups[0].shape
    able, homes = run.able(run.offerings, shape), run.homes_of(shape)
    added: list[tuple[bool, Decimal, str, Offering]] = []
    for candidate in able.candidates:
        offering, before = candidate.offering, run.headroom.usd_per_hour
        undo = _placed(run, groups, offering)
        if undo is not None:
            away = homes is not None and offering.pool not in homes
            added.append((away, run.headroom.usd_per_hour - before, offering.name, offering))
            undo.restore(run)
    return [offering for *_, offering in sorted(added, key=lambda a: a[:3])]


def _placed(run: Provisioner, groups: list[Group], only: Offering | None, *, buy: bool = True) -> "Savepoint | None":
    """Place the whole gang, and tell how to take that back, or leave the run as it was."""
    undo = Savepoint(run)
    run.only = only
    if all(run.place(group, buy=buy) == len(group.pods) for group in groups):
        return undo
    undo.restore(run)
    return None


def _refuse(run: Provisioner, gang: str, size: int, groups: list[Group]) -> None:
    """Say why the gang was not placed, from what its pods were told in a last attempt that is taken back."""
    undo = Savepoint(run)
    run.only = None
    for group in groups:
        run.place(group)
    told = run.outcomes[undo.outcomes :]
    kept = [o for o in told if o.verdict in ("refused", "waiting", "finding")]
    rejected = {r.offering: r for o in (*told, *kept) for r in o.rejected}
    findings = run.findings[undo.findings :]
    undo.restore(run)
    run.findings += findings
    zones = "no one zone can hold them all" if any(o.zone for o in run.offerings) else "not all can be held"
    why = f"gang {gang}: all {size} pods or none; {kept[0].why if kept else zones}"
    code = kept[0].code if kept else "gang"
    for group in groups:
        waits = code in ("deadline", "rule", "unbound") and not findings  # For spot, or its own node: it is in time.
        run.tell(
            "finding" if findings else "waiting" if waits else "refused",
            group,
            "",
            why,
            tuple(rejected.values()),
            code=code,
        )


class Savepoint:
    """State that a gang's placement may have to give back: it is all restored, or kept."""

    def __init__(self, run: Provisioner) -> None:
        self.outcomes = len(run.outcomes)
        self._demands, self._housed = len(run.demands), len(run.housed)
        self.findings = len(run.findings)
        self._told_unbound = set(run.told_unbound)
        self._headroom = run.headroom.copy()
        self._neighbours = run.allowed.neighbours.copy_counts()
        self._bins = len(run.open.log)
        self._bought = {n: [len(part) for part in p.parts] for n, p in run.purchases.items()}

    def restore(self, run: Provisioner) -> None:
        """Put everything back as it was."""
        del run.outcomes[self.outcomes :]
        del run.demands[self._demands :]
        del run.housed[self._housed :]
        del run.findings[self.findings :]
        run.told_unbound = set(self._told_unbound)
        run.headroom = self._headroom
        run.allowed.neighbours.restore(self._neighbours)
        run.open.undo(self._bins)
        for name in [n for n in run.purchases if n not in self._bought]:
            del run.purchases[name]
        for name, lengths in self._bought.items():
            run.purchases[name].cut(lengths)
