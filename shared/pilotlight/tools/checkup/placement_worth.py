"""Which placement a cluster gets, and what it is worth: what small work that lands on a dear node keeps lit."""

from collections.abc import Iterator, Sequence

from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.survey_facts import Survey
from pilotlight.units import cents

_WATCHMAN = "apply infra/kubernetes/placement/watchman.yaml, and see that its CronJob pilotlight-watchman runs"
_CHOOSE = "set placement: taint in the policy and apply infra/kubernetes/placement/watchman.yaml"


def placement_checks(survey: Survey, policy: Policy, offered: Sequence[Offering]) -> Iterator[Check]:
    """One line; none where all types cost the same a GPU."""
    worth = _worth(offered)
    if not worth:
        return
    if policy.placement == "none":
        what = f"nobody keeps small work off dear nodes: {worth}"
        yield Check(code="placement", subject="placement", verdict="warning", what=what, fix=_CHOOSE)
    elif survey.watched:
        what = f"by taint: nodes of dear types are closed to work that belongs on a cheaper one; else {worth}"
        yield Check(code="placement", subject="placement", verdict="ok", what=what)
    else:
        what = f"no node is closed: the Lease pilotlight-placement or its watchman is not there; {worth}"
        yield Check(code="placement", subject="placement", verdict="fault", what=what, fix=_WATCHMAN)


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
