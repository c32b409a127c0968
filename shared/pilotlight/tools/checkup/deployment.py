"""Checks of a deployment on its cluster: pure, over what a survey read. Every line says its fix."""

from collections.abc import Iterator, Mapping, Sequence

from pilotlight.decide.alerts.credential_end import token_check
from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check
from pilotlight.facts.modes import Mode
from pilotlight.facts.money.money_policy import BudgetScope
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import DEFAULT_CLASSES, Policy
from pilotlight.facts.workload import Finding
from pilotlight.tools.checkup.account_limits import eviction_limit_checks, limit_checks, pod_limit_checks
from pilotlight.tools.checkup.autoscalers import autoscaler_checks
from pilotlight.tools.checkup.homed_nodes import home_checks
from pilotlight.tools.checkup.placement_worth import placement_checks
from pilotlight.tools.checkup.policy_pools import pool_checks
from pilotlight.tools.checkup.pool_rules import rule_checks
from pilotlight.tools.checkup.rights import (
    EVICT,
    EVIDENCE,
    HEARTBEAT,
    PULLS,
    QUEUES,
    TELL,
    TOO_MUCH,
    Right,
    rights_of_mode,
)
from pilotlight.tools.checkup.survey_facts import SeenNode, SeenSet, Survey
from pilotlight.tools.install.handover import GroupState
from pilotlight.units import count_of

_MODES: tuple[Mode, ...] = ("observe", "advise", "scale-up", "act")
_ROLES = {"patch": " --act", "create": " --act"}


def checkup(
    survey: Survey,
    policy: Policy,
    offered: Sequence[Offering],
    *,
    mode: Mode,
    clouds: Mapping[str, PoolState] | None,
    prices: Sequence[Finding],
    groups: Mapping[str, GroupState] = {},
) -> tuple[Check, ...]:
    """All checks, in the order people read them.

    ``clouds`` are the pools as their cloud tells them, None where no cloud is asked. ``prices`` are the findings on the
    policy's types and prices. ``groups`` are the settings of the pools' groups, where their cloud tells them.
    """
    return (
        _good("reach", survey.server, f"answers, Kubernetes {survey.version}"),
        *_rights(survey, policy, mode),
        *_evidence(survey, policy, mode),
        *_queues(survey),
        *_binds(policy),
        *_too_many(survey),
        *_token(survey),
        *limit_checks(survey, policy, strongest(policy, mode)),
        *pod_limit_checks(survey, strongest(policy, mode)),
        *eviction_limit_checks(survey, strongest(policy, mode)),
        *pool_checks(survey, policy, offered, clouds),
        *rule_checks(policy, clouds or {}, groups),
        *_device_plugin(survey, policy),
        *autoscaler_checks(survey, policy, offered, strongest(policy, mode)),
        *placement_checks(survey, policy, offered),
        *home_checks(survey, policy, offered),
        *_prices(prices, offered),
        *(
            Check(code="hidden", subject=name, verdict="unknown", what=why, fix="grant it with pilotlight connect")
            for name, why in survey.hidden.items()
        ),
    )


def strongest(policy: Policy, mode: Mode) -> Mode:
    """The mode that needs the most rights: the deployment's, or one of a pool's own."""
    return max([mode, *(pool.acts_as for pool in policy.pools.values() if pool.acts_as)], key=_MODES.index)


def _good(code: str, subject: str, what: str) -> Check:
    return Check(code=code, subject=subject, verdict="ok", what=what)


def _rights(survey: Survey, policy: Policy, mode: Mode) -> Iterator[Check]:
    most = strongest(policy, mode)
    wanted = [right for right in rights_of_mode(most) if policy.events != "none" or right not in TELL]
    missing = [right for right in wanted if not survey.allowed.get(right)]
    places = {right.namespace: may for right, may in survey.allowed.items() if right.namespace and _evicts(right)}
    if EVICT in missing and any(places.values()):
        missing.remove(EVICT)
        yield from _evicts_in(places)
    for right in missing:
        yield Check(
            code="right",
            subject="rights",
            verdict="fault",
            what=f"may not {right}, which mode {most} needs",
            fix=f"grant it with pilotlight connect{_ROLES.get(right.verb, '')}",
        )
    if not missing:
        yield _good("right", "rights", f"may do all that mode {most} needs: {len(wanted)} rights asked one by one")


def _evicts(right: Right) -> bool:
    return (right.verb, right.resource) == (EVICT.verb, EVICT.resource)


def _evicts_in(places: Mapping[str, bool]) -> Iterator[Check]:
    """Where it evicts, of the namespaces that have GPU pods or that the policy names."""
    there, not_there = ([name for name, may in sorted(places.items()) if may is wanted] for wanted in (True, False))
    what = f"evicts pods in {', '.join(there)} alone"
    if not not_there:
        yield _good("right-evictions", "rights", what)
        return
    yield Check(
        code="right-evictions",
        subject="rights",
        verdict="warning",
        what=f"{what}, and GPU pods of {', '.join(not_there)} keep their nodes",
        fix="name all with pilotlight connect --act --evict-in NAMESPACE (the chart: evictIn)",
    )


def _evidence(survey: Survey, policy: Policy, mode: Mode) -> Iterator[Check]:
    """Rights to see another autoscaler and the scheduler at work, which a mode that buys does not do without."""
    blind = [right for right in EVIDENCE if survey.allowed.get(right) is False]
    if blind and strongest(policy, mode) in ("scale-up", "act"):
        yield Check(
            code="right-evidence",
            subject="rights",
            verdict="warning",
            what=f"may not {' and '.join(str(right) for right in blind)}: an autoscaler at work is not seen",
            fix="grant it with pilotlight connect",
        )
    unheard = [right for right in HEARTBEAT if survey.allowed.get(right) is False]
    if unheard and strongest(policy, mode) in ("scale-up", "act"):
        yield Check(
            code="right-heartbeat",
            subject="rights",
            verdict="warning",
            what=f"may not {unheard[0]}: that the scheduler lives is seen by its binds alone",
            fix="grant it with pilotlight connect",
        )

    if any(survey.allowed.get(right) is False for right in PULLS):
        yield Check(
            code="right-pulls",
            subject="rights",
            verdict="warning",
            what=f"may not {PULLS[0]}: image pulls are not learned nor priced",
            fix="grant it with pilotlight connect",
        )


def _queues(survey: Survey) -> Iterator[Check]:
    """Rights of an account that answers Kueue's check, which it may do without some of what that needs."""
    answers, *others = QUEUES
    missing = [right for right in others if survey.allowed.get(right) is False]
    if survey.allowed.get(answers) and missing:
        yield Check(
            code="right-queues",
            subject="rights",
            verdict="warning",
            what=f"may answer Kueue's check, and not {' and '.join(str(right) for right in missing)}: "
            "work without money is evicted again",
            fix="grant it with pilotlight connect --kueue",
        )


def _binds(policy: Policy) -> Iterator[Check]:
    """Work that the scheduler may still put at a team's cost, where teams have hard budgets."""
    teams = [b for b in policy.budgets if b.hard and isinstance(b.scope, BudgetScope) and b.scope.team]
    loose = [name for name in DEFAULT_CLASSES if not policy.of_class(name).stops]
    open_ = [name for name in policy.pools if name not in policy.homed]
    ends = f"{', '.join(loose)} run to their end beyond a hard budget" if loose else ""
    evicted = "pods without money are evicted after they bind, and may go first or keep a gang out"
    if teams and open_:
        yield Check(
            code="bind",
            subject="budgets",
            verdict="warning",
            what="the scheduler asks no budget: pods bind to idle nodes, their team pays from the next look, and "
            + (ends or evicted),
            fix=("write may_move: [hard-cap] for these classes, " if loose else "")
            + f"give {', '.join(open_)} homes, or queue: pilotlight kueue take",
        )


def _too_many(survey: Survey) -> Iterator[Check]:
    over: list[Right] = [right for right in TOO_MUCH if survey.allowed.get(right)]
    if over:
        yield Check(
            code="right-too-many",
            subject="rights",
            verdict="warning",
            what=f"may also {' and '.join(str(right) for right in over)}, which Pilotlight never needs",
            fix="give it an account of its own: pilotlight connect",
        )


def _token(survey: Survey) -> Iterator[Check]:
    if survey.token is not None:
        yield token_check(survey.token, survey.at)


def _device_plugin(survey: Survey, policy: Policy) -> Iterator[Check]:
    plugins = [each for each in survey.daemonsets if each.is_plugin]
    late = [node for node in survey.nodes if node.pool in policy.pools and _without_gpu(node, survey, policy)]
    working = sum(node.has_gpu for node in survey.nodes)
    for node in late:
        yield Check(
            code="device-plugin",
            subject=f"node {node.name}",
            verdict="fault",
            what=f"of pool {node.pool} is ready, and has no allocatable GPU since {node.created_at:%Y-%m-%d %H:%M} UTC",
            fix="see the device plugin's and the driver's pods on it; tolerations of the DaemonSet, driver version",
        )
    if not plugins and "apps/daemonsets" not in survey.hidden and not working:
        yield Check(
            code="device-plugin",
            subject="device plugin",
            verdict="fault",
            what="no DaemonSet of a device plugin or GPU operator, and no node with allocatable GPUs",
            fix="install NVIDIA's device plugin or GPU operator: without it no node ever becomes ready for GPU pods",
        )
    elif not plugins and not late and working:
        yield _good("device-plugin", "device plugin", f"GPUs are allocatable on {count_of(working, 'node')}")
    for plugin in plugins:
        yield _pods_ready(plugin)


def _without_gpu(node: SeenNode, survey: Survey, policy: Policy) -> bool:
    """True where a node is ready, and its GPUs are not allocatable for longer than they may take."""
    since = (survey.at - node.created_at).total_seconds()
    return node.ready and not node.has_gpu and since > policy.gpu_ready_deadline


def _pods_ready(plugin: SeenSet) -> Check:
    short = plugin.ready < plugin.replicas
    return Check(
        code="device-plugin",
        subject=f"daemonset {plugin.full_name}",
        verdict="warning" if short else "ok",
        what=f"{plugin.ready} of {count_of(plugin.replicas, 'pod')} ready",
        fix="kubectl describe its pods that are not" if short else "",
    )


def _prices(prices: Sequence[Finding], offered: Sequence[Offering]) -> Iterator[Check]:
    for finding in prices:
        what, _, fix = finding.message.partition(": ")
        yield Check(
            code=finding.code,
            subject=finding.subject,
            verdict="warning" if finding.code == "stale-price" else "fault",
            what=what,
            fix=fix,
        )
    if offered and not prices:
        yield _good("price", "prices", f"known and dated for all offerings, {len(offered)} in number")
