"""A gate over a real Karpenter behind KUBECONFIG: what it counts, buys and replaces is its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from karpenter_at_work import LiveGate, is_at_work, within

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.tools.install.karpenter.nodepool_handback import give_back

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

A_NODE = 8
"""GPUs of a machine; $100 are 10 machines, each held for a boot, a run of ten minutes and its turn to be stopped."""
MOST = 12
"""Machines of which nobody boots any more."""


@pytest.fixture(scope="module")
def api() -> Api:
    """The control plane, where a Karpenter is at work on it."""
    found = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))
    if not is_at_work(found):
        pytest.skip("no Karpenter of the kwok provider is at work here")
    return found


Opens = Callable[..., LiveGate]


@pytest.fixture
def opens(api: Api) -> Iterator[Opens]:
    """Makes a NodePool of the run's own behind a budget."""
    with ExitStack() as stack:

        def gate(usd: str, **rules: Any) -> LiveGate:
            return stack.enter_context(LiveGate(api, usd, **rules))

        yield gate


def test_two_hundred_pods_under_a_hundred_dollars(opens: Opens) -> None:
    """All of them run, on never more than the machines that the dollars are enough for at once."""
    gate = opens("100")
    gate.pool(limit="400")
    gate.tick()
    assert gate.limit() == str(10 * A_NODE)
    gate.pods(200, run_s=15)
    assert gate.ticks(240, lambda: gate.phases() == {"Succeeded": 200}), gate.phases()
    assert gate.most_machines <= MOST
    assert gate.over == []


def test_without_dollars_nothing_is_lit(opens: Opens) -> None:
    """A budget without room for one machine closes the NodePool: pods wait."""
    gate = opens("5")
    gate.pool(limit="400")
    gate.tick()
    gate.pods(10)
    assert not gate.ticks(15, lambda: bool(gate.claims()))
    assert (gate.limit(), gate.phases()) == ("0", {"Pending": 10})


def test_a_machine_that_drains_uncounted_is_not_bought_again(opens: Opens) -> None:
    """Karpenter forgets a machine that is being deleted; while its pods keep it, no other is lit beyond the dollars."""
    gate = opens("25")
    gate.pool(limit="400")
    gate.tick()
    assert gate.limit() == str(2 * A_NODE)
    gate.pods(40, stays=True)
    assert gate.ticks(60, lambda: gate.phases().get("Running") == 2 * A_NODE)
    gate.remove_claim(gate.claims()[0]["metadata"]["name"])
    gate.ticks(20)
    assert (gate.most_machines, gate.limit(), gate.over) == (2, str(A_NODE), [])


def test_a_value_of_another_hand_stands_until_the_next_look(opens: Opens) -> None:
    """It is set again and told; machines lit in between are paid for, and none is lit beside them."""
    gate = opens("25")
    gate.pool(limit="400")
    gate.tick()
    gate.set_limit("400")
    gate.pods(40)
    assert within(30, lambda: sum(gate.phases().get(each, 0) for each in ("Running", "Succeeded")) == 40)
    lit = gate.most_machines
    gate.tick()
    assert gate.limit() == str(sum(gate.gpus()))
    assert "and ours was 16" in gate.told("gate-reverted")[0]
    gate.pods(16, prefix="late")
    gate.ticks(15)
    assert lit > 2
    assert gate.most_machines == lit


def drifted(gate: LiveGate) -> list[str]:
    """Machines that Karpenter says have drifted."""
    return [
        claim["metadata"]["name"]
        for claim in gate.claims()
        for each in claim.get("status", {}).get("conditions", [])
        if (each["type"], each["status"]) == ("Drifted", "True")
    ]


def test_a_limit_that_changes_is_no_drift(opens: Opens) -> None:
    """No machine drifts while a limit goes up and down by another hand or by ours; a changed template is drift."""
    gate = opens("25")
    gate.pool(limit="400")
    gate.tick()
    gate.pods(2 * A_NODE)  # None waits, so none is lit at the higher limit.
    assert gate.ticks(60, lambda: gate.phases().get("Running") == 2 * A_NODE)
    lit = {claim["metadata"]["name"] for claim in gate.claims()}
    for limit, stands in (("400", str(2 * A_NODE)), ("0", "0"), ("400", str(2 * A_NODE))):
        gate.set_limit(limit)
        assert not within(15, lambda: bool(drifted(gate)))
        gate.tick()
        assert gate.limit() == stands  # Its owner's lower limit stands.
        assert not within(15, lambda: bool(drifted(gate)))
    assert {claim["metadata"]["name"] for claim in gate.claims()} == lit
    gate.patch({"spec": {"template": {"metadata": {"labels": {"drifts": "now"}}}}})
    assert within(15, lambda: set(drifted(gate)) == lit)


def test_drift_replaces_within_the_dollars(opens: Opens) -> None:
    """Karpenter lights a replacement beside its old machine, over the limit: the dollars for it had stayed free."""
    gate = opens("35")
    gate.pool(limit="400", disruption={"consolidateAfter": "5s", "budgets": [{"nodes": "1"}]})
    gate.tick()
    assert gate.limit() == str(2 * A_NODE)  # $35 are three machines that boot.
    gate.pods(3 * A_NODE)
    assert gate.ticks(90, lambda: gate.phases().get("Running") == 3 * A_NODE)  # They are four that have booted.
    gate.patch({"spec": {"template": {"metadata": {"labels": {"drifts": "now"}}}}})
    assert gate.ticks(90, lambda: gate.most_machines > 3)
    gate.ticks(20)
    assert (gate.most_machines, gate.over) == (4, [])


def test_what_is_handed_back_is_karpenter_s(opens: Opens) -> None:
    """The owner's limit stands again, and Karpenter buys up to it."""
    gate = opens("5")
    gate.pool(limit="16")
    gate.tick()
    assert gate.limit() == "0"
    list(give_back(gate.api, [gate.name], gate.deps.now(), dry_run=False))
    gate.pods(40)
    assert gate.ticks(40, lambda: len(gate.claims()) == 2)
    assert gate.limit() == "16"
