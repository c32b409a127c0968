"""Advice of ``pilotlight waste`` on a recorded fleet, held against what came afterwards.

Usage: python bench/use/held_gpus.py FILE [--device-gib 80] [--lead 240] [--json]

FILE is a CSV (.gz too) with the columns t (seconds), pod, gpu_util_pct, gpu_mem_mib; every pod holds one GPU. All is
chosen on what came before a moment and checked on what follows: pods called idle on their next four hours, at moments
half an hour apart; sharing on the second half; replicas at every sample. Targets: at most one in ten called idle is
active; sharing saves 30 % of the pods present all day, no device passes 95 % of its memory, joint activity passes a
device in 0.1 % of samples; demand is over 95 % of what the advice runs in as few.
"""

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any

from pilotlight.decide.utilisation.gpu_waste import WHOLE, replicas
from pilotlight.decide.utilisation.idle_pods import AHEAD_S, UNDER, idle_pods
from pilotlight.decide.utilisation.shared_devices import share_devices
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
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


def sharing(telemetry: Telemetry, device_mib: float) -> dict[str, Any]:
    """Devices chosen on the first half for pods present all day, and what they came to in the second."""
    half = telemetry.samples // 2
    whole = [one for one in telemetry.series if one.measured_samples >= WHOLE * telemetry.samples]
    rows = {one.pod: one for one in whole}
    names = {one.pod for one in whole}
    devices = share_devices([one for one in until(telemetry, half).series if one.pod in names], device_mib)
    full = over = samples = 0
    for device in devices:
        pods = [rows[name] for name in device.pods]
        span = range(half, telemetry.samples)
        full += any(sum(_known(pod.memory[n]) for pod in pods) > FULL * device_mib for n in span)
        over += sum(sum(_known(pod.activity[n]) for pod in pods) > 1 for n in span)
        samples += len(span)
    saved = 1 - len(devices) / len(whole) if whole else 0.0
    return {"pods": len(whole), "devices": len(devices), "saved": saved, "full": full, "over": over / max(1, samples)}


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
        "sharing": sharing(telemetry, options.device_gib * 1024),
        "replicas": advice(telemetry, options.lead),
    }
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        sheet = Sheet(Column("what"), *(Column(h) for h in ("figure", "value")))
        for what, figures in found.items():
            for name, value in figures.items():
                sheet.add(what, name.replace("_", " "), f"{value:.4g}")
        console().print(sheet)
    told, devices, kept = found["idle"], found["sharing"], found["replicas"]
    missed = told["active_after"] > told["called_idle"] / 10 or kept["over"] > 0.001
    return int(missed or devices["full"] > 0 or devices["saved"] < 0.3 or devices["over"] > 0.001)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
