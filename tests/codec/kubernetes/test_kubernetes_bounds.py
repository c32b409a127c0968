"""The bounds of what a tenant may write: each field beyond its own is a short finding, and nothing is planned by it."""

from typing import Any

import pytest
from kubernetes_objects import node, pod, view

A = "pilotlight.dev/"
LONG = "\x1b[31m‮" + "x" * 200_000


def _notes(**notes: str) -> dict[str, Any]:
    return {"meta": {"annotations": {A + name.replace("_", "-"): text for name, text in notes.items()}}}


def _asks(**amounts: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 1, **{name.replace("_", "/"): amount for name, amount in amounts.items()}}
    return {"containers": [{"name": "c", "resources": {"limits": limits}}]}


def _near(count: int) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}
    return {"affinity": {"podAntiAffinity": required}}


def _terms(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def _in(*values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "k", "operator": "In", "values": list(values)}]}


BEYOND: dict[str, tuple[dict[str, Any], str]] = {
    "a grace of a trillion seconds": ({"terminationGracePeriodSeconds": 10**12}, "terminationGracePeriodSeconds"),
    "a grace a second beyond a day": ({"terminationGracePeriodSeconds": 86_401}, "terminationGracePeriodSeconds"),
    "a checkpoint of 9E seconds": (_notes(checkpoint_takes_seconds="9E"), "checkpoint-takes-seconds"),
    "an interval of 1e18 seconds": (_notes(checkpoint_seconds="1e18"), "checkpoint-seconds"),
    "an interval of 1e999 seconds": (_notes(checkpoint_seconds="1e999"), "checkpoint-seconds"),
    "an interval of no number": (_notes(checkpoint_seconds="NaN"), "checkpoint-seconds"),
    "a quarter of a megabyte of digits": (_notes(checkpoint_seconds="9" * 250_000), "checkpoint-seconds"),
    "a quarter of a megabyte of escapes": (_notes(checkpoint_seconds=LONG), "checkpoint-seconds"),
    "a share of 9E": (_notes(gpu_share="9E"), "gpu-share"),
    "a share of escapes": (_notes(gpu_share=LONG), "gpu-share"),
    "a GPU of 9E bytes": (_notes(min_gpu_memory="9000000000000000000"), "min-gpu-memory"),
    "forty thousand models": (_notes(gpu_models=",".join(map(str, range(40_000)))), "gpu-models"),
    "a model of escapes": (_notes(gpu_models=LONG), "gpu-models"),
    "a gang of a billion": (_notes(gang="g", gang_size="999999999"), "gang"),
    "a gang of 5000 digits": (_notes(gang="g", gang_size="9" * 5000), "gang"),
    "nine quintillion cores": (_asks(cpu="9E"), "cpu"),
    "nine quintillion bytes": (_asks(memory="9E"), "memory"),
    "nine quintillion others": (_asks(rdma_hca="9E"), "rdma/hca"),
    "a thousand resources": (_asks(**{f"a.b_c{n}": "1" for n in range(1000)}), "resources"),
    "a thousand tolerations": ({"tolerations": [{"key": str(n)} for n in range(1000)]}, "tolerations"),
    "a thousand volumes": ({"volumes": [{"name": str(n)} for n in range(1000)]}, "volumes"),
    "a thousand rules on pods near by": (_near(1000), "pod affinity"),
    "a thousand alternatives": (_terms(*(_in(str(n)) for n in range(1000))), "alternatives"),
    "twenty thousand values": (_terms(_in(*map(str, range(20_000)))), "values"),
}


@pytest.mark.parametrize(("fields", "named"), BEYOND.values(), ids=BEYOND)
def test_a_waiting_pod_beyond_a_bound_is_refused(fields: dict[str, Any], named: str) -> None:
    """Its one finding names the field, is a short printable line, and the pod beside it is planned."""
    found = view([pod("rude", **fields), pod("plain")], [node()])
    assert [demand.name for demand in found.pending] == ["plain"]
    (finding,) = found.findings
    assert finding.subject == "team-a/rude"
    assert named in finding.message
    assert finding.message.isprintable()
    assert len(finding.message) < 300


WITHIN: dict[str, dict[str, Any]] = {
    "a grace of a day": {"terminationGracePeriodSeconds": 86_400},
    "a grace below nothing": {"terminationGracePeriodSeconds": -1},
    "a checkpoint of an hour": _notes(checkpoint_takes_seconds="1h"[:1] + "k", checkpoint_seconds="600"),
    "a run of 68 years": {"activeDeadlineSeconds": 2**31 - 1},
    "a gang name of escapes": _notes(gang=LONG),
    "a class of escapes": _notes(workload_class=LONG),
    "arguments of a megabyte": {
        "containers": [{"args": ["jupyter" + "x" * 1_000_000], "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    },
    "an owner of escapes": {"meta": {"ownerReferences": [{"kind": LONG, "name": LONG, "uid": LONG}]}},
}


@pytest.mark.parametrize("fields", WITHIN.values(), ids=WITHIN)
def test_what_is_large_and_harmless_is_planned_in_few_words(fields: dict[str, Any]) -> None:
    """The demand is made, no text of it is long, and no duration is longer than a year."""
    (demand,) = view([pod("large", **fields)], [node()]).pending
    texts = (demand.owner, demand.said, demand.shape.class_reason, demand.shape.gang.key if demand.shape.gang else "")
    assert all(len(text) <= 600 and "\x1b" not in text for text in texts)
    assert 0 <= demand.shape.max_run_s <= 366 * 86_400
    assert 0 < demand.grace_s <= 86_400


def test_two_gangs_of_long_names_stay_two() -> None:
    """Names that differ in their last letter are shortened to different keys, and the same name to the same one."""
    made = [pod(name, **_notes(gang="g" * 100_000 + end)) for name, end in (("a", "1"), ("b", "2"), ("c", "1"))]
    gangs = {demand.name: demand.shape.gang for demand in view(made, [node()]).pending}
    assert gangs["a"] == gangs["c"] != gangs["b"]


@pytest.mark.parametrize("amount", ["9E", "9223372036854775807"])
def test_a_node_has_no_more_than_there_can_be(amount: str) -> None:
    """What a kubelet says that it has is cut to what any node has: GPUs, parts of them, cores, bytes and others."""
    names = ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "rdma/hca")
    (found,) = view([], [node(allocatable=dict.fromkeys(names, amount))]).nodes
    assert len(found.devices) == 1024
    assert max(found.slices.values()) == 1024
    room = found.room
    assert room is not None
    assert max(room.cpu_milli, room.memory, room.ephemeral, room.pods, *(n for _, n in room.other)) <= 2**53


def _claims(count: int, classes: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A pod with so many claims of so many classes, each of which makes volumes in six pairs of zone and rack."""
    pairs = [[{"key": key, "values": [f"{key}{n}"]} for key in ("zone", "rack")] for n in range(6)]
    made = [
        {
            "kind": "StorageClass",
            "metadata": {"name": f"class-{n}"},
            "provisioner": "disks",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [
                {"matchLabelExpressions": [*pair, {"key": f"k{n}", "values": ["v"]}]} for pair in pairs
            ],
        }
        for n in range(classes)
    ]
    made += [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"c{n}", "namespace": "team-a"},
            "spec": {"storageClassName": f"class-{n % classes}"},
        }
        for n in range(count)
    ]
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(count)]
    return {"volumes": volumes}, made


def test_eight_claims_of_one_class_are_where_one_is() -> None:
    """Six alternatives, not 6^8: what every claim of the pod asks alike is asked once."""
    fields, objects = _claims(8, 1)
    (demand,) = view([pod("a", **fields)], [node()], objects).pending
    assert len(demand.shape.terms) == 6


def test_alternatives_that_multiply_beyond_the_bound_are_refused_before_they_are_made() -> None:
    """Sixty claims of sixty classes are 6^60 alternatives: the pod is refused, and the one beside it is planned."""
    fields, objects = _claims(60, 60)
    found = view([pod("rude", **fields), pod("plain")], [node()], objects)
    assert [demand.name for demand in found.pending] == ["plain"]
    (finding,) = found.findings
    assert finding.code == "out-of-bounds"
    assert "has a trillion or more alternatives of where it may run" in finding.message


def test_a_note_of_a_release_is_a_name_that_a_store_takes() -> None:
    """It is looked up as a decision's: no database has a key of 200,000 letters, and a refused read stops the look."""
    own = node()
    own["metadata"]["annotations"] = {f"{A}closed-by": LONG}
    (seen,) = view([], [own]).nodes
    assert (0 < len(seen.opened_by) < 300, seen.opened_by.isascii()) == (True, True)
