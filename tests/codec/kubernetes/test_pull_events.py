"""Events of image pulls: their words, and words that somebody made up."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_objects import node, pod, view

from pilotlight.codec.kubernetes.pods.pods import image_name
from pilotlight.codec.kubernetes.pull_events import KUBELET, PulledEvent, Source, pull_of
from pilotlight.facts.nodes.first_work import Pull

NEW = 'Successfully pulled image "a" in 12.3s (1m15.5s including waiting). Image size: 4096 bytes.'
OLD = 'Successfully pulled image "b" in 812ms (812ms including waiting)'
OLDEST = 'Successfully pulled image "c" in 2m1.5s'
THERE = 'Container image "a" already present on machine'


def _told(text: str) -> PulledEvent:
    """An Event as a kubelet makes it."""
    return PulledEvent(reason="Pulled", message=text, reporting_component=KUBELET)


@pytest.mark.parametrize(
    ("said", "pull"),
    [
        ([NEW], Pull(seconds=75.5, size=4096)),
        ([OLD], Pull(seconds=0.812)),
        ([OLDEST], Pull(seconds=121.5)),
        ([THERE], Pull(seconds=0.0)),
        ([NEW, OLDEST, THERE], Pull(seconds=197.0, size=4096)),
        (["Started container c"], None),
        ([], None),
    ],
    ids=["with its size", "without", "before 1.27", "it was there", "of three containers", "other words", "none"],
)
def test_the_pull_of_a_pod(said: list[str], pull: Pull | None) -> None:
    """All containers' pulls together, waiting for other pulls included; one that was there took nothing."""
    assert pull_of([_told(text) for text in said]) == pull


@given(st.text(max_size=200), st.text("0123456789.hmsnuµ", max_size=60))
def test_no_words_raise(text: str, duration: str) -> None:
    """Whatever an Event says is a pull of some seconds, or none."""
    said = (text, f'Successfully pulled image "x" in {duration} ({duration} including waiting)')
    pull = pull_of(map(_told, said))
    assert pull is None or pull.seconds >= 0


def test_an_event_of_another_reason_says_nothing() -> None:
    """A pod's author may make any Event: only those that a kubelet would make count."""
    assert pull_of([PulledEvent(reason="Failed", message=NEW, reporting_component=KUBELET)]) is None


def test_only_a_kubelet_tells_of_pulls() -> None:
    """Its name is in one of two places, by the server's version; what any other reporter says is nothing."""
    assert pull_of([PulledEvent(reason="Pulled", message=NEW, source=Source(component=KUBELET))]) is not None
    for other in ("", "my-controller", "kubelet-of-mine"):
        assert pull_of([PulledEvent(reason="Pulled", message=NEW, reporting_component=other)]) is None


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("acme/train:1", "docker.io/acme/train:1"),
        ("registry.acme.com/train:1", "registry.acme.com/train:1"),
        ("localhost:5000/train", "localhost:5000/train:latest"),
        ("ghcr.io/a/b@sha256:00", "ghcr.io/a/b@sha256:00"),
    ],
)
def test_an_image_has_one_name(written: str, whole: str) -> None:
    """Pods write a short one, and nodes list the whole: both are read as the latter."""
    assert image_name(written) == whole


def test_pod_and_node_tell_the_same_image() -> None:
    """The image of the container that asks for GPUs, of a pod that waits too; when its containers began; and what the
    node has already.
    """
    running = {
        "phase": "Running",
        "startTime": "2026-11-21T00:00:10Z",
        "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-11-21T00:03:00Z"}}}],
    }
    there = node()
    there["status"]["images"] = [{"names": ["docker.io/library/busybox:latest"], "sizeBytes": 1}]
    looked = view([pod(status=running, nodeName="n1"), pod("next")], [there])
    (seen,), (waiting,) = looked.nodes, looked.pending
    (bound,) = seen.gpu_pods
    assert bound.image == waiting.image
    assert bound.image in seen.images
    assert bound.works_since == datetime(2026, 11, 21, 0, 3, tzinfo=UTC)


def test_a_pod_whose_image_is_still_pulled_works_not_yet() -> None:
    """Nothing is counted of it until its containers run."""
    waits = {
        "phase": "Pending",
        "startTime": "2026-11-21T00:00:10Z",
        "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    }
    (seen,) = view([pod(status=waits, nodeName="n1")], [node()]).nodes
    assert seen.gpu_pods[0].works_since is None


def test_a_pod_that_was_started_again_teaches_nothing() -> None:
    """Its containers say when they began the last time, not how long a new pod takes: it names no image."""
    state = {"running": {"startedAt": "2026-11-21T02:00:00Z"}}
    again = {
        "phase": "Running",
        "startTime": "2026-11-21T00:00:10Z",
        "containerStatuses": [{"name": "c", "state": state, "restartCount": 3}],
    }
    (seen,) = view([pod(status=again, nodeName="n1")], [node()]).nodes
    assert seen.gpu_pods[0].image == ""
    assert seen.works_since == datetime(1970, 1, 1, tzinfo=UTC)
