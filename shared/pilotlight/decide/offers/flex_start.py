"""Google's flex-start: cheaper than on demand, from a queue, and every node of it ends after a week."""

import math

from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import PodShape
from pilotlight.units import Seconds, human

LONGEST_S: Seconds = 7 * 24 * 3600
"""Google ends a node after so long at the latest (GKE, "About flex-start")."""


def beyond_flex_start(shape: PodShape, rules: ClassPolicy) -> str:
    """Why a pod may outlive its node; empty where it does not. A class without ``max_runtime`` runs for a day."""
    if shape.workload_class == "serving" and not shape.max_run_s and rules.max_runtime is None:
        return "flex-start ends a node after 7 days (168 h), and the pod has no end"
    bound_s = math.inf if rules.max_runtime is None else rules.max_runtime
    run_s = min(shape.max_run_s, bound_s) if shape.max_run_s else rules.longest_run_s
    return (
        f"flex-start ends a node after 7 days (168 h), and the pod may run for {human(run_s)}"
        if run_s > LONGEST_S
        else ""
    )
