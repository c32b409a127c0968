"""What the doctor says of nodes that carry our taint."""

from datetime import UTC, datetime, timedelta

import pytest

from pilotlight.facts.capacity import Taint
from pilotlight.tools.checkup.node_taints import mark_checks
from pilotlight.tools.checkup.survey_facts import SeenMark, SeenNode, Survey

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OURS = Taint(key="pilotlight.dev/draining", value="marked", effect="NoSchedule")
TEAM = Taint(key="team", effect="NoSchedule")


def survey(**taints: Taint) -> Survey:
    """Nodes by name, with a taint each."""
    nodes = tuple(
        SeenNode(name=name, pool="t4", gpus=1, created_at=NOW, ready=True, taints=(taint,))
        for name, taint in taints.items()
    )
    return Survey(server="", version="", at=NOW, nodes=nodes)


def mark(owner: str, left_s: float | None = None, node: str = "n1") -> SeenMark:
    """A record ten minutes old, that ends in so many seconds."""
    until = None if left_s is None else NOW + timedelta(seconds=left_s)
    return SeenMark(node=node, owner=owner, why="for a reason", since=NOW - timedelta(minutes=10), until=until)


@pytest.mark.parametrize(
    ("marks", "verdict", "words"),
    [
        pytest.param([], "warning", "no record of this state says", id="that no record names"),
        pytest.param([mark("release", node="n2")], "warning", "no record of this state says", id="of another's record"),
        pytest.param([mark("release", 60)], "ok", "release since 2026-11-20 11:50 UTC until 2026", id="with its owner"),
        pytest.param([mark("budget"), mark("rescue")], "ok", "budget since 2026-11-20 11:50 UTC, for", id="with two"),
        pytest.param([mark("release", -1)], "warning", "should take pods again since 2026", id="for longer"),
    ],
)
def test_a_marked_node_is_told_with_its_owners(marks: list[SeenMark], verdict: str, words: str) -> None:
    """Whose sake, since and until when; what is over or unknown is to be looked at, with the way to lift it."""
    (check,) = mark_checks(survey(n1=OURS, n3=TEAM), marks)
    assert (check.subject, check.verdict) == ("node n1", verdict)
    assert words in check.what
    assert all(found.owner in check.what for found in marks if found.node == "n1")
    assert ("kubectl taint nodes n1 pilotlight.dev/draining-" in check.fix) is (verdict == "warning")


def test_without_our_taint_nothing_is_said() -> None:
    """Taints of others are no business of this line."""
    assert list(mark_checks(survey(n1=TEAM), [mark("release")])) == []
