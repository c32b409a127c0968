"""Homes as they are in a cluster: whose nodes are born with our taint, and which DaemonSets it keeps off them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

from pilotlight.facts.capacity import Offering, Taint
from pilotlight.facts.labels import DRAINING, HOME, NEW_HOME, NODE_NAME
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.place.homes import BIRTH_TAINT, has_home_taint
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.survey_facts import SeenNode, SeenSet, Survey
from pilotlight.units import cents, count_of

NAMED = timedelta(minutes=10)
"""A home that is new for longer is named by nobody."""
_BIRTH = f"{{key: {HOME}, value: {NEW_HOME}, effect: NoSchedule}}"
_EFFECTS = ("NoSchedule", "PreferNoSchedule")
TOLERATION = f"{{key: {HOME}, operator: Exists, effect: NoSchedule}}"
"""What a DaemonSet's pods need to come to every node."""

_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Taints that DaemonSets' pods tolerate by themselves, or that pass."""
_PLACES = {
    "eks": "aws eks update-nodegroup-config --taints "
    f"'addOrUpdateTaints=[{{key={HOME},value={NEW_HOME},effect=NO_SCHEDULE}}]'; for nodes of your own the kubelet's "
    f"--register-with-taints={HOME}={NEW_HOME}:NoSchedule; Karpenter: spec.template.spec.taints of the NodePool",
    "gke": f"gcloud container node-pools update POOL --node-taints {HOME}={NEW_HOME}:NoSchedule, beside those it has",
    "aks": f"az aks nodepool update --node-taints {HOME}={NEW_HOME}:NoSchedule, beside those it has",
    "civo": "the pool's taints, beside those it has: "
    f'{{"key": "{HOME}", "value": "{NEW_HOME}", "effect": "NoSchedule"}}',
}
"""Where each cloud's nodes get the taints that they are born with."""


def home_checks(survey: Survey, policy: Policy, offered: Sequence[Offering] = ()) -> Iterator[Check]:
    """A line a pool, and one a DaemonSet that homed nodes keep off."""
    rates = {o.pool: o.usd_per_hour / o.gpus for o in offered if o.gpus}
    for name, pool in policy.pools.items():
        nodes = [node for node in survey.nodes if node.pool == name]
        kept = [node for node in nodes if _home(node) is not None]
        if policy.placement == "homes":
            yield from _of_pool(name, pool, nodes, kept, survey)
            if not kept and name in rates and len(rates) > 1 and not any(taint.key == HOME for taint in pool.taints):
                yield _check(name, "ok", _why_open(rates, name))
        elif kept:
            what = f"{_nodes(kept)} kept by {HOME}, and placement is {policy.placement}: no pod is given a home there"
            yield _check(
                name,
                "fault",
                what,
                "take placement: none out of the policy, or the taint out of pool and nodes",
            )
    for node in survey.nodes:
        if node.pool not in policy.pools and _home(node) is not None:
            what = f"node {node.name} carries {HOME}, and is of no pool of the policy: no pod is given a home there"
            yield _check(node.pool or "(none)", "fault", what, f"kubectl taint nodes {node.name} {HOME}-")
    if policy.placement == "homes":
        yield from _kept_off(survey, policy)


def _of_pool(
    name: str, pool: PoolPolicy, nodes: Sequence[SeenNode], kept: Sequence[SeenNode], survey: Survey
) -> Iterator[Check]:
    where = _PLACES.get(pool.cloud, f"its node pool's taints: {HOME}={NEW_HOME}:NoSchedule")
    for taint in pool.taints:
        if taint.key == HOME and taint != BIRTH_TAINT:
            what = f"lists {HOME}={taint.value}:{taint.effect}, which homes no pool: no node of it gets a home"
            fix = f"write {_BIRTH} instead in pools.{name}.taints, and set the same at its cloud: {where}"
            yield _check(name, "fault", what, fix)
    odd = [node for node in nodes if any(t.key == HOME and t.effect not in _EFFECTS for t in node.taints)]
    if odd:
        what = f"{len(odd)} node{'s are' if len(odd) != 1 else ' is'} born with {HOME} of effect NoExecute"
        what += ": our toleration does not bear it, so each is opened to every pod"
        yield _check(name, "fault", what, f"set the effect NoSchedule: {where}")
        return
    if not has_home_taint(pool.taints):
        if kept:
            what = f"{_nodes(kept)} kept by {HOME}, which the policy does not know of this pool"
            fix = f"add {_BIRTH} to pools.{name}.taints, or take it out"
            yield _check(name, "fault", what, f"{fix} of the pool at its cloud")
        return
    new = [node for node in kept if _home(node) in ("", NEW_HOME) and survey.at - node.created_at > NAMED]
    if new:
        fix = "see that the functions tick, and that its limits list the pool: pilotlight connect --act"
        yield _check(
            name, "fault", f"{_nodes(new)} new for more than {NAMED.seconds // 60} minutes: no pod runs there", fix
        )
    elif nodes and not kept:
        what = f"is homed, and {HOME} is on 0 of {count_of(len(nodes), 'node')}: opened since, or born without it"
        yield _check(name, "warning", what, f"see that new nodes get it: {where}")
    elif nodes:
        yield _check(name, "ok", f"is homed: {_nodes(kept)} kept for pods that were given them, of {len(nodes)}")
    else:
        what = f"is homed, and no node of it is there to show that it is born with {HOME}"
        yield _check(name, "unknown", what, f"see that new nodes get it: {where}")


def _why_open(rates: Mapping[str, Decimal], name: str) -> str:
    """Why nobody need, or may, home a pool that lists no birth taint."""
    cheaper = sorted(pool for pool, rate in rates.items() if rate < rates[name])
    if not cheaper:
        return (
            f"is open: no pool costs less than its {cents(rates[name])} a GPU and hour, so its pods are at home there"
        )
    return (
        f"is open: a pod that may run on {', '.join(cheaper)} too costs less there than {cents(rates[name])} a GPU and "
        "hour; pilotlight plan says of which waiting pods that holds"
    )


def _kept_off(survey: Survey, policy: Policy) -> Iterator[Check]:
    for each in survey.daemonsets:
        pools = sorted({node.pool for node in survey.nodes if _home(node) is not None and _lacks(each, node)})
        pools += [name for name, pool in policy.pools.items() if name not in pools and _never_comes(each, pool)]
        if pools:
            what = (
                f"does not tolerate {HOME}: it comes to no node of {', '.join(pools)} until that is opened to every pod"
            )
            if each.is_plugin:
                what = (
                    f"does not tolerate {HOME}: no node of {', '.join(pools)} ever has a GPU to give until it is opened"
                )
            yield Check(
                code="home-daemonset",
                subject=f"daemonset {each.full_name}",
                verdict="fault" if each.is_plugin else "warning",
                what=what,
                fix=f"add to its pods' tolerations {TOLERATION}",
            )


def _lacks(each: SeenSet, node: SeenNode) -> bool:
    """True where a DaemonSet's pod belongs on a node and does not tolerate its home."""
    taints = [taint for taint in node.taints if not _passes(taint)]
    return not each.tolerates_homes and each.belongs({**node.labels, NODE_NAME: node.name}, taints)


def _never_comes(each: SeenSet, pool: PoolPolicy) -> bool:
    """The same of the nodes that a homed pool will have: by the labels and taints that the policy knows of them."""
    if not has_home_taint(pool.taints) or each.tolerates_homes:
        return False
    taints = [taint for taint in pool.taints if not _passes(taint)]
    return each.is_plugin or each.belongs(pool.labels, taints)


def _passes(taint: Taint) -> bool:
    return taint.key in (HOME, DRAINING) or taint.key.startswith(_PASSING)


def _home(node: SeenNode) -> str | None:
    return next((taint.value for taint in node.taints if taint.key == HOME), None)


def _nodes(nodes: Sequence[SeenNode]) -> str:
    return f"{len(nodes)} node{'s are' if len(nodes) != 1 else ' is'}"


def _check(pool: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="home", subject=f"pool {pool}", verdict=verdict, what=what, fix=fix)
