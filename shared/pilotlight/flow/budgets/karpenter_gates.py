"""Karpenter's NodePools as far as budgets let them buy: at every look their limits of GPUs are set, before the plan.

What a limit lets Karpenter light counts as held in the budgets, by the limit that stands: there is no record of it to
lose. A limit that cannot be written is tried again at the next look. In doubt a pool is closed that a limit of ours
stands on, and one that never had one is left as it is.

A NodePool that no pool of the policy names any more keeps its limit, and that is told until ``handback`` gives it back.
It may be gone by a slip of the pen: given back, its limit would open as wide as its owner once wrote it, at the next
tick. To close it is no better, for its work would wait where a person meant to leave it to Karpenter.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.limits.policy_schedule import effective
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_ladder import barring_step
from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.karpenter_gate import (
    Count,
    PoolShare,
    as_in_pool,
    cap_takes,
    caps_left,
    count_gpus,
    further_nodes,
    open_nodes,
    refusal,
    split,
)
from pilotlight.errors import BadRequest, Conflict, Denied, PilotlightError, Retry
from pilotlight.facts.money.budgets import Balance, Meter, Money
from pilotlight.facts.money.gates import LIMITED, GateLimit, GateState
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.remembered_pools import WAITS
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records, ledger
from pilotlight.ports.cluster import GatedCluster
from pilotlight.units import Usd, count_of, per_hour

_log = logging.getLogger("pilotlight.gates")

TRIES = 4
"""A limit is written so often over versions in which nothing of ours has changed."""
IGNORED = "/spec/limits/nvidia.com~1gpu"
REVERTED = (
    "{who} set its limit to {now}, and ours was {ours}: let it leave the field alone; in Argo CD write "
    "ignoreDifferences: [{{group: karpenter.sh, kind: NodePool, name: {name}, jsonPointers: [{field}]}}] and "
    "syncOptions: [RespectIgnoreDifferences=true]"
)


LEFT = (
    "no pool of the policy names it, and our limit of {limit} GPUs stands. Karpenter buys within it, and no dollars "
    "are held for that. pilotlight handback --pool {name} gives back what stood before ({before}); or name it again"
)
BLIND = "; until they can be read nothing is bought with the budgets that count them, for our limits stand"


class KeptGates(NamedTuple):
    """The look, what budgets leave beside all that Karpenter may light, what was done, and each limit."""

    snapshot: Snapshot
    money: Money
    did: tuple[str, ...] = ()
    limits: tuple[GateLimit, ...] = ()


class _Gate(NamedTuple):
    """A pool with its NodePool: what a node of it takes of each hard limit, and why nothing more is opened."""

    pool: str
    state: GateState
    gpus: int
    seen: Count
    each: dict[str, Decimal]
    closed: str
    held: str
    usd: Usd = Decimal(0)


def keep(deps: Deps, snapshot: Snapshot, money: Money, *, preview: bool = False) -> KeptGates:
    """Set each limit to what its budgets have room for, where the pool's mode lets that; else say what it would be.

    A preview writes none, and goes on as if it had.
    """
    cluster, gates = deps.cluster, deps.policy.gates
    if not isinstance(cluster, GatedCluster):
        return KeptGates(snapshot, money)
    left = [name for name in snapshot.memory.gates if name not in gates.values()]
    keeper = _Keeper(deps, cluster, snapshot, money, preview)
    try:
        states = cluster.read_gates((*gates.values(), *left))
    except (Denied, Retry) as no:
        kept = keeper.unread(no)
        return kept if preview else kept._replace(snapshot=_remembering(deps, kept.snapshot, keeper))
    for pool, state in zip(gates, states[: len(gates)], strict=True):
        keeper.add(pool, state)
    kept = keeper.write_limits()
    still = [state for state in states[len(gates) :] if state.version and state.before is not None]
    keeper.ours += [state.nodepool for state in still]
    look = _told(kept.snapshot, [_left(state) for state in still])
    return kept._replace(snapshot=look if preview else _remembering(deps, look, keeper))


def _remembering(deps: Deps, snapshot: Snapshot, keeper: "_Keeper") -> Snapshot:
    """The look that remembers which NodePools have a limit of ours, for one that leaves the policy is missed; and since
    when they do not answer."""
    ours, silent = tuple(sorted({*keeper.ours})), keeper.since if keeper.silent else None
    if (ours, silent) == (snapshot.memory.gates, snapshot.memory.gates_silent):
        return snapshot
    fresh = replace(snapshot.was.memory, gates=ours, gates_silent=silent)
    was = ledger.remember(deps.state, deps.name, snapshot.was, fresh)
    return replace(snapshot, memory=replace(snapshot.memory, gates=ours, gates_silent=silent), was=was)


class _Keeper:
    """One pass over all gated pools."""

    def __init__(self, deps: Deps, cluster: GatedCluster, snapshot: Snapshot, money: Money, preview: bool) -> None:
        self.deps, self.cluster, self.snapshot, self.money, self.preview = deps, cluster, snapshot, money, preview
        self.nodes = {node.name: node for node in snapshot.view.nodes}
        # A look holds for every node before it comes here; a preview holds for none.
        held = {hold.value.instance for hold in budget_accounts.every_hold(deps)} if preview else set[str]()
        self.unheld = frozenset(n.name for n in self.nodes.values() if preview and n.instance not in held)
        self.offerings = {offering.pool: offering for offering in deps.offerings}
        self.purse = Purse(money, snapshot.now, deps.policy)
        nodes, pools = snapshot.view.nodes, snapshot.pools
        lit = Counter(node.pool for node in nodes) | Counter({p.name: p.size_beside(nodes) for p in pools})
        lit += Counter({p.name: p.ending for p in pools})
        self.policy = effective(deps.policy, snapshot.now)
        self.caps = caps_left(self.policy.caps, lit, self.offerings)
        self.meters: dict[str, tuple[Meter, Decimal]] = {}
        self.gates: list[_Gate] = []
        self.findings: list[Finding] = []
        self.did: list[str] = []
        self.ours: list[str] = []
        self.since, self.silent = snapshot.memory.gates_silent or snapshot.now, False
        self.limits: list[GateLimit] = []

    def add(self, pool: str, state: GateState) -> None:
        """Reckon what Karpenter counts of a pool, what a node of it takes, and whether it may be opened."""
        offering = self.offerings.get(pool)
        count = count_gpus(state, self.nodes, self.snapshot.now)
        count = count._replace(owed=count.owed + sum(claim.node in self.unheld for claim in state.claims))
        if offering is None or not offering.gpus:
            self.gates.append(_Gate(pool, state, 1, count, {}, "its instance type has no price, or no GPU", ""))
            return
        deps, now = self.deps, self.snapshot.now
        own = terms(offering, as_in_pool(self.policy, offering), workload_class=None, team="")
        hold, found = self.purse.at_stake(own)
        stakes = [stake for stake in found if stake[0].budget.hard]
        self.meters |= {meter.key: (meter, before) for meter, before, _ in stakes}
        each = {meter.key: takes for meter, _, takes in stakes if takes}
        there = [node for node in self.snapshot.view.nodes if node.pool == pool]
        closed = refusal(state, deps.policy.pools[pool], offering, there)
        closed = closed or ("" if each else "no hard budget counts it: write one of scope all, or of this pool")
        held = brake_records.pause_reason(deps.state, deps.name, pool)
        held = held or barring_step(self.money.steps, offering, "", "", now)
        each |= {cap: takes for cap, takes in cap_takes(offering).items() if cap in self.caps}
        usd = per_hour(offering.usd_per_hour, (hold.until - hold.since).total_seconds())
        self.gates.append(_Gate(pool, state, offering.gpus, count, each, closed, held, usd))

    def unread(self, no: PilotlightError) -> KeptGates:
        """Nothing can be read: all that the budgets of our limits have left counts as held, for those limits stand.

        Where NodePools are not served nothing is lit by them.
        """
        served, ours = not isinstance(no, BadRequest), self.snapshot.memory.gates
        self.ours += ours
        for pool, name in self.deps.policy.gates.items() if served else ():
            if name in ours:
                self.add(pool, GateState(nodepool=name, unread=str(no)))
        said = f"{no}{BLIND if self.meters else ''}"
        self._refuse(no, "Karpenter's NodePools", said)
        told = _told(self.snapshot, self.findings)
        left = {key: max(Decimal(0), meter.limit - had) for key, (meter, had) in self.meters.items()}
        return KeptGates(told, self._without(left))

    def write_limits(self) -> KeptGates:
        """Write each limit; what it lets be lit is then taken off the budgets."""
        taken: dict[str, Decimal] = {}
        for gate in self.gates:
            _take(taken, gate, gate.seen.owed)
        left = self.caps | {key: meter.limit - before for key, (meter, before) in self.meters.items()}
        free = {key: room - taken.get(key, Decimal(0)) for key, room in left.items()}
        nodes = split([self._share(gate) for gate in self.gates], free)
        for gate in self.gates:
            # A limit that sinks frees nothing yet: Karpenter may be buying within what stood a moment ago.
            stood, stands = gate.state, self._limited(gate, nodes[gate.pool])
            self.ours += [stands.nodepool] if stands.before is not None else []
            _take(taken, gate, max(open_nodes(each, gate.seen, gate.gpus) for each in (stood, stands)))
        told = _told(self.snapshot, self.findings)
        return KeptGates(told, self._without(taken), tuple(self.did), tuple(self.limits))

    def _share(self, gate: _Gate) -> PoolShare:
        shut = gate.closed or gate.held
        rules = self.policy.pools[gate.pool]
        takes = [] if shut else further_nodes(gate.state, rules, gate.seen, gate.gpus)
        return PoolShare(gate.pool, gate.state.weight, takes, gate.each)

    def _limited(self, gate: _Gate, nodes: int) -> GateState:
        """The NodePool as it stands after its limit was written, or was not."""
        state = gate.state
        why = (
            gate.closed
            or gate.held
            or f"{gate.seen.gpus} are there, and budgets have room for {count_of(nodes, 'more node')}"
        )
        kept = GateLimit(pool=gate.pool, nodepool=state.nodepool, now=state.written, usd_a_node=gate.usd, why=why)
        if gate.closed:
            self.findings.append(_refused(f"NodePool {state.nodepool}", gate.closed))
            if state.before is None or not state.version:
                self.limits.append(kept)
                return state
        limit = 0 if gate.closed else gate.seen.gpus + nodes * gate.gpus
        limit = limit if state.cap is None else min(limit, state.cap)
        self.limits.append(replace(kept, limit=limit))
        self.findings += _reverted(state, self.snapshot.memory.gates)
        if limit == state.limit and state.before is not None:
            return state
        ours = replace(state, limit=limit, before=state.written if state.before is None else state.before)
        if self.preview:
            return ours
        said = f"NodePool {state.nodepool}: limit of {LIMITED} {state.written or 'none'} -> {limit}: {why}"
        if self.deps.mode_of(gate.pool) not in ("scale-up", "act"):
            self.did.append(f"would set {said}")
            return state
        try:
            self._write(state, limit)
        except (Denied, Retry) as no:
            _log.warning("limit not written", extra={"data": {"nodepool": state.nodepool, "why": str(no)}})
            self._refuse(no, f"NodePool {state.nodepool}", f"its limit cannot be written: {no}")
            # Where its answer was lost it may stand: until the next look the dearer of both is counted.
            return ours if isinstance(no, Retry) else state
        self.did.append(f"set {said}")
        return ours

    def _refuse(self, no: PilotlightError, subject: str, why: str) -> None:
        """Tell of a refusal at once, of what does not answer once it has not for as long as a pool may."""
        self.silent = self.silent or isinstance(no, Retry)
        if not isinstance(no, Retry) or self.snapshot.now >= self.since + WAITS:
            self.findings.append(_refused(subject, why))

    def _write(self, state: GateState, limit: int) -> None:
        """Write a limit over what was read. A status that Karpenter wrote of the NodePool meanwhile stops none."""
        for _ in range(TRIES - 1):
            try:
                return self.cluster.limit_gate(state, limit)
            except Conflict:
                (now,) = self.cluster.read_gates([state.nodepool])
                if (now.written, now.before, now.given) != (state.written, state.before, state.given):
                    raise
                state = replace(state, version=now.version)
        return self.cluster.limit_gate(state, limit)

    def _without(self, taken: dict[str, Decimal]) -> Money:
        """The balances with what Karpenter may light as if it were held."""
        known = {balance.meter.key for balance in self.money.balances}
        balances = [replace(b, total=b.total + taken.get(b.meter.key, 0)) for b in self.money.balances]
        fresh = taken.keys() - known - self.caps.keys()
        ahead = [Balance(meter=self.meters[key][0], total=taken[key]) for key in sorted(fresh)]
        return replace(self.money, balances=(*balances, *ahead)) if taken else self.money


def _take(taken: dict[str, Decimal], gate: _Gate, nodes: int) -> None:
    for key, usd in gate.each.items() if nodes else ():
        taken[key] = taken.get(key, Decimal(0)) + nodes * usd


def _told(snapshot: Snapshot, findings: Sequence[Finding]) -> Snapshot:
    return replace(snapshot, findings=(*snapshot.findings, *findings)) if findings else snapshot


def _refused(subject: str, why: str) -> Finding:
    return Finding(subject=subject, code="gate-refused", message=why)


def _left(state: GateState) -> Finding:
    limit = "none" if state.limit is None else str(state.limit)
    message = LEFT.format(limit=limit, name=state.nodepool, before=state.before or "none")
    return Finding(subject=f"NodePool {state.nodepool}", code="gate-left", message=message)


def _reverted(state: GateState, ours: Sequence[str]) -> list[Finding]:
    """A finding where another hand has raised a limit of ours, or replaced its NodePool whole."""
    anew = state.before is None and not state.given and state.nodepool in ours
    if not anew and (state.wrote is None or (state.limit is not None and state.limit <= state.wrote)):
        return []
    who = ", ".join(state.managers[:3]) or "another hand"
    now, last = state.written or "none", "gone with its annotations" if state.wrote is None else state.wrote
    message = REVERTED.format(who=who, name=state.nodepool, now=now, ours=last, field=IGNORED)
    return [Finding(subject=f"NodePool {state.nodepool}", code="gate-reverted", message=message)]
