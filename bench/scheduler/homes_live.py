"""Homes on a real API server and kube-scheduler: does each pod run on the node that was bought for it, and how soon?

Draws pods from a trace, creates them, and runs Pilotlight in act on them by its own account, with a cloud whose nodes
join the API server 10 to 20 s after purchase, in an order that a seed gives. A tick a minute; events of pods and nodes
are delivered, unless --no-events. A line a run:

  plan $/h      what the plan for all pods together costs
  lit $/h       what was bought when all pods were bound, and its ratio to the plan
  all bound s   since the first look; 0 where some were not
  after Ready s from the last node's Ready, with GPUs and without the taint not-ready, to the last bind
  unused        nodes without a pod then
  writes        what Pilotlight asked the API server to change

  KUBECONFIG=... python bench/scheduler/homes_live.py ../shared/traces/openb_dev.csv.gz --pods 200 --joins 1,2,3
  KUBECONFIG=... python bench/scheduler/homes_live.py ../shared/traces/philly_dev.csv.gz --placement homes,none --json

A cluster without other GPU nodes and waiting pods, please. Exit code 1 where homes miss a target.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from live_cloud import kubeconfig
from live_run import Figures, Object, admitted, run
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.tools.replay.traces.trace_file import LARGEST_NODE, read_trace
from pilotlight.tools.replay.traces.trace_job import Job


def main(words: Sequence[str] | None = None) -> int:
    """Run every placement for every order of joins, and say what each came to."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trace", type=Path)
    options.add_argument("--pods", type=int, default=200, help="so many are drawn")
    options.add_argument("--seed", type=int, default=1, help="of the draw")
    options.add_argument("--joins", default="1", help="seeds of join orders, as 1,2,3")
    options.add_argument("--placement", default="homes", help="homes, none, or both, as homes,none")
    options.add_argument("--no-events", action="store_true", help="ticks alone")
    options.add_argument("--arriving", type=float, default=0.0, help="pods come over so many seconds, not at once")
    options.add_argument("--tick", type=float, default=60.0, help="seconds between ticks")
    options.add_argument("--json", action="store_true", help="a JSON list instead of a table")
    asked = options.parse_args(words)
    if not kubeconfig():
        print("homes_live: KUBECONFIG names no API server", file=sys.stderr)
        return 2
    drawn = draw(read_trace(asked.trace), asked.pods, asked.seed)
    found: list[Figures] = []
    with admitted() as site:
        for joins in map(int, asked.joins.split(",")):
            for placement in asked.placement.split(","):
                one = Figures(asked.trace.name.split(".")[0], placement, not asked.no_events, joins, len(drawn))
                run(site, one, drawn, tick_s=asked.tick, arriving_s=asked.arriving)
                found.append(one)
                if not asked.json:
                    print(_line(one, first=len(found) == 1), flush=True)
    if asked.json:
        print(json.dumps([{**vars(one), "ratio": round(one.ratio, 4)} for one in found], indent=1))
    return int(any(one.missed for one in found))


def draw(jobs: Sequence[Job], count: int, seed: int) -> list[Object]:
    """Pods of jobs drawn from a trace: a share of a GPU is a whole one, and a job larger than a node is of its size."""
    chosen = Random(seed).sample(list(jobs), count)
    return [pod(f"p{n:04}", min(job.gpus, LARGEST_NODE), job.models) for n, job in enumerate(chosen)]


def pod(name: str, gpus: int, models: Sequence[str]) -> Object:
    """A pod that may use these models."""
    room = {"cpu": f"{500 * gpus}m", "memory": f"{2 * gpus}Gi", "nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "example.invalid/x", "resources": {"requests": room, "limits": room}}
    term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": list(models)}]}
    wants = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"containers": [container], "affinity": {"nodeAffinity": wants}, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


COLUMNS = (
    *("trace", "placement", "joins", "plan $/h", "lit $/h", "ratio", "bound"),
    *("all bound s", "after Ready s", "nodes", "unused", "writes"),
)


def _line(one: Figures, *, first: bool) -> str:
    how = one.placement if one.events else f"{one.placement}, no events"
    writes = ", ".join(f"{count} {name}" for name, count in one.writes.items())
    usd = (f"{one.plan_usd:.2f}", f"{one.lit_usd:.2f}", f"{one.ratio:.3f}")
    cells = (one.trace, how, one.joins, *usd, f"{one.bound} of {one.pods}", one.bound_s, one.after_ready_s)
    rows = [COLUMNS, ("---",) * len(COLUMNS)] * first + [(*cells, one.nodes, one.unused, writes)]
    bad = [f"  {count} times: {text[:300]}" for text, count in Counter(one.errors).most_common(5)]
    return "\n".join([*(f"| {' | '.join(map(str, row))} |" for row in rows), *bad])


if __name__ == "__main__":
    sys.exit(main())
