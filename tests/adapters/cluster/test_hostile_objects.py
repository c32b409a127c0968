"""Fields beyond all bounds cost their own pod alone: looks, rescues and meters go on for everybody else."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from api_store import Json
from hostile_site import HostileSite, stranger

from pilotlight.facts.workload import Finding
from pilotlight.units import HOUR

TAKES = "pilotlight.dev/checkpoint-takes-seconds"


def _grace(value: object) -> Callable[[Json], None]:
    def write(pod: Json) -> None:
        pod["spec"]["terminationGracePeriodSeconds"] = value

    return write


def _note(name: str, value: str) -> Callable[[Json], None]:
    def write(pod: Json) -> None:
        pod["metadata"]["annotations"][name] = value

    return write


BEYOND = {
    "a grace of a trillion seconds": _grace(10**12),
    "a grace of an int64": _grace(2**63 - 1),
    "a checkpoint of nine quintillion seconds": _note(TAKES, "9E"),
    "a checkpoint of 1e18 seconds": _note(TAKES, "1e18"),
    "checkpoints nine quintillion seconds apart": _note("pilotlight.dev/checkpoint-seconds", "9E"),
}
beyond = pytest.mark.parametrize("write", BEYOND.values(), ids=BEYOND)


@beyond
def test_a_hard_cap_holds_beside_a_pod_beyond_all_bounds(write: Callable[[Json], None]) -> None:
    """One that writes it once it runs is stopped in time: six dollars a day stay six, and every look is made."""
    site = HostileSite("2")
    site.submit("rude", run_s=20 * HOUR)
    site.minutes(10)
    site.write("pods", "rude", write)
    site.minutes(5 * 60)
    assert Decimal("1.5") < site.usd <= 2
    assert any(f.subject == "default/rude" and f.code == "out-of-bounds" for f in _found(site, write))


def _found(site: HostileSite, write: Callable[[Json], None]) -> tuple[Finding, ...]:
    """What is told of such a pod on a node."""
    again = HostileSite()
    again.world.launch("one")
    again.submit("rude", run_s=20 * HOUR)
    again.world.advance(1000)
    again.write("pods", "rude", write)
    return again.findings


@beyond
def test_a_waiting_pod_beyond_all_bounds_is_refused_and_others_are_served(write: Callable[[Json], None]) -> None:
    """Nothing is bought for it, its finding names the field, and the pod beside it has its node."""
    site = HostileSite()
    rude = stranger("rude")
    write(rude)
    site.add(rude)
    site.submit("plain")
    site.minutes(6)
    (finding,) = [f for f in site.findings if f.subject == "default/rude"]
    assert finding.code == "out-of-bounds"
    assert "Seconds" in finding.message or "seconds" in finding.message
    assert site.world.launches == 1


@beyond
def test_a_node_is_rescued_with_such_a_pod_on_it(write: Callable[[Json], None]) -> None:
    """A notice for its node is carried out: its capacity is replaced, and what it carries is asked to go in time."""
    site = HostileSite()
    site.world.launch("spot")
    site.submit("rude", run_s=5 * HOUR)
    site.world.advance(1000)
    site.write("pods", "rude", write)
    answer = site.notice("n1")
    assert any("cordoned n1" in did for did in answer.did)
    site.minutes(3)
    assert "n1" not in site.world.nodes
    assert site.world.launches == 2


def _year_0(pod: Json) -> None:
    pod["metadata"]["creationTimestamp"] = "0000-01-01T00:00:00Z"


def _odd_operator(pod: Json) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Resembles", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}


def _huge_grace(pod: Json) -> None:
    pod["spec"]["terminationGracePeriodSeconds"] = 10**400


UNREADABLE = {"made in the year 0": _year_0, "of an odd operator": _odd_operator, "with a grace of 1e400": _huge_grace}
unreadable = pytest.mark.parametrize("write", UNREADABLE.values(), ids=UNREADABLE)


@unreadable
def test_a_pod_that_cannot_be_read_costs_only_itself(write: Callable[[Json], None]) -> None:
    """It is told by name and nothing is bought for it; the pod beside it has its node."""
    site = HostileSite()
    rude = stranger("rude")
    write(rude)
    site.add(rude)
    site.submit("plain")
    site.minutes(6)
    (finding,) = [f for f in site.findings if f.subject == "default/rude"]
    assert finding.code == "unreadable-object"
    assert site.world.launches == 1


@unreadable
def test_a_node_under_a_pod_that_cannot_be_read_counts_as_in_use(write: Callable[[Json], None]) -> None:
    """Nobody knows what it holds: its node outlives every idle timeout."""
    site = HostileSite()
    site.world.launch("one")
    site.submit("plain", run_s=600)
    site.world.advance(300)
    rude = stranger("rude")
    rude["spec"]["nodeName"] = "n1"
    rude["status"] = {"phase": "Running"}
    write(rude)
    site.add(rude)
    site.minutes(60)
    assert "n1" in site.world.nodes


def _workload(name: str, write: Callable[[Json], None]) -> Json:
    """A Workload that has its quota and waits for our check, of one pod with a GPU."""
    made = stranger(name)
    write(made)
    template = {"metadata": {}, "spec": made["spec"]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admissionChecks": [{"name": "pilotlight", "state": "Pending"}],
        },
    }


def test_a_workload_that_cannot_be_read_costs_only_itself() -> None:
    """Kueue's schema takes any operator: the Workload is told, and the one beside it has its node."""
    site = HostileSite()
    site.add(_workload("rude", _odd_operator), _workload("plain", lambda pod: None))
    site.minutes(3)
    (finding,) = [f for f in site.findings if f.subject == "default/rude"]
    assert (finding.code, site.world.launches) == ("unreadable-object", 1)
    assert "operator" in finding.message
