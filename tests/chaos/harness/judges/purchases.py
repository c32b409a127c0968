"""Purchases on trial: each launch against the caps and budgets, the pods that wait, and what was bought before."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from harness.judges.strangers_books import StrangersBooks
from harness.scene import START
from pilotlight.facts.decisions import Buy, Record
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldJob, WorldNode

Fault = Literal["double_buys", "double_replacements", "cap_overruns", "stuck_gangs", "ignored_people"]


class _Bought(NamedTuple):
    """Nodes that one call launched for a recorded purchase. ``starts`` is how often each pod's job had started."""

    buy: Buy
    decision: str
    nodes: tuple[WorldNode, ...]
    starts: dict[str, int]


class Purchases:
    """Told of every decision, look and launch; ``broke`` is told what is wrong with one.

    ``lost`` are pools that lost a node of ours, ``ours`` the nodes that were bought, ``strays`` those of a request
    that came too late, ``given_up`` nodes that never joined and that their cloud ends by itself: they are no room.
    """

    def __init__(
        self, world: World, policy: Policy, books: StrangersBooks, broke: Callable[[Fault, str], None]
    ) -> None:
        self.records: dict[str, Record] = {}
        self.ours: dict[str, WorldNode] = {}
        self.lost: set[str] = set()
        self.strays: set[str] = set()
        self.given_up: set[str] = set()
        self._world, self._policy, self._books, self._broke = world, policy, books, broke
        self._decided: dict[str, str] = {}
        self._seen: dict[str, tuple[PodDemand, ...]] = {}
        self._bought: list[_Bought] = []
        self._approvals: dict[str, str] = {}

    def recorded(self, worker: str, record: Record) -> None:
        """A decision's record was written."""
        self.records[record.id] = record
        self._decided[worker] = record.id

    def decided(self, worker: str) -> str:
        """The decision that a worker recorded last."""
        return self._decided.get(worker, "")

    def observed(self, worker: str, pending: Sequence[PodDemand]) -> None:
        """A worker looked at the cluster: it may buy for what waits, and for what runs on a node that is taken."""
        self._seen[worker] = (*pending, *(d for job in self._doomed() for d in job.demands))

    def seen(self, worker: str) -> tuple[PodDemand, ...]:
        """What a worker's last look may be bought for."""
        return self._seen.get(worker, ())

    def came_late(self, pool: str, nodes: tuple[WorldNode, ...]) -> None:
        """Nodes came that nobody could call off any more: from now on it is unknown which of a pool's were asked for.

        They must be found and given back or used; until then caps may be passed by as much.
        """
        self.ours.update({n.id: n for n in nodes})
        self.lost.add(pool)
        self.strays.update(n.id for n in nodes)

    def launched(self, worker: str, mine: str, pool: str, zone: str, nodes: tuple[WorldNode, ...]) -> None:
        """A worker's call launched nodes, which it made after it had decided ``mine``."""
        self.ours.update({n.id: n for n in nodes})
        doomed = self._doomed()
        waiting = {d.uid: d for job in (*self._world.pending.values(), *doomed) for d in job.demands}
        starts = {d.uid: job.starts for job in (*self._world.pending.values(), *doomed) for d in job.demands}
        more = self._one_more(mine, pool, zone, nodes)
        purchase = None if more else self._purchase(mine, pool, zone)
        kind: Fault = "double_buys"
        if purchase is not None:
            decision, buy = purchase
            self._books.bought([n.id for n in nodes], buy.terms, self._shortest_s(buy))
            kind = "double_replacements" if any(starts.get(uid) for uid in buy.demands) else kind
            self._twice(worker, buy, decision, starts, kind)
            self._served(worker, buy, decision, kind)
            self._two_names(worker, buy)
            self._part_of_gang(worker, buy, decision)
            self._approved_once(worker, buy, decision)
            self._bought.append(_Bought(buy, decision, nodes, starts))
        ids = [n.id for n in nodes]
        looked_s = (self.records[purchase[0]].at - START).total_seconds() if purchase else self._world.now_s
        over = () if self.strays & self._world.nodes.keys() else _over(self._policy, self._world, pool)
        for line in (*over, *self._books.over(ids, self._world, looked_s)):
            self._broke("cap_overruns", f"{worker} launched {', '.join(ids)}: {line}")
        waiting.update({d.uid: d for d in self.seen(worker)})
        self._too_many(worker, pool, zone, list(waiting.values()), kind)

    def _one_more(self, mine: str, pool: str, zone: str, nodes: tuple[WorldNode, ...]) -> bool:
        """Whether nodes are further ones of a purchase that is on trial already: its call asks for each by itself."""
        for n, bought in enumerate(self._bought):
            same = (bought.decision, bought.buy.pool, bought.buy.zone) == (mine, pool, zone)
            if same and len(bought.nodes) < bought.buy.count:
                self._bought[n] = bought._replace(nodes=(*bought.nodes, *nodes))
                self._books.bought(
                    [one.id for one in nodes], bought.buy.terms[len(bought.nodes) :], self._shortest_s(bought.buy)
                )
                return True
        return False

    def _doomed(self) -> list[WorldJob]:
        return [job for node in self._world.nodes.values() if node.doomed_s for job in node.jobs.values()]

    def _shortest_s(self, buy: Buy) -> Seconds:
        """The least time that a job of a purchase still runs; none where none of them waits any more."""
        jobs = [j for j in self._world.pending.values() if any(d.uid in buy.demands for d in j.demands)]
        return min((job.run_s - job.saved_s for job in jobs), default=0.0)

    def _purchase(self, mine: str, pool: str, zone: str) -> tuple[str, Buy] | None:
        """The recorded purchase that a call carries out: of this worker's decision, else of any left open."""
        done = {(b.decision, b.buy.offering) for b in self._bought}
        for id in (mine, *(r.id for r in self.records.values() if r.status == "open")):
            for buy in self.records[id].plan.buys if id in self.records else ():
                if (buy.pool, buy.zone) == (pool, zone) and (id, buy.offering) not in done:
                    return id, buy
        return None

    def _twice(self, worker: str, buy: Buy, decision: str, starts: dict[str, int], kind: Fault) -> None:
        for earlier in self._bought:
            both = set(buy.demands) & set(earlier.buy.demands)
            again = {uid for uid in both if uid in starts and starts[uid] == earlier.starts.get(uid)}
            # What still boots of a pool that lost a node may be the other purchase's.
            whole = len(earlier.nodes) == earlier.buy.count and earlier.buy.pool not in self.lost
            boots = self._world.nodes.keys() - self.given_up
            if again and whole and all(n.id in boots and not n.ready for n in earlier.nodes):
                who = ", ".join(sorted(again))
                self._broke(
                    kind,
                    f"{worker} bought {buy.offering} for {who} ({decision}) while {earlier.nodes[0].id} boots for it",
                )

    def _served(self, worker: str, buy: Buy, decision: str, kind: Fault) -> None:
        """All that it is bought for runs on nodes that others have bought since the look it rests on."""
        looked_s = (self.records[decision].at - START).total_seconds()
        runs = {d.uid: job for job in self._world.running.values() for d in job.demands}
        served = [runs[uid] for uid in buy.demands if uid in runs]
        if len(served) < len(buy.demands) or not served:
            return
        own = {n.id for b in self._bought if b.decision == decision for n in b.nodes}
        if all(p.node.launched_s > looked_s and p.node.id not in own for job in served for p in job.placement):
            who = ", ".join(sorted(buy.demands))
            self._broke(kind, f"{worker} bought {buy.offering} for {who} ({decision}), which run on newer nodes")

    def _two_names(self, worker: str, buy: Buy) -> None:
        """A pod that was stopped comes back under a new name, and is the same one."""
        names = Counter(uid.partition("-r")[0] for uid in set(buy.demands))
        for pod in sorted(pod for pod, count in names.items() if count > 1):
            self._broke("double_replacements", f"{worker} bought {buy.offering} for {pod} under two names")

    def _approved_once(self, worker: str, buy: Buy, decision: str) -> None:
        """An approval is one decision's."""
        first = self._approvals.setdefault(buy.approval, decision)
        if buy.approval and first != decision:
            self._broke("ignored_people", f"{worker} bought by {buy.approval} ({decision}), as {first} had")

    def _too_many(self, worker: str, pool: str, zone: str, waiting: list[PodDemand], kind: Fault) -> None:
        rules = self._policy.pools[pool]
        machine = self._world.fleet.machine(pool, zone)
        # Not those a pool put in the place of lost ones: nobody asked for them.
        live = [n for id, n in self.ours.items() if id in self._world.nodes.keys() - self.strays - self.given_up]
        booting = sum(1 for n in live if n.pool == pool and not n.ready)
        able = sum(
            1 for d in waiting if d.shape.gpu.count <= machine.gpus and self._world.need(d.shape).allows(machine)
        )
        if booting > able + rules.min + rules.spares.warm:
            self._broke(kind, f"{worker}: {booting} nodes of {pool} boot and {able} pods wait that could use them")

    def _part_of_gang(self, worker: str, buy: Buy, decision: str) -> None:
        """A decision that buys for some of a gang must have a place for each of its waiting pods."""
        placed = {uid for g in self.records[decision].plan.pods if g.verdict in _PLACED for uid in g.uids}
        for job in self._world.pending.values():
            members = {d.uid for d in job.demands}
            if len(members) > 1 and members & set(buy.demands) and not members <= placed:
                self._broke("stuck_gangs", f"{worker} bought {buy.offering} for a part of {job.id} ({decision})")


_PLACED = ("fits", "booting", "bought")


def _over(policy: Policy, world: World, pool: str) -> Iterator[str]:
    """Every cap that what is lit now passes."""
    nodes, caps = list(world.nodes.values()), policy.caps
    gpus, usd = sum(n.gpus for n in nodes), sum(n.price for n in nodes)
    of_pool = sum(1 for n in nodes if n.pool == pool)
    if caps.nodes is not None and len(nodes) > caps.nodes:
        yield f"{len(nodes)} nodes of {caps.nodes}"
    if caps.gpus is not None and gpus > caps.gpus:
        yield f"{gpus} GPUs of {caps.gpus}"
    if caps.usd_per_hour is not None and usd > caps.usd_per_hour:
        yield f"${usd} an hour of ${caps.usd_per_hour}"
    if of_pool > policy.pools[pool].max:
        yield f"{of_pool} nodes of pool {pool}, at most {policy.pools[pool].max}"
