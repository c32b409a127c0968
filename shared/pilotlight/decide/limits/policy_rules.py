"""The policy's rules: which hold at a moment, by what figures, and what the policy is under them.

Pure: a rule that holds changes what its pools keep ready, how long idle nodes stay, or for whom they are bought; every
limit, budget and guard is as without it. What is not known (a budget that nothing was held of, pools without a ready
node) does not hold. A node with work is never released by one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec.structs import replace

from pilotlight.decide.limits.policy_schedule import apply_set, in_window
from pilotlight.decide.offers.selection import Eligible
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.decisions import Buy, NodeVerdict, Plan
from pilotlight.facts.limits.rule_policy import Rule, RuleUse, RuleWaiting
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Money
from pilotlight.facts.place.pod_verdicts import Code, Rejected
from pilotlight.facts.policy import Policy
from pilotlight.facts.utilisation.pool_use import PoolUse
from pilotlight.facts.workload import PodShape
from pilotlight.units import MILLI_PER_GPU, Seconds, count_of, human

FOR_EVER: Seconds = 10 * 365 * 86_400.0
"""How long idle nodes of a pool stay that a rule keeps: as long as it holds."""

Elsewhere = Mapping[tuple[str, str], str]
"""Why nothing is bought for pods of a class in a pool, by (class, pool)."""

_CLOSED: Code = "rule"


class Ruled(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that hold: by pool why it grows, is kept or releases, and by (class, pool) why nothing is bought there."""

    grown: Mapping[str, str]
    kept: Mapping[str, str]
    released: Mapping[str, str]
    elsewhere: Elsewhere

    def name_rules(self, plan: Plan) -> Plan:
        """The plan in which every decision that a rule made says which, with its figures."""
        nodes = tuple(map(self._node, plan.nodes)) if self.kept or self.released else plan.nodes
        buys = tuple(map(self._buy, plan.buys)) if self.grown else plan.buys
        return replace(plan, nodes=nodes, buys=buys)

    def _node(self, node: NodeVerdict) -> NodeVerdict:
        by = (self.kept if node.verdict == "keep" else self.released).get(node.pool)
        return replace(node, why=f"{node.why}; {by}") if by and not (node.failed or node.forced) else node

    def _buy(self, buy: Buy) -> Buy:
        by = self.grown.get(buy.pool)
        return replace(buy, why=f"{buy.why}; {by}") if by and not buy.demands else buy


def ruled_by(
    policy: Policy, view: ClusterView, memory: Memory, money: Money, use: PoolUse | None, now: datetime
) -> tuple[Policy, Ruled]:
    """The policy as its rules make it now, and what they did."""
    grown: dict[str, str] = {}
    kept: dict[str, str] = {}
    released: dict[str, str] = {}
    away: dict[tuple[str, str], str] = {}
    for rule in policy.rules:
        figures = holds(rule, view, money, use, now)
        if figures is None:
            continue
        by, does = f"rule {rule.name}: {figures}", rule.does
        cooling = {name for name in (*does.warm, *does.idle) if _cooling(rule, memory, name, now)}
        raises = not rule.when.is_time_alone
        warm = {
            name: nodes
            for name, nodes in does.warm.items()
            if not raises or (name not in cooling and nodes > policy.pools[name].spares.warm)
        }
        grown |= dict.fromkeys(warm, by) if raises else {}
        kept |= {name: by for name, idle in does.idle.items() if idle == "keep"}
        released |= {name: by for name, idle in does.idle.items() if idle == "release" and name not in cooling}
        away |= _closed_by(rule, figures)
        policy = apply_set(policy, replace(does, warm=warm))
    released = {name: by for name, by in released.items() if name not in {**kept, **grown}}
    policy = _with_idle(policy, kept, released) if kept or released else policy
    return policy, Ruled(grown=grown, kept=kept, released=released, elsewhere=away)


def _closed_by(rule: Rule, figures: str) -> Elsewhere:
    """Pools that a rule closes for classes, each with until when, where the clock alone decides."""
    until = f" until {rule.when.time.end}" if rule.when.time is not None and rule.when.is_time_alone else ""
    return {
        (str(kind), name): f"rule {rule.name} closes {name}{until}: {figures}"
        for name, kinds in rule.does.avoid.items()
        for kind in kinds
    }


def _with_idle(policy: Policy, kept: Iterable[str], released: Iterable[str]) -> Policy:
    """The policy whose idle nodes stay in pools that are kept, and go in those that are released."""
    pools = dict(policy.pools)
    for name in kept:
        pools[name] = replace(pools[name], idle_timeout=FOR_EVER)
    for name in released:
        pools[name] = replace(pools[name].with_warm(0), idle_timeout=0)
    return replace(policy, pools=pools)


def follow_rules(work: Work) -> None:
    """Go by the policy under its rules; pods that a rule moves off a pool are bought nothing there."""
    look = work.look
    work.policy, ruled = ruled_by(work.policy, work.view, work.memory, look.money, look.use, look.now)
    work.ruled = ruled
    if ruled.elsewhere:
        work.filters = (*work.filters, partial(_off_moved_pools, ruled.elsewhere))


def name_rules(work: Work) -> None:
    """Say of every decision that a rule made by which."""
    if work.ruled is not None:
        work.plan = work.ruled.name_rules(work.plan)


def _cooling(rule: Rule, memory: Memory, pool: str, now: datetime) -> bool:
    """True so soon after a pool's purchase, where more than the clock decides: what that does is not judged yet."""
    bought = memory.last_buy.get(pool)
    soon = bought is not None and now - bought < timedelta(seconds=rule.cooldown)
    return soon and not rule.when.is_time_alone


def holds(rule: Rule, view: ClusterView, money: Money, use: PoolUse | None, now: datetime) -> str | None:
    """The figures by which a rule holds now; None where it does not."""
    when, figures = rule.when, list[str | None]()
    if when.waiting is not None:
        figures.append(_waiting(when.waiting, view, now))
    if when.use is not None:
        figures.append(_utilisation(when.use, view.nodes, use))
    if when.budget is not None:
        figures.append(_spent(when.budget.name, when.budget.at, money, now))
    if when.time is not None:
        window = f"{when.time.start} and {when.time.end} {when.time.timezone}"
        figures.append(f"it is between {window}" if in_window(when.time, now) else None)
    known = [text for text in figures if text is not None]
    return ", ".join(known) if known and len(known) == len(figures) else None


def _waiting(asked: RuleWaiting, view: ClusterView, now: datetime) -> str | None:
    pods = [pod for pod in view.pending if not asked.classes or pod.shape.workload_class in asked.classes]
    if len(pods) < asked.pods:
        return None
    oldest = max((now - pod.created_at).total_seconds() for pod in pods)
    return (
        f"{count_of(len(pods), 'pod')} waiting, the first for {human(max(0, oldest))}"
        if oldest >= asked.since
        else None
    )


def _utilisation(asked: RuleUse, lit: Sequence[Node], use: PoolUse | None) -> str | None:
    """As it was measured, else by the GPUs that pods hold a part of."""
    nodes = [node for node in lit if node.pool in asked.pools and node.ready]
    whole = sum(node.gpus for node in nodes)
    if not whole:
        return None
    used, by = _used(nodes, use)
    below, above = asked.below, asked.above
    if (below is not None and used / whole >= below) or (above is not None and used / whole <= above):
        return None
    return f"{used / whole:.0%} of {count_of(whole, 'GPU')} {by}"


def _used(nodes: Sequence[Node], use: PoolUse | None) -> tuple[float, str]:
    """GPUs in use, and by which measure: of pods that hold a part, where it is not known of every node."""
    if use is not None and all(node.pool in use.pools for node in nodes):
        return sum(use.pools[node.pool] * node.gpus for node in nodes), f"used by {use.metric}"
    held = sum(free < MILLI_PER_GPU for node in nodes for free in node.devices)
    return held, "held by pods (telemetry: absent)"


def _spent(name: str, at: float, money: Money, now: datetime) -> str | None:
    for balance in money.balances:
        meter = balance.meter
        if meter.budget.name == name and meter.limit and meter.start <= now and (meter.end is None or now < meter.end):
            share = float(balance.total / meter.limit)
            if share >= at:
                return f"{share:.0%} of budget {name} is spent or held"
    return None


def _off_moved_pools(
    away: Elsewhere, run: Provisioner, able: Eligible, shape: PodShape, offerings: Sequence[Offering]
) -> Eligible:
    """Offerings for a shape without the pools that a rule moves its class off, those named among the rejected.

    Where only those would do, they are held: the pod waits for the rule's end, and nothing of it is to be mended.
    """
    kind = shape.workload_class
    barred = {one.name: away[kind, one.pool] for one in offerings if (kind, one.pool) in away}
    if not barred:
        return able
    found = run.eligible(shape, [one for one in offerings if one.name not in barred])
    if found.finding is not None:
        would = [*able.candidates, *(candidate for candidate, _, _ in able.held)]
        closed = tuple((c, _CLOSED, barred[c.offering.name]) for c in would if c.offering.name in barred)
        if closed:
            return replace(able, candidates=(), held=closed)
        return replace(found, finding=able.finding or found.finding, rejected=able.rejected)
    why = (Rejected(offering=name, why=by, code=_CLOSED) for name, by in sorted(barred.items()))
    return replace(found, rejected=(*found.rejected, *why))
