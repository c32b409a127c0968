"""What makes pods share devices: the fields that NVIDIA's operator reads, and a way back to what was there."""

import json
import re
from typing import Any

import pytest
import yaml

from pilotlight.tools.manifests.sharing_objects import WHOLE, Target, back, device_plugin, forth, mig_manager

CHAT = Target("deployment", "web", "chat", "vllm")


def test_the_device_plugin_has_no_limit_of_memory_to_set() -> None:
    """Each config has version, way and replicas alone; shares have a name of their own, and no pod gets two."""
    made = device_plugin("shares", {"a": ("time-slicing", 4), "b": ("mps", 2)}, "gpu-operator")
    configs = {name: yaml.safe_load(text) for name, text in made["data"].items()}
    told = {"renameByDefault": True, "failRequestsGreaterThanOne": True}
    four, two = ({**told, "resources": [{"name": WHOLE, "replicas": n}]} for n in (4, 2))
    assert configs["a"] == {"version": "v1", "sharing": {"timeSlicing": four}}
    assert configs["b"] == {"version": "v1", "sharing": {"mps": two}}


def test_migs_manager_can_always_go_back() -> None:
    """Slices are counted by profile, and a config without any is among them."""
    made = mig_manager("slices", {"a": ("1g.10gb", "3g.40gb", "1g.10gb")}, "gpu-operator")
    configs = yaml.safe_load(made["data"]["config.yaml"])["mig-configs"]
    assert configs["a"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 2, "3g.40gb": 1}}]
    assert configs["all-disabled"] == [{"devices": "all", "mig-enabled": False}]


def patched(workload: dict[str, Any], commands: list[str]) -> dict[str, Any]:
    """A container's resources after the strategic patches among commands: null takes away, else it is set."""
    for command in commands:
        found = re.search(r"patch deployment chat --type=strategic -p '(.*)'", command)
        if found is None:
            continue
        (container,) = json.loads(found[1])["spec"]["template"]["spec"]["containers"]
        assert container["name"] == "vllm"
        for part, asked in container["resources"].items():
            merged = {**workload.get(part, {}), **asked}
            workload = {**workload, part: {name: value for name, value in merged.items() if value is not None}}
    return workload


@pytest.mark.parametrize("way", ["mig", "mps", "time-slicing"])
def test_the_way_back_ends_where_it_began(way: str) -> None:
    """Requests are those of before, and stay equal to limits in between; nodes are closed only while they are cut."""
    after = "nvidia.com/mig-3g.40gb" if way == "mig" else "nvidia.com/gpu.shared"
    before = {"limits": {WHOLE: "1", "memory": "8Gi"}, "requests": {WHOLE: "1"}}
    then, undone = list(forth(way, "all", ["web-chat"], [(CHAT, after)])), list(back(way, [(CHAT, after)]))
    shared = patched(before, then)
    assert shared == {"limits": {after: "1", "memory": "8Gi"}, "requests": {after: "1"}}
    assert patched(shared, undone) == before
    for commands in (then, undone):
        drains = [n for n, command in enumerate(commands) if "kubectl drain NODE" in command]
        assert bool(drains) == (way == "mig")
        assert all("uncordon NODE" in commands[n + 3] for n in drains)
    assert "patch deployment" in then[-1]


@pytest.mark.parametrize(
    ("way", "after", "shared"),
    [
        ("kai", "gpu-fraction=0.35", {}),
        (
            "hami",
            "nvidia.com/gpu=1,nvidia.com/gpumem=9000,nvidia.com/gpucores=30",
            {WHOLE: "1", "nvidia.com/gpumem": "9000", "nvidia.com/gpucores": "30"},
        ),
    ],
)
def test_parts_by_another_scheduler_go_back_to_whole_devices(way: str, after: str, shared: dict[str, str]) -> None:
    """HAMi's are resources; KAI's is an annotation, whose scheduler and queue go with it."""
    before = {"limits": {WHOLE: "1"}, "requests": {WHOLE: "1"}}
    then, undone = list(forth(way, "all", ["web-chat"], [(CHAT, after)])), list(back(way, [(CHAT, after)]))
    assert patched(before, then) == {"limits": shared, "requests": shared}
    assert patched({"limits": shared, "requests": shared}, undone) == before
    kai = way == "kai"
    assert ('"schedulerName": "kai-scheduler"' in then[-1], '"gpu-fraction": "0.35"' in then[-1]) == (kai, kai)
    assert ('"schedulerName": null' in undone[-1], '"gpu-fraction": null' in undone[-1]) == (kai, kai)
    assert "patch deployment" in undone[0]


def test_a_pod_of_nobody_is_only_told() -> None:
    """It cannot be patched: its resources are fixed."""
    (told,) = [
        line for line in back("mps", [(Target("pod", "lab", "x", "c"), "nvidia.com/gpu.shared")]) if "lab/x" in line
    ]
    assert told.startswith("#")
