"""What keeps a limit on a Karpenter NodePool from holding, as the doctor says it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.facts.capacity import Offering
from pilotlight.facts.modes import Mode
from pilotlight.facts.money.gates import GateState
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.gated_pools import gate_checks
from pilotlight.tools.checkup.rights import CLAIMS, GATES
from pilotlight.tools.checkup.survey_facts import SeenClaim, SeenNode, SeenNodePool, Survey

NOW = datetime(2026, 11, 28, tzinfo=UTC)
HARD = Budget(name="all", usd=Decimal(1000))
POOL = PoolPolicy(cluster_pool="karpenter:gpu", instance_type="p4d")
OFFER = Offering(
    pool="a100", instance_type="p4d", capacity_type="on-demand", gpu_model="A100", gpus=8, usd_per_hour=Decimal(32)
)
GOOD = GateState(nodepool="gpu", types=("p4d",), capacity_types=("on-demand",))


def _policy(*budgets: Budget) -> Policy:
    return Policy(version=1, pools={"a100": POOL}, budgets=budgets)


def _seen(pool: SeenNodePool | None = None, **traits: Any) -> Survey:
    pool = pool or SeenNodePool(name="gpu", gpu=True, limited=False, gate=GOOD)
    return Survey(server="s", version="v", at=NOW, **{"nodepools": (pool,), **traits})


def _pool(state: GateState = GOOD, **traits: Any) -> SeenNodePool:
    return SeenNodePool(name="gpu", gpu=True, limited=True, gate=state, **traits)


def _claim(minutes: int) -> SeenClaim:
    since = NOW - timedelta(minutes=minutes)
    return SeenClaim(name="gpu-x", nodepool="gpu", since=since, why="SKUFamilyQuotaExceeded: no quota")


CASES = [
    ("all is well", _seen(), (HARD,), ("ok", "budgets set its limit of GPUs")),
    ("no hard budget", _seen(), (Budget(name="t", usd=Decimal(1), scope=BudgetScope(team="t")),),
     ("fault", "no limit is set: no hard budget counts it")),
    ("there is no such NodePool", _seen(nodepools=()), (HARD,), ("fault", "Karpenter has no such NodePool")),
    ("a static one", _seen(_pool(GateState(nodepool="gpu", static=True))), (HARD,),
     ("fault", "no limit is set: it is static")),
    ("nodes are replaced beside the old", _seen(_pool(replaces=True)), (HARD,),
     ("warning", "may replace nodes by drift or consolidation")),
    ("a GitOps tool writes it", _seen(_pool(GateState(nodepool="gpu", types=("p4d",), capacity_types=("on-demand",),
     managers=("argocd-controller",)))), (HARD,), ("warning", "argocd-controller writes its limit")),
    ("a shared GPU", _seen(nodes=(SeenNode(name="n", pool="a100", gpus=80, ready=True, created_at=NOW),)), (HARD,),
     ("fault", "node n shows 80 GPUs and has 8")),
    ("a claim that is not launched", _seen(waiting=(_claim(7),)), (HARD,),
     ("warning", "NodeClaim gpu-x was asked for 7 minutes ago and is not launched: SKUFamilyQuotaExceeded: no quota")),
    ("a claim that was asked for just now", _seen(waiting=(_claim(1),)), (HARD,), ("ok", "budgets set its limit")),
    ("no right", _seen(allowed=dict.fromkeys(GATES, False)), (HARD,), ("fault", "may not list karpenter.sh/nodepools")),
]  # fmt: skip


@pytest.mark.parametrize(("survey", "budgets", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_keeps_a_limit_from_holding(survey: Survey, budgets: tuple[Budget, ...], said: tuple[str, str]) -> None:
    """Each thing is a line, with what to write where something is to be mended."""
    found = [(check.verdict, check.what) for check in gate_checks(survey, _policy(*budgets), [OFFER], "act")]
    assert any(verdict == said[0] and what.startswith(said[1]) for verdict, what in found), found
    assert all(check.fix for check in gate_checks(survey, _policy(*budgets), [OFFER], "act") if check.verdict != "ok")


@pytest.mark.parametrize(("azure", "fix"), [(True, "az vm list-usage"), (False, "condition Launched")])
def test_a_claim_that_waits_is_told_with_its_clouds_way_out(azure: bool, fix: str) -> None:
    """At Azure the quota of a family comes first; elsewhere the claim says what it waits for."""
    survey = _seen(_pool(azure=azure), waiting=(_claim(7),))
    (check,) = gate_checks(survey, _policy(HARD), [OFFER], "act")
    assert fix in check.fix


def test_a_policy_without_gates_is_told_nothing() -> None:
    """Where no pool is gated there is nothing to check."""
    assert list(gate_checks(_seen(), Policy(version=1), [OFFER], "act")) == []


def test_a_limit_of_ours_that_no_pool_names_is_told_with_its_way_back() -> None:
    """It stands for as long as nobody gives it back."""
    ours = GateState(nodepool="gpu", limit=24, written="24", before="64")
    (check,) = gate_checks(_seen(_pool(ours)), Policy(version=1), [OFFER], "act")
    assert (check.verdict, check.what.partition(",")[0]) == ("warning", "our limit of 24 GPUs stands")
    assert check.fix.startswith("pilotlight handback --pool gpu")
    assert all(
        "no pool of the policy" not in one.what
        for one in gate_checks(_seen(_pool(ours)), _policy(HARD), [OFFER], "act")
    )


def test_a_right_to_claims_that_is_missing_is_named() -> None:
    """Where pools are bought for by claims; who asks for none is told nothing."""
    lacks = {right: right.verb != "create" for right in CLAIMS}
    (check,) = gate_checks(_seen(allowed=lacks), Policy(version=1), [OFFER], "act")
    assert (check.verdict, check.what) == (
        "fault",
        "may not create karpenter.sh/nodeclaims: nothing is bought by claims",
    )
    assert "connect --act --karpenter-claims" in check.fix
    assert list(gate_checks(_seen(allowed=dict.fromkeys(CLAIMS, True)), Policy(version=1), [OFFER], "act")) == []


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_who_only_advises_is_asked_for_rights_to_read_alone(mode: Mode) -> None:
    """No right to act is asked for before a pool's mode acts; a right to read that is missing is a fault in each."""
    acts = {right: right.verb == "list" for right in (*GATES, *CLAIMS)}
    assert "rights" not in [
        one.subject for one in gate_checks(_seen(_pool(), allowed=acts), _policy(HARD), [OFFER], mode)
    ]
    blind = dict.fromkeys((*GATES, *CLAIMS), False)
    lacks = [
        one for one in gate_checks(_seen(_pool(), allowed=blind), _policy(HARD), [OFFER], mode) if one.code == "gate"
    ]
    told = [(one.verdict, one.fix) for one in lacks if one.subject == "rights"]
    assert told == [("fault", "pilotlight connect")] * 2
