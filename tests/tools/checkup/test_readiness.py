"""The readiness checklist: seen by what runs and what the policy says, each with its remedy, and never a fault."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pilotlight.facts.capacity import Taint
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Caps
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.readiness import ITEMS, readiness
from pilotlight.tools.checkup.survey_facts import SeenSet, Survey

BARE = Policy(version=1, pools={"p": PoolPolicy(instance_type="g4dn.xlarge", min=1)})
EMPTY = Survey(server="s", version="1.36", at=datetime(2026, 11, 20, tzinfo=UTC))


def verdicts(survey: Survey, policy: Policy) -> dict[str, str]:
    """By an item's code, what is said of it."""
    return {check.code: check.verdict for check in readiness(survey, policy)}


def test_every_item_has_a_line_and_a_remedy() -> None:
    """On an empty cluster: one line each by a code of its own, no fault, and what to do about all that is not well."""
    checks = list(readiness(EMPTY, BARE))
    assert len({check.code for check in checks}) == len(checks) == len(ITEMS) >= 45
    assert {check.verdict for check in checks} <= {"ok", "warning", "unknown"}
    assert all(check.fix for check in checks if check.verdict != "ok")


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        (
            "ready-monitoring-dcgm",
            SeenSet(namespace="gpu", name="dcgm", images=("nvcr.io/nvidia/k8s/dcgm-exporter:4",)),
        ),
        ("ready-scheduling-queue", SeenSet(namespace="kueue-system", name="kueue-controller-manager")),
        ("ready-autoscaling-replicas", SeenSet(namespace="keda", name="keda-operator")),
    ],
)
def test_what_runs_is_seen_by_its_name_or_image(code: str, runs: SeenSet) -> None:
    """There with it, not there without, and unseen where DaemonSets may not be listed."""
    seen = Survey(server="s", version="1.36", at=EMPTY.at, deployments=(runs,))
    blind = Survey(server="s", version="1.36", at=EMPTY.at, hidden={"apps/daemonsets": "forbidden"})
    assert [verdicts(each, BARE)[code] for each in (seen, EMPTY, blind)] == ["ok", "warning", "unknown"]


def test_the_policy_answers_for_itself() -> None:
    """Taints, pools at zero, caps and budgets are read from it."""
    taints = (Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)
    pools = {"p": PoolPolicy(instance_type="g4dn.xlarge", taints=taints)}
    budget = Budget(name="r", scope=BudgetScope(team="r"), usd=Decimal(1))
    careful = Policy(version=1, pools=pools, caps=Caps(gpus=8), budgets=(budget,))
    codes = [f"ready-{code}" for code in ("scheduling-taints", "autoscaling-zero", "autoscaling-caps", "cost-budgets")]
    assert [verdicts(EMPTY, careful)[code] for code in codes] == ["ok"] * 4
    assert [verdicts(EMPTY, BARE)[code] for code in codes] == ["warning"] * 4
