"""Advice of ``pilotlight waste`` on a recorded fleet, held against what came afterwards.

Usage: python bench/use/held_gpus.py FILE [--device-gib 80] [--lead 240] [--json]

FILE is a CSV (.gz too) with the columns t (seconds), pod, gpu_util_pct, gpu_mem_mib; every pod holds one GPU. All is
chosen on what came before a moment and checked on what follows: pods called idle on their next four hours, at moments
half an hour apart; sharing on the second half; replicas at every sample. Targets: at most one in ten called idle is
active; no pod that shares outgrows the memory of its slice or share; demand is over 95 % of what the advice runs in
0.1 % of samples.
"""

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from math import isnan, nan
from pathlib import Path
from typing import Any

import msgspec

from pilotlight.decide.utilisation.gpu_waste import WHOLE, replicas, waste
from pilotlight.decide.utilisation.idle_pods import AHEAD_S, UNDER, idle_pods
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.mig_profiles import MODELS
from pilotlight.tools.advice.ways_to_share import SharingAdvice, saving_ways
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet

EVERY_S, FIRST_S = 1800.0, 4 * 3600.0
FULL = 0.95


def read(path: Path) -> Telemetry:
    """The file's series on the grid of its times; what is empty was not measured."""
    activity: dict[str, dict[float, float]] = defaultdict(dict)
    memory: dict[str, dict[float, float]] = defaultdict(dict)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            at = float(row["t"])
            activity[row["pod"]][at] = float(row["gpu_util_pct"]) / 100 if row["gpu_util_pct"] else nan
            memory[row["pod"]][at] = float(row["gpu_mem_mib"]) if row["gpu_mem_mib"] else nan
    times = sorted({at for row in activity.values() for at in row})
    series = tuple(
        GpuSeries(
            pod=pod,
            activity=[activity[pod].get(t, nan) for t in times],
            memory=[memory[pod].get(t, nan) for t in times],
        )
        for pod in sorted(activity)
    )
    return Telemetry(start_s=times[0], step_s=times[1] - times[0], metric="gpu_util_pct", series=series)


def until(telemetry: Telemetry, end: int) -> Telemetry:
    """Knowledge of a fleet by the time of a sample."""
    series = tuple(
        GpuSeries(pod=one.pod, activity=one.activity[:end], memory=one.memory[:end]) for one in telemetry.series
    )
    return Telemetry(start_s=telemetry.start_s, step_s=telemetry.step_s, metric=telemetry.metric, series=series)


def idle(telemetry: Telemetry) -> dict[str, Any]:
    """Pods called idle, as one service, and those of them that were active within the next hours."""
    groups = {one.pod: "fleet" for one in telemetry.series}
    rows = {one.pod: one.activity for one in telemetry.series}
    ahead, every = int(AHEAD_S / telemetry.step_s), int(EVERY_S / telemetry.step_s)
    called = active = silent = 0
    for end in range(int(FIRST_S / telemetry.step_s), telemetry.samples - ahead, every):
        found = idle_pods(until(telemetry, end), groups)
        called += len(found)
        active += sum(any(value >= UNDER for value in rows[one.pod][end : end + ahead]) for one in found)
        hour = int(3600 / telemetry.step_s)
        silent += sum(all(value < UNDER for value in row[end - hour : end]) for row in rows.values())
    return {"called_idle": called, "active_after": active, "silent_for_an_hour": silent}


def sharing(telemetry: Telemetry, gib: float, model: str) -> dict[str, Any]:
    """By way: pods present all day on devices, by the first half, and how many outgrew theirs in the second."""
    half = telemetry.samples // 2
    rows = {one.pod: one for one in telemetry.series if one.measured_samples >= WHOLE * telemetry.samples}
    early = until(telemetry, half)
    early = msgspec.structs.replace(early, series=tuple(one for one in early.series if one.pod in rows))
    ways: dict[str, Any] = {}
    for row in waste(early, Decimal(1), 0.0, lambda _: "fleet"):
        for one in saving_ways(row, MODELS.get(model), gib * 1024, serving=True):
            later = {pod: max(map(_known, rows[pod.pod].memory[half:])) for pod, _ in one.resources}
            outgrown = sum(later[pod] > _room(asked, one, gib * 1024) for pod, asked in one.resources)
            ways[one.kind] = {"pods": one.pods, "devices": one.devices, "outgrown": outgrown}
    return {"pods": len(rows), "ways": ways}


def _room(asked: str, one: SharingAdvice, device_mib: float) -> float:
    """MiB that a pod may take by what it asks for."""
    if "gpumem=" in asked:
        return float(asked.partition("gpumem=")[2].partition(",")[0])
    profiles = {f"nvidia.com/mig-{p.name}": p.mib for model in MODELS.values() for p in model.profiles}
    return float(profiles.get(asked, device_mib / one.replicas))


def advice(telemetry: Telemetry, lead_s: float) -> dict[str, Any]:
    """Replicas of all pods as one service."""
    span = range(telemetry.samples)
    running = [sum(not isnan(one.activity[n]) for one in telemetry.series) for n in span]
    demand = [sum(_known(one.activity[n]) for one in telemetry.series) for n in span]
    found = replicas(demand, running, telemetry.step_s, lead_s)
    return {"mean": found.mean, "mean_running": found.mean_running, "over": found.over, "most_demand": max(demand)}


def _known(value: float) -> float:
    return 0.0 if isnan(value) else value


def main(words: Sequence[str]) -> int:
    """Print. Exit code 1 where a target is missed, 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--device-gib", type=float, default=80.0)
    parser.add_argument("--model", default="A100-80GB", choices=MODELS)
    parser.add_argument("--lead", type=float, default=240.0, help="seconds of boot and a model's load")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    try:
        telemetry = read(options.file)
    except (OSError, ValueError, KeyError, IndexError) as error:
        print(f"error: {options.file}: {error}: see --help for its columns", file=sys.stderr)
        return 2
    found = {
        "idle": idle(telemetry),
        "sharing": sharing(telemetry, options.device_gib, options.model),
        "replicas": advice(telemetry, options.lead),
    }
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        sheet = Sheet(Column("what"), *(Column(h) for h in ("figure", "value")))
        for what, figures in found.items():
            ways = {f"{way} {n}": v for way, told in figures.get("ways", {}).items() for n, v in told.items()}
            for name, value in ({n: v for n, v in figures.items() if n != "ways"} | ways).items():
                sheet.add(what, name.replace("_", " "), f"{value:.4g}")
        console().print(sheet)
    told, kept = found["idle"], found["replicas"]
    outgrown = any(way["outgrown"] for way in found["sharing"]["ways"].values())
    missed = told["active_after"] > told["called_idle"] / 10 or kept["over"] > 0.001
    return int(missed or outgrown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
