"""Times that cannot be: the pod is served, the node is kept, and people are told of the object that says so."""

from datetime import UTC, datetime, timedelta

import pytest
from kubernetes_objects import NOW, node, pod, view

from pilotlight.codec.kubernetes.times import newest, plausible

LOOK = datetime.fromisoformat(NOW)
STRANGE = ["0001-01-01T00:00:00Z", "1850-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-20T10:00:00"]


@pytest.mark.parametrize("moment", STRANGE)
def test_a_pod_with_a_time_that_cannot_be_is_served_at_the_look(moment: str) -> None:
    """It waits since now, and a finding names it."""
    odd, plain = pod(name="odd"), pod(name="plain")
    odd["metadata"]["creationTimestamp"] = moment
    plain["metadata"]["creationTimestamp"] = NOW
    seen = view([odd, plain])
    assert {demand.name: demand.created_at for demand in seen.pending} == {"odd": LOOK, "plain": LOOK}
    [finding] = seen.findings
    assert (finding.code, finding.subject.rpartition("/")[2]) == ("implausible-time", "odd")
    assert finding.message.startswith("metadata.creationTimestamp is ")


@pytest.mark.parametrize("moment", STRANGE)
@pytest.mark.parametrize("where", ["creation", "ready"])
def test_a_node_with_a_time_that_cannot_be_is_as_old_as_the_look(moment: str, where: str) -> None:
    """It is there, idle since now: nothing is put out over a clock."""
    odd = node(name="odd")
    if where == "creation":
        odd["metadata"]["creationTimestamp"] = moment
    else:
        odd["status"]["conditions"][0]["lastTransitionTime"] = moment
    [seen] = view([], [odd, node(name="plain")]).nodes[:1]
    assert (seen.created_at, seen.idle_since) == (LOOK, LOOK)


def test_a_clock_a_day_ahead_is_a_clock() -> None:
    """More is not."""
    assert plausible(LOOK + timedelta(hours=23), LOOK)
    assert not plausible(LOOK + timedelta(hours=25), LOOK)
    assert plausible(datetime(2014, 6, 7, tzinfo=UTC), LOOK)


def test_files_are_as_new_as_what_can_be() -> None:
    """A time of year 9999 in a file makes no look of that year."""
    assert newest([], []) is None
