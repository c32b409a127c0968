"""Rules over a policy whose every value is well-formed: limits that cross, names that name nothing."""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import get_args

from pilotlight.codec.policy_alerts import alert_problems, known_zone, window_problems
from pilotlight.codec.policy_claims import claim_problems
from pilotlight.codec.policy_values import amount_problem, quote_text, suggestion
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.demand.worker_queues import QueueRules
from pilotlight.facts.limits.rule_policy import RuleSet, RuleWhen
from pilotlight.facts.money.gates import GATE
from pilotlight.facts.money.money_policy import BillScope, Budget, BudgetScope, LitCaps
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import WHOLE_DEVICES, is_gpu

Problem = tuple[str, str]

_COUNTED = ("cpu", "memory", "ephemeral-storage", "pods", *WHOLE_DEVICES)
"""What every node is known to offer, whose DaemonSets' part can be taken off."""
QUEUE_SOURCES = ("prometheus", "pubsub", "rabbitmq", "sqs")
SHORTEST_IDLE_S = 120
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CAPACITY_TYPES = get_args(CapacityType)
_QUEUE = r"(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_BUDGET_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_LETTERS = "write letters, digits, dots, dashes or underscores, at most 63"
_NODE_POOL = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_DAY = r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


def contradictions(policy: Policy) -> list[Problem]:
    """Every contradiction, as path and reason."""
    found: list[Problem] = []
    for name, pool in policy.pools.items():
        found += _pool(f"pools.{name}", pool)
    found += _shared_cluster_pools(policy)
    found += _canaries(policy)
    found += _renewals(policy)
    for name, rules in policy.classes.items():
        found += _class(f"classes.{name}", name, rules)
    for name, team in policy.teams.items():
        found += _spot_share(f"teams.{name}", team.max_spot_share)
    found += claim_problems(policy)
    found += _caps("caps", policy.caps)
    found += _rules(policy)
    for i, budget in enumerate(policy.budgets):
        found += _budget(
            f"budgets[{i}]", budget, policy, {n for other in policy.budgets[:i] for n in (other.name, other.account)}
        )
    for queue, asks in policy.queues.items():
        found += _queue(f"queues.{queue}", queue, asks, policy)
    found += _prices(policy)
    found += alert_problems(policy.alerts)
    if policy.max_stranded_gpus is not None and policy.max_stranded_gpus < 0:
        found.append(("max_stranded_gpus", "must be 0 or more"))
    return found


def _pool(path: str, pool: PoolPolicy) -> Iterator[Problem]:
    yield from _least(path, {"min": pool.min, "max": pool.max})
    if pool.min > pool.max >= 0:
        yield f"{path}.min", f"{pool.min} is more than max {pool.max}"
    if pool.spares.warm > pool.max >= 0:
        yield f"{path}.spares.warm", f"{pool.spares.warm} is more than max {pool.max}"
    if not pool.instance_type:
        yield f"{path}.instance_type", "is empty"
    for i, taint in enumerate(pool.taints):
        if taint.effect not in EFFECTS:
            yield f"{path}.taints[{i}].effect", f"{taint.effect!r} is not one of {', '.join(EFFECTS)}"
    for key, amount in pool.daemonsets.items():
        if amount_problem(amount):
            yield f"{path}.daemonsets.{key}", amount_problem(amount)
        elif key not in (*_COUNTED, *pool.slices):
            yield f"{path}.daemonsets.{key}", f"is in no count of a node: list it in {path}.slices, or take it out"
    if pool.paid is not None and pool.capacity_type != "reserved":
        yield f"{path}.paid", "is for capacity_type: reserved; nodes that are paid for want a pool of their own"
    if pool.capacity_type == "flex-start":
        yield from _flex_start(path, pool)
    if pool.renew.max_age is not None and pool.renew.max_age <= 0:
        yield f"{path}.renew.max_age", "must be more than 0"
    if pool.cluster_pool.startswith(GATE):
        yield from _gate(path, pool)
    yield from _least(f"{path}.slices", pool.slices)
    if len(set(pool.zones)) < len(pool.zones):
        yield f"{path}.zones", "names a zone twice"


def _gate(path: str, pool: PoolPolicy) -> Iterator[Problem]:
    """Karpenter buys and puts out there: what only its buyer can do is not asked for."""
    if not re.fullmatch(_NODE_POOL, pool.nodepool):
        yield f"{path}.cluster_pool", f"{pool.nodepool!r} is no NodePool's name: write {GATE}NAME"
    for key, asked in (("min", pool.min), ("spares.warm", pool.spares.warm), ("renew", pool.renew.asks)):
        if asked:
            yield f"{path}.{key}", "is nothing that Karpenter is asked for: it buys the nodes of this pool"
    for name in filter(is_gpu, pool.slices):
        why = "cuts up GPUs, and Karpenter counts what a node shows: no limit holds there; take it out, or the gate"
        yield f"{path}.slices.{name}", why


def _canaries(policy: Policy) -> Iterator[Problem]:
    """A canary has a control that is another pool, and no bounds stand where nothing is tried."""
    for name, pool in policy.pools.items():
        path = f"pools.{name}"
        if (pool.mode == "canary") != (pool.canary is not None):
            yield f"{path}.mode", "canary goes with canary: {control: POOL}, and neither stands alone"
        elif pool.canary is not None and (pool.canary.control == name or pool.canary.control not in policy.pools):
            others = ", ".join(sorted(policy.pools.keys() - {name})) or "none yet"
            yield f"{path}.canary.control", f"{pool.canary.control!r} is no other pool: there are {others}"


def _renewals(policy: Policy) -> Iterator[Problem]:
    """Old nodes are replaced in the time of rules that nothing but the clock decides."""
    timed = [rule.name for rule in policy.rules if rule.when.is_time_alone]
    for name, pool in policy.pools.items():
        for rule in pool.renew.during:
            if rule not in timed:
                yield f"pools.{name}.renew.during", f"{rule!r} is no rule of time alone{suggestion(rule, timed)}"


def _shared_cluster_pools(policy: Policy) -> Iterator[Problem]:
    """Two pools of one node group would each think it theirs; so would a gate and what is bought for by claims.

    A node's label names its pool and no cloud: one name is one pool, under whatever clouds.
    """
    owner: dict[str, str] = {}
    for name, pool in policy.pools.items():
        called = pool.nodepool or pool.cluster_pool or name
        first = owner.setdefault(called, name)
        if first != name:
            yield f"pools.{name}.cluster_pool", f"{called} is that of pool {first} too: one node pool has one owner"


def _flex_start(path: str, pool: PoolPolicy) -> Iterator[Problem]:
    """Google's flex-start has no static count: nothing of it is kept."""
    if pool.cloud not in ("gke", "world"):
        yield f"{path}.capacity_type", "flex-start is Google's: write cloud: gke, or another capacity type"
    kept = {"min": pool.min, "spares.warm": pool.spares.warm, "spares.stopped": pool.spares.stopped}
    for key, nodes in kept.items():
        if nodes not in (0, "auto"):
            yield f"{path}.{key}", "flex-start has no static count: write 0"


def _class(path: str, name: str, rules: ClassPolicy) -> Iterator[Problem]:
    if not rules.capacity_types:
        yield f"{path}.capacity_types", "is empty: name at least one"
    if name == "serving" and "spot" in rules.capacity_types:
        yield f"{path}.capacity_types", "serving never runs on spot: leave spot out"
    if rules.fallback == "allow" and "on-demand" in rules.capacity_types:
        yield f"{path}.fallback", "allow changes nothing: on-demand is among capacity_types already"
    if rules.gpu_models == ():
        yield f"{path}.gpu_models", "is empty: name models, or write any"
    if rules.idle_timeout is not None and rules.idle_timeout > rules.max_idle_timeout:
        yield f"{path}.idle_timeout", "is more than max_idle_timeout"
    if rules.max_runtime is not None and rules.max_runtime <= 0:
        yield f"{path}.max_runtime", "must be more than 0"
    if rules.hold <= 0:
        yield f"{path}.hold", "must be more than 0"
    if rules.reclaim is not None and rules.reclaim.idle < SHORTEST_IDLE_S:
        yield f"{path}.reclaim.idle", f"must be {SHORTEST_IDLE_S}s or more: a moment without work is no idleness"
    yield from _spot_share(path, rules.max_spot_share)
    if rules.max_spot_share is not None:
        yield from _shared_out(f"{path}.max_spot_share", rules)


def _shared_out(path: str, rules: ClassPolicy) -> Iterator[Problem]:
    """A share of spot has spot to run on, and the rest of the pods something else."""
    if "spot" not in rules.capacity_types:
        yield path, "changes nothing: spot is not among capacity_types"
    elif "on-demand" not in rules.capacity_types and rules.fallback == "deny":
        yield path, "leaves the rest nothing to run on: add on-demand, or fallback: allow"


def _spot_share(path: str, share: Decimal | None) -> Iterator[Problem]:
    if share is not None and share > 1:
        yield f"{path}.max_spot_share", f"{share} is no share: write 0 to 1, as 0.5"


def _caps(path: str, caps: LitCaps) -> Iterator[Problem]:
    yield from _least(path, {k: v for k, v in (("nodes", caps.nodes), ("gpus", caps.gpus)) if v is not None})


def _rules(policy: Policy) -> Iterator[Problem]:
    for i, rule in enumerate(policy.rules):
        path = f"rules[{i}]"
        if not re.fullmatch(_BUDGET_NAME, rule.name) or rule.name in {earlier.name for earlier in policy.rules[:i]}:
            yield f"{path}.name", f"{rule.name!r} is no name of its own: letters, digits, dots, dashes, underscores"
        yield from _when(f"{path}.when", rule.when, policy)
        yield from _set(f"{path}.set", rule.does, policy)
        if rule.does.evict and not (rule.does.avoid and rule.when.is_time_alone):
            yield f"{path}.set.evict", "goes with avoid, which says whose pods leave which pools, and with time alone"
        if rule.does == RuleSet() and not any(rule.name in pool.renew.during for pool in policy.pools.values()):
            yield f"{path}.set", "sets nothing, and no pool's renew.during names the rule"


def _when(path: str, when: RuleWhen, policy: Policy) -> Iterator[Problem]:
    if when == RuleWhen():
        yield path, "names no condition: it would always hold"
    if when.use is not None:
        yield from _known(f"{path}.use.pools", when.use.pools, policy.pools)
        if not when.use.pools or (when.use.below, when.use.above) == (None, None):
            yield f"{path}.use", "asks nothing: name pools, and below or above"
    if when.budget is not None and when.budget.name not in {budget.name for budget in policy.budgets}:
        yield f"{path}.budget.name", f"{when.budget.name!r} is no budget of this policy"
    if when.time is not None:
        yield from window_problems(f"{path}.time", when.time)


def _set(path: str, does: RuleSet, policy: Policy) -> Iterator[Problem]:
    for key, named in (("warm", does.warm), ("max", does.max), ("idle", does.idle), ("avoid", does.avoid)):
        yield from _known(f"{path}.{key}", named, policy.pools)
    for name, warm in does.warm.items():
        most = does.max.get(name, policy.pools[name].max if name in policy.pools else warm)
        if warm > most:
            yield f"{path}.warm.{name}", f"{warm} is more than max {most}"
    if "spot" in does.capacity_types.get("serving", ()):
        yield f"{path}.capacity_types.serving", "serving never runs on spot: leave spot out"
    for name, kinds in does.avoid.items():
        if not kinds or "serving" in kinds:
            yield f"{path}.avoid.{name}", "name the classes that are to run elsewhere; serving is never moved by a rule"
    if does.caps is not None:
        yield from _caps(f"{path}.caps", does.caps)


def _budget(path: str, budget: Budget, policy: Policy, taken: Collection[str]) -> Iterator[Problem]:
    if not re.fullmatch(_BUDGET_NAME, budget.name):
        yield f"{path}.name", f"{quote_text(budget.name)} is no name: {_LETTERS}"
    if budget.name in taken:
        yield f"{path}.name", f"{budget.name} names two budgets: what they hold would be mixed up"
    if budget.id and not re.fullmatch(_BUDGET_NAME, budget.id):
        yield f"{path}.id", f"{quote_text(budget.id)} is no id: {_LETTERS}"
    if budget.id and budget.id in taken:
        yield f"{path}.id", f"{budget.id} is what another budget is kept under: what they hold would be mixed up"
    if budget.usd is None and (budget.gpu_hours is None or budget.period == "hour"):
        yield path, "limits nothing: give it usd, or gpu_hours of a day, week or month"
    if not known_zone(budget.timezone):
        yield f"{path}.timezone", f"{budget.timezone!r} is no IANA time zone; write one as America/New_York"
    for i, queue in enumerate(budget.queues):
        if not re.fullmatch(_QUEUE, queue):
            yield f"{path}.queues[{i}]", f"{queue!r} is no queue: write a ClusterQueue's name, or namespace/name"
    yield from _basis(f"{path}.basis", budget)
    yield from _ladder(f"{path}.ladder", budget)
    if isinstance(budget.scope, BudgetScope):
        yield from _scope(f"{path}.scope", budget.scope, policy)


def _basis(path: str, budget: Budget) -> Iterator[Problem]:
    of_class = isinstance(budget.scope, BudgetScope) and budget.scope.workload_class is not None
    if budget.basis is not None and (budget.usd is None or budget.period == "hour" or of_class):
        yield path, "is of dollars that are billed: write usd, a period of a day or more, and no class as scope"


def _ladder(path: str, budget: Budget) -> Iterator[Problem]:
    """Each step of a ladder stands above the one before it, and the first above nothing."""
    for i, step in enumerate(budget.ladder):
        if step.at <= 0:
            yield f"{path}[{i}].at", "must be more than 0: a share of the budget, as 0.8"
        if i and step.at <= budget.ladder[i - 1].at:
            yield f"{path}[{i}].at", "must be more than that of the step before it"


def _scope(path: str, scope: BudgetScope, policy: Policy) -> Iterator[Problem]:
    if sum(name is not None for name in (scope.team, scope.workload_class, scope.pool)) != 1:
        yield path, "must name exactly one of team, class and pool; two budgets make both hold"
    if scope.team == "":
        yield f"{path}.team", "is empty"
    if scope.pool is not None:
        yield from _known(path + ".pool", [scope.pool], policy.pools)


def _queue(path: str, name: str, rules: QueueRules, policy: Policy) -> Iterator[Problem]:
    if not re.fullmatch(_BUDGET_NAME, name):
        yield path, f"{name!r} is no name: write letters, digits, dots, dashes or underscores"
    kind, _, where = rules.source.partition(":")
    if kind not in QUEUE_SOURCES or not where:
        yield f"{path}.source", f"begin with {', '.join(f'{one}:' for one in QUEUE_SOURCES)}"
    if rules.min > rules.max:
        yield f"{path}.min", f"{rules.min} is more than max {rules.max}"
    if bool(rules.service) != bool(rules.drain):
        yield f"{path}.drain", "needs service too, and the other way round: together they say how many are done in time"
    if rules.pool:
        yield from _known(f"{path}.pool", [rules.pool], policy.pools)
        if "/" not in rules.workers:
            yield f"{path}.workers", "is missing: name what runs them, as namespace/name, so that they can be counted"


def _prices(policy: Policy) -> Iterator[Problem]:
    for key, price in policy.prices.overrides.items():
        _, _, kind = key.rpartition("/")
        if kind not in CAPACITY_TYPES or "/" not in key:
            yield f"prices.overrides.{key}", f"write it as TYPE/{'|'.join(CAPACITY_TYPES)}, as g4dn.xlarge/spot"
        if price <= 0:
            yield f"prices.overrides.{key}", "must be more than 0: an unknown price is left out, never 0"
    for i, rate in enumerate(policy.prices.currencies):
        if not re.fullmatch(_DAY, rate.date):
            yield f"prices.currencies[{i}].date", f"{rate.date!r} is no day: write it as 2026-11-01"
        if rate.usd <= 0:
            yield f"prices.currencies[{i}].usd", "must be more than 0: an unknown rate is left out, never 0"
    if policy.bill is not None:
        yield from _bill(policy.bill)
    if policy.prices.max_age_days < 1:
        yield "prices.max_age_days", "must be 1 or more"
    for name, speeds in policy.prices.throughput.items():
        for model, speed in speeds.items():
            if speed <= 0:
                yield f"prices.throughput.{name}.{model}", "must be more than 0"


def _bill(bill: BillScope) -> Iterator[Problem]:
    """A part of shared lines is a part, and of lines that can be told by tags."""
    if bill.shared > 1:
        yield "bill.shared", f"{bill.shared} is more than 1: it is this cluster's part of lines without its tags"
    if bill.shared and not bill.tags:
        yield "bill.shared", "without bill.tags no line is shared"


def _least(path: str, numbers: Mapping[str, int]) -> Iterator[Problem]:
    for key, number in numbers.items():
        if number < 0:
            yield f"{path}.{key}", f"{number} is negative"


def _known(path: str, names: Collection[str], pools: Collection[str]) -> Iterator[Problem]:
    for name in names:
        if name not in pools:
            yield f"{path}.{name}", f"names no pool{suggestion(name, list(pools))}"
