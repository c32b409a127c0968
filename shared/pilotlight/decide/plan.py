"""One decision over one view: what to buy, what to keep, what to put out, and why."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pilotlight.decide.fit.daemonset_room import with_daemons
from pilotlight.decide.fit.fit import Bin, of_node, of_offering
from pilotlight.decide.fit.neighbours import NOBODY, Neighbours
from pilotlight.decide.limits.plan_brakes import apply_brakes
from pilotlight.decide.limits.policy_schedule import effective
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.nodes.failed_capacity import failed_capacity, in_doubt, resting
from pilotlight.decide.nodes.idle_nodes import IdleNodes
from pilotlight.decide.nodes.node_age import renew_aged_nodes
from pilotlight.decide.nodes.scale_down import blocked_idle_nodes, verdicts
from pilotlight.decide.nodes.spares.demand_rates import has_learned, with_demand
from pilotlight.decide.nodes.spares.spare_nodes import spare_buys, spares_by_pool, spares_coming
from pilotlight.decide.nodes.spares.standby import as_measured, standby
from pilotlight.decide.offers.joined_nodes import as_learnt
from pilotlight.decide.offers.offerings import relighting, stale_prices
from pilotlight.decide.offers.reserved_capacity import beyond, unused_capacity, with_paid
from pilotlight.decide.place.gangs import place_gang
from pilotlight.decide.place.node_closing import placement, steered_pools, strays, tainted_nodes
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.place.purchase import Group, Headroom, in_units
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.decisions import Buy, NodeVerdict, Plan, known_per_hour
from pilotlight.facts.demand.worker_queues import NodesAhead
from pilotlight.facts.limits.brakes import NO_BRAKES, Brakes
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import NO_BUDGETS, Money
from pilotlight.facts.money.money_policy import ApproveOver, Limits
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.pool_quota import NO_QUOTAS, Quota
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding, PodDemand

if TYPE_CHECKING:
    from pilotlight.decide.limits.policy_rules import Ruled
    from pilotlight.facts.utilisation.pool_use import PoolUse

NOTHING_UNSETTLED: Mapping[str, str] = {}
NOBODY_AHEAD: Mapping[str, NodesAhead] = {}


def plan_cluster(
    view: ClusterView,
    pools: Sequence[PoolState],
    offerings: Sequence[Offering],
    policy: Policy,
    memory: Memory,
    now: datetime,
    *,
    throughput: Mapping[str, Mapping[str, float]],
    money: Money = NO_BUDGETS,
    releases: bool = True,
    explain: bool = True,
    brakes: Brakes = NO_BRAKES,
    leaving: Collection[str] = (),
    unsettled: Mapping[str, str] = NOTHING_UNSETTLED,
    gives: Sequence[NodeVerdict] = (),
    quotas: Mapping[str, Quota] = NO_QUOTAS,
    ahead: Mapping[str, NodesAhead] = NOBODY_AHEAD,
    use: "PoolUse | None" = None,
) -> Plan:
    """The whole plan. Pure: equal arguments give an equal plan, in whatever order pods, nodes and offerings come.

    ``releases`` False leaves nodes alone (a pod-pending event only ever adds). ``explain`` False leaves out the
    verdicts of busy nodes, which a reconcile of a thousand nodes has no use for. ``money`` is how far budgets are used.
    ``brakes`` hold what may not be done now. Nodes ``leaving`` may be gone at any moment: no room, and nothing is done
    to them. Pools ``unsettled`` are not grown, for the reason given. ``gives`` are nodes that go in any case.
    ``quotas`` of the cloud's account are by pool: what they leave no room for is not bought. ``ahead`` are nodes
    without work, by pool, for workers that queues will ask for: they are kept and bought as warm ones are. ``use`` is
    what the pools' GPUs did, for rules; None where telemetry is absent.
    """
    policy = effective(policy, now) if policy.schedules else policy
    policy = _with_more_warm(policy, ahead) if ahead else policy
    ruled: Ruled | None = None
    if policy.rules:
        from pilotlight.decide.limits.policy_rules import ruled_by

        policy, ruled = ruled_by(policy, view, memory, money, use, now)
    shut = steered_pools(view, policy, brakes) if policy.placement == "taint" else set()
    offerings = _with_attach_limits(offerings, view.nodes)
    paid: dict[tuple[str, str], int] = {}
    if any(o.capacity_type == "reserved" for o in offerings):
        offerings, paid = with_paid(offerings, pools, policy, now)
    offerings = as_learnt(offerings, memory, policy) if memory.learnt else offerings
    offerings = as_measured(offerings, memory) if memory.wakes else offerings
    if memory.lives and any(o.zone and o.capacity_type == "spot" for o in offerings):
        from pilotlight.decide.offers.spot_lifetimes import as_lived

        offerings = as_lived(offerings, memory.lives, now)
    offerings = with_daemons(offerings, view.daemons, policy) if view.daemons else offerings
    if any(pod.shape.claimed is not None for pod in view.pending):
        from pilotlight.decide.fit.device_claims import resolve_claims

        view, offerings = resolve_claims(view, offerings)
    by_pool = _first_by_pool(offerings)
    staying = [n for n in view.nodes if n.name not in leaving] if leaving else view.nodes
    failed: list[NodeVerdict] = []
    held = Counter[str]()
    if memory.overdue or any(pool.booting for pool in pools) or not all(node.ready for node in staying):
        failed = failed_capacity(staying, pools, by_pool, view.pending, memory, policy.gpu_ready_deadline, now)
        failed = [f for f in failed if f.node not in leaving]
        held = in_doubt(staying, pools, policy.gpu_ready_deadline, now)
        memory = resting(memory, failed, now) if failed else memory
    unwell: tuple[Finding, ...] = ()
    no_room = leaving
    if _any_may_be_sick(staying, by_pool):
        from pilotlight.decide.nodes.gpu_health import sick

        found = sick([n for n in staying if n.name not in {f.node for f in failed}], by_pool, now)
        failed, unwell = [*failed, *found.verdicts], found.findings
        no_room = {*leaving, *found.closed}
        memory = resting(memory, found.verdicts, now)
    gone = {f.node for f in failed}
    standing = [n for n in view.nodes if n.name not in gone] if gone else view.nodes
    ready, booting, headroom = _room(standing, pools, by_pool, policy, failed, held, no_room, _asked(memory, offerings))
    run = Provisioner(
        offerings=sorted(offerings, key=lambda o: o.name),
        policy=policy,
        throughput=throughput,
        memory=memory,
        headroom=headroom,
        ready=ready,
        booting=booting,
        now=now,
        steps=money.steps,
        steered=shut,
        closed=tainted_nodes(standing) if shut else (),
        neighbours=Neighbours(view.around, (p.shape for p in view.pending)) if _minding(view) else NOBODY,
    )
    if ruled is not None:
        run.elsewhere = ruled.elsewhere
    if any(o.survival is not None for o in offerings):
        run.lit_on_demand = frozenset(n.instance_type for n in standing if n.capacity_type == "on-demand")
    if policy.teams or any(rules.max_spot_share is not None for rules in policy.classes.values()):
        from pilotlight.decide.offers.spot_share import spot_shares

        headroom.spot_shares = spot_shares(policy, view)
    before = headroom.usd_per_hour
    headroom.quotas = quotas
    headroom.purse, headroom.paid = Purse(money, now) if money.balances else None, paid
    if view.pending:
        _plan_pods(run, view)
    known = (memory.counted_to,) if memory.counted_to is not None else ()
    counted_to = max((*known, *(pod.created_at for pod in view.pending)), default=None)
    memory = with_demand(memory, run.demands, counted_to, by_pool, now)
    relit = relighting(by_pool, pools)
    spares = spares_by_pool(relit, policy, memory, now) if any(map(has_learned, memory.hits.values())) else {}
    spares = {name: own for name, own in spares.items() if name not in ruled.released} if ruled is not None else spares
    buys = run.buys()
    stay = come = NOBODY_AHEAD
    more: tuple[Buy, ...] = ()
    limited = policy.limits != Limits() or policy.approve_over != ApproveOver()
    if spares and not limited and (closing := _to_be_closed(shut, memory, by_pool, unsettled, now)):
        from pilotlight.decide.nodes.spares.spares_until_closed import guards

        guarded = guards(run, view, relit, spares, closing)
        stay, come = _beyond_warm(guarded.keep, policy), _beyond_warm(guarded.buy, policy)
    if spares or any(pool.warm or pool.min for pool in policy.pools.values()):
        warmer = _with_more_warm(policy, come) if come else policy
        more = spare_buys(run, by_pool, spares, warmer, memory, {**ahead, **come})
    buys += more
    if not limited:  # Cheap nodes are launched first: small pods find them ready before dear ones.
        buys = tuple(sorted(buys, key=lambda buy: buy.usd_per_hour))
    nodes: list[NodeVerdict] = []
    look_again = None
    policy = _with_more_warm(policy, stay) if stay else policy
    if releases:
        others = [n for n in standing if n.name not in leaving] if leaving else standing
        coming, reserved = spares_coming(run, by_pool) + _bought(more), _reserved(ready)
        nodes, look_again = verdicts(others, relit, policy, memory, reserved, now, explain, money, coming, spares)
        nodes, falls_due = standby(failed + nodes, pools, by_pool, policy, memory, now, explain)
        comes_of_age = None
        if any(pool.max_age or pool.drift == "replace" for pool in policy.pools.values()):
            nodes, comes_of_age = renew_aged_nodes(nodes, others, pools, by_pool, policy, memory, reserved, now)
        look_again = min((t for t in (look_again, falls_due, comes_of_age) if t is not None), default=None)
    else:  # A gang that lacks a part goes back whoever looks.
        nodes = [f for f in failed if f.flight]
    here = {n.name for n in view.nodes} if gives else ()
    nodes += [n for n in gives if n.node in here and n.node not in leaving]
    released = known_per_hour(n for n in nodes if n.verdict == "release")
    pods: Sequence[PodGroup] = run.outcomes
    if view.nodes:
        idle = IdleNodes(view.nodes, ready, no_room, memory, now)
        pods = idle.explain_idle(pods, view.pending, {o.name: o for o in offerings})
    plan = Plan(
        buys=buys,
        pods=tuple(pods),
        nodes=tuple(nodes),
        findings=(
            *view.findings,
            *run.findings,
            *unwell,
            *(blocked_idle_nodes(nodes) if nodes else ()),
            *stale_prices(policy, by_pool.values(), now),
            *(beyond(by_pool, pools, policy, now) if paid else ()),
        ),
        usd_per_hour_before=before,
        usd_per_hour_after=run.headroom.usd_per_hour - released,
        look_again_at=min(
            (t for t in (look_again, money.look_again_at, *_rests(run, memory)) if t is not None), default=None
        ),
        demands=tuple(run.demands),
        counted_to=counted_to,
        paid_idle=unused_capacity(by_pool, pools, policy, _bought(buys), now) if paid else (),
    )
    if ruled is not None:
        plan = ruled.name_rules(plan)
    plan = apply_brakes(plan, brakes, unsettled, policy, sum(pool.desired for pool in pools), now)
    if run.homes is None and not memory.strays and not any(node.closed for node in view.nodes):
        return plan
    seen = strays(run.homes, view, memory, shut, now) if run.homes is not None else memory.strays
    placed = placement(view, plan, shut, seen, memory, now)
    return replace(plan, placement=placed) if placed != plan.placement else plan


def _with_more_warm(policy: Policy, ahead: Mapping[str, NodesAhead]) -> Policy:
    pools = dict(policy.pools)
    for name, asked in ahead.items():
        pool = pools[name]
        pools[name] = replace(pool, warm=max(pool.warm, min(asked.nodes, pool.max)))
    return replace(policy, pools=pools)


def _beyond_warm(found: Mapping[str, NodesAhead], policy: Policy) -> Mapping[str, NodesAhead]:
    return {name: ahead for name, ahead in found.items() if ahead.nodes > policy.pools[name].warm}


def _to_be_closed(
    shut: Collection[str], memory: Memory, by_pool: Mapping[str, Offering], unsettled: Mapping[str, str], now: datetime
) -> set[str]:
    """The pools whose nodes are closed when they come: those that are grown now, and that others stray into."""
    able = {pool for pool in shut if pool in memory.strays and pool not in unsettled and pool in by_pool}
    return {pool for pool in able if memory.live_backoff(by_pool[pool].name, now) is None}


def _plan_pods(run: Provisioner, view: ClusterView) -> None:
    """Plan for all pods that wait, in order."""
    pending: Sequence[PodDemand] = view.pending
    if any(pod.shape.due for pod in pending):
        pending = _in_time(run, pending)
    asked = run.in_flight(pending)
    gangs = any(pod.shape.gang for pod in pending)
    running = Counter(p.gang for n in view.nodes for p in n.pods if p.gang) if gangs else Counter()
    for gang, groups in in_units(pending):
        # What was asked for counts in the order, so that the rest of a gang finds the room which that plan left to it.
        flown = [asked[pod.uid] for group in groups for pod in group.pods if pod.uid in asked]
        rest = [Group(group.shape, [pod for pod in group.pods if pod.uid not in asked]) for group in groups]
        rest = [group for group in rest if group.pods]
        if gang is not None and rest:
            place_gang(run, gang, rest, running[gang], flown)
        elif rest:
            run.place(rest[0])


def _in_time(run: Provisioner, pending: Sequence[PodDemand]) -> Sequence[PodDemand]:
    """The pods without those whose deadline could not be met when they came: that is told, and nothing is bought."""
    from pilotlight.decide.job_deadlines.job_deadlines import finding_of, infeasible

    kept: list[PodDemand] = []
    for pod in pending:
        why = infeasible(pod, run.able(run.offerings, pod.shape), run.memory, run.now) if pod.shape.due else ""
        if why:
            run.findings.append(finding_of(pod, why))
            run.tell("finding", Group(pod.shape, [pod]), "", why, code="deadline")
        else:
            kept.append(pod)
    return kept


def _any_may_be_sick(nodes: Sequence[Node], by_pool: Mapping[str, Offering]) -> bool:
    """True for a node whose GPUs may be sick: it is said, it is lost with its pods, or fewer show than its type has."""
    for pool, devices, ready, ill in {node.shows for node in nodes}:
        if ill or (ready and pool in by_pool and 0 < devices < len(by_pool[pool].devices)):
            return True
    return False


def _bought(buys: Sequence[Buy]) -> Counter[str]:
    found: Counter[str] = Counter()
    for buy in buys:
        found[buy.pool] += buy.count
    return found


def _minding(view: ClusterView) -> bool:
    return any(pod.shape.near is not None and pod.shape.near.rules for pod in view.pending)


def _with_attach_limits(offerings: Sequence[Offering], nodes: Sequence[Node]) -> Sequence[Offering]:
    """The offerings, each with as much room for volumes as the known nodes of its pool have at least."""
    least: dict[str, dict[str, int]] = {}
    for node in (n for n in nodes if n.attachable):
        for name, count in node.attachable.items():
            limits = least.setdefault(node.pool, {})
            limits[name] = min(count, limits.get(name, count))
    return [_roomy(o, least[o.pool]) if o.pool in least else o for o in offerings] if least else offerings


def _roomy(offering: Offering, limits: Mapping[str, int]) -> Offering:
    other = (*offering.resources.other, *sorted(limits.items()))
    return replace(offering, resources=replace(offering.resources, other=other))


def _rests(run: Provisioner, memory: Memory) -> list[datetime]:
    """When what keeps waiting pods from being bought for ends."""
    if not any(o.verdict in ("waiting", "refused") for o in run.outcomes):
        return []
    ends = [b.until for b in memory.backoffs] + [q.until for q in memory.quarantines]
    ends += run.due
    if run.headroom.purse is not None:
        ends += run.headroom.purse.frees_at()
    return [until for until in ends if until > run.now]


def _first_by_pool(offerings: Sequence[Offering]) -> dict[str, Offering]:
    """One offering a pool: those of a pool differ by zone alone."""
    by_pool: dict[str, Offering] = {}
    for offering in sorted(offerings, key=lambda o: o.name):
        by_pool.setdefault(offering.pool, offering)
    return by_pool


def _room(
    nodes: Sequence[Node],
    pools: Sequence[PoolState],
    by_pool: Mapping[str, Offering],
    policy: Policy,
    failed: Sequence[NodeVerdict],
    held: Mapping[str, int],
    leaving: Collection[str],
    asked: Mapping[str, Sequence[Offering]],
) -> tuple[list[Bin], list[Bin], Headroom]:
    """Free room of ready nodes (fullest first), room on its way, and what the caps leave. ``asked`` is what was bought.

    Failed capacity is no room, but counts against the caps until it is gone. So does what a cloud could not launch yet,
    and what is ``held`` because it may be a node.
    """
    headroom = Headroom(policy)
    ready: list[tuple[float, str, Node]] = []
    booting: list[Bin] = []
    registered: Counter[str] = Counter([f.pool for f in failed] + [n.pool for n in nodes])
    owed: Counter[str] = Counter()
    for node in nodes:
        if node.ready:
            if node.roomy and node.schedulable and node.name not in leaving:
                ready.append((-node.used_milli / max(1, 1000 * len(node.devices)), node.name, node))
        elif node.schedulable and node.pool in by_pool and not node.gpu_pods:
            booting.append(of_offering(_as_it_came(by_pool[node.pool], node), "booting", node.name))
    for state in sorted(pools, key=lambda p: p.name):
        offering = by_pool.get(state.name)
        if offering is not None:
            coming = max(0, state.desired - registered[state.name])
            missing = min(held.get(state.name, 0), coming)
            registered[state.name] += missing
            coming -= missing
            owed[state.name] = min(state.owed, coming)
            booted = coming - owed[state.name]
            bought = asked.get(state.name, ())[-booted:] if booted else ()
            booting += [
                of_offering(one, "booting", one.name) for one in (*[offering] * (booted - len(bought)), *bought)
            ]
            registered[state.name] += coming
    for name, count in registered.items():
        if name in by_pool:
            headroom.add(by_pool[name], count)
    headroom.owed = +owed
    ready.sort(key=lambda r: r[:2])
    return [of_node(node) for _, _, node in ready], booting, headroom


def _asked(memory: Memory, offerings: Sequence[Offering]) -> dict[str, list[Offering]]:
    """By pool what is on its way, one for each node, the newest last: they differ by zone."""
    known = {offering.name: offering for offering in offerings if offering.zone} if memory.in_flight else {}
    found: dict[str, list[Offering]] = {}
    for entry in sorted(memory.in_flight, key=lambda e: (e.requested_at, e.decision, e.n, e.offering)):
        if entry.offering in known:
            found.setdefault(entry.pool, []).extend([known[entry.offering]] * entry.count)
    return found


def _as_it_came(offering: Offering, node: Node) -> Offering:
    """Offering of a node that is not ready yet: it tells its own labels."""
    return replace(offering, labels={**offering.labels, **node.labels}) if node.labels else offering


def _reserved(ready: Sequence[Bin]) -> dict[str, str]:
    """Nodes whose free room planned pods will take."""
    return {b.where: f"{sum(n for _, n in b.taken)} waiting pod(s) will bind to it" for b in ready if b.taken}
