"""Counts what must never happen, from what the world does and from what was recorded and published.

======================  ==============================================================================================
double_buys             a demand bought for again while all that was first bought for it still boots; or more nodes of
                        a pool boot than pods wait that could use them
cap_overruns            a launch that takes nodes, GPUs, dollars an hour or a pool's nodes above the policy's, or what
                        a budget's nodes have cost and will until their work ends above its limit
killed_work             a node given back with a GPU pod on it
lost_demands            a pod that some pool alone could hold never runs, though faults have stopped
leaked_holds            something still held when all is quiet: a node, capacity in flight, dollars, an open record;
                        or a budget charged otherwise than its nodes cost
stuck_gangs             a gang that never runs, or nodes bought for a part of one
lost_messages           a recorded message in no outbox, or a pool changed otherwise than the messages tell
doubled_effects         one fact under two ids, or one id with two contents: a consumer that drops repeats errs
internal_errors         an answer 500
======================  ==============================================================================================
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, get_args

import msgspec

from pilotlight.chaos.books import Books
from pilotlight.chaos.scene import START
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Buy, Record
from pilotlight.facts.messages import TYPES, CapacityChanged, Outgoing
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds
from pilotlight.world.nodes import WorldNode
from pilotlight.world.world import Change, World

Kind = Literal[
    "double_buys",
    "cap_overruns",
    "killed_work",
    "lost_demands",
    "leaked_holds",
    "stuck_gangs",
    "lost_messages",
    "doubled_effects",
    "internal_errors",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

_changed = msgspec.json.Decoder(CapacityChanged)
_CHANGED = next(name for name, kind in TYPES.items() if kind is CapacityChanged)


class Violation(NamedTuple):
    """Something that must never happen, and when it did, in seconds of the world."""

    kind: Kind
    t: Seconds
    text: str


class _Bought(NamedTuple):
    """Nodes that one call launched for a recorded purchase."""

    buy: Buy
    decision: str
    nodes: tuple[WorldNode, ...]


class Watch:
    """Looks on. Its methods are called by the ports, in the order of the effects; from many threads, one at a time."""

    def __init__(self, world: World, policy: Policy, books: Books) -> None:
        self.violations: list[Violation] = []
        self.launched: Counter[str] = Counter()
        self.released: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.books = books
        self._world = world
        self._policy = policy
        self._lock = world.lock
        self._records: dict[str, Record] = {}
        self._decided: dict[str, str] = {}
        self._seen: dict[str, tuple[PodDemand, ...]] = {}
        self._bought: list[_Bought] = []
        self._ours: dict[str, WorldNode] = {}
        self._outbox: dict[str, Outgoing] = {}
        world.on_change.append(self._changed)

    def broke(self, kind: Kind, text: str) -> None:
        """Note a violation."""
        with self._lock:
            self.violations.append(Violation(kind, self._world.now_s, text))

    def recorded(self, worker: str, record: Record) -> None:
        """A decision's record was written."""
        with self._lock:
            self._records[record.id] = record
            self._decided[worker] = record.id

    def observed(self, worker: str, view: ClusterView) -> None:
        """A worker looked at the cluster."""
        self._seen[worker] = view.pending

    @contextmanager
    def launching(self, worker: str, pool: str, zone: str) -> Iterator[None]:
        """Around a call that may launch nodes."""
        with self._lock:
            before = set(self._world.nodes)
            try:
                yield
            finally:
                nodes = tuple(node for id, node in self._world.nodes.items() if id not in before)
                if nodes:
                    self._launch(worker, pool, zone, nodes)

    def releasing(self, worker: str, pool: str, instance: str) -> None:
        """Before an instance is given back."""
        with self._lock:
            node = self._world.nodes.get(instance)
            if node is None or node.pool != pool:
                return
            self.released[pool] += 1
            if node.jobs and not node.doomed_s:
                self.broke("killed_work", f"{worker} gave {instance} back, on which {', '.join(node.jobs)} runs")

    def held(self, key: str, value: bytes) -> None:
        """The hold of a node was written."""
        self.books.wrote(key, value)

    def freed(self, key: str) -> None:
        """A hold was settled, or given back."""
        self.books.deleted(key, self._world.now_s)

    def published(self, messages: Sequence[Outgoing]) -> None:
        """Messages have arrived."""
        with self._lock:
            for message in messages:
                first = self._outbox.setdefault(message.id, message)
                if (first.type, first.data) != (message.type, message.data):
                    self.broke("doubled_effects", f"message {message.id} was sent with two contents")

    def finish(self) -> None:
        """When all is quiet: what was recorded must be known, and known once."""
        for record in self._records.values():
            for message in record.messages:
                if message.id not in self._outbox:
                    self.broke(
                        "lost_messages", f"{message.type} {message.id} of a {record.status} record is in no outbox"
                    )
        self._told()

    def _changed(self, change: Change) -> None:
        # A node that took a lost one's place is of a pool that is here already.
        if change.what == "lost" and change.subject in self._ours:
            self.lost.add(self._ours[change.subject].pool)

    def _launch(self, worker: str, pool: str, zone: str, nodes: tuple[WorldNode, ...]) -> None:
        self.launched[pool] += len(nodes)
        self._ours.update({n.id: n for n in nodes})
        waiting = {d.uid: d for job in self._world.pending.values() for d in job.demands}
        purchase = self._purchase(worker, pool, zone)
        if purchase is not None:
            decision, buy = purchase
            self.books.bought([n.id for n in nodes], buy.terms, self._shortest_s(buy))
            self._twice(worker, buy, decision, set(waiting))
            self._part_of_gang(worker, buy, decision)
            self._bought.append(_Bought(buy, decision, nodes))
        ids = [n.id for n in nodes]
        looked_s = (self._records[purchase[0]].at - START).total_seconds() if purchase else self._world.now_s
        for line in (*_over(self._policy, self._world, pool), *self.books.over(ids, self._world, looked_s)):
            self.broke("cap_overruns", f"{worker} launched {', '.join(ids)}: {line}")
        waiting.update({d.uid: d for d in self._seen.get(worker, ())})
        doomed = [job for node in self._world.nodes.values() if node.doomed_s for job in node.jobs.values()]
        waiting.update({d.uid: d for job in doomed for d in job.demands})
        self._too_many(worker, pool, zone, list(waiting.values()))

    def _shortest_s(self, buy: Buy) -> Seconds:
        """The least time that a job of a purchase still runs; none where none of them waits any more."""
        jobs = [j for j in self._world.pending.values() if any(d.uid in buy.demands for d in j.demands)]
        return min((job.run_s - job.saved_s for job in jobs), default=0.0)

    def _purchase(self, worker: str, pool: str, zone: str) -> tuple[str, Buy] | None:
        """The recorded purchase that a call carries out: of this worker's decision, else of any left open."""
        done = {(b.decision, b.buy.offering) for b in self._bought}
        mine = self._decided.get(worker, "")
        for id in (mine, *(r.id for r in self._records.values() if r.status == "open")):
            for buy in self._records[id].plan.buys if id in self._records else ():
                if (buy.pool, buy.zone) == (pool, zone) and (id, buy.offering) not in done:
                    return id, buy
        return None

    def _twice(self, worker: str, buy: Buy, decision: str, waiting: set[str]) -> None:
        for earlier in self._bought:
            again = set(buy.demands) & set(earlier.buy.demands) & waiting
            # What still boots of a pool that lost a node may be the other purchase's.
            whole = len(earlier.nodes) == earlier.buy.count and earlier.buy.pool not in self.lost
            if again and whole and all(n.id in self._world.nodes and not n.ready for n in earlier.nodes):
                who = ", ".join(sorted(again))
                self.broke(
                    "double_buys",
                    f"{worker} bought {buy.offering} for {who} ({decision}) while {earlier.nodes[0].id} boots for it",
                )

    def _too_many(self, worker: str, pool: str, zone: str, waiting: list[PodDemand]) -> None:
        rules = self._policy.pools[pool]
        machine = self._world.fleet.machine(pool, zone)
        # Not those a pool put in the place of lost ones: nobody asked for them.
        booting = sum(1 for n in self._ours.values() if n.pool == pool and n.id in self._world.nodes and not n.ready)
        able = sum(
            1 for d in waiting if d.shape.gpu.count <= machine.gpus and self._world.need(d.shape).allows(machine)
        )
        if booting > able + rules.min + rules.warm:
            self.broke(
                "double_buys", f"{worker}: {booting} nodes of {pool} boot and {able} pods wait that could use them"
            )

    def _part_of_gang(self, worker: str, buy: Buy, decision: str) -> None:
        """A decision that buys for some of a gang must have a place for each of its waiting pods."""
        placed = {uid for g in self._records[decision].plan.pods if g.verdict in _PLACED for uid in g.uids}
        for job in self._world.pending.values():
            members = {d.uid for d in job.demands}
            if len(members) > 1 and members & set(buy.demands) and not members <= placed:
                self.broke("stuck_gangs", f"{worker} bought {buy.offering} for a part of {job.id} ({decision})")

    def _told(self) -> None:
        nodes: dict[tuple[str, str], int] = defaultdict(int)
        for message in self._outbox.values():
            if message.type != _CHANGED:
                continue
            change = _changed.decode(message.data)
            nodes[change.change, change.pool] += change.nodes
            record = self._records.get(change.decision)
            if record is None or message.id not in {m.id for m in record.messages}:
                self.broke("doubled_effects", f"message {message.id} is of no record: {change.change} {change.pool}")
        for pool in self._policy.pools:
            told, true = nodes["grow", pool] - nodes["release", pool], self.launched[pool] - self.released[pool]
            if told != true and pool not in self.lost:
                self.broke("lost_messages", f"pool {pool} was changed by {true} nodes, and messages tell of {told}")


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
