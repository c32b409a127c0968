"""The policy's pools against what is there: their cloud's pools, and the nodes that registered."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pilotlight.facts.capacity import Offering, Taint
from pilotlight.facts.labels import DRAINING, HOME
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.place.homes import but_home
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import is_gpu, part_of_gpu
from pilotlight.tools.checkup.survey_facts import SeenNode, Survey
from pilotlight.units import cents

MONTH_H = Decimal(730)
"""Hours of a month, 8,760 / 12: what one node that never goes out costs."""

_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "nvidia.com/gpu-")
"""Taints that come and go with a node's state: a pool does not declare them."""


def pool_checks(
    survey: Survey, policy: Policy, offered: Sequence[Offering], clouds: Mapping[str, PoolState] | None
) -> Iterator[Check]:
    """Checks that each pool is there, with what it costs while idle, and that its nodes are what the policy says."""
    known_types = {offering.pool: offering for offering in offered}
    prices = {offering.pool: offering.usd_per_hour for offering in offered}
    for name, pool in policy.pools.items():
        nodes = [node for node in survey.nodes if node.pool == name]
        yield _there(name, pool, nodes, clouds)
        yield from _least(name, pool, prices.get(name))
        if len(nodes) > pool.max:
            fix = f"set pools.{name}.max to {len(nodes)} or give nodes back"
            yield _check("pool-max", name, "warning", f"has {_nodes(len(nodes))}, over max {pool.max}", fix)
        for node in nodes:
            yield from _node(name, pool, node, known_types.get(name))
    known = set(policy.pools)
    others = sorted({n.pool or "(none)" for n in survey.nodes if n.has_gpu and n.pool not in known})
    for other in others:
        fix = "give it an entry under pools, or leave it to its owner; Pilotlight neither buys nor releases there"
        yield _check("pool-unlisted", other, "warning", "has GPU nodes and is no pool of the policy", fix)


def _check(code: str, pool: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code=code, subject=f"pool {pool}", verdict=verdict, what=what, fix=fix)


def _there(name: str, pool: PoolPolicy, nodes: Sequence[SeenNode], clouds: Mapping[str, PoolState] | None) -> Check:
    if pool.nodepool:
        return _check("pool", name, "ok", f"Karpenter buys there, {_nodes(len(nodes))} registered")
    called = pool.cluster_pool or name
    if clouds is not None and name not in clouds:
        fix = f"create it, or set pools.{name}.cluster_pool to what the cloud calls it"
        return _check("pool", name, "fault", f"the cloud has no pool {called}", fix)
    if clouds is not None:
        desired = clouds[name].desired
        return _check("pool", name, "ok", f"is there, desired size {desired}, {_nodes(len(nodes))} registered")
    if nodes:
        return _check("pool", name, "ok", f"{_nodes(len(nodes))} with its label")
    fix = "set PILOTLIGHT_POOLS to a cloud that answers; a pool at zero shows nothing in the cluster"
    return _check("pool", name, "unknown", "no node of it is registered, and no cloud tells of it", fix)


def _least(name: str, pool: PoolPolicy, price: Decimal | None) -> Iterator[Check]:
    """A minimum is paid for around the clock: "scale to zero" with min 1 is not."""
    least = max(pool.min, pool.spares.warm)
    if not least:
        return
    key = "min" if pool.min >= pool.spares.warm else "spares.warm"
    cost = f": {cents(least * price * MONTH_H)} a month of {MONTH_H} h" if price is not None else ""
    fix = f"set pools.{name}.{key} to 0, or warm by a rule in the hours that need it"
    yield _check("pool-min", name, "warning", f"{key} {least} keeps {_nodes(least)} lit around the clock{cost}", fix)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _node(name: str, pool: PoolPolicy, node: SeenNode, of: Offering | None) -> Iterator[Check]:
    """Where the policy and a node disagree, plans made of the policy's labels and taints come out wrong."""
    for problem, fix in (*_wrong_labels(name, pool, node), *_wrong_taints(name, pool, node)):
        yield _check("pool-differs", name, "fault", f"node {node.name} {problem}", fix)
    if of is None or not node.ready or not node.has_gpu:
        return
    have, said = {**node.slices, of.resource: node.gpus}, _offered(pool, of)
    if {n: c for n, c in have.items() if c} != {n: c for n, c in said.items() if c}:
        what = f"node {node.name} offers {_counts(have)}, the policy says {_counts(said)}"
        fix = f"mend pools.{name}.instance_type, or pools.{name}.slices where GPUs are shared or cut up"
        yield _check("pool-gpus", name, "fault", what, fix)


def _offered(pool: PoolPolicy, of: Offering) -> dict[str, int]:
    """The GPUs and parts of GPUs that a node of a pool offers; where parts are named, whole are those named too."""
    named = {name: count for name, count in pool.slices.items() if is_gpu(name)}
    return {of.resource: 0 if any(map(part_of_gpu, named)) else of.gpus, **named}


def _counts(offered: Mapping[str, int]) -> str:
    """As people say it: "7 nvidia.com/mig-1g.10gb and 1 nvidia.com/gpu"."""
    return " and ".join(f"{count} {name}" for name, count in offered.items() if count) or "no GPU"


def _wrong_labels(name: str, pool: PoolPolicy, node: SeenNode) -> Iterator[tuple[str, str]]:
    fix = f"set it in the cloud's pool, so that new nodes have it, or mend pools.{name}"
    for key, value in pool.labels.items():
        have = node.labels.get(key)
        if have != value:
            yield (
                f"has {f'label {key}={have}' if have is not None else f'no label {key}'}, the policy says {value}",
                fix,
            )
    if node.instance_type and node.instance_type != pool.instance_type:
        yield f"is a {node.instance_type}, the policy says {pool.instance_type}", f"mend pools.{name}.instance_type"
    if node.capacity_type and node.capacity_type != pool.capacity_type:
        yield f"is {node.capacity_type}, the policy says {pool.capacity_type}", f"mend pools.{name}.capacity_type"


def _wrong_taints(name: str, pool: PoolPolicy, node: SeenNode) -> Iterator[tuple[str, str]]:
    theirs = (taint for taint in node.taints if taint.key not in (DRAINING, HOME))
    have = [taint for taint in theirs if not taint.key.startswith(_PASSING)]
    for taint in have:
        if taint not in pool.taints and taint.effect != "PreferNoSchedule":
            fix = f"add it to pools.{name}.taints: pods that do not tolerate it never start on a node bought for them"
            yield f"has taint {_taint(taint)}, which the policy does not know", fix
    for taint in but_home(pool.taints):
        if taint not in have:
            fix = "set it in the cloud's pool: without it pods that need no GPU keep the node lit"
            yield f"lacks taint {_taint(taint)}", fix


def _taint(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
