"""A judge of GKE's queue, at the queue: each request as it is taken on, provisioned or deleted, against the world.

What waits there is no node yet, and the others who look on see only nodes. Counted here is both: no pod is asked for
twice, no cap is passed by what is lit and what waits, and no request is deleted that got its nodes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.judges.invariants import Invariants, Kind
from pilotlight.facts.decisions import Buy
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldJob


class Waiting(NamedTuple):
    """A request that is taken on and has no nodes yet."""

    pool: str
    nodes: int


class _Asked(NamedTuple):
    """A request of a recorded purchase. ``starts`` is how often each pod's job had started."""

    name: str
    buy: Buy
    starts: dict[str, int]


class QueueJudge:
    """``waits`` are the requests that may still get nodes; ``late`` those that came when nobody could stop them."""

    def __init__(self, world: World, seen: Invariants, policy: Policy) -> None:
        self._world, self._seen, self._policy = world, seen, policy
        self.waits: dict[str, Waiting] = {}
        self.nodes: dict[str, tuple[str, ...]] = {}
        self._late: set[str] = set()
        self._asked: list[_Asked] = []

    def asked(self, name: str, asked: Waiting, worker: str, decision: str, *, late: bool) -> None:
        """A request is taken on, of a decision that a worker had made."""
        self.waits[name] = asked
        if late:
            self._late.add(name)
            return
        buy = self._buy(decision, asked)
        if buy is None:
            self._broke("double_buys", f"{name} asks for {asked.nodes} nodes of {asked.pool} that no decision bought")
            return
        starts = {d.uid: job.starts for job in self._jobs() for d in job.demands}
        for earlier in self._asked:
            again = {uid for uid in {*buy.demands} & {*earlier.buy.demands} if starts.get(uid) == earlier.starts[uid]}
            if again and self._comes(earlier):
                who = ", ".join(sorted(again))
                self._broke("double_buys", f"{name} asks for {who}, which {earlier.name} waits for")
        self._asked.append(_Asked(name, buy, {uid: starts.get(uid, -1) for uid in buy.demands}))
        self._caps(name)
        self._too_many(name, worker, asked.pool)

    def provisioned(self, name: str, nodes: Sequence[str]) -> None:
        """Its nodes came."""
        self.waits.pop(name, None)
        self.nodes[name] = tuple(nodes)
        self._caps(name)

    def ended(self, name: str) -> None:
        """It failed, or somebody deleted it: it gets no nodes."""
        self.waits.pop(name, None)

    def deleted(self, name: str) -> None:
        """We deleted it."""
        if name in self.nodes:
            self._broke("killed_work", f"{name} was deleted though it had got {', '.join(self.nodes[name])}")
        self.ended(name)

    def demands(self, name: str) -> set[str]:
        """The pods that a request was asked for, by uid."""
        return {uid for each in self._asked if each.name == name for uid in each.buy.demands}

    def _broke(self, kind: Kind, text: str) -> None:
        self._seen.broke(kind, f"queue: {text}")

    def _jobs(self) -> list[WorldJob]:
        doomed = [job for node in self._world.nodes.values() if node.doomed_s for job in node.jobs.values()]
        return [*self._world.pending.values(), *doomed]

    def _buy(self, decision: str, asked: Waiting) -> Buy | None:
        """The purchase that a request carries out: of this decision, else of any left open. It asks for what is missing
        of the size that was decided, which may have changed since."""
        records, done = self._seen.purchases.records, {id(each.buy) for each in self._asked}
        for record in (records.get(decision), *(r for r in records.values() if r.status == "open")):
            for buy in record.plan.buys if record else ():
                if buy.pool == asked.pool and id(buy) not in done:
                    return buy
        return None

    def _comes(self, earlier: _Asked) -> bool:
        """Whether all that a request asked for is still to come: it waits, or all of its nodes boot."""
        if earlier.name in self.waits:
            return True
        nodes = [self._world.nodes.get(node) for node in self.nodes.get(earlier.name, ())]
        return len(nodes) == earlier.buy.count and all(node is not None and not node.ready for node in nodes)

    def _caps(self, name: str) -> None:
        """What is lit and what waits, against every cap; unless a part of it came when nobody could stop it."""
        if any(late in self.waits or self._lit(late) for late in self._late):
            return
        for line in self._over():
            self._broke("cap_overruns", f"{name}: {line}")

    def _lit(self, name: str) -> bool:
        return any(node in self._world.nodes for node in self.nodes.get(name, ()))

    def _over(self) -> Iterator[str]:
        lit, caps = list(self._world.nodes.values()), self._policy.caps
        coming = [self._world.fleet.machine(w.pool) for w in self.waits.values() for _ in range(w.nodes)]
        nodes, gpus = len(lit) + len(coming), sum(n.gpus for n in lit) + sum(m.gpus for m in coming)
        usd = sum(n.price for n in lit) + sum(m.price for m in coming)
        if caps.nodes is not None and nodes > caps.nodes:
            yield f"{nodes} nodes lit and waited for, of {caps.nodes}"
        if caps.gpus is not None and gpus > caps.gpus:
            yield f"{gpus} GPUs lit and waited for, of {caps.gpus}"
        if caps.usd_per_hour is not None and usd > caps.usd_per_hour:
            yield f"${usd} an hour lit and waited for, of ${caps.usd_per_hour}"
        for pool, rules in self._policy.pools.items():
            of = sum(n.pool == pool for n in lit) + sum(m.pool.name == pool for m in coming)
            if of > rules.max:
                yield f"{of} nodes of pool {pool} lit and waited for, at most {rules.max}"

    def _too_many(self, name: str, worker: str, pool: str) -> None:
        """More nodes wait and boot than pods that could use them."""
        seen: dict[str, PodDemand] = {d.uid: d for job in self._jobs() for d in job.demands}
        seen |= {d.uid: d for d in self._seen.purchases.seen(worker)}
        machine = self._world.fleet.machine(pool)
        able = sum(d.shape.gpu.count <= machine.gpus for d in seen.values())
        comes = sum(w.nodes for w in self.waits.values() if w.pool == pool)
        comes += sum(n.pool == pool and not n.ready for n in self._world.nodes.values() if n.id not in self._strays)
        if comes > able + self._policy.pools[pool].min:
            self._broke("double_buys", f"{name}: {comes} nodes of {pool} wait and boot, for {able} pods")

    @property
    def _strays(self) -> set[str]:
        return {node for late in self._late for node in self.nodes.get(late, ())}
