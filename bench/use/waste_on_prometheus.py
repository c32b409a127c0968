"""A recorded fleet in a real Prometheus: ``pilotlight waste`` against sums of our own, and its advice against the rest.

Usage: python bench/use/waste_on_prometheus.py FILE [--hours H] [--price 3.06] [--dollars-only]

FILE is a CSV (.gz too) with t (seconds), pod, gpu_util_pct, gpu_mem_mib. It is loaded as dcgm-exporter's series
(`prometheus` and `promtool` must be in PATH); every dollar that the command prints is worked out again from the file,
without Pilotlight's code, and must agree within 1 %. Then the advice is judged as bench/use/held_gpus.py does, on what
the Prometheus answers. Exit code 1 where something does not hold.
"""

import argparse
import csv
import gzip
import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import held_gpus
from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry

T0 = 1_790_000_000 // 604_800 * 604_800 + 4 * 86_400
"""A Monday, 00:00 UTC."""
WITHIN = 0.01
RUN = "from pilotlight.tools.cli.entry import run; run()"
Samples = dict[str, dict[int, tuple[float, float]]]
"""By pod and second: percent of activity and MiB."""


def recorded(path: Path, hours: float) -> Samples:
    """Figures that the file has of its first hours."""
    found: Samples = defaultdict(dict)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            if float(row["t"]) <= hours * 3600 and row["gpu_util_pct"] and row["gpu_mem_mib"]:
                found[row["pod"]][int(float(row["t"]))] = float(row["gpu_util_pct"]), float(row["gpu_mem_mib"])
    return found


def step_of(samples: Samples) -> int:
    """Seconds between two samples of the fleet."""
    times = sorted({at for row in samples.values() for at in row})
    return times[1] - times[0]


@contextmanager
def prometheus(samples: Samples) -> Iterator[str]:
    """The URL of one that has them, each pod as chat-POD of namespace fleet. Its folder goes with it."""
    folder = Path(tempfile.mkdtemp())
    try:
        _written(samples, folder / "recorded.txt")
        made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "recorded.txt", "data"]
        subprocess.run(made, cwd=folder, check=True, capture_output=True)
        (folder / "prometheus.yml").write_text("{}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
        with (folder / "log").open("wb") as log:
            began = ["prometheus", *words, f"--web.listen-address=127.0.0.1:{port}"]
            process = subprocess.Popen(began, cwd=folder, stdout=log, stderr=log)
        try:
            _ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder)


def _written(samples: Samples, path: Path) -> None:
    with path.open("w") as file:
        for which, name in enumerate(("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")):
            file.write(f"# TYPE {name} gauge\n")
            for number, (pod, row) in enumerate(samples.items()):
                labels = f'gpu="0",UUID="GPU-{number}",Hostname="n{number}",namespace="fleet",pod="chat-{pod}"'
                file.writelines(f"{name}{{{labels}}} {values[which]} {T0 + at}\n" for at, values in row.items())
        file.write("# EOF\n")


def _ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("error: prometheus ended as it began")
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("error: prometheus is not ready after a minute")


def worked_out(samples: Samples, price: float) -> dict[str, float]:
    """The same dollars from the file alone."""
    step = step_of(samples)
    end = max(at for row in samples.values() for at in row)
    grid = range(0, end + 1, step)
    silent = working = room = 0.0
    demand, running = [0.0] * len(grid), [0] * len(grid)
    held = 0
    for row in samples.values():
        run = 0
        for n, at in enumerate(grid):
            if at not in row:
                run = 0
                continue
            share = row[at][0] / 100
            demand[n] += share
            running[n] += 1
            working, room = working + share, room + 1 - share
            run = run + 1 if share < 0.05 else 0
            if run == 3600 // step:  # All of the hour until now, which was counted as work and room.
                hour = [row[grid[k]][0] / 100 for k in range(n - run + 1, n + 1)]
                silent, working, room = silent + run, working - sum(hour), room - run + sum(hour)
            elif run > 3600 // step:
                silent, working, room = silent + 1, working - share, room - 1 + share
        held += end in row
    window = max(demand[-(4 * 3600 // step) :])
    return {
        "usd_per_hour": price * held,
        "idle": _idle(samples, grid),
        "fewest": math.ceil((1.2 if len(grid) > 4 * 3600 // step else 1.6) * window / 0.95),
        "silent_usd": price * silent * step / 3600,
        "working_usd": price * working * step / 3600,
        "room_usd": price * room * step / 3600,
    }


def _idle(samples: Samples, grid: range) -> int:
    """Pods silent for 1, 2, 4 or 8 hours now, where at most one silence in twenty so long came back within four hours.

    Silences are counted over the fleet, two at least, in windows that do not overlap; ten with one in twenty stand
    before the first. By the pod's own past, where ten as the fleet's stand before the first, it must be as seldom.
    """
    hour, found = 3600 / grid.step, 0
    quiet = {pod: [at in row and row[at][0] < 5 for at in grid] for pod, row in samples.items()}
    each = {hours: {pod: _past(row, quiet[pod], grid, hours) for pod, row in samples.items()} for hours in (8, 4, 2, 1)}
    fleet = {hours: (sum(w for w, _ in of.values()), sum(b for _, b in of.values())) for hours, of in each.items()}
    for pod, flags in quiet.items():
        run = next((n for n, flag in enumerate(reversed(flags)) if not flag), len(flags))
        fits = [hours for hours in each if run >= hours * hour]
        windows, back = next((fleet[hours] for hours in fits if fleet[hours][0] >= 2), (0, 0))
        own, own_back = next((each[hours][pod] for hours in fits if each[hours][pod][0]), (0, 0))
        seldom = windows and (back + 0.5) / (windows + 10) <= 0.05
        found += bool(seldom and (own_back + 10 * back / windows) / (own + 10) <= 0.05)
    return found


def _past(row: Mapping[int, Any], quiet: list[bool], grid: range, hours: int) -> tuple[int, int]:
    """Windows of silence of a pod, and how many of them ended within four hours."""
    windows, back, at = 0, 0, 0
    length, ahead = int(hours * 3600 / grid.step), int(4 * 3600 / grid.step)
    while at + length + ahead <= len(grid):
        if not all(quiet[at : at + length]):
            at += 1
            continue
        at += length
        after = [row.get(moment) for moment in grid[at : at + ahead]]
        if len(after) < ahead or None in after:
            break
        windows, back = windows + 1, back + any(value[0] >= 5 for value in after if value)
    return windows, back


def told(url: str, samples: Samples, price: float) -> dict[str, Any]:
    """Text that the command prints."""
    end, step = max(at for row in samples.values() for at in row), step_of(samples)
    words = ["waste", "--prometheus", url, "--price", str(price), "--by", "all", "--json", "--step", f"{step}s"]
    words += ["--since", f"{end}s", "--until", str(T0 + end)]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def differences(samples: Samples, found: dict[str, Any], price: float) -> dict[str, tuple[float, float]]:
    """Each dollar figure as told and as worked out."""
    ours = worked_out(samples, price)
    weeks = found["all_weeks"]
    spare = max(0.0, ours["usd_per_hour"] - price * ours["idle"] - price * ours["fewest"])
    parts = sum(float(found[f"{part}_usd_per_hour"]) for part in ("idle", "beyond", "spare", "rest"))
    return {
        "held $/h": (float(found["usd_per_hour"]), ours["usd_per_hour"]),
        "parts $/h": (parts, ours["usd_per_hour"]),
        "idle $/h": (float(found["idle_usd_per_hour"]), price * ours["idle"]),
        "spare $/h": (float(found["spare_usd_per_hour"]), spare),
        **{f"{name} $": (float(weeks[f"{name}_usd"]), ours[f"{name}_usd"]) for name in ("silent", "working", "room")},
    }


def main(words: Sequence[str]) -> int:
    """Print. Exit code 1 where a figure differs or a target is missed, 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--hours", type=float, default=1e6, help="only the first of the file")
    parser.add_argument("--price", type=float, default=3.06)
    parser.add_argument("--lead", type=float, default=240.0)
    parser.add_argument("--dollars-only", action="store_true")
    options = parser.parse_args(words)
    try:
        samples = recorded(options.file, options.hours)
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {options.file}: {error}: see --help for its columns", file=sys.stderr)
        return 2
    wrong = 0
    with prometheus(samples) as url:
        for name, (said, ours) in differences(samples, told(url, samples, options.price), options.price).items():
            off = abs(said - ours) / max(abs(ours), 1e-9) if said or ours else 0.0
            wrong += off > WITHIN
            print(f"{name:12} told {said:12,.2f}   worked out {ours:12,.2f}   {off:.3%} off")
        if not options.dollars_only:
            wrong += judged(url, samples, options.lead)
    return int(wrong > 0)


def judged(url: str, samples: Samples, lead: float) -> int:
    """The advice on what the Prometheus answers, held against what came afterwards; how many targets are missed."""
    end, step = max(at for row in samples.values() for at in row), step_of(samples)
    telemetry = PrometheusTelemetry(PrometheusApi(url, {})).read(T0, T0 + end, step)
    idle, sharing = held_gpus.idle(telemetry), held_gpus.sharing(telemetry, 80, "A100-80GB")
    kept = held_gpus.advice(telemetry, lead)
    print(f"called idle  {idle['called_idle']}, active within four hours {idle['active_after']}")
    ways = sharing["ways"]
    told = ", ".join(f"{way} {one['devices']} devices, {one['outgrown']} outgrew" for way, one in ways.items())
    print(f"sharing      {sharing['pods']} pods: {told or 'no way saves a device'}")
    print(f"replicas     {kept['mean']:.1f} of {kept['mean_running']:.1f} on average, short in {kept['over']:.3%}")
    held = (
        idle["active_after"] <= idle["called_idle"] / 10,
        not any(one["outgrown"] for one in ways.values()),
        kept["mean"] <= 0.3 * kept["mean_running"] and kept["over"] <= 0.001,
    )
    return held.count(False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
