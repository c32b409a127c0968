"""Limits on what our account changes of nodes and pods and evicts: there or not, of the policy's pools, seen to act."""

from collections.abc import Iterator, Mapping

from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.modes import Mode
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.rights import EVICTION_LIMIT, LIMIT, POD_LIMIT
from pilotlight.tools.checkup.survey_facts import Limit, Survey, Trial

_ANEW = "pilotlight connect --act"


def cloud_pool_names(policy: Policy) -> tuple[str, ...]:
    """The pools that our account may mark nodes of, as their cloud names them."""
    return tuple(sorted({pool.cluster_pool or name for name, pool in policy.pools.items()}))


def limit_checks(survey: Survey, policy: Policy, mode: Mode) -> Iterator[Check]:
    """The lines of a check-up on it; none where nothing was looked at, or our account may not patch nodes."""
    limit = survey.limit
    if limit is None:
        return
    if limit.patches or (limit.patches is None and (mode == "act" or limit.policy != "absent")):
        found = [*_broken(limit, mode), *_other_pools(limit, cloud_pool_names(policy), mode)]
        yield from found or [_proof(limit)]


def _broken(limit: Limit, mode: Mode) -> Iterator[Check]:
    if limit.patches and (limit.policy == "absent" or (limit.policy and not limit.bound)):
        yield _check("fault", "does not limit our account, which may patch every node", _ANEW)
        return
    for trial in limit.trials:
        if trial.what == "label" and trial.allowed:
            yield _check("fault", f"lets our account change more than its taint: a label of node {trial.of}", _ANEW)
        if trial.what == "stray" and trial.allowed:
            yield _check("fault", f"lets our account mark node {trial.of}, which is of no pool of the policy", _ANEW)
        if trial.what == "mark" and trial.allowed is False:
            verdict: Level = "fault" if mode == "act" else "warning"
            why = trial.said.rpartition("denied request: ")[2].partition(";")[0]
            yield _check(verdict, f"refuses our taint on node {trial.of}: {why}", _ANEW)


def _other_pools(limit: Limit, pools: tuple[str, ...], mode: Mode) -> Iterator[Check]:
    if limit.pools is None:
        return
    lacks, more = sorted({*pools} - {*limit.pools}), sorted({*limit.pools} - {*pools})
    if lacks:
        what = f"does not list {', '.join(lacks)}: nodes of the policy's pools that cannot be given back"
        yield _check("fault" if mode == "act" else "warning", what, _ANEW)
    if more:
        yield _check("warning", f"lists {', '.join(more)}, which the policy does not have", _ANEW)


def _proof(limit: Limit) -> Check:
    said = [trial for trial in limit.trials if trial.allowed is not None]
    if not any(trial.what != "mark" for trial in said):
        absent = "it is not there, and " if limit.policy == "absent" or not limit.bound else ""
        return _check("unknown", f"not proven: {absent}{limit.unproven or 'the dry runs say nothing'}", _PROVE)
    tried = " and ".join(f"{_TRIED[trial.what]} {trial.of}" for trial in said)
    return _check("ok", f"holds our account to its taint in its pools; dry runs: {tried}")


_TRIED = {"label": "refused a label of", "mark": "allowed our taint on", "stray": "refused our taint on"}
_PROVE = "run doctor with the account's own kubeconfig, or one that may impersonate it"


def pod_limit_checks(survey: Survey, mode: Mode) -> Iterator[Check]:
    """The same of pods; without it no pod is given a home."""
    limit = survey.pod_limit
    if limit is None or not (limit.patches or (limit.patches is None and (mode == "act" or limit.policy != "absent"))):
        return
    if limit.patches and (limit.policy == "absent" or (limit.policy and not limit.bound)):
        yield _of_pods("fault", "does not limit our account, which may patch every pod", _ANEW)
    else:
        yield _tried_on_pods(limit, {trial.what: trial for trial in limit.trials if trial.allowed is not None})


def _tried_on_pods(limit: Limit, said: Mapping[str, Trial]) -> Check:
    if over := [trial for what, trial in said.items() if what != "home" and trial.allowed]:
        what = " and ".join(f"a {trial.what} of pod {trial.of}" for trial in over)
        return _of_pods("fault", f"lets our account change more than homes: {what}", _ANEW)
    if "home" in said and not said["home"].allowed:
        why = said["home"].said.rpartition("denied request: ")[2].partition(";")[0]
        return _of_pods("fault", f"refuses a home of pod {said['home'].of}: {why}", _ANEW)
    if len(said) < len(_OF_PODS):
        return _of_pods("unknown", f"not proven: {limit.unproven or 'the dry runs say nothing'}", _PROVE)
    tried = " and ".join(f"{_OF_PODS[trial.what]} {trial.of}" for trial in said.values())
    return _of_pods("ok", f"holds our account to tolerations of homes; dry runs: {tried}")


_OF_PODS = {
    "label": "refused a label of",
    "toleration": "refused a toleration of everything on",
    "home": "allowed a home on",
}


def eviction_limit_checks(survey: Survey, mode: Mode) -> Iterator[Check]:
    """The same of evictions."""
    limit = survey.eviction_limit
    if limit is None or not (limit.patches or (limit.patches is None and (mode == "act" or limit.policy != "absent"))):
        return
    if limit.patches and (limit.policy == "absent" or (limit.policy and not limit.bound)):
        yield _of_evictions("fault", "does not limit our account, which may evict every pod", _ANEW)
    else:
        yield _tried_evictions(limit, {trial.what: trial for trial in limit.trials if trial.allowed is not None})


def _tried_evictions(limit: Limit, said: Mapping[str, Trial]) -> Check:
    if over := [trial for what, trial in said.items() if what != "evicted" and trial.allowed]:
        what = " and ".join(f"{_OVER[trial.what]} {trial.of}" for trial in over)
        return _of_evictions("fault", f"lets our account evict more than pods of its pools: {what}", _ANEW)
    if "evicted" in said and not said["evicted"].allowed:
        why = said["evicted"].said.rpartition("denied request: ")[2].partition(";")[0]
        return _of_evictions("fault", f"refuses an eviction of pod {said['evicted'].of}: {why}", _ANEW)
    if not said.keys() & {"plain", "outside"}:
        return _of_evictions("unknown", f"not proven: {limit.unproven or 'the dry runs say nothing'}", _PROVE)
    tried = " and ".join(f"{_EVICTIONS[trial.what]} {trial.of}" for trial in said.values())
    return _of_evictions("ok", f"holds our account's evictions to nodes of its pools; dry runs: {tried}")


_OVER = {
    "plain": "naming no node, pod",
    "claimed": "naming another node, pod",
    "outside": "off a node of no pool of the policy, pod",
}
_EVICTIONS = {
    "plain": "refused one that names no node, of",
    "claimed": "refused one that names another node, of",
    "outside": "refused one off a node outside, of",
    "evicted": "allowed one of",
}


def _check(verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="limit", subject=f"admission policy {LIMIT}", verdict=verdict, what=what, fix=fix)


def _of_pods(verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="limit-pods", subject=f"admission policy {POD_LIMIT}", verdict=verdict, what=what, fix=fix)


def _of_evictions(verdict: Level, what: str, fix: str = "") -> Check:
    subject = f"admission policy {EVICTION_LIMIT}"
    return Check(code="limit-evictions", subject=subject, verdict=verdict, what=what, fix=fix)
