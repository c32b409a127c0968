"""Every option that is rejected and every refusal carries the code of its rule, so that nobody reads words."""

import ast
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_fleet import A100, NOW, T4, gang, offering, plan, pod, policy

import pilotlight.decide
from pilotlight.facts.capacity import Offering, Resources, Taint
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_PRODUCT
from pilotlight.facts.memory import Backoff, Memory, Quarantine
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Requirement

OTHER = offering("other", "T4", 1, "5", taints=(Taint(key="other", effect="NoSchedule"),))
SMALL = offering("small", "T4", 1, "5", resources=Resources(memory=1))
SPOT = offering("spot", "T4", 1, "0.2", capacity_type="spot", interruptions_per_hour=0.05)
HERE = (Requirement(key="here", operator="Exists"),)
REST: dict[str, Any] = {"until": NOW + timedelta(minutes=5), "why": "out of stock"}
JUDGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a taint": ({"offerings": [T4, OTHER]}, {}, "toleration"),
    "labels": (
        {"offerings": [offering("here", "T4", 1, "9", labels={"here": ""}), T4]},
        {"terms": (HERE,)},
        "selector",
    ),
    "a model": ({}, {"gpu_models": ("A100", "V100")}, "model"),
    "memory of a GPU": (
        {"offerings": [offering("big", "T4", 1, "9", gpu_memory_gib=80), T4]},
        {"min_gpu_memory_gib": 40},
        "gpu-memory",
    ),
    "size": ({"offerings": [T4, SMALL]}, {"memory": 2}, "size"),
    "its class": ({"offerings": [T4, SPOT]}, {}, "class"),
    "speed that nobody knows": ({"throughput": {"batch": {"T4": 1.0}}}, {}, "throughput"),
    "a back-off": ({"memory": Memory(backoffs=(Backoff(offering=T4.name, **REST),))}, {}, "backoff"),
    "a dearer price": ({}, {}, "dearer"),
}


@pytest.mark.parametrize(("case", "traits", "code"), JUDGED.values(), ids=JUDGED.keys())
def test_a_rejected_offering_carries_the_code_of_its_rule(
    case: dict[str, Any], traits: dict[str, Any], code: str
) -> None:
    """What one pod may not have, or should not, says by which rule."""
    made = plan([pod("p", **traits)], **case)
    assert [g.verdict for g in made.pods] == ["bought"]
    assert code in {r.code for g in made.pods for r in g.rejected}
    assert "" not in {r.code for g in made.pods for r in g.rejected}


def test_a_quarantine_has_its_code() -> None:
    """A pool that is quarantined for a shape is told apart from one that rests for all."""
    wanted = pod("p")
    memory = Memory(quarantines=(Quarantine(shape=wanted.shape.key, pool="t4", **REST),))
    made = plan([wanted], offerings=[T4], memory=memory)
    assert [(g.verdict, g.code) for g in made.pods] == [("waiting", "quarantine")]


def capped(**caps: Any) -> Plan:
    """A plan for one pod under caps."""
    return plan([pod("p")], rules=policy(caps=Caps(**caps)))


REFUSED = {
    "a cap": (capped(usd_per_hour=Decimal("0.5")), "refused", "cap"),
    "stranded GPUs": (plan([pod("p")], offerings=[A100], rules=policy(max_stranded_gpus=1)), "refused", "stranded"),
    "an offering at rest": (
        plan([pod("p")], offerings=[T4], memory=Memory(backoffs=(Backoff(offering=T4.name, **REST),))),
        "waiting",
        "backoff",
    ),
    "a gang that is not all here": (plan(gang("g", 3, here=1)), "waiting", "gang"),
    "a gang over a cap": (plan(gang("g", 3), rules=policy(caps=Caps(gpus=8))), "refused", "cap"),
    "a class without a pool": (
        plan([pod("p")], offerings=[T4], rules=policy([T4], classes={"batch": ClassPolicy(capacity_types=("spot",))})),
        "finding",
        "class",
    ),
    "no selector matched": (plan([pod("p", terms=(HERE,))]), "finding", "selector"),
    "a model that is not named": (
        plan([pod("p", workload_class="training")], rules=policy(classes={"training": ClassPolicy()})),
        "finding",
        "which-gpu",
    ),
}


@pytest.mark.parametrize(("made", "verdict", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_carries_the_code_of_its_rule(made: Plan, verdict: str, code: str) -> None:
    """Pods that get no node say by which rule, not only in words."""
    assert {(g.verdict, g.code) for g in made.pods} == {(verdict, code)}


NEW = PoolPolicy(instance_type="zz9", labels={"here": ""})
NO_PRICE = (
    "pool new may take it, but no price of its type zz9 is known: add the type to a file of prices.files, or, where a "
    'file has it, set prices.overrides["zz9/on-demand"]'
)
ELSEWHERE = "no pool's labels match the pod's node selector or affinity; mend the selector or add a pool"
T4_ALONE = (Requirement(key=GPU_PRODUCT, operator="In", values=("Tesla-T4",)),)
UNSOLD: dict[str, tuple[Policy, list[Offering], dict[str, Any], str, str]] = {
    "its pool has no price": (policy([T4], pools={"new": NEW}), [T4], {"terms": (HERE,)}, "no-pool", NO_PRICE),
    "a label that only the type tells": (
        policy([T4], pools={"new": NEW}),
        [T4],
        {"terms": (T4_ALONE,)},
        "no-pool",
        NO_PRICE,
    ),
    "no price, and another label": (
        policy([T4], pools={"new": PoolPolicy(instance_type="zz9")}), [T4], {"terms": (HERE,)}, "selector", ELSEWHERE,
    ),
    "no price, and a taint": (
        policy([T4], pools={"new": PoolPolicy(instance_type="zz9", labels={"here": ""}, taints=OTHER.taints)}),
        [T4],
        {"terms": (HERE,)},
        "selector",
        ELSEWHERE,
    ),
    "no price anywhere": (
        policy([T4]),
        [],
        {"terms": (HERE,)},
        "no-pool",
        "no price of any pool is known: add the pools' types to a file of prices.files",
    ),
    "no pools": (
        policy([]),
        [],
        {},
        "no-pool",
        "the policy has no pools: pilotlight init writes those of a cluster",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rules", "sold", "traits", "code", "why"), UNSOLD.values(), ids=UNSOLD.keys())
def test_a_pod_without_a_pool_is_told_of_one_without_a_price(
    rules: Policy, sold: list[Offering], traits: dict[str, Any], code: str, why: str
) -> None:
    """Its selector is blamed only where no pool of the policy could match it."""
    made = plan([pod("p", **traits)], offerings=sold, rules=rules)
    assert [(g.verdict, g.code, g.why) for g in made.pods] == [("finding", code, why)]
    assert [(f.subject, f.code, f.message) for f in made.findings] == [("ml/p", code, why)]


def asking(words: frozenset[str]) -> Iterator[str]:
    """Where decide/ compares or searches what is written for people."""
    for path in Path(pilotlight.decide.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.expr):
                continue
            parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                parts += [node.func.value] if node.func.attr in ("startswith", "endswith", "find", "index") else []
            if any(isinstance(p, ast.Attribute) and p.attr in words for p in parts):
                yield f"{path.name}:{node.lineno}"


def test_no_decision_reads_words() -> None:
    """Nothing in decide/ compares why, note, message or summary: codes are for that."""
    assert not list(asking(frozenset({"why", "note", "message", "summary"})))
