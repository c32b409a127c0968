"""Karpenter's NodePools as far as budgets let them buy: at every look their limits of GPUs are set, before the plan.

What a limit lets Karpenter light counts as held in the budgets, by the limit that stands: there is no record of it to
lose. A limit that cannot be written is tried again at the next look. In doubt a pool is closed that a limit of ours
stands on, and one that never had one is left as it is.
"""

import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_ladder import barring_step
from pilotlight.decide.money.budget_limits import terms
from pilotlight.decide.money.karpenter_gate import Count, PoolShare, count_gpus, most_nodes, open_nodes, refusal, split
from pilotlight.errors import Denied, Retry
from pilotlight.facts.money.budgets import Balance, Meter, Money
from pilotlight.facts.money.gates import LIMITED, GateState
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records
from pilotlight.ports.cluster import GatedCluster

_log = logging.getLogger("pilotlight.gates")

IGNORED = "/spec/limits/nvidia.com~1gpu"
REVERTED = (
    "{who} set its limit to {now}, and ours was {ours}: let it leave the field alone; in Argo CD write "
    "ignoreDifferences: [{{group: karpenter.sh, kind: NodePool, name: {name}, jsonPointers: [{field}]}}] and "
    "syncOptions: [RespectIgnoreDifferences=true]"
)


class KeptGates(NamedTuple):
    """The look, what budgets leave beside all that Karpenter may light, and what was done."""

    snapshot: Snapshot
    money: Money
    did: tuple[str, ...] = ()


class _Gate(NamedTuple):
    """A pool with its NodePool: what a node of it takes of each hard limit, and why nothing more is opened."""

    pool: str
    state: GateState
    gpus: int
    seen: Count
    each: dict[str, Decimal]
    closed: str
    held: str


def keep(deps: Deps, snapshot: Snapshot, money: Money) -> KeptGates:
    """Set each limit to what its budgets have room for, where the pool's mode lets that; else say what it would be."""
    cluster, gates = deps.cluster, deps.policy.gates
    if not isinstance(cluster, GatedCluster):
        return KeptGates(snapshot, money)
    try:
        states = cluster.read_gates(tuple(gates.values()))
    except Denied as no:
        return KeptGates(_told(snapshot, [_refused("Karpenter's NodePools", str(no))]), money)
    keeper = _Keeper(deps, cluster, snapshot, money)
    for pool, state in zip(gates, states, strict=True):
        keeper.add(pool, state)
    return keeper.write_limits()


class _Keeper:
    """One pass over all gated pools."""

    def __init__(self, deps: Deps, cluster: GatedCluster, snapshot: Snapshot, money: Money) -> None:
        self.deps, self.cluster, self.snapshot, self.money = deps, cluster, snapshot, money
        self.nodes = {node.name: node for node in snapshot.view.nodes}
        self.offerings = {offering.pool: offering for offering in deps.offerings}
        self.purse = Purse(money, snapshot.now)
        self.meters: dict[str, tuple[Meter, Decimal]] = {}
        self.gates: list[_Gate] = []
        self.findings: list[Finding] = []
        self.did: list[str] = []

    def add(self, pool: str, state: GateState) -> None:
        """Reckon what Karpenter counts of a pool, what a node of it takes, and whether it may be opened."""
        offering = self.offerings.get(pool)
        if offering is None or not offering.gpus:
            count = count_gpus(state, self.nodes, self.snapshot.now)
            self.gates.append(_Gate(pool, state, 1, count, {}, "its instance type has no price, or no GPU", ""))
            return
        deps, now = self.deps, self.snapshot.now
        own = terms(offering, deps.policy, workload_class=None, team="")
        stakes = [stake for stake in self.purse.at_stake(own)[1] if stake[0].budget.hard]
        self.meters |= {meter.key: (meter, before) for meter, before, _ in stakes}
        each = {meter.key: takes for meter, _, takes in stakes if takes}
        there = [node for node in self.snapshot.view.nodes if node.pool == pool]
        closed = refusal(state, deps.policy.pools[pool], offering, there)
        closed = closed or ("" if each else "no hard budget counts it: write one of scope all, or of this pool")
        held = brake_records.pause_reason(deps.state, deps.name, pool)
        held = held or barring_step(self.money.steps, offering, "", "", now)
        self.gates.append(_Gate(pool, state, offering.gpus, count_gpus(state, self.nodes, now), each, closed, held))

    def write_limits(self) -> KeptGates:
        """Write each limit; what it lets be lit is then taken off the budgets."""
        taken: dict[str, Decimal] = {}
        for gate in self.gates:
            _take(taken, gate, gate.seen.owed)
        free = {key: meter.limit - before - taken.get(key, Decimal(0)) for key, (meter, before) in self.meters.items()}
        nodes = split([self._share(gate) for gate in self.gates], free)
        for gate in self.gates:
            # A limit that sinks frees nothing yet: Karpenter may be buying within what stood a moment ago.
            stood, stands = gate.state, self._limited(gate, nodes[gate.pool])
            _take(taken, gate, max(open_nodes(each, gate.seen, gate.gpus) for each in (stood, stands)))
        return KeptGates(_told(self.snapshot, self.findings), self._without(taken), tuple(self.did))

    def _share(self, gate: _Gate) -> PoolShare:
        shut = gate.closed or gate.held
        most = 0 if shut else most_nodes(gate.state, self.deps.policy.pools[gate.pool], gate.seen, gate.gpus)
        return PoolShare(gate.pool, gate.state.weight, most, gate.each)

    def _limited(self, gate: _Gate, nodes: int) -> GateState:
        """The NodePool as it stands after its limit was written, or was not."""
        state = gate.state
        if gate.closed:
            self.findings.append(_refused(f"NodePool {state.nodepool}", gate.closed))
            if state.before is None or not state.version:
                return state
        limit = 0 if gate.closed else gate.seen.gpus + nodes * gate.gpus
        if state.wrote is not None and state.limit != state.wrote:
            self.findings.append(_reverted(state))
        if limit == state.limit and state.before is not None:
            return state
        why = gate.closed or gate.held or f"{gate.seen.gpus} are there, and budgets have room for {nodes} more nodes"
        said = f"NodePool {state.nodepool}: limit of {LIMITED} {state.written or 'none'} -> {limit}: {why}"
        if self.deps.mode_of(gate.pool) not in ("scale-up", "act"):
            self.did.append(f"would set {said}")
            return state
        try:
            self.cluster.limit_gate(state, limit)
        except (Denied, Retry) as no:
            _log.warning("limit not written", extra={"data": {"nodepool": state.nodepool, "why": str(no)}})
            self.findings.append(_refused(f"NodePool {state.nodepool}", f"its limit cannot be written: {no}"))
            return state
        self.did.append(f"set {said}")
        return replace(state, limit=limit, before=state.written if state.before is None else state.before)

    def _without(self, taken: dict[str, Decimal]) -> Money:
        """The balances with what Karpenter may light as if it were held."""
        known = {balance.meter.key for balance in self.money.balances}
        balances = [replace(b, total=b.total + taken.get(b.meter.key, 0)) for b in self.money.balances]
        ahead = [Balance(meter=self.meters[key][0], total=usd) for key, usd in taken.items() if key not in known]
        return replace(self.money, balances=(*balances, *ahead)) if taken else self.money


def _take(taken: dict[str, Decimal], gate: _Gate, nodes: int) -> None:
    for key, usd in gate.each.items() if nodes else ():
        taken[key] = taken.get(key, Decimal(0)) + nodes * usd


def _told(snapshot: Snapshot, findings: Sequence[Finding]) -> Snapshot:
    return replace(snapshot, findings=(*snapshot.findings, *findings)) if findings else snapshot


def _refused(subject: str, why: str) -> Finding:
    return Finding(subject=subject, code="gate-refused", message=why)


def _reverted(state: GateState) -> Finding:
    who = ", ".join(state.managers[:3]) or "another hand"
    now = state.written or "none"
    message = REVERTED.format(who=who, name=state.nodepool, now=now, ours=state.wrote, field=IGNORED)
    return Finding(subject=f"NodePool {state.nodepool}", code="gate-reverted", message=message)
