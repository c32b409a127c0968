"""What a refused claim's finding advises: followed literally it permits the claim, and changes nothing else."""

import json
import re
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes_objects import pod

from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.demand.classify import classify
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.policy import Policy
from pilotlight.flow.alerts import wording
from pilotlight.tools.cli.kubectl_lists import read_pods

BUDGETS = "budgets: [{name: n, scope: {team: nlp}, usd: 9}, {name: s, scope: {team: shared}, usd: 9}]\n"
BASE = f"version: 1\ndefault_team: shared\n{BUDGETS}"
SANDBOX = "claims: {'sandbox-*': {team: nlp, classes: [notebook]}}\n"


def seen(policy: Policy, *pods: dict[str, Any]) -> ClusterView:
    """Pods of namespace sandbox-x as they come from the API."""
    text = json.dumps({"kind": "PodList", "items": list(pods)}).encode()
    return view_of(read_pods(text, "pods"), (), Objects(), policy=policy, classify=classify)


def one(name: str = "d", priority: int = 0, **labels: str) -> dict[str, Any]:
    """A pod that waits there."""
    meta = {"name": name, "namespace": "sandbox-x", "uid": f"uid-{name}", "labels": labels}
    return pod(name, meta=meta, priority=priority)


def followed(text: str, message: str) -> Policy:
    """The policy once its owner did what a finding says, word by word."""
    return read_policy(with_advice(text, message), "p")


def with_advice(text: str, message: str) -> str:
    """Its text."""
    document = yaml.safe_load(text)
    if added := re.search(r"add (\S+) to claims\.(\S+)\.(\w+)", message):
        value, entry, key = added.groups()
        document["claims"][entry].setdefault(key, []).append(yaml.safe_load(value))
    else:
        keys, entry = re.findall(r"write (.*) in claims\.(\S+)", message)[0]
        for key in keys.split(" and "):
            document.setdefault("claims", {}).setdefault(entry, {}).update(yaml.safe_load(key))
    return yaml.safe_dump(document)


CLAIMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a class beside a pattern": (SANDBOX, {"workload-type": "training"}),
    "a team beside a pattern": (SANDBOX, {"workload-type": "notebook", "team": "shared"}),
    "a priority beside a pattern": (SANDBOX, {"workload-type": "notebook", "priority": 1000}),
    "a team without an entry": ("", {"team": "nlp"}),
    "a team that YAML would not read as text": ("", {"team": "yes"}),
    "a priority without an entry": ("", {"priority": 1_000_000_000}),
}


@pytest.mark.parametrize(("claims", "said"), CLAIMS.values(), ids=CLAIMS.keys())
def test_advice_followed_permits_the_claim_and_moves_no_money(claims: str, said: dict[str, Any]) -> None:
    """The policy as advised refuses the claim no longer; a pod that claims nothing is paid by whom it was before."""
    before = read_policy(BASE + claims, "p")
    plain = one("plain", 0, **{"workload-type": "notebook"})
    view = seen(before, one(**said), plain)
    [finding] = view.findings
    after = seen(followed(BASE + claims, finding.message), one(**said), plain)
    assert after.findings == ()
    payers = [{p.name: p.shape.team for p in each.pending}["plain"] for each in (view, after)]
    assert payers[0] == payers[1] == ("nlp" if claims else "shared")


def test_advice_on_two_claims_of_a_pod_makes_one_entry() -> None:
    """Followed one after the other it permits both, where no key stands twice."""
    text, asks = BASE, one(priority=1000, team="nlp")
    view = seen(read_policy(text, "p"), asks)
    assert len(view.findings) == 2
    for finding in view.findings:
        assert "claims: {" not in finding.message
        text = with_advice(text, finding.message)
    assert seen(read_policy(text, "p"), asks).findings == ()


NEVER: dict[str, tuple[dict[str, Any], str]] = {
    "a priority of Kubernetes' own": ({"priority": 2_000_000_000}, "the highest is 1,000,000,000"),
    "a pattern for a team": ({"team": "*"}, "no name that a team has"),
}


@pytest.mark.parametrize(("said", "words"), NEVER.values(), ids=NEVER.keys())
def test_no_advice_that_check_refuses(said: dict[str, Any], words: str) -> None:
    """What no policy can or should permit is told as that, without advice."""
    [finding] = seen(read_policy(BASE, "p"), one(**said)).findings
    assert "no policy can permit it" in finding.message
    assert words in finding.message
    assert "to permit it" not in finding.message


def test_one_finding_says_for_how_many_pods_it_stands() -> None:
    """31 pods with one claim are one finding with their number; its alert stays one as the number changes."""
    policy = read_policy(BASE, "p")
    views = [seen(policy, *(one(f"d{i:02}", team="nlp") for i in range(n))) for n in (31, 12, 1)]
    told = [view.findings[0] for view in views]
    assert [len(view.findings) for view in views] == [1, 1, 1]
    assert [re.findall(r" \(and (\d+) more\)$", each.message) for each in told] == [["30"], ["11"], []]
    assert len({wording._finding(each).fingerprint for each in told}) == 1
    assert msgspec.structs.asdict(told[0])["subject"] == "sandbox-x/d00"
