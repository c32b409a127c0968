"""Karpenter's NodePools whose limit of GPUs budgets set: what keeps a limit from holding, before one is written.

Sources: Karpenter's documentation, "NodePools" and "Disruption"; Argo CD's, "Diff Customization".
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from pilotlight.decide.money.budget_limits import in_scope
from pilotlight.decide.money.karpenter_gate import refusal
from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.modes import Mode
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.rights import CLAIMS, GATES, MACHINES, Right
from pilotlight.tools.checkup.survey_facts import SeenClaim, SeenNodePool, Survey
from pilotlight.units import count_of

PINNED = 'write disruption.budgets: [{nodes: "0", reasons: [Drifted, Underutilized]}], with its owner\'s consent'
GITOPS = ("argocd", "kustomize-controller", "helm", "fluxcd")
"""Beginnings of the field managers of tools that write a NodePool again and again."""
PATIENCE = timedelta(minutes=2)
"""A claim is launched within less, where its provider has a machine."""
AZURE = (
    "az vm list-usage --location REGION --output table: raise the quota of its family of VMs first "
    "(pilotlight show docs/guides/aks.md)"
)
ELSEWHERE = "wait, or let the NodePool have other zones; read the condition Launched of the claim"
_READS = "pilotlight connect"
IGNORE = "/spec/limits/nvidia.com~1gpu"


def gate_checks(survey: Survey, policy: Policy, offered: Sequence[Offering], mode: Mode) -> Iterator[Check]:
    """A check or more of each gated pool, and of the rights that they need in a mode."""
    yield from _barred(survey, policy, acts=mode in ("scale-up", "act"))
    for pool in survey.nodepools:
        if pool.gate is not None and pool.gate.before is not None and pool.name not in policy.gates.values():
            what = f"our limit of {pool.gate.written or 'no'} GPUs stands, and no pool of the policy names it"
            fix = f"pilotlight handback --pool {pool.name}, or cluster_pool: karpenter:{pool.name} in its pool"
            yield _says(f"nodepool {pool.name}", "warning", what, fix)
    if not policy.gates:
        return
    offers, pools = {offer.pool: offer for offer in offered}, {pool.name: pool for pool in survey.nodepools}
    for name, called in policy.gates.items():
        if called in pools and name in offers:
            yield from _gate(pools[called], survey, policy, offers[name])
        elif called not in pools and "karpenter.sh/nodepools" not in survey.hidden:
            fix = f"create it, or mend pools.{name}.cluster_pool"
            yield _says(f"nodepool {called}", "fault", "Karpenter has no such NodePool", fix)


def _barred(survey: Survey, policy: Policy, *, acts: bool) -> Iterator[Check]:
    """Rights to claims and to limits that are missing, of those that were asked; only to read them, where none acts."""
    claims, gates = (CLAIMS, GATES) if acts else (MACHINES, MACHINES)
    missing = [right for right in claims if survey.allowed.get(right) is False]
    if missing and CLAIMS[-1] in survey.allowed:
        fix = "pilotlight connect --act --karpenter-claims (the chart: karpenter.claims)" if acts else _READS
        yield _says("rights", "fault", f"{_may_not(missing)}: nothing is bought by claims", fix)
    missing = [right for right in gates if policy.gates and survey.allowed.get(right) is False]
    if missing:
        fix = "pilotlight connect --act --karpenter (the chart: karpenter.enabled)" if acts else _READS
        yield _says("rights", "fault", f"{_may_not(missing)}: no limit is set", fix)


def _may_not(rights: Sequence[Right]) -> str:
    return f"may not {' and '.join(map(str, rights))}"


def _gate(pool: SeenNodePool, survey: Survey, policy: Policy, offer: Offering) -> Iterator[Check]:
    subject, found = f"nodepool {pool.name}", list[Check]()
    hard = [budget for budget in policy.budgets if budget.hard and in_scope(budget.scope, offer.pool, "", "")]
    why = refusal(pool.gate, policy.pools[offer.pool], offer, ()) if pool.gate else ""
    if why:
        fix = f"mend the NodePool, or name another in pools.{offer.pool}.cluster_pool"
        found.append(_says(subject, "fault", f"no limit is set: {why}", fix))
    if not hard:
        fix = f"write a budget with hard: true of scope all, or of pool {offer.pool}"
        found.append(_says(subject, "fault", "no limit is set: no hard budget counts it", fix))
    found += _shared_gpus(subject, survey, offer)
    if pool.replaces:
        what = "may replace nodes by drift or consolidation: dollars for both are kept free while it may"
        found.append(_says(subject, "warning", what, PINNED))
    found += _waiting(subject, pool, survey)
    tools = [name for name in (pool.gate.managers if pool.gate else ()) if name.startswith(GITOPS)]
    if tools:
        fix = f"let it leave {IGNORE} alone: ignoreDifferences with RespectIgnoreDifferences=true in Argo CD"
        found.append(_says(subject, "warning", f"{tools[0]} writes its limit, and would undo ours", fix))
    yield from found or [_says(subject, "ok", "budgets set its limit of GPUs")]


def _waiting(subject: str, pool: SeenNodePool, survey: Survey) -> Iterator[Check]:
    fix = AZURE if pool.azure else ELSEWHERE
    for claim in survey.waiting:
        if claim.nodepool == pool.name and survey.at - claim.since > PATIENCE:
            yield _says(subject, "warning", _unlaunched(claim, survey.at), fix)


def _unlaunched(claim: SeenClaim, now: datetime) -> str:
    waits = f"NodeClaim {claim.name} was asked for {int((now - claim.since).total_seconds() // 60)} minutes ago"
    return f"{waits} and is not launched: {claim.why or 'its provider does not say why'}"


def _shared_gpus(subject: str, survey: Survey, offer: Offering) -> Iterator[Check]:
    """The first node of a pool that shows other GPUs than it has."""
    for node in survey.nodes:
        if node.pool == offer.pool and node.ready and (not node.gpus or node.gpus > offer.gpus):
            shown = f"node {node.name} shows {count_of(node.gpus, 'GPU')} and has {offer.gpus}"
            what = f"{shown}: Karpenter counts what it shows"
            fix = "no limit holds where MIG, time-slicing or DRA share GPUs: take the pool out of the gate"
            yield _says(subject, "fault", what, fix)
            return


def _says(subject: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="gate", subject=subject, verdict=verdict, what=what, fix=fix)
