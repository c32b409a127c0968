"""What ``bench/scheduler/agreement_random.py`` counts: each disagreement, and no race of the cluster it runs on."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench" / "scheduler"))

import agreement_random
from agreement_races import ALONE, Seen, late_daemons, refused_alone

SEEN = Seen(frozenset({"n0"}), frozenset({"d-known"}))
REFUSED = refused_alone("g0-0", "refused neighbours: nowhere", "n1")
EMPTY = "n1 was bought and no pod is bound to it"


def pod(name: str, node: str, second: int, *, daemon: bool = False) -> dict[str, Any]:
    """A pod that the scheduler bound in that second."""
    at = {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"2026-11-29T12:00:{second:02}Z"}
    owners = [{"kind": "DaemonSet", "name": "d"}] if daemon else []
    meta = {"name": name, "uid": name, "ownerReferences": owners}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": {"conditions": [at]}}


@pytest.mark.parametrize(
    ("other", "late"),
    [
        (pod("d-late", "n0", 20, daemon=True), ["d-late"]),
        (pod("d-late", "n0", 30, daemon=True), ["d-late"]),
        (pod("d-late", "n0", 31, daemon=True), []),
        (pod("d-known", "n0", 20, daemon=True), []),
        (pod("d-late", "n1", 20, daemon=True), []),
        (pod("d-late", "n0", 20), []),
    ],
    ids=["before it", "in its second", "after it", "read by the plan", "on a node bought since", "of no DaemonSet"],
)
def test_late_is_a_daemon_s_pod_that_the_plan_could_not_read(other: dict[str, Any], late: list[str]) -> None:
    """On a node that the plan had read, bound since, and no later than the pod that was refused."""
    pods = {"g0-0": pod("g0-0", "n1", 30), other["metadata"]["name"]: other}
    assert late_daemons(SEEN, pods, ["g0-0"]) == late


def trial(n: int, costs: list[str], late: list[str]) -> Any:
    """A shape that was tried, with this outcome."""
    told = {"g0-0": "refused"}
    return SimpleNamespace(
        case={"n": n}, costs=costs, late=late, names=["g0-0"], bought=[], placed=[], where={}, told=told, homes=False
    )


@pytest.mark.parametrize(
    ("costs", "late", "alone", "asked", "code"),
    [
        ([], [], [], 0, 0),
        ([REFUSED], ["d"], [[]] * ALONE, ALONE, 0),
        ([REFUSED], ["d"], [[], [REFUSED]], 2, 1),
        ([REFUSED], ["d"], [None], 1, 1),
        ([REFUSED], [], [], 0, 1),
        ([REFUSED, EMPTY], ["d"], [], 0, 1),
        ([EMPTY], ["d"], [], 0, 1),
    ],
    ids=[
        "agrees",
        "agrees alone",
        "differs alone once",
        "cannot be tried alone",
        "no late pod",
        "a node for nothing beside it",
        "a node for nothing",
    ],
)
def test_a_race_is_told_apart_and_a_disagreement_ends_1(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    costs: list[str],
    late: list[str],
    alone: list[list[str] | None],
    asked: int,
    code: int,
) -> None:
    """A shape bound by a daemon's late pod is asked again alone; a node for nothing counts whatever came late."""
    again = list(alone)

    def tried(cases: list[Any], kubeconfig: str, first: int, *, homes: bool) -> list[Any]:
        if first < agreement_random.FIRST_ALONE:
            return [trial(0, costs, late)]
        found = again.pop(0)
        return [] if found is None else [trial(0, found, [])]

    monkeypatch.setenv("KUBECONFIG", "played")
    monkeypatch.setattr(agreement_random, "tried", tried)
    assert agreement_random.main(["--case", "{}", "--keep-going"]) == code
    assert len(alone) - len(again) == asked
    said = capsys.readouterr().out
    assert f"{code} disagreements that cost a node" in said
    races = [line for line in said.splitlines() if line.startswith('{"race"')]
    assert [json.loads(line)["race"] for line in races] == ([costs] if costs and not code else [])
