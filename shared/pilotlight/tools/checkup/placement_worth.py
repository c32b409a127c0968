"""Which placement a cluster gets, and what it is worth: what small work that lands on a dear node keeps lit."""

from collections.abc import Iterator, Sequence

from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.survey_facts import Limit, Survey
from pilotlight.units import cents

WATCHMAN_FILE = "pilotlight show infra/kubernetes/placement/watchman.yaml | kubectl apply -f -"
_WATCHMAN = f"apply it: {WATCHMAN_FILE}; and see that its CronJob pilotlight-watchman runs"
_TAINT = "list the taint pilotlight.dev/home=new:NoSchedule at pools"
_BESIDE = f"in the policy and at their cloud, then {WATCHMAN_FILE}"
_LIMIT = "pilotlight connect --act"


def placement_checks(survey: Survey, policy: Policy, offered: Sequence[Offering]) -> Iterator[Check]:
    """One line; none where all types cost the same a GPU."""
    worth = _worth(offered)
    if not worth:
        return
    if policy.placement == "none":
        what, fix = f"nobody keeps small work off dear nodes: {worth}", "take placement: none out of the policy"
        yield Check(code="placement", subject="placement", verdict="warning", what=what, fix=fix)
    elif not policy.homed:
        what, fix = f"no pool is homed: {worth}", f"{_TAINT} {', '.join(_dear_pools(offered))} {_BESIDE}"
        yield Check(code="placement", subject="placement", verdict="warning", what=what, fix=fix)
    elif survey.pod_limit is not None and _unlimited(survey.pod_limit):
        what = f"no pod is given a home: nothing limits our account to that, or it may not patch pods; {worth}"
        yield Check(code="placement", subject="placement", verdict="fault", what=what, fix=_LIMIT)
    elif survey.watched:
        homed = ", ".join(sorted(policy.homed))
        what = f"by homes: nodes of pools {homed} take only the pods that are planned on them; else {worth}"
        yield Check(code="placement", subject="placement", verdict="ok", what=what)
    else:
        what = f"no node is kept: the Lease pilotlight-placement or its watchman is not there; {worth}"
        yield Check(code="placement", subject="placement", verdict="fault", what=what, fix=_WATCHMAN)


def _dear_pools(offered: Sequence[Offering]) -> list[str]:
    """The pools whose nodes cost more a GPU than the cheapest."""
    rates = {o.pool: o.usd_per_hour / o.gpus for o in offered if o.gpus}
    return sorted(pool for pool, rate in rates.items() if rate > min(rates.values()))


def _unlimited(limit: Limit) -> bool:
    """True where our account may not give homes, or may do more with pods than that."""
    more = any(trial.allowed and trial.what != "home" for trial in limit.trials)
    return limit.patches is False or limit.policy == "absent" or (limit.policy == "there" and not limit.bound) or more


def _worth(offered: Sequence[Offering]) -> str:
    """Cost of one pod of one GPU on the dearest idle node, beside where it belongs, in words."""
    lit = sorted((o for o in offered if o.gpus), key=lambda o: (o.usd_per_hour / o.gpus, o.name))
    if not lit or lit[0].usd_per_hour / lit[0].gpus == lit[-1].usd_per_hour / lit[-1].gpus:
        return ""
    home, dear = lit[0], max(lit, key=lambda o: (o.usd_per_hour, o.name))
    return (
        f"one pod of one GPU that may use both keeps a {dear.instance_type} lit at {cents(dear.usd_per_hour)} an hour "
        f"where a {home.instance_type} is {cents(home.usd_per_hour)}"
    )
