"""Other autoscalers of these pools, and what is upside down in their settings: two owners of one pool fight.

Sources: cluster-autoscaler's FAQ and its priority expander's readme (the highest value wins, what no expression matches
is never expanded), Karpenter's NodePool and KEDA's ScaledObject references.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.modes import Mode
from pilotlight.facts.nodes.instance_groups import autoscaled_groups, pool_of_group
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.gated_pools import gate_checks
from pilotlight.tools.checkup.survey_facts import SeenScaledObject, SeenSet, Survey
from pilotlight.units import count_of

_AUTOSCALER = "cluster-autoscaler"
_SPOT, _ON_DEMAND = re.compile(r"spot|preempt", re.IGNORECASE), re.compile(r"on.?demand|\bod\b", re.IGNORECASE)
_PRIORITY = re.compile(r"^\s*(\d+):\s*$")
_EXPRESSION = re.compile(r"^\s*-\s*(.+?)\s*$")


def autoscaler_checks(survey: Survey, policy: Policy, offered: Sequence[Offering], mode: Mode) -> Iterator[Check]:
    """Other owners of nodes, and the known faults of their settings; ``mode`` is the strongest of the pools."""
    found = [
        *_autoscaler(survey, policy),
        *_priorities(survey),
        *_karpenter(survey, policy),
        *gate_checks(survey, policy, offered, mode),
        *_scaled(survey, policy, offered),
    ]
    yield from found
    if not found:
        unseen = {"apps/deployments", "karpenter.sh/nodepools"} & survey.hidden.keys()
        yield _says(
            "rival",
            "unknown" if unseen else "ok",
            "other autoscalers",
            f"not looked for: {', '.join(sorted(unseen))} cannot be listed" if unseen else "none is in sight",
        )


def _says(code: str, verdict: Level, subject: str, what: str, fix: str = "") -> Check:
    return Check(code=code, subject=subject, verdict=verdict, what=what, fix=fix)


def _autoscaler(survey: Survey, policy: Policy) -> Iterator[Check]:
    """By what its Deployment is told, and by the status it writes (on GKE and AKS that is all there is to see)."""
    running = [d for d in survey.deployments if _is_autoscaler(d)]
    if not running and not survey.autoscaler_status:
        return
    groups = {
        *autoscaled_groups(survey.autoscaler_status),
        *(group for each in running for group in _told_groups(each)),
    }
    called = {pool.cluster_pool or name: name for name, pool in policy.pools.items()}
    theirs = {called.get(pool_of_group(group, called)) for group in groups}
    shared = [name for name in policy.pools if name in theirs]
    subject = running[0].full_name if running else _AUTOSCALER
    for name in shared:
        yield _says(
            "rival",
            "fault",
            f"pool {name}",
            f"is scaled by cluster-autoscaler ({subject}) too: two owners undo each other's work",
            "take it out of the autoscaler's groups, or out of the policy's pools",
        )
    if not shared:
        yield _says(
            "rival",
            "warning",
            subject,
            "cluster-autoscaler runs" + (f" over {', '.join(sorted(groups))}" if groups else ""),
            "see that none of its groups is a pool of the policy",
        )


def _told_groups(deployment: SeenSet) -> Iterator[str]:
    """Groups that its command names, as in ``--nodes=0:4:GROUP``."""
    for word in deployment.command:
        if word.startswith("--nodes="):
            yield word.rpartition("=")[2].split(":", 2)[-1]


def _is_autoscaler(deployment: SeenSet) -> bool:
    names = (deployment.name, *(image.rpartition("/")[2] for image in deployment.images))
    return any(_AUTOSCALER in name and "proportional" not in name for name in names)


def _priorities(survey: Survey) -> Iterator[Check]:
    """The highest number wins: with on-demand at 10 and spot at 50, spot comes first for everything."""
    ranks = read_priorities(survey.autoscaler_priorities)
    if not ranks:
        return
    spot = [rank for rank, names in ranks.items() if any(_SPOT.search(name) for name in names)]
    steady = [rank for rank, names in ranks.items() if any(_ON_DEMAND.search(name) for name in names)]
    if spot and steady and max(spot) > max(steady):
        yield _says(
            "priority-expander",
            "fault",
            "cluster-autoscaler-priority-expander",
            f"the highest number wins: spot ({max(spot)}) comes before on-demand ({max(steady)}), for serving too",
            "give on-demand the higher number, or a group of its own to what must not be interrupted",
        )
    if not any(name in (".*", ".+") for names in ranks.values() for name in names):
        yield _says(
            "priority-expander",
            "warning",
            "cluster-autoscaler-priority-expander",
            "a group that no expression matches is never expanded",
            "add a lowest priority with .*",
        )


def read_priorities(text: str) -> Mapping[int, Sequence[str]]:
    """The expressions by priority, of the ConfigMap's YAML: a number, a colon, and a list below it."""
    ranks: dict[int, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if rank := _PRIORITY.match(line):
            names = ranks.setdefault(int(rank.group(1)), [])
        elif name := _EXPRESSION.match(line):
            names.append(name.group(1).strip("\"'"))
    return ranks


def _karpenter(survey: Survey, policy: Policy) -> Iterator[Check]:
    called = {pool.cluster_pool or name for name, pool in policy.pools.items()}
    gated = policy.gates.values()
    for pool in survey.nodepools:
        if pool.name in gated:
            continue
        subject = f"nodepool {pool.name}"
        if pool.name in called and pool.buys:
            yield _says(
                "rival",
                "fault",
                subject,
                "Karpenter scales it by itself, and it is a pool of the policy: two owners undo each other's work",
                "set its spec.limits nvidia.com/gpu to 0, make it static (spec.replicas), or take it out of the policy",
            )
        elif pool.gpu and pool.buys:
            yield _says(
                "rival",
                "warning",
                subject,
                "Karpenter may buy GPU nodes for the same pods",
                "keep GPUs out of its requirements, or give its pods a label and taint of their own",
            )
        if pool.gpu and not pool.limited:
            fix = "set spec.limits to the most GPUs: nvidia.com/gpu: 16"
            yield _says("gpu-limit", "fault", subject, "may buy GPU nodes without a limit", fix)


def _scaled(survey: Survey, policy: Policy, offered: Sequence[Offering]) -> Iterator[Check]:
    """KEDA's most replicas against what the pools can hold at all, and a least that never lets a node go."""
    room = sum(pool.max * gpus for name, pool in policy.pools.items() if (gpus := _gpus(name, offered)))
    deployments = {deployment.full_name: deployment for deployment in survey.deployments}
    for scaled in survey.scaled_objects:
        target = deployments.get(scaled.target)
        if target is None or not target.gpus or scaled.paused:
            continue
        yield from _replicas(scaled, target.gpus, room)
    static = {s.target for s in survey.scaled_objects}
    for deployment in survey.deployments:
        wants = deployment.replicas * deployment.gpus
        if deployment.full_name not in static and wants > room and policy.pools:
            yield _says(
                "replicas",
                "fault",
                f"deployment {deployment.full_name}",
                f"spec.replicas {deployment.replicas} wants {count_of(wants, 'GPU')}; the pools hold {room} at most",
                "lower spec.replicas, or raise a pool's max",
            )


def _replicas(scaled: SeenScaledObject, gpus: int, room: int) -> Iterator[Check]:
    subject = f"scaledobject {scaled.namespace}/{scaled.name}"
    if scaled.most * gpus > room:
        yield _says(
            "replicas",
            "fault",
            subject,
            f"maxReplicaCount {scaled.most} wants {count_of(scaled.most * gpus, 'GPU')}; the pools hold {room} at most",
            f"set maxReplicaCount to {room // gpus} or less, or raise a pool's max",
        )
    if scaled.least:
        yield _says(
            "replicas-min",
            "warning",
            subject,
            f"minReplicaCount {scaled.least} keeps {count_of(scaled.least * gpus, 'GPU')} lit around the clock",
            "set minReplicaCount to 0 where the first request may wait",
        )


def _gpus(pool: str, offered: Sequence[Offering]) -> int:
    return max((offering.gpus for offering in offered if offering.pool == pool), default=0)
